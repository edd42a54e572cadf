;;; tiro-markup-test.el --- Tests of faces and folds in answers  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defmacro tiro-markup-test-with (&rest body)
  "Run BODY in a fresh chat buffer."
  (declare (indent 0) (debug t))
  `(with-temp-buffer
     (setq tiro-session (tiro-session--create))
     (tiro-chat-mode)
     ,@body))

(defun tiro-markup-test-face (text)
  "Return the face of the first character of TEXT."
  (goto-char (point-min))
  (search-forward text)
  (get-text-property (match-beginning 0) 'face))

(ert-deftest tiro-markup-shows-headings-bold-and-code ()
  "Wherever the deltas are cut, and however often the lines are drawn."
  (let ((text "# Title\nsome **bold** and `code`\n```\n# no heading\n```\nend\n"))
    (dotimes (cut (length text))
      (tiro-markup-test-with
        (tiro-transcript-add 'user "# not mine")
        (tiro-transcript-add 'text (substring text 0 cut))
        (tiro-markup-lines (point-min) (point-max))
        (tiro-transcript-add 'text (substring text cut))
        (dotimes (_ 2) (tiro-markup-lines (point-min) (point-max)))
        (pcase-dolist (`(,word ,face) '(("# Title" tiro-heading) ("some" tiro-assistant)
                                        ("**bold" bold) ("`code" tiro-code)
                                        ("# no heading" tiro-code) ("end" tiro-assistant)
                                        ("# not mine" tiro-user)))
          (should (eq face (tiro-markup-test-face word))))))))

(ert-deftest tiro-code-gets-the-faces-of-its-language ()
  (tiro-markup-test-with
    (tiro-transcript-add 'text (concat "So:\n```elisp\n(defun a () (b \"words\"))\n```\n"
                                       "```nosuch\n(defun b ())\n```\n```python\nif x:\n```\n"))
    (let ((before (buffer-string)))
      (tiro-code-later tiro-transcript-end)
      (tiro-code--work (current-buffer))
      (should (equal before (buffer-string)))
      (should (memq 'font-lock-keyword-face (ensure-list (tiro-markup-test-face "defun a"))))
      (should (memq 'font-lock-string-face (ensure-list (tiro-markup-test-face "words"))))
      (should (eq 'tiro-code (tiro-markup-test-face "defun b")))
      (should (memq 'font-lock-keyword-face (ensure-list (tiro-markup-test-face "if x")))))
    (tiro-transcript-add 'text "```sh\nif true; then\n")
    (tiro-code-later tiro-transcript-end)
    (tiro-code--work (current-buffer))
    (should (memq 'font-lock-keyword-face (ensure-list (tiro-markup-test-face "if true"))))))

(ert-deftest tiro-code-calls-no-other-function-that-a-model-names ()
  "A language of server, desktop-save or tiro-chat starts nothing."
  (dolist (language '("server" "desktop-save" "global-auto-revert" "tiro-chat" "shell-script"
                      "archive" "image" "tar" "fundamental" "../x"))
    (should-not (let ((mode (tiro-code--mode language)))
                  (and mode (not (provided-mode-derived-p mode 'prog-mode 'text-mode)))))
    (should-not (memq (tiro-code--mode language)
                      '(server-mode desktop-save-mode tiro-chat-mode image-mode)))))

(ert-deftest tiro-thinking-is-folded-and-unfolds ()
  "Streamed in pieces; what comes after it is seen."
  (tiro-markup-test-with
    (let ((tiro-max-line 20))
      (dolist (piece '("\n" "\nlet me " "think" "\n" "about a very long line indeed, of many words"))
        (tiro-message-show-thinking piece))
      (tiro-transcript-add 'text "the answer")
      (cl-flet ((seen ()
                  (let (parts)
                    (cl-loop for place from (point-min) below tiro-transcript-end
                             unless (invisible-p place) do (push (char-after place) parts))
                    (apply #'string (nreverse parts)))))
        (should (equal "* thinking\n\nthe answer" (seen)))
        (goto-char (point-min))
        (push-button (point))
        (should (string-search "\nlet me think\nabout a " (seen)))
        (should (string-search "the answer" (seen)))
        (push-button (point))
        (should (equal "* thinking\n\nthe answer" (seen)))))))

(provide 'tiro-markup-test)
;;; tiro-markup-test.el ends here
