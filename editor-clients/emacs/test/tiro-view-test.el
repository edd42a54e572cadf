;;; tiro-view-test.el --- Tests of the read-only views  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(ert-deftest tiro-view-age-is-short ()
  (cl-flet ((ago (seconds) (format-time-string "%FT%T.000Z" (time-since seconds) t)))
    (should (string-match-p "\\`1[0-9] s\\'" (tiro-view-age (ago 10))))
    (should (equal (tiro-view-age (ago 600)) "10 min"))
    (should (equal (tiro-view-age (ago 7300)) "2 h"))
    (should (equal (tiro-view-age (ago 864000)) "10 days"))
    (should (equal (tiro-view-age nil) "unknown time"))
    (should (equal (tiro-view-age "yesterday") "unknown time"))))

(ert-deftest tiro-view-damaged-session-is-listed-and-not-loaded ()
  "B10: a damaged file is listed with what is wrong, and stays as it is."
  (tiro-testing-with-server
    (let ((file (expand-file-name "config/sessions/session-20250101-000000.json"
                                  (getenv "HOME"))))
      (make-directory (file-name-directory file) t)
      (write-region "{\"id\": \"session-2025" nil file nil 'silent)
      (tiro-testing-ask "hello")
      (tiro-list-sessions)
      (with-current-buffer "*tiro sessions*"
        (goto-char (point-min))
        (search-forward "session-20250101-000000")
        (let ((said (error-message-string (should-error (tiro-saved-load)
                                                        :type 'user-error))))
          (should (string-prefix-p "Tiro: " said))))
      (should (string-search "You said: hello" (tiro-testing-chat)))
      (should (equal "{\"id\": \"session-2025"
                     (with-temp-buffer (insert-file-contents file) (buffer-string)))))))

(ert-deftest tiro-view-is-quit-and-looked-at-again ()
  (tiro-testing-with-server
    (tiro-testing-ask "one")
    (tiro-show-session)
    (tiro-testing-ask "two")
    (with-current-buffer "*tiro session*"
      (should-not (string-search "[USER] two" (buffer-string)))
      (revert-buffer)
      (should (string-search "[USER] two" (buffer-string)))
      (should (eq (key-binding "q") #'quit-window))
      (should (eq (key-binding "c") #'tiro-clear-session)))))

(ert-deftest tiro-view-says-what-becomes-of-more-than-the-model-takes ()
  (should (equal (tiro-view--size-words 170712 8192)
                 "170712 tokens, over the limit of 8192 (the next prompt makes room)"))
  (should (equal (tiro-view--size-words 819 8192)
                 "the next request takes 819 tokens of the model's 8192 (10%)")))

(provide 'tiro-view-test)
;;; tiro-view-test.el ends here
