;;; tiro-diagnostics.el --- What Flymake finds, for the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server asks which problems this editor shows.  Flymake knows those of
;; the buffers that it looks at, also where Eglot reports them.

;;; Code:

(require 'cl-lib)
(require 'tiro-rpc)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-backend "flymake" (diag))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-end "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))
(declare-function flymake-diagnostic-type "flymake" (diag))

(cl-defmethod tiro-handle-request
  (connection (_method (eql 'tiro/editor/diagnostics)) &key path &allow-other-keys)
  "Tell over CONNECTION the problems in the file PATH, or in all buffers."
  (let ((buffers (if path (delq nil (list (find-buffer-visiting path))) (buffer-list))))
    (list :diagnostics
          (vconcat (cl-loop for buffer in buffers
                            nconc (with-current-buffer buffer
                                    (tiro-diagnostics--here connection)))))))

(defun tiro-diagnostics--here (connection)
  "Return the problems of the current buffer, with positions for CONNECTION."
  (when (and (bound-and-true-p flymake-mode)
             buffer-file-name (not (file-remote-p buffer-file-name)))
    (mapcar (lambda (found) (tiro-diagnostics--wire connection found))
            (save-restriction (widen) (flymake-diagnostics)))))

(defun tiro-diagnostics--wire (connection found)
  "Return FOUND, a problem of Flymake, in the form of the protocol of CONNECTION."
  (let ((backend (flymake-diagnostic-backend found)))
    `( :path ,(expand-file-name buffer-file-name)
       :range ( :start ,(tiro-rpc-position connection (flymake-diagnostic-beg found))
                :end ,(tiro-rpc-position connection (flymake-diagnostic-end found)))
       :severity ,(tiro-diagnostics--severity (flymake-diagnostic-type found))
       ,@(and backend (symbolp backend) (list :source (symbol-name backend)))
       :message ,(tiro-rpc-clean (substring-no-properties (flymake-diagnostic-text found))))))

(defun tiro-diagnostics--severity (type)
  "Return the severity of TYPE, such as :error or `eglot-warning'."
  (let ((name (format "%s" type)))
    (cond ((string-search "error" name) "error")
          ((string-search "warning" name) "warning")
          (t "information"))))

(provide 'tiro-diagnostics)
;;; tiro-diagnostics.el ends here
