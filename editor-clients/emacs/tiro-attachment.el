;;; tiro-attachment.el --- Text that goes with a prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Attachments in the form of the protocol, made from the current buffer:
;; the region, what stands at point, the whole buffer.

;;; Code:

(require 'thingatpt)
(require 'tiro-rpc)

(defun tiro-attachment-range (connection beg end)
  "Return the text from BEG to END as an attachment, told over CONNECTION."
  `( :kind "selection" ,@(tiro-attachment--path)
     :range ( :start ,(tiro-rpc-position connection beg)
              :end ,(tiro-rpc-position connection end))
     :text ,(buffer-substring-no-properties beg end)))

(defun tiro-attachment-buffer ()
  "Return the whole buffer as an attachment."
  `( :kind "buffer" ,@(tiro-attachment--path)
     :text ,(save-restriction
              (widen)
              (buffer-substring-no-properties (point-min) (point-max)))))

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
    (concat (if path (file-name-nondirectory (directory-file-name path))
              (or (plist-get attachment :kind) "text"))
            (and first last (if (= first last) (format ":%d" (1+ first))
                              (format ":%d-%d" (1+ first) (1+ last)))))))

(defun tiro-attachment--path ()
  "Return the current buffer's file as a part of an attachment."
  (and buffer-file-name (not (file-remote-p buffer-file-name))
       (list :path (expand-file-name buffer-file-name))))

(provide 'tiro-attachment)
;;; tiro-attachment.el ends here
