;;; tiro-edit.el --- Changes that Tiro makes in buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server changes a visited file through its buffer, so that the change
;; is one step of the buffer's own undo, and point and unsaved text stay.
;; A buffer in which anything was typed since the server read it is left
;; alone: the server is told the new text, and the model reads again.
;;
;; A buffer that held no unsaved text is saved after the change, so that
;; commands which Tiro runs see it (`tiro-save-edited-buffers').

;;; Code:

(require 'cl-lib)
(require 'tiro-buffer)
(require 'tiro-rpc)

(defvar tiro-save-edited-buffers)

(cl-defmethod tiro-handle-request
  (connection (_method (eql 'workspace/applyEdit)) &key edit &allow-other-keys)
  "Make the changes of EDIT, all of them or none, and tell CONNECTION."
  (let ((later (tiro-rpc-later)))
    ;; Saving runs hooks of the user's, which do not belong into a filter.
    (run-at-time 0 nil (lambda () (tiro-rpc-reply later (tiro-edit--apply connection edit))))
    later))

(defun tiro-edit-unsaved-p (file)
  "Return non-nil if a buffer holds text of FILE that is not saved."
  (when-let ((buffer (find-buffer-visiting file))) (buffer-modified-p buffer)))

(defun tiro-edit--apply (connection edit)
  "Make the changes of EDIT and return the answer for CONNECTION."
  (condition-case err
      (let ((changes (mapcar #'tiro-edit--checked (tiro-edit--changes edit))))
        (pcase-dolist (`(,buffer . ,edits) changes)
          (tiro-edit--change connection buffer edits))
        '(:applied t))
    ((error quit)
     `(:applied :json-false :failureReason ,(error-message-string err)))))

(defun tiro-edit--changes (edit)
  "Return the changes of EDIT, a list of (URI VERSION . EDITS)."
  (if-let ((changes (plist-get edit :documentChanges)))
      (mapcar (lambda (change)
                (let ((document (or (plist-get change :textDocument)
                                    (error "Emacs makes, renames and deletes no files"))))
                  (cons (plist-get document :uri)
                        (cons (plist-get document :version) (plist-get change :edits)))))
              changes)
    (cl-loop for (uri edits) on (plist-get edit :changes) by #'cddr
             collect (cons (substring (symbol-name uri) 1) (cons nil edits)))))

(defun tiro-edit--checked (change)
  "Return (BUFFER . EDITS) for CHANGE if its buffer can take it now."
  (pcase-let* ((`(,uri ,version . ,edits) change)
               (buffer (or (tiro-buffer-of uri)
                           (error "No buffer visits that file any more"))))
    (with-current-buffer buffer
      (unless (tiro-buffer-as-told-p version)
        (error "The buffer %s was changed meanwhile" (buffer-name)))
      (when buffer-read-only (error "The buffer %s is read-only" (buffer-name)))
      (unless (verify-visited-file-modtime buffer)
        (error "The file of %s was changed on disk; revert the buffer first" (buffer-name))))
    (cons buffer edits)))

(defun tiro-edit--change (connection buffer edits)
  "Make EDITS in BUFFER as one step of its undo, and tell CONNECTION."
  (with-current-buffer buffer
    (let ((unsaved (buffer-modified-p)))
      (save-excursion
        (save-restriction
          (widen)
          (undo-boundary)
          (let ((ranges (mapcar (lambda (edit) (tiro-edit--range connection edit)) edits))
                (group (prepare-change-group))
                (inhibit-interaction t) ; a question in a timer would hang the turn
                (create-lockfiles nil))
            (atomic-change-group
              ;; From the end, so that the places before stay what they are.
              (pcase-dolist (`(,beg ,end ,text) (sort ranges (lambda (a b) (> (car a) (car b)))))
                (tiro-edit--replace beg end text)))
            (undo-amalgamate-change-group group)
            (undo-boundary))))
      (if (or unsaved (not tiro-save-edited-buffers))
          (message "Tiro: %s is changed but not saved" (buffer-name))
        (tiro-edit--save))
      ;; Hooks may have changed it once more, or killed it: what is there counts.
      (when (buffer-live-p buffer) (tiro-buffer-tell connection buffer)))))

(defun tiro-edit--range (connection edit)
  "Return EDIT as (BEG END TEXT) in the current buffer, read over CONNECTION."
  (let ((range (plist-get edit :range)))
    (list (tiro-rpc-point connection (plist-get range :start))
          (tiro-rpc-point connection (plist-get range :end))
          (plist-get edit :newText))))

(defun tiro-edit--replace (beg end text)
  "Put TEXT in the place of what stands from BEG to END.
Markers at BEG stay before it, point and window starts too."
  (goto-char end)
  (insert text)
  (delete-region beg end))

(defun tiro-edit--save ()
  "Save the current buffer as it is, without a question; say why where that fails.
The user allowed the change that was shown, and the undo knows no other."
  (condition-case err
      (let ((inhibit-interaction t) (inhibit-message t) (save-silently t)
            (before-save-hook nil) (write-contents-functions nil) (write-file-functions nil)
            (require-final-newline nil))
        (when (derived-mode-p 'hexl-mode) (error "Its text is not what the file holds"))
        (basic-save-buffer)
        (tiro-edit--follow))
    ((error quit)
     (message "Tiro: %s is changed %s: %s" (buffer-name)
              (if (buffer-modified-p) "but not saved" "and saved, but what comes then failed")
              (error-message-string err)))))

(defun tiro-edit--follow ()
  "Show in the current buffer what a hook has made of its file after saving it."
  (unless (or (buffer-modified-p) (verify-visited-file-modtime (current-buffer)))
    (revert-buffer t t t)))

(provide 'tiro-edit)
;;; tiro-edit.el ends here
