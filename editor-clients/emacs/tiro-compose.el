;;; tiro-compose.el --- A prompt in a buffer of its own  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; For prompts of many lines: a form with one field.

;;; Code:

(require 'tiro-attached)
(require 'tiro-attachment)
(require 'tiro-chat)
(require 'tiro-form)
(require 'tiro-prompt)
(require 'tiro-transcript)

;;;###autoload (autoload 'tiro-compose "tiro" nil t)
(defun tiro-compose ()
  "Write a prompt in a buffer of its own; an active region goes with it.
It starts with what is typed in the chat; what was composed before and
not sent is there again."
  (interactive)
  (when (and (use-region-p) (not (derived-mode-p 'tiro-chat-mode))) (tiro-attach))
  (if (get-buffer "*tiro compose*") (pop-to-buffer "*tiro compose*")
    (let ((draft (with-current-buffer (tiro-chat-buffer) (tiro-transcript-draft))))
      (tiro-form-open
       "*tiro compose*" "asks" (list (tiro-compose--heading) (cons 'prompt draft))
       (lambda (texts)
         (tiro-attached-ask (string-trim (alist-get 'prompt texts)))
         (with-current-buffer (tiro-chat-buffer) (tiro-prompt-withdraw draft))
         (tiro-chat-show))))))

(defun tiro-compose--heading ()
  "Say what goes with the prompt."
  (if tiro-attached
      (format "Your question, with %s:\n" (mapconcat #'tiro-attachment-label tiro-attached ", "))
    "Your question:\n"))

(provide 'tiro-compose)
;;; tiro-compose.el ends here
