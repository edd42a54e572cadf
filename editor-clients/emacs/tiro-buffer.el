;;; tiro-buffer.el --- Live text of visited files  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server's tools read what stands in our buffers, saved or not.  So
;; before each turn, and twice a second while one runs, the buffers that
;; visit files of the workspace are compared with what the server was told:
;; new ones are opened there, changed ones sent again as a whole, and those
;; that are gone closed.  A buffer is compared by its modification counter,
;; so typing costs nothing and no hook is needed.

;;; Code:

(require 'cl-lib)
(require 'tiro-rpc)

(defconst tiro-buffer--max-chars 2000000
  "Larger buffers are told to the server only while they are modified.")

(defvar tiro-buffer--open (make-hash-table :test #'eq)
  "What the server was told: buffer -> (URI VERSION TICK).")

(defvar tiro-buffer--timer nil "Timer of `tiro-buffer-watch', or nil.")

(defun tiro-buffer-sync (connection roots)
  "Tell the server of CONNECTION the text of all buffers in ROOTS."
  (maphash (lambda (buffer told)
             (unless (equal (car told) (tiro-buffer--uri buffer roots))
               (jsonrpc-notify connection 'textDocument/didClose
                               `(:textDocument (:uri ,(car told))))
               (remhash buffer tiro-buffer--open)))
           (copy-hash-table tiro-buffer--open))
  (dolist (buffer (buffer-list))
    (when-let ((uri (tiro-buffer--uri buffer roots)))
      (tiro-buffer--tell connection buffer uri))))

(defun tiro-buffer-watch (connection roots-function)
  "Keep CONNECTION in step while ROOTS-FUNCTION returns workspace roots."
  (when tiro-buffer--timer (cancel-timer tiro-buffer--timer))
  (setq tiro-buffer--timer
        (run-at-time 0.5 0.5 #'tiro-buffer--step connection roots-function)))

(defun tiro-buffer--step (connection roots-function)
  "Do one step of `tiro-buffer-watch' with CONNECTION and ROOTS-FUNCTION."
  (let ((roots (funcall roots-function)))
    (unless (and roots (tiro-rpc-live-p connection)
                 ;; The server may die while we write to it.
                 (condition-case nil (progn (tiro-buffer-sync connection roots) t)
                   (error nil)))
      (cancel-timer tiro-buffer--timer)
      (setq tiro-buffer--timer nil))))

(defun tiro-buffer-of (uri)
  "Return the buffer that the server knows as URI, or nil."
  (let (found)
    (maphash (lambda (buffer told)
               (when (and (equal (car told) uri) (buffer-live-p buffer)) (setq found buffer)))
             tiro-buffer--open)
    found))

(defun tiro-buffer-as-told-p (version)
  "Return non-nil if the current buffer is as it was told, as VERSION if given."
  (pcase-let ((`(,_ ,known ,tick) (gethash (current-buffer) tiro-buffer--open)))
    (and tick (= tick (buffer-chars-modified-tick))
         (or (null version) (eql version known)))))

(defun tiro-buffer-tell (connection buffer)
  "Tell CONNECTION the text of BUFFER, which it knows already."
  (tiro-buffer--tell connection buffer (car (gethash buffer tiro-buffer--open))))

(defun tiro-buffer-forget ()
  "Forget what a server that has ended was told."
  (clrhash tiro-buffer--open))

(defun tiro-buffer--uri (buffer roots)
  "Return the URI of the file of ROOTS that BUFFER visits as text, or nil."
  (when (and (buffer-live-p buffer) (buffer-file-name buffer))
    (with-current-buffer buffer
      (and enable-multibyte-characters
           (not (file-remote-p buffer-file-name))
           (cl-some (lambda (root) (string-prefix-p root buffer-file-name)) roots)
           (or (buffer-modified-p) (< (buffer-size) tiro-buffer--max-chars))
           (tiro-rpc-uri buffer-file-name)))))

(defun tiro-buffer--tell (connection buffer uri)
  "Bring what CONNECTION knows of BUFFER under URI up to date."
  (with-current-buffer buffer
    (pcase-let ((tick (buffer-chars-modified-tick))
                (`(,_ ,version ,known) (gethash buffer tiro-buffer--open)))
      (cond
       ((null version)
        (jsonrpc-notify connection 'textDocument/didOpen
                        `(:textDocument
                          ( :uri ,uri :languageId ,(tiro-buffer--language)
                            :version 1 :text ,(tiro-buffer--text))))
        (puthash buffer (list uri 1 tick) tiro-buffer--open))
       ((/= tick known)
        (jsonrpc-notify connection 'textDocument/didChange
                        `( :textDocument (:uri ,uri :version ,(1+ version))
                           :contentChanges [(:text ,(tiro-buffer--text))]))
        (puthash buffer (list uri (1+ version) tick) tiro-buffer--open))))))

(defun tiro-buffer--text ()
  "Return the whole text of the current buffer."
  (save-restriction
    (widen)
    (buffer-substring-no-properties (point-min) (point-max))))

(defun tiro-buffer--language ()
  "Return the name of the current buffer's language."
  (replace-regexp-in-string "\\(-ts\\)?-mode\\'" "" (symbol-name major-mode)))

(provide 'tiro-buffer)
;;; tiro-buffer.el ends here
