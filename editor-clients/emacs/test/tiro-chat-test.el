;;; tiro-chat-test.el --- Tests of the chat buffer  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defun tiro-chat-test-command (command)
  "Run COMMAND as a key would, with its hooks."
  (let ((this-command command) (last-command-event ?x))
    (run-hooks 'pre-command-hook)
    (call-interactively command)))

(ert-deftest tiro-prompt-sends-the-prompt ()
  (tiro-testing-with-peer
    (tiro)
    (with-current-buffer "*tiro*"
      (goto-char (point-max))
      (insert "hello\nworld ")
      (tiro-chat-test-command #'tiro-prompt-send)
      (should (equal (tiro-transcript-draft) ""))
      (should-error (tiro-prompt-send) :type 'user-error))
    (tiro-testing-wait-idle)
    (should (string-search "You: hello\nworld\n\nYou said: hello\nworld" (tiro-testing-chat)))))

(ert-deftest tiro-chat-letters-go-to-the-prompt ()
  "Typing or sending above the prompt goes there; nothing is sent by accident."
  (tiro-testing-with-peer
    (tiro)
    (with-current-buffer "*tiro*"
      (insert "ab")
      (goto-char (point-min))
      (tiro-chat-test-command #'self-insert-command)
      (should (equal (tiro-transcript-draft) "abx"))
      (goto-char (point-min))
      (tiro-chat-test-command #'tiro-prompt-send)
      (should (eobp))
      (should (equal (tiro-transcript-draft) "abx")))))

(ert-deftest tiro-chat-history-brings-prompts-back ()
  (tiro-testing-with-peer
    (tiro-testing-ask "first")
    (tiro-testing-ask "second")
    (with-current-buffer "*tiro*"
      (goto-char (point-max))
      (insert "half typed")
      (tiro-prompt-previous 1)
      (should (equal (tiro-transcript-draft) "second"))
      (tiro-prompt-previous 1)
      (should (equal (tiro-transcript-draft) "first"))
      (should-error (tiro-prompt-previous 1) :type 'user-error)
      (should (equal (tiro-transcript-draft) "first"))
      (tiro-prompt-next 2)
      (should (equal (tiro-transcript-draft) "half typed"))
      (should-error (tiro-prompt-next 1) :type 'user-error)
      (should (equal (tiro-transcript-draft) "half typed")))))

(ert-deftest tiro-chat-killed-buffer-leaves-nothing ()
  "B64 (vi): killed in mid-stream: no error, no timer; reopened it shows the session."
  (tiro-testing-with-server
    (tiro-ask "slow 60")
    (tiro-testing-wait-for "word3")
    (kill-buffer "*tiro*")
    (should-not (seq-find (lambda (timer)
                            (eq (timer--function timer) 'tiro-chat--flush-buffer))
                          timer-list))
    (tiro-testing-go-on)
    (tiro-testing-wait "the turn ends" (lambda () (not (tiro-session-turn tiro-session))))
    (should-not (get-buffer "*tiro*"))
    (tiro)
    (should (string-search "You: slow 60" (tiro-testing-chat)))
    (should (string-search "word59" (tiro-testing-chat)))))

(ert-deftest tiro-chat-reopened-in-mid-answer-is-whole-at-the-end ()
  (tiro-testing-with-server
    (tiro-ask "slow 60")
    (tiro-testing-wait-for "word3")
    (kill-buffer "*tiro*")
    (tiro)
    (should (tiro-session-turn tiro-session))
    (tiro-testing-go-on)
    (tiro-testing-wait-for "word59")
    (tiro-testing-wait-for "word0 ")
    (should (string-match-p "word0 word1 \\(.\\|\n\\)*word58 word59" (tiro-testing-chat)))))

(ert-deftest tiro-chat-gathers-deltas ()
  "Deltas that come together are one change of the buffer, with the same text."
  (with-temp-buffer
    (setq tiro-session (tiro-session--create))
    (tiro-chat-mode)
    (let ((changes 0) (tiro-flush-interval 0.03))
      (add-hook 'after-change-functions (lambda (&rest _) (cl-incf changes)) nil t)
      (dotimes (n 500)
        (tiro-chat--event (list :type "text" :delta (format "%d " n))))
      (tiro-testing-wait "flush" (lambda () (not tiro-chat--timer)))
      (should (= changes 1))
      (should (string-search (mapconcat #'number-to-string (number-sequence 0 499) " ")
                             (buffer-string))))))

(ert-deftest tiro-chat-opened-from-another-machine-is-on-this-one ()
  (tiro-testing-with-peer
    (let ((default-directory "/ssh:nowhere.invalid:/tmp/")) (tiro))
    (should (equal (file-name-as-directory (getenv "HOME"))
                   (buffer-local-value 'default-directory (get-buffer "*tiro*"))))))

(ert-deftest tiro-chat-behind-another-frame-is-not-seen ()
  "Of the frames of a terminal one is on the screen; elsewhere a message is due."
  (save-window-excursion
    (with-temp-buffer
      (should-not (tiro-chat-seen-p))
      (set-window-buffer nil (current-buffer))
      (should (tiro-chat-seen-p))
      (cl-letf (((symbol-function 'tty-top-frame) (lambda (_) 'another)))
        (should-not (tiro-chat-seen-p))))))

(ert-deftest tiro-chat-notices-are-not-said-twice-in-a-row ()
  (with-temp-buffer
    (setq tiro-session (tiro-session--create))
    (tiro-chat-mode)
    (dolist (notice '("a summary" "a summary" "saved" "a summary"))
      (tiro-chat--show 'notice notice))
    (should (string-prefix-p "a summary\nsaved\na summary\n\n" (buffer-string)))))

(ert-deftest tiro-chat-order-of-kinds-is-kept ()
  "A tool's line waits for no timer, yet stands behind the text before it."
  (with-temp-buffer
    (setq tiro-session (tiro-session--create))
    (tiro-chat-mode)
    (dolist (event '((:type "thinking" :delta "hm") (:type "text" :delta "first")
                     (:type "toolUse" :toolUse (:id "1" :name "glob" :input (:pattern "*.el"))
                      :status "running")
                     (:type "text" :delta "second")
                     (:type "toolResult" :toolUseId "1" :isError :json-false
                      :content "a\nb")
                     (:type "of-tomorrow" :x 1)))
      (tiro-chat--event event))
    (tiro-chat-flush)
    (should (string-prefix-p "* thinking\nhm\n\nfirst\n\n* glob *.el: done, 2 lines\n\nsecond"
                             (buffer-substring-no-properties (point-min) (point-max))))))

(ert-deftest tiro-chat-long-output-is-told-by-both-its-ends ()
  "How a command failed stands at the end, which the cut content lacks."
  (with-temp-buffer
    (setq tiro-session (tiro-session--create))
    (tiro-chat-mode)
    (dolist (event '((:type "toolUse" :toolUse (:id "1" :name "run_command" :input (:command "x"))
                      :status "done")
                     (:type "toolResult" :toolUseId "1" :isError :json-false :truncated t
                      :content "a\nb" :leftOut 7 :end "y\nz\n[exit code 2]")))
      (tiro-chat--event event))
    (should (string-prefix-p "* run_command x: failed" (buffer-string)))
    (should (equal "a\nb\n[… 7 characters are not shown here …]\ny\nz\n[exit code 2]"
                   (tiro-message-event-result
                    '(:content "a\nb" :leftOut 7 :end "y\nz\n[exit code 2]"))))))

(ert-deftest tiro-chat-tool-of-a-sub-agent-is-marked ()
  "Whoever reads sees that another agent did it, at each of its statuses."
  (with-temp-buffer
    (setq tiro-session (tiro-session--create))
    (tiro-chat-mode)
    (dolist (event '((:type "toolUse" :toolUse (:id "d" :name "delegate" :input nil)
                      :status "running")
                     (:type "toolUse" :toolUse (:id "d/1" :name "glob" :input nil)
                      :status "running" :parentToolUseId "d")
                     (:type "toolResult" :toolUseId "d/1" :isError :json-false :content "a")
                     (:type "finished" :stopReason "max_steps")))
      (tiro-chat--event event))
    (should (string-search "* delegate: running\n* ↳ glob: done, 1 line\n"
                           (buffer-substring-no-properties (point-min) (point-max))))
    (should (string-search "say \"continue\" to go on" (buffer-string)))))

(ert-deftest tiro-chat-reused-tool-id-is-a-new-line ()
  "Some servers number their tool calls from the start in each step."
  (with-temp-buffer
    (setq tiro-session (tiro-session--create))
    (tiro-chat-mode)
    (dolist (result '("a" "b\nc"))
      (dolist (status '("proposed" "running"))
        (tiro-chat--event (list :type "toolUse" :status status
                                :toolUse '(:id "call_0" :name "glob" :input nil))))
      (tiro-chat--event (list :type "toolResult" :toolUseId "call_0" :isError :json-false
                              :content result))
      (tiro-chat--event (list :type "toolUse" :status "done"
                              :toolUse '(:id "call_0" :name "glob" :input nil)))
      (tiro-chat--event (list :type "text" :delta "so")))
    (tiro-chat-flush)
    (should (string-prefix-p
             "* glob: done, 1 line\n\nso\n\n* glob: done, 2 lines\n\nso\n"
             (buffer-substring-no-properties (point-min) (point-max))))))

(ert-deftest tiro-chat-mode-line-shows-how-full-the-window-is ()
  (let ((tiro-session (tiro-session--create)))
    (should (equal (tiro-chat-mode-line) ":stopped"))
    (setf (tiro-session-context-size tiro-session) '(:tokens 1234 :contextWindow 8000))
    (should (equal (tiro-chat-mode-line) ":stopped 1.2k/8.0k 15%%"))
    (setf (tiro-session-context-size tiro-session) '(:tokens 170712 :contextWindow 8192))
    (should (equal (tiro-chat-mode-line) ":stopped 171k/8.2k over the limit"))
    (setf (tiro-session-context-size tiro-session) '(:tokens 12345 :contextWindow nil))
    (should (equal (tiro-chat-mode-line) ":stopped 12k tokens"))))

(ert-deftest tiro-chat-a-command-that-failed-is-not-done ()
  "Its line says how it ended, and its details are whole."
  (tiro-testing-with-server
    (tiro-testing-write "a.txt" "one\n")
    (tiro-ask "edit a.txt and run seq 100000; exit 3")
    (dotimes (_ 2)
      (tiro-testing-wait-for "[y Allow once]")
      (tiro-testing-allow))
    (tiro-testing-wait-idle)
    (should (string-match-p
             "^\\* run_command seq 100000; exit 3: failed, exit code 3, more than [0-9]+ lines$"
             (tiro-testing-chat)))
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "* run_command")
      (save-window-excursion
        (push-button)
        (with-current-buffer "*tiro tool*"
          (should (string-search "\n50000\n" (buffer-string)))
          (should (string-suffix-p "\n100000\n[exit code 3]" (buffer-string))))))
    (tiro-session-refresh)
    (should (string-search "exit 3: failed, exit code 3, more than " (tiro-testing-chat)))))

(provide 'tiro-chat-test)
;;; tiro-chat-test.el ends here
