;;; tiro-session.el --- What Emacs knows of the session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; There is one server and one current session.  This file keeps what we
;; know of it, starts the server when it is needed, and says what happens
;; through `tiro-session-functions'.  It shows nothing itself.
;;
;; A turn is a cons (ID . TOLD) whose identity counts: what comes for
;; another turn than the running one is dropped, so nothing of an old turn
;; shows after a clear or a load.  TOLD is what was said to it and is not yet
;; part of the talk.

;;; Code:

(require 'cl-lib)
(require 'project)
(require 'tiro-rpc)
(require 'tiro-buffer)

(defvar tiro-server-command)
(defvar tiro-settings)
(defvar tiro-log-size)

(cl-defstruct (tiro-session (:constructor tiro-session--create) (:copier nil))
  "What we know of the server and its session."
  connection                            ; a `tiro-rpc-connection' or nil
  roots                                 ; workspace roots told to the server
  id title agent model                  ; strings or nil
  usual-agent usual-model               ; who answers where these are nil
  context-size                          ; plist, or nil
  pins                                  ; seqs of messages that stay in the window
  turn                                  ; the running turn, or nil
  work                                  ; (LABEL . ID) of a request that takes long
  lost                                  ; t: the server died, go on with ID
  earlier)                              ; plist of a session to resume, or nil

(defvar tiro-session (tiro-session--create)
  "What we know of the server and its session.")

(defvar tiro-session-functions nil
  "Functions called with KIND and VALUE when something happens.
`view'      show VALUE, a SessionView, from now on
`ask'       VALUE, a plist of :prompt and :attachments, was sent
`event'     VALUE is an event of the running turn
`told'      VALUE, what was said to the running turn, is now part of the talk
`over'      the turn is over; VALUE is nil, an error plist, or `lost' if
            the server died
`stale'     what is shown misses something: look again after the turn and
            tell VALUE, a sentence or nil
`notice'    VALUE is a sentence for the user
`progress'  VALUE is a plist of :token and :text about long work
`pins'      other messages are pinned now
`offer'     VALUE, a plist of :id, :title and :savedAt, can be resumed
`state'     something in the mode line changed")

(defvar tiro-session-busy-hook nil
  "Functions that may say better than us why a prompt is refused just now.")

(defun tiro-session-tell (kind &optional value)
  "Tell `tiro-session-functions' KIND and VALUE."
  (run-hook-with-args 'tiro-session-functions kind value))

;;;; The server

(defun tiro-session-running-p ()
  "Return non-nil if the server runs."
  (tiro-rpc-live-p (tiro-session-connection tiro-session)))

(defun tiro-session-live ()
  "Return a live connection, starting the server where needed."
  (unless (tiro-session-running-p) (tiro-session--start))
  (tiro-session-connection tiro-session))

(defun tiro-session--start ()
  "Start the server and find back to the session that was current."
  (when (tiro-session-connection tiro-session)
    (tiro-session--ended (tiro-session-connection tiro-session)))
  (let* ((root (tiro-session-root))
         (roots (delete-dups (append (and root (list root)) (tiro-session-roots tiro-session))))
         (connection (with-temp-message "Tiro: starting the server..."
                       (tiro-rpc-start tiro-server-command roots tiro-settings
                                       tiro-log-size #'tiro-session--ended)))
         (resume (plist-get (tiro-rpc-server connection) :resume)))
    (setf (tiro-session-connection tiro-session) connection
          (tiro-session-roots tiro-session) roots
          (tiro-session-earlier tiro-session) nil)
    (cond
     ((and (tiro-session-lost tiro-session) (tiro-session-id tiro-session))
      (tiro-session--reload))
     ((equal (plist-get resume :setting) "latest")
      (tiro-session-take-view (tiro-rpc-request connection 'tiro/session/get '(:limit 100))))
     ((equal (plist-get resume :setting) "ask")
      (when-let ((earlier (plist-get resume :latest)))
        (setf (tiro-session-earlier tiro-session) earlier)
        (tiro-session-tell 'offer earlier))))
    (setf (tiro-session-lost tiro-session) nil)
    (when (tiro-rpc-live-p connection) (tiro-session--ask-who-answers connection))
    (tiro-session-tell 'state)))

(defun tiro-session--ask-who-answers (connection)
  "Ask over CONNECTION who answers where nobody was chosen, without waiting."
  (tiro-rpc-send connection 'tiro/agents/list nil
                 (lambda (result)
                   (setf (tiro-session-usual-agent tiro-session) (plist-get result :default))
                   (tiro-session-tell 'state))
                 #'ignore)
  (tiro-rpc-send connection 'tiro/status nil
                 (lambda (result)
                   (setf (tiro-session-usual-model tiro-session) (plist-get result :model))
                   (tiro-session-tell 'state))
                 #'ignore))

(defun tiro-session--reload ()
  "Load the session that a dead server had, as far as it was stored."
  (let ((id (tiro-session-id tiro-session))
        (connection (tiro-session-connection tiro-session)))
    (condition-case err
        (progn
          (tiro-session-take-view
           (tiro-rpc-request connection 'tiro/session/load (list :id id :limit 100)))
          (tiro-session-tell 'notice (format "The server was started again; %s goes on" id)))
      (jsonrpc-error
       (setf (tiro-session-id tiro-session) nil)
       (tiro-session-tell
        'notice (format "The server was started again, with a new session: %s"
                        (tiro-rpc-error-text err)))))))

(defun tiro-session--ended (connection)
  "Say that the server of CONNECTION has ended, unless we ended it."
  (when (eq connection (tiro-session-connection tiro-session))
    (let ((turn (tiro-session-turn tiro-session))
          (tail (tiro-rpc-stderr-tail connection)))
      (setf (tiro-session-connection tiro-session) nil
            (tiro-session-turn tiro-session) nil
            (tiro-session-work tiro-session) nil
            (tiro-session-lost tiro-session) (not (tiro-rpc-ending connection)))
      (tiro-buffer-forget)
      (when turn (tiro-session-tell 'over 'lost))
      (unless (tiro-rpc-ending connection)
        (tiro-session-tell
         'notice (format "The server ended (%s)%s; the next question starts it again"
                         (tiro-rpc-exit-text connection)
                         (if (string-empty-p tail) "" (concat ": " tail)))))
      (tiro-session-tell 'state))))

(defun tiro-session-stop ()
  "End the server."
  (when-let ((connection (tiro-session-connection tiro-session)))
    (tiro-rpc-stop connection)
    (tiro-session--ended connection)
    (setq tiro-session (tiro-session--create))
    (tiro-session-tell 'state)))

(defun tiro-session-root ()
  "Return the workspace root of the current buffer, or nil.
Without a project it is the buffer's folder, but never a remote one, the
home folder or the root of the disk: tools may read all of it."
  (unless (file-remote-p default-directory)
    (let ((root (expand-file-name
                 (if-let ((project (project-current))) (project-root project)
                   default-directory))))
      (unless (member (directory-file-name root)
                      (list "/" (directory-file-name (expand-file-name "~"))))
        (file-name-as-directory root)))))

(defun tiro-session-local-file (file)
  "Return FILE as an absolute name; refuse one on another machine."
  (when (file-remote-p (expand-file-name file))
    (user-error "Tiro works on this machine only; %s is on another one" file))
  (expand-file-name file))

(defun tiro-session-add-root ()
  "Tell the server of the current buffer's workspace root, if it is new."
  (let ((root (tiro-session-root)) (connection (tiro-session-live)))
    (when (and root (not (cl-some (lambda (known) (string-prefix-p known root))
                                  (tiro-session-roots tiro-session))))
      (push root (tiro-session-roots tiro-session))
      (jsonrpc-notify connection 'workspace/didChangeWorkspaceFolders
                      `(:event (:added [,(tiro-rpc-folder root)] :removed []))))))

;;;; Requests

(defun tiro-session-call (method &optional params timeout-seconds)
  "Return the result of METHOD with PARAMS; an error becomes a `user-error'.
So does no answer within TIMEOUT-SECONDS (60)."
  (condition-case err
      (tiro-rpc-request (tiro-session-live) method params timeout-seconds)
    (jsonrpc-error (user-error "Tiro: %s" (tiro-rpc-error-text err)))))

(defun tiro-session-work-on (label method params on-result)
  "Ask for METHOD with PARAMS, which may take long, and return at once.
ON-RESULT is called with the result, and may wait and prompt.  LABEL is
shown in the mode line meanwhile; `tiro-session-cancel' ends it."
  (when-let ((work (tiro-session-work tiro-session)))
    (user-error "Tiro is still %s; %s ends that" (car work)
                (substitute-command-keys "\\[tiro-cancel]")))
  (let* ((work (cons label nil))
         (done (lambda (function value)
                 (when (eq work (tiro-session-work tiro-session))
                   (setf (tiro-session-work tiro-session) nil)
                   (message nil)
                   (tiro-session-tell 'state))
                 (run-at-time 0 nil function value))))
    (setcdr work (tiro-rpc-send
                  (tiro-session-live) method params
                  (lambda (result) (funcall done on-result result))
                  (lambda (err) (funcall done #'tiro-session--tell-failure err))))
    (setf (tiro-session-work tiro-session) work)
    (tiro-session-tell 'state)
    (message "Tiro is %s; %s ends that" label (substitute-command-keys "\\[tiro-cancel]"))))

(defun tiro-session--tell-failure (err)
  "Say why work that takes long failed: ERR, a plist."
  (pcase (plist-get err :code)
    (-32800 (message "Tiro: ended; nothing was changed"))
    (-1 nil)                            ; the server died, which is told elsewhere
    (_ (message "Tiro: %s" (tiro-rpc-error-text err)))))

(defun tiro-session-update ()
  "Ask for the facts of the current session and note them."
  (tiro-session-note (tiro-session-call 'tiro/session/get '(:limit 1)))
  (tiro-session-tell 'state))

(defun tiro-session-take-view (view)
  "Make VIEW, a SessionView, the session that is shown."
  (unless (plist-get view :busy) (setf (tiro-session-turn tiro-session) nil))
  (setf (tiro-session-earlier tiro-session) nil)
  (tiro-session-note view)
  (tiro-session-tell 'view view)
  (tiro-session-tell 'state))

(defun tiro-session-refresh ()
  "Ask for the current session and show it; the newest 100 messages."
  (tiro-session-take-view (tiro-session-call 'tiro/session/get '(:limit 100))))

(defun tiro-session-look-again (&optional facts-only notice)
  "Ask for the session without waiting, and show it unless FACTS-ONLY.
Then tell NOTICE, if there is one."
  (tiro-rpc-send (tiro-session-connection tiro-session)
                 'tiro/session/get (list :limit (if facts-only 1 100))
                 (lambda (view)
                   (cond
                    (facts-only (tiro-session-note view))
                    ;; A turn began meanwhile, and the view knows nothing of it.
                    ((tiro-session-turn tiro-session) (tiro-session-tell 'stale notice))
                    (t (tiro-session-take-view view)
                       (when notice (tiro-session-tell 'notice notice))))
                   (tiro-session-tell 'state))
                 #'ignore))

(defun tiro-session-load (id &optional file)
  "Make the saved session ID, or the one in FILE, the current one, and show it."
  (tiro-session-take-view
   (tiro-session-call 'tiro/session/load
                      `(:limit 100 ,@(if file (list :path file) (list :id id))))))

(defun tiro-session-resume ()
  "Go on with the session that the server offers, or with the latest saved."
  (tiro-session-live)
  (let ((earlier (tiro-session-earlier tiro-session)))
    (tiro-session-take-view
     (tiro-session-call 'tiro/session/load
                        `(:limit 100 ,@(if earlier (list :id (plist-get earlier :id))
                                         '(:latest t)))))))

(defun tiro-session-note (view)
  "Note the facts in VIEW, a SessionView."
  (let ((same (equal (plist-get view :id) (tiro-session-id tiro-session))))
    (setf (tiro-session-id tiro-session) (plist-get view :id)
          (tiro-session-title tiro-session) (plist-get view :title)
          (tiro-session-agent tiro-session) (plist-get view :agent)
          (tiro-session-pins tiro-session) (append (plist-get view :pins) nil)
          ;; Without a model of its own the one that answered last stays shown.
          (tiro-session-model tiro-session)
          (or (plist-get view :model) (and same (tiro-session-model tiro-session)))
          (tiro-session-context-size tiro-session) (plist-get view :contextSize))))

(defun tiro-session-sync ()
  "Tell the server of the workspace and of what stands in its buffers."
  (tiro-session-add-root)
  (tiro-buffer-sync (tiro-session-connection tiro-session)
                    (tiro-session-roots tiro-session)))

;;;; Turns

(defun tiro-session-ask (prompt &optional attachments images)
  "Start a turn with PROMPT and the lists of ATTACHMENTS and IMAGES."
  (tiro-session-check-idle)
  (when (and (string-blank-p prompt) (null images)) (user-error "Tiro: the question is empty"))
  (tiro-session-sync)
  (let ((connection (tiro-session-live)) (turn (list nil)))
    (tiro-session-tell 'ask (list :prompt prompt :attachments attachments :images images))
    (setf (tiro-session-turn tiro-session) turn)
    (condition-case err
        (tiro-rpc-send connection 'tiro/turn/start
                       `( :prompt ,(tiro-session--content prompt images)
                          ,@(and attachments (list :attachments (vconcat attachments))))
                       (lambda (result) (tiro-session--over turn result nil))
                       (lambda (err) (tiro-session--over turn nil err)))
      ;; The server died while we wrote to it.
      (error (tiro-session--over turn nil (list :message (tiro-rpc-error-text err)))))
    (tiro-buffer-watch connection
                       (lambda () (and (eq turn (tiro-session-turn tiro-session))
                                       (tiro-session-roots tiro-session))))
    (tiro-session-tell 'state)))

(defun tiro-session--content (prompt images)
  "Return PROMPT as it is sent, with IMAGES behind it."
  (if (null images) prompt
    (vconcat (unless (string-blank-p prompt) (list (list :type "text" :text prompt))) images)))

(defun tiro-session-check-idle ()
  "Signal a `user-error' while a turn runs."
  (when (tiro-session-turn tiro-session)
    (run-hooks 'tiro-session-busy-hook)
    (user-error "Tiro is still answering; %s cancels it, %s tells it something"
                (substitute-command-keys "\\[tiro-cancel]")
                (substitute-command-keys "\\[tiro-steer]"))))

(defun tiro-session--over (turn result err)
  "End TURN, which was answered with RESULT or with ERR."
  (when (and turn (eq turn (tiro-session-turn tiro-session)))
    ;; -1: the server died, which `tiro-session--ended' tells.
    (unless (eql (plist-get err :code) -1)
      (setf (tiro-session-turn tiro-session) nil)
      (when-let ((size (plist-get result :contextSize)))
        (setf (tiro-session-context-size tiro-session) size))
      (tiro-session-tell 'over err)
      ;; The first prompt gives the session its title.
      (unless (or err (tiro-session-title tiro-session)) (tiro-session-look-again t))
      (tiro-session-tell 'state))))

(defun tiro-session-cancel ()
  "Cancel the running turn, or the work that takes long."
  (let ((turn (tiro-session-turn tiro-session))
        (work (tiro-session-work tiro-session))
        (connection (tiro-session-connection tiro-session)))
    (cond (turn (tiro-rpc-send connection 'tiro/turn/cancel
                               (and (car turn) (list :turnId (car turn)))
                               #'ignore #'ignore))
          (work (tiro-rpc-cancel connection (cdr work)))
          (t (user-error "Tiro: nothing is running")))))

(defun tiro-session-steer (text)
  "Say TEXT to the running turn; it takes it before its next step."
  (when (string-blank-p text) (user-error "Tiro: there is nothing to say"))
  (let ((turn (tiro-session-turn tiro-session)))
    (unless (car turn) (user-error "Tiro: nothing is running"))
    ;; Its event may come while we wait for the answer.
    (setcdr turn (append (cdr turn) (list text)))
    (condition-case err
        (tiro-session-call 'tiro/turn/steer (list :text text :turnId (car turn)))
      (error (setcdr turn (remq text (cdr turn)))
             (signal (car err) (cdr err))))))

(provide 'tiro-session)
;;; tiro-session.el ends here
