;;; tiro-diagnostics-test.el --- Tests of what Flymake finds  -*- lexical-binding: t; -*-

;;; Code:

(require 'flymake)
(require 'tiro-testing)

(defun tiro-diagnostics-test-backend (report &rest _)
  "Say through REPORT that the first `bad' is an error and `odd' a warning."
  (funcall report
           (save-excursion
             (cl-loop for (word type) in '(("bad" :error) ("odd" eglot-warning))
                      do (goto-char (point-min))
                      when (search-forward word nil t)
                      collect (flymake-make-diagnostic
                               (current-buffer) (match-beginning 0) (match-end 0)
                               type (concat word " \udcffword"))))))

(defun tiro-diagnostics-test-visit (file text)
  "Visit FILE with TEXT and let Flymake look at it."
  (with-current-buffer (find-file-noselect (tiro-testing-write file text))
    (setq-local flymake-diagnostic-functions '(tiro-diagnostics-test-backend))
    (flymake-mode 1)
    (flymake-start)
    (should (flymake-diagnostics))
    (current-buffer)))

(defun tiro-diagnostics-test-ask (prompt)
  "Return what the server was told after PROMPT, as a list."
  (tiro-testing-ask prompt)
  (with-temp-buffer
    (insert (tiro-testing-chat))
    (search-backward "answer {")
    (search-forward " ")
    (plist-get (json-parse-buffer :object-type 'plist :array-type 'list) :diagnostics)))

(ert-deftest tiro-diagnostics-of-one-file-and-of-all ()
  (tiro-testing-with-peer
    (let ((buffer (tiro-diagnostics-test-visit "one.txt" "é\U0001f642 bad\n"))
          (path (expand-file-name "one.txt")))
      (tiro-diagnostics-test-visit "two.txt" "\n\n odd bad\n")
      (with-current-buffer buffer (narrow-to-region 1 2))
      (should (equal (tiro-diagnostics-test-ask (concat "diagnostics " path))
                     `(( :path ,path
                         :range (:start (:line 0 :character 3) :end (:line 0 :character 6))
                         :severity "error" :source "tiro-diagnostics-test-backend"
                         :message "bad \ufffdword"))))
      (should (equal (sort (mapcar (lambda (one) (plist-get one :severity))
                                   (tiro-diagnostics-test-ask "diagnostics"))
                           #'string<)
                     '("error" "error" "warning"))))))

(ert-deftest tiro-diagnostics-of-a-file-that-is-not-open-are-none ()
  (tiro-testing-with-peer
    (should-not (tiro-diagnostics-test-ask "diagnostics /no/such/file"))))

;;; tiro-diagnostics-test.el ends here
