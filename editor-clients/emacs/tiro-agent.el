;;; tiro-agent.el --- Which agent and which model answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands that show and choose the agent and the model.

;;; Code:

(require 'subr-x)
(require 'tiro-session)
(require 'tiro-visible)

(defun tiro-show-current-agent ()
  "Say which agent is selected, or that the default will be used."
  (interactive)
  (if-let ((agent (plist-get (tiro-session-call 'tiro/session/getAgent) :agent)))
      (message "Tiro: agent %s: %s" (plist-get agent :name) (plist-get agent :description))
    (message "Tiro: no agent is selected; the default, %s, will be used"
             (plist-get (tiro-session-call 'tiro/agents/list) :default))))

(defun tiro-select-agent (name)
  "Let the agent NAME answer from now on."
  (interactive
   (list (tiro-agent--read-choice
          "Agent" (plist-get (tiro-session-call 'tiro/agents/list) :agents)
          :description (tiro-session-agent tiro-session))))
  (let ((agent (plist-get (tiro-session-call 'tiro/session/setAgent (list :name name))
                          :agent)))
    (setf (tiro-session-agent tiro-session) (plist-get agent :name))
    (force-mode-line-update t)
    (message "Tiro: agent %s" (plist-get agent :name))))

(defun tiro-select-model (name)
  "Use the model NAME in this session."
  (interactive
   (list (tiro-agent--read-choice
          "Model" (seq-filter (lambda (model) (eq t (plist-get model :available)))
                                (plist-get (tiro-session-call 'tiro/models/list) :models))
          :provider (tiro-session-model tiro-session))))
  (let ((result (tiro-session-call 'tiro/models/set (list :name name))))
    (setf (tiro-session-model tiro-session) (plist-get result :model))
    (force-mode-line-update t)
    (message "Tiro: model %s" (plist-get result :model))))

(defun tiro-agent--read-choice (prompt choices field current)
  "Read the :name of one of CHOICES with PROMPT; FIELD is shown beside it.
CURRENT is the name that is used now, or nil."
  (let* ((table (mapcar (lambda (choice)
                          (cons (tiro-visible-line (plist-get choice :name)) choice))
                        choices))
         (completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (when-let ((text (plist-get (cdr (assoc name table)) field)))
                    (concat "  " (tiro-visible-line text)))))))
    (let ((chosen (completing-read (format-prompt prompt current)
                                   (or table (user-error "Tiro: there is none to choose"))
                                   nil t nil nil current)))
      (or (plist-get (cdr (assoc chosen table)) :name) chosen))))

(provide 'tiro-agent)
;;; tiro-agent.el ends here
