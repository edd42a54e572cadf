;;; tiro-attached-test.el --- Tests of attachments and of composing  -*- lexical-binding: t; -*-

;;; Code:

(require 'dired)
(require 'flymake)
(require 'tiro-testing)

(defun tiro-attached-test-visit (file text)
  "Visit FILE of the workspace with TEXT."
  (set-buffer (find-file-noselect (tiro-testing-write file text))))

(defun tiro-attached-test-request ()
  "Return the next request as text."
  (tiro-explain)
  (with-current-buffer "*tiro request*" (buffer-string)))

(ert-deftest tiro-attached-things-go-with-the-next-question-once ()
  "Region, buffer and marked files, from three buffers; removed ones do not go."
  (tiro-testing-with-server
    (tiro-testing-write "one.txt" "text of one\n")
    (tiro-testing-write "two.txt" "text of two\n")
    (save-current-buffer
      (tiro-attached-test-visit "app.py" "alpha\nbeta\ngamma\n")
      (setq-local transient-mark-mode t)
      (goto-char (point-min))
      (push-mark (point) t t)
      (forward-line)
      (tiro-attach)
      (deactivate-mark)
      (tiro-attached-test-visit "live.txt" "on the disk\n")
      (tiro-attach)
      (tiro-attach)
      (erase-buffer)
      (insert "typed after it was attached\n")
      (set-buffer (dired-noselect default-directory))
      (dired-mark-files-regexp "one\\|two")
      (tiro-attach))
    (should (equal '("app.py:1" "live.txt" "one.txt" "two.txt")
                   (mapcar #'tiro-attachment-label tiro-attached)))
    (should (string-search "4 attached" (tiro-chat-header-line)))
    (tiro-list-attachments)
    (with-current-buffer "*tiro attachments*"
      (goto-char (point-min))
      (search-forward "two.txt")
      (tiro-attached-remove)
      (should-not (string-search "two.txt" (buffer-string)))
      (goto-char (point-min))
      (tiro-attached-show))
    (should (equal "alpha\n" (with-current-buffer "*tiro attachment*" (buffer-string))))
    (tiro-testing-ask "what are these")
    (should-not tiro-attached)
    (let ((chat (tiro-testing-chat)))
      (should (string-search "You: what are these\n  + app.py:1\n  + live.txt\n  + one.txt\n"
                             chat))
      (dolist (text '("alpha" "typed after it was attached" "text of one"))
        (should (string-search text chat)))
      (dolist (text '("gamma" "on the disk" "text of two"))
        (should-not (string-search text chat))))
    (should-error (tiro-list-attachments) :type 'user-error)))

(ert-deftest tiro-attached-stays-where-asking-fails ()
  (tiro-testing-with-peer
    (with-temp-buffer (insert "some text") (tiro-attach))
    (tiro-ask "permission")
    (should-not tiro-attached)
    (with-temp-buffer (insert "other text") (tiro-attach))
    (should-error (tiro-ask "too early") :type 'user-error)
    (should (= 1 (length tiro-attached)))
    (tiro-testing-wait-for "[y Allow once]")
    (tiro-reject)
    (tiro-testing-wait-idle)))

(ert-deftest tiro-attached-diagnostics-say-where-and-what ()
  (tiro-testing-with-server
    (save-current-buffer
      (tiro-attached-test-visit "app.el" "one\n bad\n")
      (should-error (tiro-attach-diagnostics) :type 'user-error)
      (setq-local flymake-diagnostic-functions
                  (list (lambda (report &rest _)
                          (funcall report (list (flymake-make-diagnostic (current-buffer) 6 9
                                                                         :error "a bad word"))))))
      (flymake-mode 1)
      (flymake-start)
      (tiro-attach-diagnostics))
    (tiro-testing-ask "mend it")
    (should (string-search "line 2, column 2: :error: a bad word" (tiro-testing-chat)))))

(ert-deftest tiro-attached-refuses-what-is-elsewhere ()
  "A remote buffer, file or folder: one sentence at once, and no connection is made."
  (tiro-testing-with-peer
    (tiro-session-live)
    (cl-letf (((symbol-function 'make-process)
               (lambda (&rest _) (error "A connection was tried"))))
      (dolist (command (list #'tiro-attach #'tiro-ask-buffer #'tiro-ask-at-point
                             #'tiro-attach-diagnostics
                             (lambda () (tiro-attach "/ssh:nowhere.invalid:/tmp/a"))))
        (with-temp-buffer
          (insert "text")
          (setq default-directory "/ssh:nowhere.invalid:/tmp/"
                buffer-file-name "/ssh:nowhere.invalid:/tmp/a.txt")
          (should (string-search "this machine only"
                                 (error-message-string
                                  (should-error (funcall command) :type 'user-error))))
          (setq buffer-file-name nil)
          (set-buffer-modified-p nil))))))

(ert-deftest tiro-compose-asks-with-what-is-typed ()
  (tiro-testing-with-server
    (tiro)
    (with-current-buffer "*tiro*" (goto-char (point-max)) (insert "half typed"))
    (tiro-compose)
    (with-current-buffer "*tiro compose*"
      (goto-char (point-max))
      (insert "\nand more")
      (tiro-form-apply))
    (should-not (get-buffer "*tiro compose*"))
    (tiro-testing-wait-idle)
    (should (string-search "You: half typed\nand more" (tiro-testing-chat)))
    (with-current-buffer "*tiro*" (should (equal "" (tiro-transcript-draft))))))

(ert-deftest tiro-compose-keeps-what-could-not-be-sent ()
  (tiro-testing-with-peer
    (tiro-compose)
    (with-current-buffer "*tiro compose*" (should-error (tiro-form-apply) :type 'user-error))
    (tiro-compose)
    (with-current-buffer "*tiro compose*"
      (insert "a question")
      (tiro-compose)
      (should (string-search "a question" (buffer-string)))
      (tiro-form-drop))
    (should-not (get-buffer "*tiro compose*"))
    (should-not (tiro-session-turn tiro-session))))

(provide 'tiro-attached-test)
;;; tiro-attached-test.el ends here
