;;; tiro-view.el --- Read-only views: the session, saved sessions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Buffers that show something and are quit with q, and words that several
;; of them use.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'subr-x)
(require 'tiro-session)
(require 'tiro-transcript)
(require 'tiro-visible)

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
  (setq-local word-wrap t
              word-wrap-by-category t))

(defun tiro-view-show-text (name text &optional again mode)
  "Show TEXT in the buffer NAME; AGAIN is called to show it anew.
MODE is its major mode, `tiro-view-mode' by default."
  (with-current-buffer (get-buffer-create name)
    (unless (derived-mode-p 'tiro-view-mode) (funcall (or mode #'tiro-view-mode)))
    (setq-local revert-buffer-function (lambda (&rest _) (when again (funcall again))))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (tiro-visible-prose text))
      (goto-char (point-min))))
  (pop-to-buffer name))

;;;; The next request

(defun tiro-view-explain (draft)
  "Show the request that DRAFT would send, and what of the session is not in it."
  (let ((explained (tiro-session-call 'tiro/session/explain (list :draft draft))))
    (tiro-view-show-text
     "*tiro request*"
     (format "To %s, about %s tokens\n\n%s\n"
             (or (plist-get explained :model) "the first model that answers")
             (plist-get (plist-get explained :tokens) :tokens)
             (tiro-view-json explained))
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
    (message "Tiro: %s: %s" (tiro-view--size-words (plist-get size :tokens)
                                                   (plist-get size :contextWindow))
             (if parts (string-join parts ", ") "nothing yet"))))

(defun tiro-view--size-words (tokens limit)
  "Say how large a request of TOKENS is for a model that takes LIMIT or nil."
  (cond ((null limit)
         (format "the next request takes %s tokens; how many the model takes is not known" tokens))
        ((> tokens limit)
         (format "%s tokens, over the limit of %s (the next prompt makes room)" tokens limit))
        (t (format "the next request takes %s tokens of the model's %s (%d%%)" tokens limit
                   (round (* 100.0 tokens) limit)))))

;;;; Words

(defun tiro-view-json (value)
  "Return VALUE, as it came over the wire, as JSON for the eye."
  (let ((json-encoding-pretty-print t) (json-false :json-false))
    (json-encode value)))

(defun tiro-view-one-line (text width)
  "Return TEXT as one line of at most WIDTH columns."
  (truncate-string-to-width
   (string-trim (tiro-visible-line (substring text 0 (min 1000 (length text)))))
   width nil nil "..."))

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
