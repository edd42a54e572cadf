;;; tiro-attachment.el --- Text that goes with a prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Attachments in the form of the protocol, made from the current buffer:
;; the region, what stands at point, the whole buffer, what Flymake finds.
;; One with a path and no text is read by the server when it is sent.

;;; Code:

(require 'thingatpt)
(require 'tiro-rpc)
(require 'tiro-visible)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))
(declare-function flymake-diagnostic-type "flymake" (diag))

(defun tiro-attachment-range (connection beg end)
  "Return the text from BEG to END as an attachment, told over CONNECTION."
  (tiro-attachment-check-local)
  `( :kind "selection" ,@(tiro-attachment--path)
     :range ( :start ,(tiro-rpc-position connection beg)
              :end ,(tiro-rpc-position connection end))
     :text ,(buffer-substring-no-properties beg end)))

(defun tiro-attachment-buffer ()
  "Return the whole buffer as an attachment."
  (tiro-attachment-check-local)
  `( :kind "buffer" ,@(tiro-attachment--path)
     :text ,(save-restriction
              (widen)
              (buffer-substring-no-properties (point-min) (point-max)))))

(defun tiro-attachment-file (file)
  "Return FILE as an attachment."
  (tiro-attachment-check-local file)
  (unless (file-regular-p file) (user-error "Tiro: %s is no file that can be attached" file))
  (list :kind "file" :path (expand-file-name file)))

(defun tiro-attachment-diagnostics ()
  "Return what Flymake finds wrong in the current buffer as an attachment."
  (tiro-attachment-check-local)
  (let ((found (and (bound-and-true-p flymake-mode)
                    (save-restriction (widen) (flymake-diagnostics)))))
    (unless found (user-error "Tiro: Flymake shows nothing in %s" (buffer-name)))
    `( :kind "diagnostics" ,@(tiro-attachment--path)
       :text ,(mapconcat #'tiro-attachment--problem found "\n"))))

(defun tiro-attachment--problem (found)
  "Return FOUND, a problem of Flymake, as a line."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (flymake-diagnostic-beg found))
      (format "line %d, column %d: %s: %s" (line-number-at-pos) (1+ (current-column))
              (flymake-diagnostic-type found)
              (substring-no-properties (flymake-diagnostic-text found))))))

(defun tiro-attachment-check-local (&optional file)
  "Refuse FILE, or the current buffer, if it is on another machine."
  (when (file-remote-p (or file buffer-file-name default-directory))
    (user-error "Tiro works on this machine only; %s is on another one"
                (or file buffer-file-name (buffer-name)))))

(defun tiro-attachment-bounds-at-point ()
  "Return the bounds (BEG . END) of the definition, paragraph or line at point."
  (or (and (derived-mode-p 'prog-mode) (bounds-of-thing-at-point 'defun))
      (and (derived-mode-p 'text-mode) (bounds-of-thing-at-point 'paragraph))
      (cons (line-beginning-position) (line-end-position))))

(defun tiro-attachment-label (attachment)
  "Return a short name of ATTACHMENT, as of app.py:3-9."
  (let* ((path (plist-get attachment :path))
         (range (plist-get attachment :range))
         (first (plist-get (plist-get range :start) :line))
         (end (plist-get range :end))
         (last (and end (if (and (eql 0 (plist-get end :character))
                                 (> (plist-get end :line) first))
                            (1- (plist-get end :line)) ; the region ends before that line
                          (plist-get end :line)))))
    (concat (if path (tiro-visible-line (file-name-nondirectory (directory-file-name path)))
              (or (plist-get attachment :kind) "text"))
            (and first last (if (= first last) (format ":%d" (1+ first))
                              (format ":%d-%d" (1+ first) (1+ last)))))))

(defun tiro-attachment--path ()
  "Return the current buffer's file as a part of an attachment."
  (and buffer-file-name (not (file-remote-p buffer-file-name))
       (list :path (expand-file-name buffer-file-name))))

(provide 'tiro-attachment)
;;; tiro-attachment.el ends here
