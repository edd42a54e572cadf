;;; tiro-event.el --- What the server tells us  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The notifications and small requests of the server, noted in
;; `tiro-session' and handed on to `tiro-session-functions'.  All of it runs
;; in the process filter: nothing here waits or prompts.

;;; Code:

(require 'cl-lib)
(require 'tiro-rpc)
(require 'tiro-session)

(cl-defmethod tiro-handle-notification
  (_connection (_method (eql 'tiro/turn/event))
               &rest event &key turnId type n role sessionId agent model &allow-other-keys)
  "Hand on EVENT of the running turn; drop those of other turns.
TURNID, TYPE, N, ROLE, SESSIONID, AGENT and MODEL are fields of it."
  (let ((turn (tiro-session-turn tiro-session)))
    (when (and turn (null (car turn)) (equal type "started"))
      (setcar turn turnId)
      (when sessionId (setf (tiro-session-id tiro-session) sessionId))
      (setf (tiro-session-agent tiro-session) agent
            (tiro-session-model tiro-session) model
            (tiro-session-earlier tiro-session) nil)
      (tiro-session-tell 'state))
    (when (and turn turnId (equal turnId (car turn)))
      (when (equal type "usage")
        (setf (tiro-session-context-size tiro-session) (plist-get event :contextSize))
        (tiro-session-tell 'state))
      ;; The second event tells that the prompt itself is stored.
      (when (and (equal type "stored") (equal role "user") (> n 2) (cdr turn))
        (tiro-session-tell 'told (pop (cdr turn))))
      (tiro-session-tell 'event event))))

(defconst tiro-event--change-texts
  '(("saveFailed" . "This session cannot be saved%s; it goes on in memory")
    ("saveResumed" . "This session is saved again")
    ("changedOnDisk" . "The session's file was changed outside; this is the new state")
    ("renamed" . "Another process took the session's name; it is now %s")
    ("expired" . "The session expired")
    ("summary" . "What left the window was summarised"))
  "What to tell for each reason of a change; %s is the id, or why it is so.")

(cl-defmethod tiro-handle-notification
  (_connection (_method (eql 'tiro/session/changed))
               &key reason id contextSize why &allow-other-keys)
  "Tell that the session changed for REASON and WHY; note its ID and CONTEXTSIZE."
  (setf (tiro-session-id tiro-session) id)
  (when contextSize (setf (tiro-session-context-size tiro-session) contextSize))
  (let ((text (cdr (assoc reason tiro-event--change-texts))))
    (when text
      (setq text (format text (cond ((not (equal reason "saveFailed")) id)
                                    (why (concat ": " why))
                                    (t "")))))
    (pcase reason
      ("titled" (tiro-session-look-again t))
      ((or "changedOnDisk" "expired")
       (if (tiro-session-turn tiro-session) (tiro-session-tell 'stale text)
         (tiro-session-look-again nil text)))
      (_ (when text (tiro-session-tell 'notice text)))))
  (tiro-session-tell 'state))

(cl-defmethod tiro-handle-notification
  (_connection (_method (eql 'window/showMessage)) &key message &allow-other-keys)
  "Tell MESSAGE to the user."
  (tiro-session-tell 'notice message))

(defvar tiro-event--progress-texts (make-hash-table :test #'equal)
  "What was told last about each long work, by token.")

(cl-defmethod tiro-handle-notification
  (_connection (_method (eql '$/progress)) &key token value &allow-other-keys)
  "Tell VALUE, a step of the long work that goes by TOKEN."
  (let* ((done (equal (plist-get value :kind) "end"))
         (known (gethash token tiro-event--progress-texts "Working"))
         (text (or (plist-get value :message) (plist-get value :title) known))
         (percentage (plist-get value :percentage)))
    (if done (remhash token tiro-event--progress-texts)
      (puthash token text tiro-event--progress-texts))
    (tiro-session-tell
     'progress (list :token token
                     :text (cond (done (concat known ": done"))
                                 (percentage (format "%s (%s%%)" text percentage))
                                 (t text))))))

(cl-defmethod tiro-handle-request
  (_connection (_method (eql 'window/workDoneProgress/create)) &key &allow-other-keys)
  "Agree to be told about progress."
  nil)

(cl-defmethod tiro-handle-request
  (_connection (_method (eql 'client/registerCapability)) &key &allow-other-keys)
  "Agree to what the server registers; we need nothing of it."
  nil)

(provide 'tiro-event)
;;; tiro-event.el ends here
