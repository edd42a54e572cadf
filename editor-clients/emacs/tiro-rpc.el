;;; tiro-rpc.el --- Connection to the Tiro server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The JSON-RPC connection: starting and stopping the server, requests,
;; replies that come later, clean text, URIs and positions.  No user
;; interface, no knowledge of sessions.
;;
;; Its law: nothing that runs in the process filter ever waits or prompts.
;; The built-in `jsonrpc-request' leaves the filter by a `throw', which
;; strands the messages behind the reply, so `tiro-rpc-request' waits for
;; an asynchronous request instead.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'subr-x)
(require 'url-util)

(defclass tiro-rpc-connection (jsonrpc-process-connection)
  ((encoding :initform "utf-16" :accessor tiro-rpc-encoding
             :documentation "The position encoding agreed on.")
   (server :initform nil :accessor tiro-rpc-server
           :documentation "What the server tells about itself, a plist.")
   (process :initform nil :accessor tiro-rpc-process
            :documentation "The server's process.")
   (last-id :initform nil :accessor tiro-rpc-last-id
            :documentation "The id of the request that was sent last.")
   (ending :initform nil :accessor tiro-rpc-ending
           :documentation "Non-nil once we asked the server to end."))
  :documentation "A connection to a Tiro server.")

;;;; What the parts above implement

(cl-defgeneric tiro-handle-notification (connection method &key &allow-other-keys)
  "Handle the notification METHOD that came over CONNECTION.
Its params are keyword arguments.  A method must not wait or prompt."
  (ignore connection method))

(cl-defgeneric tiro-handle-request (connection method &key &allow-other-keys)
  "Return the answer to the request METHOD that came over CONNECTION.
A method must not wait or prompt; it may return `tiro-rpc-later' and
give the answer with `tiro-rpc-reply' when there is one."
  (ignore connection)
  (jsonrpc-error :code -32601 :message (format "This client has no %s" method)))

;;;; Start and stop

(defun tiro-rpc-start (command roots settings log-size on-end)
  "Start the server COMMAND and return its connection, initialized.
ROOTS are the workspace roots, SETTINGS is a plist in the form of the
config file.  LOG-SIZE characters of traffic are kept.  ON-END is
called with the connection when the server has ended."
  (unless (executable-find (car command))
    (user-error "Tiro: no program `%s'; install Tiro or set `tiro-server-command'"
                (car command)))
  (let ((connection (tiro-rpc--open command (car roots) log-size on-end)))
    (condition-case err
        (tiro-rpc--initialize connection roots settings)
      ((error quit)
       (setf (tiro-rpc-ending connection) t)
       (jsonrpc-shutdown connection)
       (when (eq (car err) 'quit) (signal 'quit nil))
       (let ((tail (tiro-rpc--last-words connection)))
         (user-error "Tiro: the server `%s' did not start: %s"
                     (string-join command " ")
                     (if (string-empty-p tail) (tiro-rpc-error-text err) tail)))))
    connection))

(defun tiro-rpc--open (command root log-size on-end)
  "Return a new connection to COMMAND, run in ROOT.
LOG-SIZE and ON-END are as in `tiro-rpc-start'."
  (let* ((default-directory (or root (expand-file-name "~/")))
         process
         (connection
          (apply
           #'make-instance 'tiro-rpc-connection
           :name "tiro"
           :notification-dispatcher #'tiro-rpc--notification
           :request-dispatcher #'tiro-rpc--request
           :on-shutdown (lambda (connection)
                          (tiro-rpc--ended connection log-size on-end))
           :process
           (lambda ()
             (let ((process-adaptive-read-buffering nil))
               (setq process
                     (make-process
                      :name "tiro" :command command :connection-type 'pipe
                      :coding 'utf-8-emacs-unix :noquery t
                      :stderr (get-buffer-create "*tiro stderr*")))))
           (if (fboundp 'jsonrpc-continuation-count) ; jsonrpc 1.0.24 and later
               `(:events-buffer-config (:size ,log-size :format full))
             `(:events-buffer-scrollback-size ,log-size)))))
    (setf (tiro-rpc-process connection) process)
    ;; Emacs would write "Process tiro stderr finished" into the buffer.
    (when-let ((stderr (get-buffer-process (jsonrpc-stderr-buffer connection))))
      (set-process-sentinel stderr #'ignore))
    (when (eql log-size 0)
      ;; Without a log, lines of stderr need not be copied into it.
      (with-current-buffer (jsonrpc-stderr-buffer connection)
        (kill-local-variable 'after-change-functions)))
    connection))

(defun tiro-rpc--initialize (connection roots settings)
  "Introduce this editor over CONNECTION, with ROOTS and SETTINGS."
  (let* ((result
          (tiro-rpc-request
           connection 'initialize
           `( :processId ,(emacs-pid)
              :clientInfo (:name "Emacs" :version ,emacs-version)
              :rootUri ,(and roots (tiro-rpc-uri (car roots)))
              :workspaceFolders ,(and roots (vconcat (mapcar #'tiro-rpc-folder roots)))
              :capabilities
              ( :general (:positionEncodings ["utf-32" "utf-16"])
                :window (:workDoneProgress t :showDocument (:support t))
                :workspace ( :workspaceFolders t :applyEdit t
                             :workspaceEdit (:documentChanges t))
                :textDocument (:synchronization ,(make-hash-table)))
              :initializationOptions
              ( :settings ,(or settings (make-hash-table))
                :features (:permissionRequest t :turnEvents t :diagnostics t)
                :workspaceTrusted t))
           30))
         (capabilities (plist-get result :capabilities)))
    (setf (tiro-rpc-encoding connection)
          (or (plist-get capabilities :positionEncoding) "utf-16")
          (tiro-rpc-server connection)
          (plist-get (plist-get capabilities :experimental) :tiro))
    (jsonrpc-notify connection 'initialized (make-hash-table))))

(defun tiro-rpc-stop (connection)
  "End the server of CONNECTION in an orderly way, waiting up to 5 seconds."
  (setf (tiro-rpc-ending connection) t)
  (when (jsonrpc-running-p connection)
    (ignore-errors (tiro-rpc-request connection 'shutdown nil 3))
    (ignore-errors (jsonrpc-notify connection 'exit nil))
    ;; The end of a process does not wake Emacs, so look often.
    (cl-loop repeat 200 while (jsonrpc-running-p connection)
             do (accept-process-output nil 0.01)))
  (jsonrpc-shutdown connection))

(defun tiro-rpc--ended (connection log-size on-end)
  "Tidy up after CONNECTION, whose log had LOG-SIZE, and call ON-END."
  (when (eql log-size 0)
    (ignore-errors (kill-buffer (jsonrpc-events-buffer connection))))
  ;; The last words on stderr may still be on their way.
  (run-at-time 0.1 nil on-end connection))

(defun tiro-rpc-live-p (connection)
  "Return non-nil if CONNECTION is there and its server runs."
  (and connection (jsonrpc-running-p connection)))

(defun tiro-rpc-stderr-buffer ()
  "Return the buffer with what the newest server wrote to stderr, or nil."
  (get-buffer " *tiro stderr*"))

(defun tiro-rpc-log-buffer (connection)
  "Return the buffer with the traffic over CONNECTION, or nil if none is kept."
  (when-let ((buffer (and connection (jsonrpc-events-buffer connection))))
    (and (buffer-live-p buffer) (< 0 (buffer-size buffer)) buffer)))

(defun tiro-rpc-stderr-tail (connection)
  "Return the last line that the server of CONNECTION wrote to stderr."
  (let ((buffer (jsonrpc-stderr-buffer connection)))
    (if (not (buffer-live-p buffer)) ""
      (with-current-buffer buffer
        (save-excursion
          (goto-char (point-max))
          (skip-chars-backward " \t\n")
          (buffer-substring-no-properties
           (line-beginning-position) (min (point) (+ 300 (line-beginning-position)))))))))

(defun tiro-rpc--last-words (connection)
  "Wait until all that the server of CONNECTION wrote is read; return the tail."
  (let ((stderr (get-buffer-process (jsonrpc-stderr-buffer connection))))
    (cl-loop repeat 20 while (and stderr (process-live-p stderr))
             do (accept-process-output stderr 0.1)))
  (tiro-rpc-stderr-tail connection))

(defun tiro-rpc--trim-stderr (connection)
  "Keep what the server of CONNECTION wrote to stderr from growing for ever."
  (let ((buffer (jsonrpc-stderr-buffer connection)))
    (when (and (buffer-live-p buffer) (> (buffer-size buffer) 200000))
      (with-current-buffer buffer
        (let ((inhibit-read-only t))
          (delete-region (point-min) (- (point-max) 100000)))))))

(defun tiro-rpc-exit-text (connection)
  "Say in a few words how the server of CONNECTION ended."
  (let ((process (tiro-rpc-process connection)))
    (format (if (eq (process-status process) 'signal) "signal %s" "exit code %s")
            (process-exit-status process))))

;;;; Requests

(defun tiro-rpc-request (connection method params &optional timeout-seconds)
  "Send METHOD with PARAMS over CONNECTION, wait, and return the result.
An error or no answer within TIMEOUT-SECONDS (60) signals `jsonrpc-error'."
  (let (outcome given-up)
    (unwind-protect
        (progn
          (tiro-rpc-send connection method params
                         (lambda (result) (unless given-up (setq outcome (list 'done result))))
                         (lambda (err) (unless given-up (setq outcome (list 'failed err)))))
          (let ((end (+ (float-time) (or timeout-seconds 60))))
            (while (and (null outcome) (< (float-time) end))
              ;; Naming the process saves 10 ms, after which Emacs looks once more.
              (accept-process-output (and (tiro-rpc-live-p connection)
                                          (tiro-rpc-process connection))
                                     0.1))))
      (setq given-up t))
    (pcase outcome
      (`(done ,result) result)
      (`(failed ,err) (jsonrpc-error :code (plist-get err :code)
                                     :message (plist-get err :message)
                                     :data (plist-get err :data)))
      (_ (jsonrpc-error :code -1 :message "The server did not answer")))))

(defun tiro-rpc-send (connection method params on-result on-error)
  "Send METHOD with PARAMS over CONNECTION; return the request's id at once.
ON-RESULT is called with the result, ON-ERROR with a plist of :code,
:message and :data; neither may wait or prompt.  There is no timeout."
  (unless (tiro-rpc-live-p connection)
    (jsonrpc-error :code -1 :message "The server is not running"))
  (tiro-rpc--trim-stderr connection)
  (jsonrpc-async-request connection method params :timeout nil
                         :success-fn on-result :error-fn on-error)
  (tiro-rpc-last-id connection))

(defun tiro-rpc-cancel (connection id)
  "Tell the server of CONNECTION that the answer to the request ID is not wanted."
  (jsonrpc-notify connection '$/cancelRequest (list :id id)))

(defun tiro-rpc-error-text (err)
  "Return the sentence for the user in ERR, a plist or a `jsonrpc-error'."
  (or (pcase err
        (`(jsonrpc-error ,_ . ,fields) (alist-get 'jsonrpc-error-message fields))
        (`(,(pred keywordp) . ,_) (plist-get err :message))
        (_ (error-message-string err)))
      "unknown error"))

;;;; Dispatch and replies that come later

(cl-defstruct (tiro-rpc-later (:constructor tiro-rpc-later)) "An answer not yet given."
  connection id)

(defun tiro-rpc-reply (later result)
  "Answer the request that got LATER with RESULT, once."
  (let ((connection (tiro-rpc-later-connection later)))
    (setf (tiro-rpc-later-connection later) nil)
    (when (tiro-rpc-live-p connection)
      (jsonrpc-connection-send connection :id (tiro-rpc-later-id later) :result result))))

(cl-defmethod jsonrpc-connection-send :around
  ((connection tiro-rpc-connection)
   &rest args &key id method params result &allow-other-keys)
  "Send ARGS over CONNECTION with clean text, or hold back a later RESULT.
ID, METHOD and PARAMS are those of JSON-RPC."
  (when (and id method) (setf (tiro-rpc-last-id connection) id))
  (cond
   ((tiro-rpc-later-p result)
    (setf (tiro-rpc-later-connection result) connection
          (tiro-rpc-later-id result) id))
   (params (apply #'cl-call-next-method connection
                  (plist-put (copy-sequence args) :params (tiro-rpc-clean params))))
   (t (apply #'cl-call-next-method connection args))))

(defun tiro-rpc--notification (connection method params)
  "Hand the notification METHOD with PARAMS from CONNECTION on."
  (condition-case err
      (apply #'tiro-handle-notification connection method params)
    ((error quit) (message "Tiro: %s: %s" method (error-message-string err)))))

(defun tiro-rpc--request (connection method params)
  "Return the answer to METHOD with PARAMS from CONNECTION."
  (condition-case err
      (apply #'tiro-handle-request connection method params)
    (jsonrpc-error (signal (car err) (cdr err)))
    ((error quit)
     (message "Tiro: %s: %s" method (error-message-string err))
     (jsonrpc-error :code -32603 :message "The editor could not answer"))))

;;;; Text, files and positions

(defconst tiro-rpc--unsendable
  (concat "[" (string #x110000) "-" (string #x3fff7f) (string #x3fff80) "-" (string #x3fffff)
          (string #xd800) "-" (string #xdfff) "]")
  "Matches a character that JSON cannot carry: a raw byte or a lone surrogate.")

(defun tiro-rpc-clean (value)
  "Return VALUE with U+FFFD for what its strings hold and JSON cannot carry."
  (cond
   ((stringp value)
    (let ((text (string-to-multibyte value)))
      (if (string-match-p tiro-rpc--unsendable text)
          (replace-regexp-in-string tiro-rpc--unsendable "\N{U+FFFD}" text t t)
        value)))
   ((consp value) (mapcar #'tiro-rpc-clean value))
   ((vectorp value) (vconcat (mapcar #'tiro-rpc-clean value)))
   ((hash-table-p value)
    (let ((clean (make-hash-table :test #'equal)))
      (maphash (lambda (key it) (puthash key (tiro-rpc-clean it) clean)) value)
      clean))
   (t value)))

(defun tiro-rpc-uri (file)
  "Return the URI of FILE."
  ;; The path characters that url-util allows contain the percent sign.
  (concat "file://" (mapconcat #'url-hexify-string
                               (split-string (expand-file-name file) "/") "/")))

(defun tiro-rpc-folder (root)
  "Return ROOT in the form of a workspace folder."
  (list :uri (tiro-rpc-uri (directory-file-name root))
        :name (file-name-nondirectory (directory-file-name root))))

(defun tiro-rpc-position (connection position)
  "Return POSITION of the current buffer in the form agreed on over CONNECTION."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char position)
      (let ((before (buffer-substring-no-properties (line-beginning-position) position)))
        (list :line (1- (line-number-at-pos position t))
              :character (if (equal (tiro-rpc-encoding connection) "utf-32")
                             (length before)
                           (/ (string-bytes (encode-coding-string before 'utf-16le)) 2)))))))

(defun tiro-rpc-point (connection position)
  "Return where POSITION, in the form agreed on over CONNECTION, is in the buffer."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line (plist-get position :line))
      (let ((rest (plist-get position :character)) (end (line-end-position))
            (wide (equal (tiro-rpc-encoding connection) "utf-32")))
        (while (and (> rest 0) (< (point) end))
          (setq rest (- rest (if (and (not wide) (< #xffff (char-after) #x110000)) 2 1)))
          (forward-char))
        (point)))))

(provide 'tiro-rpc)
;;; tiro-rpc.el ends here
