;;; tiro-form.el --- Buffers in which texts are edited and applied  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A form is a buffer of read-only text with fields between, each a text to
;; edit.  One key gives the fields to a function, another one drops them.
;; What the function refuses with an error stays there to be mended.

;;; Code:

(defvar-local tiro-form--fields nil "Alist of the fields: NAME -> (START . END).")
(defvar-local tiro-form--apply nil "Function that takes an alist NAME -> text.")

(defvar tiro-form-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'tiro-form-apply)
    (define-key map (kbd "C-c C-k") #'tiro-form-drop)
    map)
  "Keymap of `tiro-form-mode'.")

(define-derived-mode tiro-form-mode text-mode "Tiro-Form"
  "Major mode of texts that are edited and then applied.
\\<tiro-form-mode-map>\\[tiro-form-apply] applies them, \\[tiro-form-drop] drops them."
  (setq-local truncate-lines nil)
  (setq-local word-wrap t
              word-wrap-by-category t))

(defun tiro-form-open (name does parts apply)
  "Show the buffer NAME, a form of PARTS, and return it.
A part is a string, which is read-only, or a field (FIELD . TEXT).
APPLY is called with an alist of the fields and their texts; DOES says
in a word or two what it does."
  (with-current-buffer (get-buffer-create name)
    (when (and (buffer-modified-p) (derived-mode-p 'tiro-form-mode)
               (not (y-or-n-p (format "Drop what was edited in %s? " name))))
      (pop-to-buffer name)
      (user-error "Tiro: apply or drop this first"))
    (tiro-form-mode)
    (setq tiro-form--apply apply
          header-line-format
          (substitute-command-keys
           (format " \\<tiro-form-mode-map>\\[tiro-form-apply] %s, \\[tiro-form-drop] drops this"
                   does)))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (mapc #'tiro-form--insert parts))
    ;; Only now, or what is inserted behind a field would belong to it.
    (pcase-dolist (`(,_ ,_ . ,end) tiro-form--fields) (set-marker-insertion-type end t))
    (set-buffer-modified-p nil)
    (setq buffer-undo-list nil)
    (goto-char (or (car (cdr (car tiro-form--fields))) (point-min)))
    (current-buffer))
  (pop-to-buffer name)
  (get-buffer name))

(defun tiro-form--insert (part)
  "Insert PART, as in `tiro-form-open'."
  (if (stringp part)
      (insert (propertize part 'read-only t 'face 'shadow 'rear-nonsticky '(read-only face)
                          'front-sticky (and (bobp) '(read-only))))
    (let ((start (point-marker)))
      (insert (cdr part))
      (setq tiro-form--fields
            (append tiro-form--fields
                    (list (cons (car part) (cons start (point-marker)))))))))

(defun tiro-form--texts ()
  "Return the fields of the current buffer and their texts, an alist."
  (mapcar (lambda (field)
            (cons (car field) (buffer-substring-no-properties (cadr field) (cddr field))))
          tiro-form--fields))

(defun tiro-form-apply ()
  "Apply the texts of this buffer and put it away."
  (interactive nil tiro-form-mode)
  (let ((buffer (current-buffer)) (window (get-buffer-window)))
    (funcall tiro-form--apply (tiro-form--texts))
    (if (window-live-p window) (quit-window t window) (kill-buffer buffer))))

(defun tiro-form-drop ()
  "Put this buffer away and change nothing."
  (interactive nil tiro-form-mode)
  (quit-window t)
  (message "Tiro: dropped; nothing was changed"))

(provide 'tiro-form)
;;; tiro-form.el ends here
