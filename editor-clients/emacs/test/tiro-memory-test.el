;;; tiro-memory-test.el --- Tests of resize, memo, summary and pins  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defun tiro-memory-test-fill (count)
  "Add COUNT pairs of messages to the session."
  (dotimes (n count)
    (tiro-session-call 'tiro/session/addMessage
                       `(:role "user" :content ,(format "question-%d" n)))
    (tiro-session-call 'tiro/session/addMessage
                       `(:role "assistant" :content ,(format "answer-%d" n)))))

(defconst tiro-memory-test-keep-two '(:session (:resize (:max_keep_messages_count 2)))
  "Settings under which a forced resize takes something out of the window.")

(defun tiro-memory-test-field (name text)
  "Make TEXT that of the field NAME of this form."
  (let ((places (alist-get name tiro-form--fields)))
    (delete-region (car places) (cdr places))
    (goto-char (car places))
    (insert text)))

(defun tiro-memory-test-window ()
  "Return the number of messages in the window."
  (plist-get (tiro-session-call 'tiro/session/get) :total))

(ert-deftest tiro-memory-resize-is-shown-edited-applied-and-undone ()
  "U9: nothing happens before it was seen; the user's own words are what is kept."
  (tiro-testing-with-server
    (let* ((tiro-settings '(:session (:resize (:max_keep_messages_count 4))))
           (before (progn (tiro-memory-test-fill 6) (tiro-memory-test-window))))
      (tiro-resize t)
      (should (string-match-p ":looking ahead" (tiro-chat-mode-line)))
      (tiro-testing-wait "the preview" (lambda () (get-buffer "*tiro resize*")))
      (should (= before (tiro-memory-test-window)))
      (with-current-buffer "*tiro resize*"
        (should (string-match-p "question-0" (buffer-string)))
        (goto-char (point-min))
        (should-error (insert "x") :type 'text-read-only)
        (tiro-memory-test-field 'summary "my own summary")
        (tiro-memory-test-field 'memo "{\"colour\": \"blue\", \"more\": {}}")
        (tiro-form-apply))
      (should-not (get-buffer "*tiro resize*"))
      (should (< (tiro-memory-test-window) before))
      (let ((memo (tiro-session-call 'tiro/memo/get)))
        (should (equal "my own summary" (plist-get memo :summary)))
        (should (equal "blue" (plist-get (plist-get memo :memo) :colour))))
      (tiro-undo-resize)
      (should (= before (tiro-memory-test-window))))))

(ert-deftest tiro-memory-resize-that-is-dropped-changes-nothing ()
  (let ((tiro-settings tiro-memory-test-keep-two))
    (tiro-testing-with-server
      (tiro-memory-test-fill 1)
      (tiro-testing-said #'tiro-resize "nothing would go")
      (should-not (get-buffer "*tiro resize*"))
      (tiro-memory-test-fill 2)
      (tiro-resize t)
      (tiro-testing-wait "the preview" (lambda () (get-buffer "*tiro resize*")))
      (with-current-buffer "*tiro resize*"
        (tiro-memory-test-field 'memo "{\"colour\": ")
        (should (string-search "no JSON in line 1, column 1" (error-message-string
                                          (should-error (tiro-form-apply) :type 'user-error))))
        (tiro-form-drop))
      (should-not (get-buffer "*tiro resize*"))
      (should (= 6 (tiro-memory-test-window)))
      (should-error (tiro-undo-resize) :type 'user-error))))

(ert-deftest tiro-memory-compact-folds-the-window-and-is-undone ()
  "M7.1: the pinned message stays; one key takes the compaction back."
  (tiro-testing-with-server
    (tiro-testing-ask "the first thing")
    (tiro-testing-ask "stream 300")
    (tiro-compact)
    (should (string-search ":compacting" (tiro-chat-mode-line)))
    (should-error (tiro-resize) :type 'user-error)
    (tiro-testing-wait-for "4 messages left the window")
    (should (= 0 (tiro-memory-test-window)))
    (should (string-search "You: the first thing" (tiro-testing-chat)))
    (tiro-show-session)
    (with-current-buffer "*tiro session*"
      (should (string-search "* Summary of what left the window\n  They talked.\n"
                             (buffer-string))))
    (tiro-undo-resize)
    (should (= 4 (tiro-memory-test-window)))))

(ert-deftest tiro-memory-compaction-is-previewed-and-edited ()
  (tiro-testing-with-server
    (tiro-testing-ask "the first thing")
    (tiro-testing-ask "stream 300")
    (tiro-compact t)
    (tiro-testing-wait "the preview" (lambda () (get-buffer "*tiro resize*")))
    (should (= 4 (tiro-memory-test-window)))
    (with-current-buffer "*tiro resize*"
      (should (string-search "They talked." (buffer-string)))
      (tiro-memory-test-field 'summary "They spoke of words.")
      (tiro-form-apply))
    (should (= 0 (tiro-memory-test-window)))
    (should (equal "They spoke of words."
                   (plist-get (tiro-session-call 'tiro/memo/get) :summary)))
    (tiro-undo-resize)
    (should (= 4 (tiro-memory-test-window)))))

(ert-deftest tiro-memory-compaction-is-asked-about-or-previewed ()
  "One key too many folds nothing; the user says how much is asked."
  (tiro-testing-with-server
    (tiro-memory-test-fill 2)
    (let (asked)
      (tiro-chat-buffer)
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (text) (setq asked text) nil)))
        (should-error (call-interactively #'tiro-compact) :type 'user-error)
        (should (string-search "M-x tiro-undo-resize takes it back" asked))
        (should-not (tiro-session-work tiro-session))
        (let ((tiro-confirm-compact 'preview)) (call-interactively #'tiro-compact))
        (tiro-testing-wait "the preview" (lambda () (get-buffer "*tiro resize*")))
        (with-current-buffer "*tiro resize*" (tiro-form-drop))
        (should (= 4 (tiro-memory-test-window)))
        (let ((tiro-confirm-compact nil)) (call-interactively #'tiro-compact))
        (tiro-testing-wait-for "4 messages left the window")))))

(ert-deftest tiro-memory-resize-without-gain-is-not-offered ()
  (tiro-testing-with-server
    (tiro-memory-test-fill 1)
    (tiro-testing-said (lambda () (tiro-resize t)) "nothing to gain: all 2 messages would stay")
    (should-not (get-buffer "*tiro resize*"))))

(ert-deftest tiro-memory-work-is-cancelled ()
  "What waits for a model blocks nothing and can be ended."
  (tiro-testing-with-peer
    (tiro-session-live)
    (tiro-compact)
    (tiro-testing-said #'tiro-cancel "ended; nothing")
    (tiro-testing-ask "hello")
    (should (string-search "You said: hello" (tiro-testing-chat)))))

(ert-deftest tiro-memory-memo-and-summary-are-edited ()
  (tiro-testing-with-server
    (tiro-testing-ask "hello")
    (tiro-edit-memory)
    (with-current-buffer "*tiro memory*"
      (tiro-memory-test-field 'memo "{\"name\": \"Åsa\", \"empty\": {}, \"none\": null}")
      (tiro-form-apply))
    (let ((known (tiro-session-call 'tiro/memo/get)))
      (should (equal '(:name "Åsa" :empty nil :none nil) (plist-get known :memo)))
      (should (equal "" (plist-get known :summary))))
    (tiro-show-session)
    (should (string-search "\"empty\": {}" (with-current-buffer "*tiro session*" (buffer-string))))
    (tiro-edit-memory)
    (with-current-buffer "*tiro memory*"
      (should (string-search "\"empty\": {}," (buffer-string)))
      (should (string-search "\"none\": null" (buffer-string)))
      (should (string-search "\"Åsa\"" (buffer-string)))
      (tiro-memory-test-field 'summary "mine")
      (tiro-session-call 'tiro/memo/set '(:summary "of another"))
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (should-error (tiro-form-apply) :type 'user-error))
      (should (equal "of another" (plist-get (tiro-session-call 'tiro/memo/get) :summary)))
      (cl-letf (((symbol-function 'y-or-n-p) #'always)) (tiro-form-apply)))
    (should (equal "mine" (plist-get (tiro-session-call 'tiro/memo/get) :summary)))))

(ert-deftest tiro-memory-preview-takes-no-typing ()
  "Who has gone on typing stays where they are; what was edited is not lost."
  (let ((tiro-settings tiro-memory-test-keep-two))
    (tiro-testing-with-server
      (tiro-memory-test-fill 2)
      (let* ((window (selected-window)) (buffer (window-buffer window)))
        (tiro-resize t)
        (cl-incf num-nonmacro-input-events)
        (tiro-testing-wait "the preview" (lambda () (get-buffer "*tiro resize*")))
        (should (eq window (selected-window)))
        (should (eq buffer (window-buffer window))))
      (tiro-next-attention)
      (should (equal "*tiro resize*" (buffer-name)))
      (tiro-memory-test-field 'summary "edited")
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (should-error (tiro-form-open "*tiro resize*" "x" nil #'ignore) :type 'user-error))
      (should (string-search "edited" (buffer-string))))))

(ert-deftest tiro-memory-pin-marks-the-message ()
  "Of a streamed talk and of a loaded one; the same message in both views."
  (tiro-testing-with-server
    (tiro-testing-ask "keep this")
    (with-current-buffer "*tiro*"
      (should-error (tiro-toggle-pin) :type 'user-error)
      (goto-char (point-min))
      (search-forward "You said: keep")
      (tiro-toggle-pin)
      (should (equal '(2) (tiro-session-pins tiro-session)))
      (should (get-text-property (1- (point)) 'line-prefix))
      (search-backward "You: keep this")
      (should-not (get-text-property (point) 'line-prefix)))
    (tiro-session-refresh)
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "You said: keep")
      (should (get-text-property (1- (point)) 'line-prefix)))
    (tiro-show-session)
    (with-current-buffer "*tiro session*"
      (goto-char (point-min))
      (search-forward "** #2 assistant, pinned: You said")
      (tiro-toggle-pin)
      (tiro-testing-wait "the mark goes" (lambda ()
                                           (not (string-search ", pinned" (buffer-string)))))
      (should (string-search "** #2 assistant" (buffer-substring (line-beginning-position)
                                                                 (line-end-position)))))
    (with-current-buffer "*tiro*"
      (should-not (text-property-not-all (point-min) (point-max) 'line-prefix nil)))))

(provide 'tiro-memory-test)
;;; tiro-memory-test.el ends here
