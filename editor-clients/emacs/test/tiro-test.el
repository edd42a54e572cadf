;;; tiro-test.el --- Tests of the commands with the real server  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

;;;; README.md says what the code does

(defun tiro-test-readme-table (heading)
  "Return the rows of the table after HEADING in README.md, as lists of cells."
  (with-temp-buffer
    (insert-file-contents (expand-file-name "../README.md" tiro-testing-directory))
    (search-forward heading)
    (search-forward "|---|---|---|\n")
    (let (rows)
      (while (looking-at "| `\\([^`]+\\)` | `\\([^`]+\\)` | .* |$")
        (push (list (match-string 1) (match-string 2)) rows)
        (forward-line))
      (nreverse rows))))

(defun tiro-test-bindings (map)
  "Return the keys and commands in MAP, in the form of README.md."
  (let (rows)
    (map-keymap (lambda (event binding)
                  (cond ((keymapp binding)
                         (pcase-dolist (`(,key ,command) (tiro-test-bindings binding))
                           (push (list (concat (key-description (vector event)) " " key)
                                       command)
                                 rows)))
                        ((symbolp binding)
                         (push (list (key-description (vector event))
                                     (symbol-name binding))
                               rows))))
                map)
    rows))

(ert-deftest tiro-readme-lists-every-key ()
  (should (equal (sort (tiro-test-readme-table "After the prefix") #'tiro-test-before)
                 (sort (tiro-test-bindings tiro-command-map) #'tiro-test-before)))
  (should (equal (sort (mapcar (lambda (row)
                                 (cons (replace-regexp-in-string "M-" "ESC " (car row))
                                       (cdr row)))
                               (tiro-test-readme-table "In the chat buffer"))
                       #'tiro-test-before)
                 (sort (seq-remove (lambda (row)
                                     (member (car row) '("S-<return>")))
                                   (seq-filter
                                    (lambda (row) (not (string-prefix-p "<remap>" (car row))))
                                    (tiro-test-bindings tiro-chat-mode-map)))
                       #'tiro-test-before))))

(defun tiro-test-before (one other)
  "Return non-nil if the row ONE sorts before OTHER."
  (string< (car one) (car other)))

(ert-deftest tiro-readme-lists-every-option ()
  (let (options)
    (dolist (member (get 'tiro 'custom-group))
      (when (eq (cadr member) 'custom-variable)
        (push (list (symbol-name (car member))
                    (format "%S" (eval (car (get (car member) 'standard-value)) t)))
              options)))
    (should (equal (sort (tiro-test-readme-table "## Options") #'tiro-test-before)
                   (sort options #'tiro-test-before)))))

(ert-deftest tiro-commands-have-documentation-and-keys ()
  "M6: each command can be reached by a key and says what it does."
  (map-keymap (lambda (_ command)
                (should (commandp command))
                (should (documentation command)))
              tiro-command-map)
  (pcase-dolist (`(,key . ,command)
                 '(("c" . tiro-clear-session) ("s" . tiro-show-session)
                   ("i" . tiro-show-current-agent) ("A" . tiro-select-agent)))
    (should (eq command (lookup-key tiro-command-map key)))))

;;;; Commands

(ert-deftest tiro-ask-streams-the-answer ()
  (tiro-testing-with-server
    (tiro-testing-ask "stream 300")
    (should (string-search "You: stream 300\n\nword0 word1" (tiro-testing-chat)))
    (should (string-search "word298 word299" (tiro-testing-chat)))
    (should (string-match-p ":idle [0-9.]+k?/100k" (tiro-chat-mode-line)))
    (tiro-testing-wait "the title"
                       (lambda ()
                         (string-match-p (concat "\\` build · fake/fake-model · [0-9.]+k/100k "
                                                 "[0-9]+%% · idle · stream 300\\'")
                                         (tiro-chat-header-line))))))

(ert-deftest tiro-ask-shows-tool-uses ()
  (tiro-testing-with-server
    (tiro-testing-write "notes.txt" "first line\nsecond line\n")
    (tiro-testing-ask "read notes.txt")
    (should (string-match-p "I look\\.\n\n\\* read_file notes.txt: done, [0-9]+ lines?\n"
                            (tiro-testing-chat)))
    (should (string-search "first line" (tiro-testing-chat)))
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "* read_file")
      (push-button))
    (should (string-search "second line" (with-current-buffer "*tiro tool*" (buffer-string))))))

(ert-deftest tiro-odd-characters-go-both-ways ()
  "B12: what JSON cannot carry becomes a mark; escapes and odd bytes stay harmless."
  (tiro-testing-with-server
    (tiro-testing-ask (concat "a" (string #xd83d) "b" (string #x3fff80) "c😀"))
    (should (string-search "You said: a\N{U+FFFD}b\N{U+FFFD}c😀" (tiro-testing-chat)))
    (let ((coding-system-for-write 'no-conversion))
      (tiro-testing-write "odd.txt" "caf\351 \33[31m end\n"))
    (tiro-testing-ask "read odd.txt")
    (should (string-match-p "café .*end" (tiro-testing-chat)))))

(ert-deftest tiro-ask-region-attaches-it ()
  (tiro-testing-with-server
    (with-current-buffer
        (find-file-noselect (tiro-testing-write "app.py" "one\ntwo\nthree\n"))
      (setq-local transient-mark-mode t)
      (goto-char (point-min))
      (forward-line)
      (push-mark (point) t t)
      (forward-line)
      (cl-letf (((symbol-function 'read-string)
                 (lambda (prompt &rest _)
                   (should (equal prompt "Ask Tiro about app.py:2: "))
                   "what is this")))
        (call-interactively #'tiro-ask-region))
      (tiro-testing-wait-idle))
    (should (string-search "You: what is this\n  + app.py:2\n" (tiro-testing-chat)))
    ;; The provider echoes what it received.
    (should (string-match-p "You said: what is this\\(.\\|\n\\)*two" (tiro-testing-chat)))
    (should-not (string-search "three" (tiro-testing-chat)))))

(ert-deftest tiro-tools-read-the-unsaved-text ()
  "B55: what stands in the buffer is read, not what is on the disk."
  (tiro-testing-with-server
    (with-current-buffer (find-file-noselect (tiro-testing-write "a.txt" "on the disk\n"))
      (erase-buffer)
      (insert "ünsaved 😀 text\n")
      (tiro-testing-ask "read a.txt")
      (should (string-search "ünsaved 😀 text" (tiro-testing-chat)))
      (erase-buffer)
      (insert "typed later\n")
      (tiro-testing-ask "read a.txt")
      (should (string-search "typed later" (tiro-testing-chat)))
      (set-buffer-modified-p nil)
      (kill-buffer))
    (tiro-testing-ask "read a.txt")
    (should (string-search "on the disk" (tiro-testing-chat)))))

(ert-deftest tiro-second-project-becomes-a-root ()
  "Asked from another project, the tools may read that one too, also after a restart."
  (tiro-testing-with-program
    (let* ((file (tiro-testing-write "../second/b.txt" "text of the second project\n"))
           (question (concat "read " file)))
      (make-directory (concat (file-name-directory file) ".git"))
      (tiro-ask question)
      (tiro-testing-wait "a question" (lambda () tiro-permission-pending))
      (tiro-reject)
      (tiro-testing-wait-idle)
      (should-not (string-search "text of the second project" (tiro-testing-chat)))
      (let ((default-directory (file-name-directory file)))
        (tiro-testing-ask question)
        (should (string-search "text of the second project" (tiro-testing-chat))))
      (signal-process (tiro-rpc-process (tiro-session-connection tiro-session)) 'SIGKILL)
      (tiro-testing-wait-for "The server ended")
      (tiro-testing-ask question)
      (should (= 2 (tiro-test-count "text of the second project")))
      (should (= 3 (tiro-test-count "\n* read_file "))))))

(defun tiro-test-count (text)
  "Return how often TEXT stands in the chat."
  (1- (length (split-string (tiro-testing-chat) (regexp-quote text)))))

(ert-deftest tiro-cancel-stops-the-answer ()
  "B43: the turn ends as cancelled and the next question is answered at once."
  (tiro-testing-with-server
    (tiro-ask "slow 2000")
    (tiro-testing-wait-for "word5")
    (tiro-cancel)
    (tiro-testing-wait-idle)
    (should (string-search "[cancelled]" (tiro-testing-chat)))
    (should-error (tiro-cancel) :type 'user-error)
    (tiro-testing-ask "and now")
    (should (string-search "You said: and now" (tiro-testing-chat)))))

(ert-deftest tiro-steer-speaks-to-the-running-answer ()
  "What was said is shown where it became part of the talk, and is answered."
  (tiro-testing-with-server
    (should-error (tiro-steer "too early") :type 'user-error)
    (tiro-ask "slow 60")
    (tiro-testing-wait-for "word5")
    (should-error (tiro-steer "  ") :type 'user-error)
    (tiro-steer "and in German")
    (tiro-testing-go-on)
    (tiro-testing-wait-idle)
    (should (string-match-p
             "word59 *\n\nYou: and in German\n\nYou said: and in German\n" (tiro-testing-chat)))
    (should (= 1 (tiro-test-count "You: and in German")))
    (should-error (tiro-steer "too late") :type 'user-error)
    (tiro-session-refresh)
    (should (= 1 (tiro-test-count "You: and in German")))))

(ert-deftest tiro-explain-shows-the-next-request ()
  "P11: what is sent, with what is typed; nothing is sent by looking."
  (tiro-testing-with-server
    (tiro-testing-ask "hello")
    (with-current-buffer "*tiro*"
      (goto-char (point-max))
      (insert "and now?"))
    (tiro-explain)
    (with-current-buffer "*tiro request*"
      (should (string-match-p "\\`To fake/fake-model, about [0-9]+ tokens\n" (buffer-string)))
      (should (string-match-p "\"content\": \"You said: hello\"" (buffer-string)))
      (should (string-match-p "\"content\": \"and now\\?\"" (buffer-string)))
      (should (string-match-p "\"name\": \"read_file\"" (buffer-string)))
      (should buffer-read-only))
    (with-current-buffer "*tiro*" (should (equal (tiro-transcript-draft) "and now?")))
    (should-not (string-search "You: and now?" (tiro-testing-chat)))))

(ert-deftest tiro-broken-answer-is-told ()
  (tiro-testing-with-server
    (tiro-testing-ask "break")
    (should (string-search "half an answer" (tiro-testing-chat)))
    (tiro-testing-ask "hello")
    (should (string-search "You said: hello" (tiro-testing-chat)))))

(ert-deftest tiro-show-session-has-the-exact-text-on-top ()
  "M6.2 and M2.10."
  (tiro-testing-with-server
    (tiro-testing-ask "hello")
    (tiro-show-session)
    (with-current-buffer "*tiro session*"
      (should (string-prefix-p
               "Session Summary:\n\n[USER] hello\n[ASSISTANT] You said: hello\n\nSession "
               (buffer-string)))
      (should buffer-read-only))))

(ert-deftest tiro-show-session-is-fast-with-a-huge-message ()
  "Of a megabyte the beginning is shown, and how much more there is."
  (tiro-testing-with-server
    (tiro-session-call 'tiro/session/addMessage
                       (list :role "assistant" :content (make-string 1000000 ?x)))
    (tiro-show-session)
    (with-current-buffer "*tiro session*"
      (should (string-search "xxx\n  [980000 more characters]\n" (buffer-string)))
      (should (< (buffer-size) 30000)))))

(ert-deftest tiro-show-session-unfolds-what-tools-did ()
  (tiro-testing-with-server
    (tiro-testing-write "notes.txt" "* no heading\nlast line\n")
    (tiro-testing-ask "read notes.txt")
    (tiro-show-session)
    (with-current-buffer "*tiro session*"
      (should (string-search "** #2 assistant: I look. * read_file notes.txt\n" (buffer-string)))
      (goto-char (point-min))
      (search-forward "** #3 tool: ")
      (should (invisible-p (1+ (line-end-position))))
      (call-interactively (key-binding (kbd "TAB")))
      (search-forward "last line")
      (should-not (invisible-p (1- (point)))))))

(ert-deftest tiro-clear-session-says-where-it-is-saved ()
  "M6.1: the session is saved, the output cleared."
  (tiro-testing-with-server
    (tiro-testing-ask "hello")
    (with-current-buffer "*tiro*" (goto-char (point-max)) (insert "half typed"))
    (let ((said (tiro-testing-said #'tiro-clear-session)))
      (should (string-match-p "cleared 2 messages; saved as .*/sessions/session-.*\\.json"
                              said)))
    (should-not (string-search "hello" (tiro-testing-chat)))
    (should (string-suffix-p "> half typed" (tiro-testing-chat)))
    (should (= 1 (length (tiro-testing-sessions))))
    (tiro-show-session)
    (should (string-prefix-p "The session is empty"
                             (with-current-buffer "*tiro session*" (buffer-string))))
    (should (string-match-p "was empty" (tiro-testing-said #'tiro-clear-session)))))

(ert-deftest tiro-clear-session-asks-before-a-loss ()
  "With autosave off the session is kept nowhere: only then there is a question."
  (tiro-testing-with-server
    (let ((tiro-settings '(:session (:autosave :json-false))))
      (tiro-testing-ask "hello")
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (prompt) (should (string-search "not saved" prompt)) nil)))
        (tiro-clear-session))
      (should (string-search "hello" (tiro-testing-chat)))
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (should (string-search "not saved" (tiro-testing-said #'tiro-clear-session))))
      (should-not (string-search "You: hello" (tiro-testing-chat))))))

(ert-deftest tiro-clear-session-ends-the-answer ()
  "B62: nothing of the old answer after a clear."
  (tiro-testing-with-server
    (tiro-ask "slow 2000")
    (tiro-testing-wait-for "word3")
    (cl-letf (((symbol-function 'y-or-n-p) #'always)) (tiro-clear-session))
    (should-not (tiro-session-turn tiro-session))
    (tiro-testing-ask "hello")
    (should-not (string-search "word" (tiro-testing-chat)))
    (should (string-search "You said: hello" (tiro-testing-chat)))))

(ert-deftest tiro-context-size-is-told ()
  (tiro-testing-with-server
    (tiro-testing-ask "hello")
    (should (string-match-p "takes [0-9]+ tokens of the model.s 100000 ([0-9]+%): .*user [0-9]+"
                            (tiro-testing-said #'tiro-show-context-size)))))

(ert-deftest tiro-killed-server-loses-nothing-acknowledged ()
  "B05: after a kill -9 in mid-answer the next question goes on in the same session."
  (tiro-testing-with-program
    (tiro-testing-ask "remember me")
    (tiro-ask "slow 2000")
    (tiro-testing-wait-for "word3")
    (let ((id (tiro-session-id tiro-session)))
      (signal-process (tiro-rpc-process (tiro-session-connection tiro-session)) 'SIGKILL)
      (tiro-testing-wait-for "The server ended (signal 9)")
      (tiro-testing-ask "next one")
      (should (equal id (tiro-session-id tiro-session))))
    (let ((chat (tiro-testing-chat)))
      (dolist (text '("You: remember me" "You said: remember me" "You: slow 2000"
                      "You: next one" "You said: next one"))
        (should (string-search text chat))))))

(ert-deftest tiro-fresh-start-offers-the-earlier-session ()
  "What a fresh editor start offers is one button, not a question in the way."
  (tiro-testing-with-server
    (tiro-testing-ask "from the day before")
    (tiro-shutdown)
    (kill-buffer "*tiro*")
    (tiro)
    (should (string-match-p "\\[Go on with “from the day before”, [0-9]+ \\(?:s\\|min\\) ago\\]"
                            (tiro-testing-chat)))
    (tiro-resume-session)
    (should (string-search "You said: from the day before" (tiro-testing-chat)))))

(ert-deftest tiro-no-model-is-told-with-the-quickest-fix ()
  "modelNotConfigured: the sentence of the server, nothing stored, the prompt at hand."
  (tiro-testing-with-server
    (let ((tiro-settings '(:model "nobody/none")))
      (tiro-testing-ask "hello")
      (should-not (tiro-session-turn tiro-session))
      (should-not (string-search "You said" (tiro-testing-chat)))
      (should (zerop (plist-get (tiro-session-call 'tiro/session/get) :total))))))

(provide 'tiro-test)
;;; tiro-test.el ends here
