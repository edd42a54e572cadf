;;; commands-run.el --- Which commands the tests ran  -*- lexical-binding: t; -*-

;;; Commentary:

;; A command counts as run when it was called, and one that reads its
;; arguments only when it was called as a key calls it, so that what it asks
;; was asked.

;;; Code:

(require 'cl-lib)

(defvar commands-run--called (make-hash-table) "Commands that were called.")
(defvar commands-run--asked (make-hash-table) "Commands that were called as a key does.")

(defun commands-run-watch (prefix)
  "Watch from now on which commands run whose names begin with PREFIX."
  (advice-add 'call-interactively :before #'commands-run--note)
  (dolist (command (commands-run--all prefix))
    (unless (symbolp (symbol-function command)) ; an alias calls another one
      (advice-add command :before (lambda (&rest _) (puthash command t commands-run--called))
                  '((name . commands-run))))))

(defun commands-run-missing (prefix)
  "Return the commands whose names begin with PREFIX and that never ran."
  (cl-remove-if (lambda (command)
                  (or (gethash command commands-run--asked)
                      (and (gethash command commands-run--called)
                           (null (cadr (interactive-form command))))))
                (commands-run--all prefix)))

(defun commands-run--note (command &rest _)
  "Note that COMMAND is called as a key does."
  (when (symbolp command) (puthash command t commands-run--asked)))

(defun commands-run--all (prefix)
  "Return the commands whose names begin with PREFIX, but for major modes and keymaps."
  (cl-loop for name in (all-completions prefix obarray #'commandp)
           for command = (intern name)
           unless (or (string-suffix-p "-mode" name) (keymapp (symbol-function command)))
           collect command))

(provide 'commands-run)
;;; commands-run.el ends here
