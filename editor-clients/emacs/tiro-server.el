;;; tiro-server.el --- Looking at the server, and ending it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands for when something is wrong: what the server said, what went
;; over the wire, what `tiro doctor' finds.  All work while no server runs.

;;; Code:

(require 'tiro-rpc)
(require 'tiro-session)
(require 'tiro-view)

(defvar tiro-log-size)
(defvar tiro-server-command)

(defun tiro-show-stderr ()
  "Show what the server wrote to its standard error."
  (interactive)
  (pop-to-buffer (or (tiro-rpc-stderr-buffer)
                     (user-error "Tiro: no server was started yet"))))

(defun tiro-show-log ()
  "Show the traffic with the server, if it is kept."
  (interactive)
  (pop-to-buffer (or (tiro-rpc-log-buffer (tiro-session-connection tiro-session))
                     (user-error "Tiro: no traffic is kept; set `tiro-log-size' and start again"))))

;;;###autoload (autoload 'tiro-doctor "tiro" nil t)
(defun tiro-doctor ()
  "Show what `tiro doctor' finds: what is configured, what answers, what to do."
  (interactive)
  (let ((command (tiro-server--doctor-command)))
    (unless (executable-find (car command))
      (user-error "Tiro: no program `%s'; install Tiro or set `tiro-server-command'"
                  (car command)))
    (tiro-view-show-text "*tiro doctor*" (concat (string-join command " ") "\n\n") #'tiro-doctor)
    (let ((default-directory (or (tiro-session-root) (expand-file-name "~/"))))
      (make-process :name "tiro-doctor" :command command :connection-type 'pipe :noquery t
                    :coding 'utf-8-unix
                    :buffer (get-buffer "*tiro doctor*") :filter #'tiro-server--add
                    :sentinel #'ignore))))

(defun tiro-server--doctor-command ()
  "Return the command that runs the doctor of `tiro-server-command'."
  (append (seq-take-while (lambda (word) (not (equal word "serve"))) tiro-server-command)
          '("doctor")))

(defun tiro-server--add (process text)
  "Add TEXT, which PROCESS wrote, to its buffer."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (let ((inhibit-read-only t))
        (save-excursion
          (goto-char (point-max))
          (insert text))))))

(defun tiro-shutdown ()
  "End the server; the session is saved."
  (interactive)
  (tiro-session-stop)
  (message "Tiro: the server has ended"))

(defun tiro-restart ()
  "End the server and start it again; the session goes on."
  (interactive)
  (let ((id (tiro-session-id tiro-session)))
    (tiro-session-stop)
    (setf (tiro-session-id tiro-session) id
          (tiro-session-lost tiro-session) t)
    (tiro-session-live)
    (message "Tiro: the server was started again%s" (if id (format "; %s goes on" id) ""))))

(provide 'tiro-server)
;;; tiro-server.el ends here
