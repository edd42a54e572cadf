;;; tiro-buffer-test.el --- Tests of what the server is told of buffers  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defmacro tiro-buffer-test-told (&rest body)
  "Return what BODY tells the server, as a list of (METHOD PARAMS)."
  (declare (indent 0) (debug t))
  `(let (told)
     (cl-letf (((symbol-function 'jsonrpc-notify)
                (lambda (_ method params) (push (list method params) told))))
       ,@body)
     (nreverse told)))

(defun tiro-buffer-test-sync ()
  "Return the methods and file names that a step tells."
  (mapcar (pcase-lambda (`(,method ,params))
            (list method (file-name-nondirectory
                          (plist-get (plist-get params :textDocument) :uri))))
          (tiro-buffer-test-told (tiro-buffer-sync nil (list default-directory)))))

(ert-deftest tiro-buffer-is-opened-changed-and-closed ()
  (tiro-testing-call
   (lambda ()
     (tiro-buffer-forget)
     (let ((buffer (find-file-noselect (tiro-testing-write "a.txt" "one\n"))))
       (should (equal (tiro-buffer-test-sync) '((textDocument/didOpen "a.txt"))))
       (should (equal (tiro-buffer-test-sync) '()))
       (with-current-buffer buffer
         (insert "unsaved ")
         (narrow-to-region 1 2))
       (pcase (tiro-buffer-test-told (tiro-buffer-sync nil (list default-directory)))
         (`((textDocument/didChange ,params))
          (should (equal (plist-get params :contentChanges) [(:text "unsaved one\n")]))
          (should (equal (plist-get (plist-get params :textDocument) :version) 2)))
         (told (ert-fail told)))
       (with-current-buffer buffer (text-mode))
       (should (equal (tiro-buffer-test-sync) '()))
       (with-current-buffer buffer
         (widen)
         (write-file (expand-file-name "b.txt")))
       (should (equal (sort (tiro-buffer-test-sync) (lambda (a b) (string< (cadr a) (cadr b))))
                      '((textDocument/didClose "a.txt") (textDocument/didOpen "b.txt"))))
       (kill-buffer buffer)
       (should (equal (tiro-buffer-test-sync) '((textDocument/didClose "b.txt"))))
       (should (equal (tiro-buffer-test-sync) '()))))))

(ert-deftest tiro-buffer-outside-or-binary-is-not-told ()
  (tiro-testing-call
   (lambda ()
     (tiro-buffer-forget)
     (find-file-noselect (tiro-testing-write "../outside.txt" "one\n"))
     (find-file-noselect (tiro-testing-write "../workspace-2/sibling.txt" "one\n"))
     (with-current-buffer (find-file-literally (tiro-testing-write "binary" "\200\n")))
     (with-temp-buffer (insert "no file") (should (equal (tiro-buffer-test-sync) '()))))))

(ert-deftest tiro-buffer-typed-in-mid-answer-is-told ()
  "What is typed while an answer is written reaches the server soon."
  (tiro-testing-with-peer
    (let ((buffer (find-file-noselect (tiro-testing-write "a.txt" "one\n"))) told)
      (tiro-ask "permission")
      (tiro-testing-wait-for "asks to use")
      (with-current-buffer buffer (insert "typed "))
      (let ((notify (symbol-function 'jsonrpc-notify)))
        (cl-letf (((symbol-function 'jsonrpc-notify)
                   (lambda (connection method params)
                     (push method told)
                     (funcall notify connection method params))))
          (tiro-testing-wait "didChange" (lambda () (memq 'textDocument/didChange told)))))
      (tiro-testing-allow)
      (tiro-testing-wait-idle)
      (tiro-testing-wait "the watch ends" (lambda () (not tiro-buffer--timer)))
      (with-current-buffer buffer (set-buffer-modified-p nil)))))

(provide 'tiro-buffer-test)
;;; tiro-buffer-test.el ends here
