;;; tiro-menu.el --- All commands in a menu  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The keys of `tiro-keys-table' as a transient menu, which says on top what
;; answers now.  Transient comes with Emacs; it is loaded with the menu, not
;; with the package.

;;; Code:

(require 'transient)
(require 'tiro-chat)
(require 'tiro-keys)

(eval-and-compile
  (defun tiro-menu--column (group)
    "Return GROUP, one of `tiro-keys-table', as a column of a transient."
    (pcase-let ((`(,title . ,rows) group))
      (vconcat (list title)
               (cl-loop for (key command label) in rows
                        unless (eq command 'tiro-menu) collect (list key label command)))))

  (defun tiro-menu--columns (first count)
    "Return COUNT columns of the table from FIRST on, side by side."
    (vconcat (mapcar #'tiro-menu--column (seq-take (nthcdr first tiro-keys-table) count)))))

(defmacro tiro-menu--define ()
  "Define the menu out of the table."
  `(transient-define-prefix tiro-menu-transient ()
     "The commands of Tiro."
     ,(vconcat '(:description tiro-menu--heading) (tiro-menu--columns 0 3))
     ,(tiro-menu--columns 3 (- (length tiro-keys-table) 3))))

(defun tiro-menu--heading ()
  "Return what answers now, as in the header line of the chat."
  (concat "Tiro:" (string-replace "%%" "%" (tiro-chat-header-line))))

(tiro-menu--define)

(provide 'tiro-menu)
;;; tiro-menu.el ends here
