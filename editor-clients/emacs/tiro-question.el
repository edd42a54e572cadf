;;; tiro-question.el --- What the server asks of any editor  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The requests of the Language Server Protocol that every editor answers: a
;; question with some answers to choose from, and a document to show.  Like
;; a question about a tool, the first stands in the chat, each answer in a
;; line that RET presses; the minibuffer may be in use.

;;; Code:

(require 'cl-lib)
(require 'tiro-chat)
(require 'tiro-message)
(require 'tiro-permission)
(require 'tiro-rpc)
(require 'tiro-transcript)
(require 'url-util)

(defvar tiro-question--pending nil "Questions that wait, each (KEYS . LATER).")

(cl-defmethod tiro-handle-request
  (_connection (_method (eql 'window/showMessageRequest)) &key message actions &allow-other-keys)
  "Ask MESSAGE, with ACTIONS as the answers to choose from."
  (let* ((later (tiro-rpc-later)) (question (cons nil later)))
    (push question tiro-question--pending)
    (with-current-buffer (tiro-chat-buffer)
      (tiro-chat-flush)
      (tiro-transcript-close)
      (tiro-transcript-add 'permission message)
      (seq-do (lambda (action)
                (let ((key (make-symbol "answer")))
                  (push key (car question))
                  (tiro-transcript-put-line
                   key 'permission (format "[%s]" (plist-get action :title))
                   (tiro-message-button (lambda (_) (tiro-question--answer question action))))))
              actions)
      (unless (tiro-chat-seen-p)
        (message "Tiro asks: %s shows the question" (tiro-permission-key 'tiro-next-attention))))
    later))

(defun tiro-question--answer (question action)
  "Answer QUESTION with ACTION, one of its actions, or nil."
  (when (memq question tiro-question--pending)
    (setq tiro-question--pending (delq question tiro-question--pending))
    (tiro-rpc-reply (cdr question) action)
    (when (get-buffer "*tiro*")
      (with-current-buffer "*tiro*"
        (mapc #'tiro-transcript-delete-line (car question))
        (tiro-transcript-add 'permission
                             (concat "-> " (or (plist-get action :title) "not answered")))
        (tiro-transcript-close)))))

(defun tiro-question--dismiss ()
  "Leave no question unanswered that can be answered no more."
  (dolist (question tiro-question--pending) (tiro-question--answer question nil)))

(defun tiro-question--on-session (kind _value)
  "Dismiss the questions in the chat when KIND says that it is drawn anew."
  (when (eq kind 'view) (tiro-question--dismiss)))

(add-hook 'tiro-chat-killed-hook #'tiro-question--dismiss)
;; First, so that what is drawn anew shows nothing of them.
(add-hook 'tiro-session-functions #'tiro-question--on-session -50)

(defun tiro-question--go ()
  "Go to the first answer of the oldest question; return nil if none waits."
  (when-let ((question (car (last tiro-question--pending))))
    (pop-to-buffer (tiro-chat-buffer))
    (goto-char (or (tiro-transcript-place (car (last (car question)))) (point)))))

(defun tiro-question--check ()
  "Signal a `user-error' that says how to answer, if a question waits."
  (when tiro-question--pending
    (user-error "Tiro waits for your answer: %s goes to the question"
                (tiro-permission-key 'tiro-next-attention))))

(add-hook 'tiro-session-busy-hook #'tiro-question--check)

(defun tiro-next-attention ()
  "Go to what waits for you: a question in the chat, or a form to apply or drop."
  (interactive)
  (unless (or (tiro-permission-go) (tiro-question--go))
    (pop-to-buffer (or (cl-find-if (lambda (buffer)
                                     (eq 'tiro-form-mode (buffer-local-value 'major-mode buffer)))
                                   (buffer-list))
                       (user-error "Tiro: nothing waits for you")))))

;;;; Documents

(cl-defmethod tiro-handle-request
  (connection (_method (eql 'window/showDocument))
              &key uri selection takeFocus &allow-other-keys)
  "Show URI, a file, at SELECTION; select its window if TAKEFOCUS; tell CONNECTION."
  (let ((later (tiro-rpc-later)))
    ;; Visiting a file runs hooks of the user's, which do not belong into a filter.
    (run-at-time 0 nil (lambda ()
                         (tiro-rpc-reply later (tiro-question--show connection uri selection
                                                                    (eq t takeFocus)))))
    later))

(defun tiro-question--show (connection uri selection focus)
  "Show URI at SELECTION, with FOCUS if told, and return the answer for CONNECTION."
  (condition-case err
      (let* ((file (tiro-question--file uri))
             (window (display-buffer (find-file-noselect file))))
        (with-selected-window window
          (when selection
            (goto-char (tiro-rpc-point connection (plist-get selection :start)))))
        (when focus (select-window window))
        '(:success t))
    ((error quit)
     (message "Tiro: %s" (error-message-string err))
     '(:success :json-false))))

(defun tiro-question--file (uri)
  "Return the file that URI names; signal an error for anything else."
  (let ((file (and (string-match "\\`file://\\(/.*\\)\\'" uri)
                   (decode-coding-string (url-unhex-string (match-string 1 uri)) 'utf-8))))
    (if (and file (not (file-remote-p file)) (file-readable-p file)) file
      (error "There is no file to show at %s" uri))))

(provide 'tiro-question)
;;; tiro-question.el ends here
