;;; lint.el --- Byte-compile, checkdoc and package-lint  -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs -Q --batch -L . -l test/lint.el tiro.el OTHER.el ...
;; One line a problem, warnings are errors, exit code 1 if there is any.

;;; Code:

(require 'checkdoc)
(require 'cl-lib)
(require 'package)
(require 'subr-x)

(setq native-comp-deferred-compilation nil
      ;; It takes every "while a turn runs" for a sentence to be mended.
      checkdoc-verb-check-experimental-flag nil)

(defvar tiro-lint-count 0 "Problems found so far.")

(defun tiro-lint-say (format &rest arguments)
  "Print the problem that FORMAT and ARGUMENTS tell."
  (cl-incf tiro-lint-count)
  (princ (concat (apply #'format format arguments) "\n")))

(defun tiro-lint-compile (file)
  "Byte-compile FILE into a scratch folder, warnings being errors.
In an Emacs of its own, as native compilation does: what another file has loaded is not known."
  (let ((folder (make-temp-file "elc" t)))
    (with-temp-buffer
      (unless (eq 0 (call-process
                     (expand-file-name invocation-name invocation-directory) nil t nil
                     "-Q" "--batch" "-L" (file-name-directory (expand-file-name file)) "--eval"
                     (prin1-to-string
                      `(setq byte-compile-error-on-warn t
                             byte-compile-dest-file-function
                             (lambda (name)
                               (expand-file-name (file-name-nondirectory name) ,folder))))
                     "-f" "batch-byte-compile" file))
        (tiro-lint-say "%s: byte-compile failed: %s" file (string-trim (buffer-string)))))
    (delete-directory folder t)))

(defun tiro-lint-checkdoc (file)
  "Check the docstrings of FILE."
  (with-current-buffer (find-file-noselect file)
    (let ((checkdoc-create-error-function
           (lambda (text start _end &optional _unfixable)
             (tiro-lint-say "%s:%d: checkdoc: %s" file
                            (if start (line-number-at-pos start) 1) text)
             nil)))
      (checkdoc-current-buffer t))))

(defun tiro-lint-package (file main)
  "Check FILE, a part of the package whose main file is MAIN."
  (declare-function package-lint-buffer "package-lint")
  (defvar package-lint-main-file)
  (with-current-buffer (find-file-noselect file)
    (let ((package-archives nil) (package-user-dir "/nonexistent"))
      (setq-local package-lint-main-file (expand-file-name main))
      (pcase-dolist (`(,line ,column ,type ,message) (package-lint-buffer))
        ;; package-lint 0.16 knows no Emacs after 27.
        (unless (string-match-p "uninstallable in all released Emacs" message)
          (tiro-lint-say "%s:%d:%d: package-lint %s: %s" file line column type message))))))

(let* ((files command-line-args-left) (main (car files)))
  (setq command-line-args-left nil)
  (dolist (name '("package-lint" "compat"))
    (dolist (folder (file-expand-wildcards
                     (format "/usr/share/emacs/site-lisp/elpa/%s-*" name)))
      (add-to-list 'load-path folder)))
  (mapc #'tiro-lint-compile files)
  (mapc #'tiro-lint-checkdoc files)
  (if (require 'package-lint nil t)
      (dolist (file files)
        (unless (string-suffix-p "-test.el" file) (tiro-lint-package file main)))
    (princ "package-lint is not here and was left out\n"))
  (princ (format "%d problems in %d files\n" tiro-lint-count (length files)))
  (kill-emacs (if (zerop tiro-lint-count) 0 1)))

;;; lint.el ends here
