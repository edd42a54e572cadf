;;; tiro-attached.el --- What goes with the next prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Attachments are gathered from anywhere and go with the next prompt,
;; wherever that is asked.  Until then they can be looked at and removed.
;; What a buffer visits is taken when it is sent, not when it is attached.

;;; Code:

(require 'cl-lib)
(require 'tabulated-list)
(require 'tiro-attachment)
(require 'tiro-session)
(require 'tiro-view)

(declare-function dired-get-marked-files "dired"
                  (&optional localp arg filter distinguish-one-marked error))

(defvar tiro-attached nil "Attachments of the next prompt, oldest first.")

(defun tiro-attached-ask (prompt &optional more)
  "Ask PROMPT with what is attached, and with the attachments MORE."
  (tiro-session-ask prompt (append (mapcar #'tiro-attached--fresh tiro-attached) more))
  (setq tiro-attached nil)
  (tiro-attached--changed))

(defun tiro-attached-add (attachments)
  "Attach ATTACHMENTS to the next prompt, in the place of earlier ones of the same."
  (dolist (attachment attachments)
    (setq tiro-attached
          (append (cl-remove-if (lambda (other) (tiro-attached--same-p attachment other))
                                tiro-attached)
                  (list attachment))))
  (tiro-attached--changed)
  (message "Tiro: attached %s; %s" (mapconcat #'tiro-attachment-label attachments ", ")
           (if (= 1 (length tiro-attached)) "it goes with the next question"
             (format "%d go with the next question" (length tiro-attached)))))

;;;###autoload (autoload 'tiro-attach "tiro" nil t)
(defun tiro-attach (&optional file)
  "Attach something to the next prompt; with a prefix argument, FILE.
That is the region, in Dired the marked files, or else the buffer; in
the chat it is always a file."
  (interactive (list (and (or current-prefix-arg (derived-mode-p 'tiro-chat-mode))
                          (read-file-name "Attach: " nil nil t))))
  (tiro-attached-add
   (cond (file (list (tiro-attachment-file file)))
         ((derived-mode-p 'dired-mode)
          (tiro-attachment-check-local)
          (mapcar #'tiro-attachment-file (dired-get-marked-files)))
         ((use-region-p)
          (tiro-attachment-check-local)
          (list (tiro-attachment-range (tiro-session-live) (region-beginning) (region-end))))
         (t (list (tiro-attachment-buffer))))))

;;;###autoload (autoload 'tiro-attach-diagnostics "tiro" nil t)
(defun tiro-attach-diagnostics ()
  "Attach what Flymake finds wrong in this buffer to the next prompt."
  (interactive)
  (tiro-attached-add (list (tiro-attachment-diagnostics))))

(defun tiro-attached--same-p (one other)
  "Return non-nil if the attachments ONE and OTHER are of the same thing."
  (and (plist-get one :path)
       (cl-every (lambda (key) (equal (plist-get one key) (plist-get other key)))
                 '(:kind :path :range))))

(defun tiro-attached--fresh (attachment)
  "Return ATTACHMENT as it is now: a file that is visited with its buffer's text."
  (let ((buffer (and (member (plist-get attachment :kind) '("buffer" "file"))
                     (plist-get attachment :path)
                     (find-buffer-visiting (plist-get attachment :path)))))
    (if buffer
        (plist-put (copy-sequence attachment) :text
                   (plist-get (with-current-buffer buffer (tiro-attachment-buffer)) :text))
      attachment)))

(defun tiro-attached--changed ()
  "Show that other things are attached now."
  (tiro-session-tell 'state)
  (when-let ((buffer (get-buffer "*tiro attachments*")))
    (with-current-buffer buffer (revert-buffer))))

;;;; The list

(defvar tiro-attached-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'tiro-attached-show)
    (define-key map (kbd "C-c C-c") #'tiro-attached-show)
    (define-key map (kbd "d") #'tiro-attached-remove)
    (define-key map (kbd "C-c C-d") #'tiro-attached-remove)
    map)
  "Keymap of `tiro-attached-mode'.")

(define-derived-mode tiro-attached-mode tabulated-list-mode "Tiro-Attached"
  "Major mode of what goes with the next prompt.
\\<tiro-attached-mode-map>\\[tiro-attached-show] shows one, \\[tiro-attached-remove] removes it."
  (setq tabulated-list-format [("Kind" 12 nil) ("What" 30 nil) ("Size" 10 nil :right-align t)
                               ("Where" 0 nil)]
        tabulated-list-entries #'tiro-attached--rows)
  (tabulated-list-init-header))

(defun tiro-list-attachments ()
  "List what goes with the next prompt."
  (interactive)
  (unless tiro-attached
    (user-error "Tiro: nothing is attached; %s attaches"
                (substitute-command-keys "\\[tiro-attach]")))
  (with-current-buffer (get-buffer-create "*tiro attachments*")
    (tiro-attached-mode)
    (tabulated-list-print))
  (pop-to-buffer "*tiro attachments*"))

(defun tiro-attached--rows ()
  "Return the rows of the list."
  (mapcar (lambda (attachment)
            (let ((text (plist-get (tiro-attached--fresh attachment) :text))
                  (path (plist-get attachment :path)))
              (list attachment
                    (vector (plist-get attachment :kind)
                            (tiro-attachment-label attachment)
                            (if text (file-size-human-readable (length text)) "")
                            (if path (abbreviate-file-name path) "")))))
          tiro-attached))

(defun tiro-attached--here ()
  "Return the attachment on this line."
  (or (tabulated-list-get-id) (user-error "Tiro: no attachment on this line")))

(defun tiro-attached-remove ()
  "Remove the attachment on this line."
  (interactive nil tiro-attached-mode)
  (setq tiro-attached (delq (tiro-attached--here) tiro-attached))
  (tiro-attached--changed))

(defun tiro-attached-show ()
  "Show the attachment on this line."
  (interactive nil tiro-attached-mode)
  (let* ((attachment (tiro-attached--fresh (tiro-attached--here)))
         (text (plist-get attachment :text)))
    (if text (tiro-view-show-text "*tiro attachment*" text)
      (view-file-other-window (plist-get attachment :path)))))

(provide 'tiro-attached)
;;; tiro-attached.el ends here
