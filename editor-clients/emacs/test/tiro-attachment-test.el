;;; tiro-attachment-test.el --- Tests of attachments  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(ert-deftest tiro-attachment-label-is-short ()
  (pcase-dolist (`(,attachment ,label)
                 '(((:path "/w/src/app.py" :kind "buffer") "app.py")
                   ((:path "/w/app.py" :range (:start (:line 2 :character 0)
                                               :end (:line 8 :character 3)))
                    "app.py:3-9")
                   ((:path "/w/app.py" :range (:start (:line 2 :character 0)
                                               :end (:line 3 :character 0)))
                    "app.py:3")
                   ((:kind "selection" :range (:start (:line 0 :character 1)
                                               :end (:line 0 :character 1)))
                    "selection:1")
                   ((:kind "diagnostics") "diagnostics")))
    (should (equal (tiro-attachment-label attachment) label))))

(ert-deftest tiro-attachment-at-point-takes-the-definition ()
  (with-temp-buffer
    (emacs-lisp-mode)
    (insert "(defun a ()\n  1)\n\n(defun b ()\n  2)\n")
    (goto-char (point-min))
    (search-forward "1")
    (pcase-let ((`(,beg . ,end) (tiro-attachment-bounds-at-point)))
      (should (equal (string-trim (buffer-substring beg end)) "(defun a ()\n  1)"))))
  (with-temp-buffer
    (insert "one\ntwo\n")
    (goto-char 2)
    (should (equal (tiro-attachment-bounds-at-point) '(1 . 4)))))

(ert-deftest tiro-attachment-buffer-is-whole-and-live ()
  (with-temp-buffer
    (insert "one\ntwo\n")
    (narrow-to-region 1 2)
    (should (equal (tiro-attachment-buffer) '(:kind "buffer" :text "one\ntwo\n")))))

(provide 'tiro-attachment-test)
;;; tiro-attachment-test.el ends here
