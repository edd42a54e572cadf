;;; tiro-code.el --- Blocks of code in the colours of their language  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; When Emacs has been idle for a moment, the blocks of code in finished
;; answers get the faces that their major mode gives them, block by block;
;; a key that is pressed stops it until the next pause.
;;
;; Which language it is comes from the model, so only modes are called that
;; this Emacs uses for files and that are for programs or text.

;;; Code:

(require 'cl-lib)
(require 'tiro-transcript)

(defconst tiro-code--max-chars 50000
  "Longer blocks stay in one colour.")

(defconst tiro-code--languages
  '(("bash" . sh-mode) ("c++" . c++-mode) ("console" . nil) ("elisp" . emacs-lisp-mode)
    ("javascript" . js-mode) ("json" . js-mode) ("jsx" . js-mode) ("lisp" . lisp-mode)
    ("py" . python-mode) ("shell" . sh-mode) ("ts" . js-mode) ("typescript" . js-mode)
    ("yml" . yaml-mode) ("zsh" . sh-mode))
  "Major modes of languages that are not called as their mode is.")

(defvar-local tiro-code--from nil "Marker behind the last block that was looked at.")
(defvar-local tiro-code--to nil "Marker up to which blocks are to be looked at.")
(defvar-local tiro-code--timer nil "Timer for the next pause, or nil.")

(defun tiro-code-later (end)
  "Look at the blocks of code up to END when Emacs is idle."
  (unless (and tiro-code--from (<= tiro-code--from end))
    (setq tiro-code--from (copy-marker (point-min))))
  (setq tiro-code--to (copy-marker end))
  (unless (memq tiro-code--timer timer-idle-list)
    (setq tiro-code--timer
          (run-with-idle-timer 0.5 nil #'tiro-code--work (current-buffer)))))

(defun tiro-code-again ()
  "Look at the whole buffer at the next pause, since text came before."
  (setq tiro-code--from nil)
  (tiro-code-later tiro-transcript-end))

(defun tiro-code--work (buffer)
  "Look at the blocks in BUFFER that wait, until a key is pressed."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq tiro-code--timer nil)
      (while (and (not (input-pending-p)) (tiro-code--next)))
      (when (< tiro-code--from tiro-code--to) (tiro-code-later tiro-code--to)))))

(defun tiro-code--next ()
  "Paint the next block that waits; return nil if there is none."
  (save-excursion
    (save-match-data
      (goto-char tiro-code--from)
      (if (not (re-search-forward "^```\\([[:alnum:]+_-]+\\).*\n" tiro-code--to t))
          (ignore (set-marker tiro-code--from tiro-code--to))
        (let ((mode (tiro-code--mode (downcase (match-string-no-properties 1))))
              (start (point))
              (end (or (and (re-search-forward "^```" tiro-code--to t) (match-beginning 0))
                       tiro-code--to)))
          (when (and mode (eq 'code (get-text-property (match-beginning 0) 'tiro-kind))
                     (< (- end start) tiro-code--max-chars)
                     (not (get-text-property start 'tiro-painted)))
            (tiro-code--paint start end mode))
          (set-marker tiro-code--from (min (+ end 3) tiro-code--to))
          t)))))

(defun tiro-code--mode (language)
  "Return the major mode for LANGUAGE that may be called, or nil."
  (let ((mode (if-let ((known (assoc language tiro-code--languages))) (cdr known)
                (intern-soft (concat language "-mode")))))
    (and mode (fboundp mode)
         (or (rassq mode auto-mode-alist) (rassq mode tiro-code--languages))
         (progn (when (autoloadp (symbol-function mode))
                  (autoload-do-load (symbol-function mode) mode))
                (cl-some (lambda (base) (provided-mode-derived-p mode base))
                         '(prog-mode text-mode conf-mode)))
         mode)))

(defun tiro-code--paint (start end mode)
  "Give what stands from START to END the faces that MODE gives it."
  (let ((faces (tiro-code--faces (buffer-substring-no-properties start end) mode)))
    (with-silent-modifications
      (put-text-property start end 'tiro-painted t)
      (pcase-dolist (`(,from ,to . ,face) faces)
        (put-text-property (+ start from) (+ start to) 'face (list face 'tiro-code))))))

(defun tiro-code--faces (text mode)
  "Return where TEXT has which face in MODE, a list of (FROM TO . FACE)."
  (condition-case nil
      (with-temp-buffer
        (let ((inhibit-message t) (message-log-max nil) (enable-local-variables nil) faces)
          (insert text)
          (delay-mode-hooks (funcall mode))
          (font-lock-ensure)
          (let ((from (point-min)))
            (while (< from (point-max))
              (let ((to (next-single-property-change from 'face nil (point-max)))
                    (face (get-text-property from 'face)))
                (when face (push `(,(1- from) ,(1- to) . ,face) faces))
                (setq from to))))
          faces))
    (error nil)))

(provide 'tiro-code)
;;; tiro-code.el ends here
