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
(require 'tabulated-list)
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

(defun tiro-view-show-session ()
  "Show the summary of the current session."
  (let ((summary (plist-get (tiro-session-call 'tiro/session/show) :text))
        (view (tiro-session-call 'tiro/session/get '(:limit 1))))
    (tiro-view-show-text "*tiro session*"
                         (concat (or summary "The session is empty.") "\n\n"
                                 (tiro-view--fields view))
                         #'tiro-view-show-session)))

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

;;;; Saved sessions

(defun tiro-view-sessions (&optional limit)
  "Return the saved sessions, newest first, up to LIMIT (1000)."
  (append (plist-get (tiro-session-call 'tiro/session/list (list :limit (or limit 1000)))
                     :sessions)
          nil))

(defun tiro-view-read-session (prompt)
  "Read one of the saved sessions with PROMPT and return its id."
  (let* ((choices (mapcar (lambda (session)
                            (cons (string-trim-right
                                   (concat (plist-get session :id) "  "
                                           (plist-get session :title)))
                                  session))
                          (or (tiro-view-sessions) (user-error "Tiro: no session is saved yet"))))
         (annotate (lambda (choice) (tiro-view--annotation (cdr (assoc choice choices)))))
         (choice (completing-read
                  (format-prompt prompt (plist-get (cdar choices) :id))
                  (lambda (string predicate action)
                    (if (eq action 'metadata)
                        ;; They come newest first and stay so.
                        `(metadata (category . tiro-session)
                                   (display-sort-function . identity)
                                   (cycle-sort-function . identity)
                                   (annotation-function . ,annotate))
                      (complete-with-action action choices string predicate)))
                  nil t nil nil (caar choices))))
    (plist-get (cdr (assoc choice choices)) :id)))

(defun tiro-view--annotation (session)
  "Return what to say beside SESSION in a list to choose from."
  (if (plist-get session :error) (format "  damaged: %s" (plist-get session :error))
    (format "  %s messages, %s ago%s" (plist-get session :messages)
            (tiro-view-age (plist-get session :savedAt))
            (if (plist-get session :agent) (concat ", " (plist-get session :agent)) ""))))

(defun tiro-view-age (time)
  "Return how long ago TIME was, an RFC 3339 string or nil."
  (let ((seconds (and time (ignore-errors
                             (float-time (time-since (date-to-time time)))))))
    (cond ((null seconds) "unknown time")
          ((< seconds 90) (format "%d s" (max 0 seconds)))
          ((< seconds 5400) (format "%d min" (round seconds 60)))
          ((< seconds 129600) (format "%d h" (round seconds 3600)))
          (t (format "%d days" (round seconds 86400))))))

(defvar tiro-view-sessions-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'tiro-view-load-session)
    (define-key map (kbd "d") #'tiro-view-delete-session)
    map)
  "Keymap of `tiro-view-sessions-mode'.")

(define-derived-mode tiro-view-sessions-mode tabulated-list-mode "Tiro-Sessions"
  "Major mode of the list of saved sessions.
\\<tiro-view-sessions-mode-map>\\[tiro-view-load-session] loads one, \\[tiro-view-delete-session] deletes one."
  (setq tabulated-list-format [("Saved" 10 nil) ("Messages" 8 nil :right-align t)
                               ("Agent" 10 nil) ("Id" 26 nil) ("Title" 0 nil)]
        tabulated-list-entries #'tiro-view--entries)
  (tabulated-list-init-header))

(defun tiro-view--entries ()
  "Return the rows of the list of saved sessions."
  (mapcar (lambda (session)
            (list (plist-get session :id)
                  (vector (tiro-view-age (plist-get session :savedAt))
                          (format "%s" (or (plist-get session :messages) ""))
                          (or (plist-get session :agent) "")
                          (or (plist-get session :id) "")
                          (or (plist-get session :error) (plist-get session :title) ""))))
          (tiro-view-sessions)))

(defun tiro-view-list-sessions ()
  "Show the list of saved sessions."
  (with-current-buffer (get-buffer-create "*tiro sessions*")
    (tiro-view-sessions-mode)
    (tabulated-list-print))
  (pop-to-buffer "*tiro sessions*"))

(defun tiro-view-load-session ()
  "Load the session on this line."
  (interactive nil tiro-view-sessions-mode)
  (tiro-session-load (or (tabulated-list-get-id) (user-error "No session on this line")))
  (pop-to-buffer "*tiro*"))

(defun tiro-view-delete-session ()
  "Delete the session on this line, after asking."
  (interactive nil tiro-view-sessions-mode)
  (let ((id (or (tabulated-list-get-id) (user-error "No session on this line"))))
    (when (y-or-n-p (format "Delete %s for good? " id))
      (tiro-session-call 'tiro/session/delete (list :id id))
      (when (equal id (tiro-session-id tiro-session)) (tiro-session-refresh))
      (revert-buffer))))

;;;; What a search found

(defvar tiro-view-search-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'tiro-view-load-hit)
    map)
  "Keymap of `tiro-view-search-mode'.")

(define-derived-mode tiro-view-search-mode tabulated-list-mode "Tiro-Search"
  "Major mode of what a search in all sessions found, the newest message first.
\\<tiro-view-search-mode-map>\\[tiro-view-load-hit] loads the session of one."
  (setq tabulated-list-format [("Saved" 10 nil) ("Who" 9 nil) ("Session" 26 nil)
                               ("Message" 0 nil)])
  (tabulated-list-init-header))

(defun tiro-view-search (query)
  "Show the messages of all sessions that hold QUERY."
  ;; The first search reads every file, which may take minutes.
  (let ((hits (plist-get (tiro-session-call 'tiro/session/search
                                            (list :query query :limit 200) 1800)
                         :hits)))
    (when (seq-empty-p hits) (user-error "Tiro: nothing was found for %s" query))
    (with-current-buffer (get-buffer-create "*tiro search*")
      (tiro-view-search-mode)
      (setq tabulated-list-entries (mapcar #'tiro-view--hit hits))
      (setq-local revert-buffer-function (lambda (&rest _) (tiro-view-search query)))
      (tabulated-list-print))
    (pop-to-buffer "*tiro search*")))

(defun tiro-view--hit (hit)
  "Return the row of HIT."
  (list hit
        (vector (if (plist-get hit :savedAt) (tiro-view-age (plist-get hit :savedAt)) "")
                (plist-get hit :role)
                (or (plist-get hit :id) "")
                (concat (if (eq t (plist-get hit :takenBack)) "(taken back) " "")
                        (plist-get hit :snippet)))))

(defun tiro-view-load-hit ()
  "Load the session of the message on this line."
  (interactive nil tiro-view-search-mode)
  (let ((hit (or (tabulated-list-get-id) (user-error "No message on this line"))))
    (unless (equal (plist-get hit :id) (tiro-session-id tiro-session))
      (tiro-session-load nil (plist-get hit :path)))
    (pop-to-buffer "*tiro*")))

(provide 'tiro-view)
;;; tiro-view.el ends here
