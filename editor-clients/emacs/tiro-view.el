;;; tiro-view.el --- Read-only views: the session, saved sessions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Buffers that show something and are quit with q: the session's summary,
;; the list of saved sessions, the details of a tool use.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'subr-x)
(require 'tiro-session)

(defvar tiro-view-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "c") 'tiro-clear-session)
    map)
  "Keymap of `tiro-view-mode'.")

(define-derived-mode tiro-view-mode special-mode "Tiro-View"
  "Major mode of what Tiro shows.
\\<tiro-view-mode-map>\\[revert-buffer] looks again, \\[tiro-clear-session] clears the session,
\\[quit-window] puts it away."
  (setq-local truncate-lines nil)
  (setq-local word-wrap t))

(defun tiro-view-show-text (name text &optional again)
  "Show TEXT in the buffer NAME; AGAIN is called to show it anew."
  (with-current-buffer (get-buffer-create name)
    (unless (derived-mode-p 'tiro-view-mode) (tiro-view-mode))
    (setq-local revert-buffer-function (lambda (&rest _) (when again (funcall again))))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text)
      (goto-char (point-min))))
  (pop-to-buffer name))

;;;; The current session

(defun tiro-show-session ()
  "Show the summary of the current session."
  (interactive)
  (let ((summary (plist-get (tiro-session-call 'tiro/session/show) :text))
        (view (tiro-session-call 'tiro/session/get '(:limit 1))))
    (tiro-view-show-text "*tiro session*"
                         (concat (or summary "The session is empty.") "\n\n"
                                 (tiro-view--fields view))
                         #'tiro-show-session)))

(defun tiro-view--fields (view)
  "Return the facts in VIEW, a SessionView, as lines."
  (let ((size (plist-get view :contextSize)))
    (cl-loop
     for (label value) in
     `(("Session" ,(or (plist-get view :id) "not stored yet"))
       ("Title" ,(plist-get view :title))
       ("Agent" ,(or (plist-get view :agent) "none selected: the default is used"))
       ("Model" ,(plist-get view :model))
       ("Messages" ,(format "%s in the window, %s in the archive"
                            (plist-get view :total) (plist-get view :archived)))
       ("Tokens" ,(and size (format "%s%s" (plist-get size :tokens)
                                    (if (plist-get size :contextWindow)
                                        (format " of %s" (plist-get size :contextWindow)) ""))))
       ("File" ,(and (plist-get view :path) (abbreviate-file-name (plist-get view :path)))))
     when value concat (format "%-9s %s\n" label value))))

;;;; The next request

(defun tiro-view-explain (draft)
  "Show the request that DRAFT would send, and what of the session is not in it."
  (let ((explained (tiro-session-call 'tiro/session/explain (list :draft draft)))
        (json-encoding-pretty-print t)
        (json-false :json-false))
    (tiro-view-show-text
     "*tiro request*"
     (format "To %s, about %s tokens\n\n%s\n"
             (or (plist-get explained :model) "the first model that answers")
             (plist-get (plist-get explained :tokens) :tokens)
             (json-encode explained))
     (lambda () (tiro-view-explain draft)))))

(defun tiro-explain ()
  "Show exactly what the model would get with the prompt that is being typed."
  (interactive)
  (tiro-view-explain (if (get-buffer "*tiro*")
                         (with-current-buffer "*tiro*" (string-trim (tiro-transcript-draft)))
                       "")))

(defun tiro-show-context-size ()
  "Say how full the model's window is, and with what."
  (interactive)
  (let* ((size (tiro-session-call 'tiro/session/contextSize))
         (parts (cl-loop for (key value) on (plist-get size :breakdown) by #'cddr
                         unless (zerop value)
                         collect (format "%s %s" (substring (symbol-name key) 1) value))))
    (setf (tiro-session-context-size tiro-session) size)
    (message "Tiro: %s of %s tokens: %s" (plist-get size :tokens)
             (or (plist-get size :contextWindow) "unknown")
             (if parts (string-join parts ", ") "nothing yet"))))

;;;; Words

(defun tiro-view-age (time)
  "Return how long ago TIME was, an RFC 3339 string or nil."
  (let ((seconds (and time (ignore-errors
                             (float-time (time-since (date-to-time time)))))))
    (cond ((null seconds) "unknown time")
          ((< seconds 90) (format "%d s" (max 0 seconds)))
          ((< seconds 5400) (format "%d min" (round seconds 60)))
          ((< seconds 129600) (format "%d h" (round seconds 3600)))
          (t (format "%d days" (round seconds 86400))))))

(defun tiro-view-messages (count)
  "Return COUNT messages in words."
  (format "%d message%s" count (if (= count 1) "" "s")))

(provide 'tiro-view)
;;; tiro-view.el ends here
