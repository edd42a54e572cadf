;;; tiro-prompt.el --- The prompt area of the chat buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The editable end of the chat buffer: sending what stands there, and the
;; history of what was sent.

;;; Code:

(require 'ring)
(require 'tiro-attached)
(require 'tiro-session)
(require 'tiro-transcript)

(defvar-local tiro-prompt--history nil "Ring of prompts that were sent.")
(defvar-local tiro-prompt--place nil "Place in the history, or nil.")
(defvar-local tiro-prompt--draft "" "What stood here before the history was shown.")

(defun tiro-prompt-setup ()
  "Make the end of the current buffer, a transcript, the place to type."
  (setq tiro-prompt--history (make-ring 100))
  (add-hook 'pre-command-hook #'tiro-prompt--go-there nil t))

(defun tiro-prompt--go-there ()
  "Let what is typed or yanked above the prompt go into the prompt."
  (when (and (memq this-command '(self-insert-command yank))
             (< (point) tiro-transcript-prompt))
    (goto-char (point-max))))

(defun tiro-prompt-send ()
  "Send the text of the prompt area; from the transcript, go there."
  (interactive)
  (if (< (point) tiro-transcript-prompt)
      (goto-char (point-max))
    (tiro-attached-ask (string-trim (tiro-transcript-draft)))
    (tiro-prompt--replace "")
    (setq buffer-undo-list nil)))

(defun tiro-prompt-withdraw (text)
  "Empty the prompt area if TEXT still stands there."
  (when (equal text (tiro-transcript-draft)) (tiro-prompt--replace "")))

(defun tiro-prompt-remember (prompt)
  "Put PROMPT in the history."
  (setq tiro-prompt--place nil)
  (ring-remove+insert+extend tiro-prompt--history prompt))

(defun tiro-prompt-offer (text)
  "Put TEXT into the prompt area, if nothing stands there; return non-nil then."
  (when (string-blank-p (tiro-transcript-draft))
    (save-excursion (tiro-prompt--replace text))
    t))

(defun tiro-prompt-previous (count)
  "Replace the prompt by the one sent COUNT before."
  (interactive "p")
  (let ((place (+ (or tiro-prompt--place -1) count)))
    (when (>= place (ring-length tiro-prompt--history)) (user-error "No earlier prompt"))
    (unless tiro-prompt--place (setq tiro-prompt--draft (tiro-transcript-draft)))
    (setq tiro-prompt--place (and (>= place 0) place))
    (tiro-prompt--replace (if tiro-prompt--place (ring-ref tiro-prompt--history place)
                            tiro-prompt--draft))))

(defun tiro-prompt-next (count)
  "Replace the prompt by the one sent COUNT after."
  (interactive "p")
  (unless tiro-prompt--place (user-error "No later prompt"))
  (tiro-prompt-previous (- count)))

(defun tiro-prompt--replace (text)
  "Make TEXT the text of the prompt area."
  (delete-region tiro-transcript-prompt (point-max))
  (goto-char (point-max))
  (insert text))

(provide 'tiro-prompt)
;;; tiro-prompt.el ends here
