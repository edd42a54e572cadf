;;; tiro-saved.el --- Sessions: new, saved, loaded, sought, exported  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The commands that end, start, save, find and load sessions.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'tiro-chat)
(require 'tiro-session)
(require 'tiro-view)
(require 'tiro-visible)

(defun tiro-clear-session ()
  "Save the current session and start an empty one.
Ask first only if it is not saved anywhere, or an answer is being written."
  (interactive)
  (let ((view (tiro-session-call 'tiro/session/get '(:limit 1))))
    (when (and (or (null (tiro-session-turn tiro-session))
                   (y-or-n-p "An answer is being written; end it and clear? "))
               (or (zerop (plist-get view :total)) (plist-get view :path)
                   (y-or-n-p "This session is not saved; clear it for good? ")))
      (let* ((result (tiro-session-call 'tiro/session/clear))
             (cleared (plist-get result :cleared))
             (saved-as (plist-get result :savedAs)))
        (tiro-session-refresh)
        (message "Tiro: %s"
                 (cond ((zerop cleared) "the session was empty; a new one starts")
                       (saved-as (format "cleared %s; saved as %s" (tiro-view-messages cleared)
                                         (abbreviate-file-name saved-as)))
                       (t (format "cleared %s, which were not saved"
                                  (tiro-view-messages cleared)))))))))

(defun tiro-new-session (title)
  "Save the current session and start a new one called TITLE."
  (interactive (list (read-string "Title (empty: none): ")))
  (tiro-session-take-view
   (tiro-session-call 'tiro/session/new
                      (and (not (string-blank-p title)) (list :title title))))
  (message "Tiro: a new session starts; the old one is in %s"
           (substitute-command-keys "\\[tiro-load-session]")))

(defun tiro-rename-session (title)
  "Give the current session TITLE."
  (interactive (list (read-string "Title: " (tiro-session-title tiro-session))))
  (when (string-blank-p title) (user-error "Tiro: a title needs a word"))
  (tiro-session-note (tiro-session-call 'tiro/session/configure (list :title title)))
  (tiro-session-tell 'state)
  (message "Tiro: this session is called %s" (tiro-visible-line title)))

(defun tiro-save-session (&optional path)
  "Save the current session; with a prefix argument a copy to PATH."
  (interactive (list (and current-prefix-arg (tiro-saved--read-copy))))
  (let ((result (tiro-session-call 'tiro/session/save (and path (list :path (tiro-session-local-file path))))))
    (message "Tiro: saved %s, %s bytes" (abbreviate-file-name (plist-get result :path))
             (plist-get result :bytes))))

(defun tiro-save-session-as (path)
  "Write a copy of the current session to PATH; it stays where it was."
  (interactive (list (tiro-saved--read-copy)))
  (tiro-save-session path))

(defun tiro-saved--read-copy ()
  "Read the file for a copy of the session."
  (tiro-saved--read-new "Save a copy as" ".json"))

(defun tiro-saved--read-new (prompt ending)
  "Read a file to write with PROMPT; a folder or RET means the id with ENDING.
The server replaces nothing but an earlier copy, so there is no question."
  (let* ((name (concat (or (tiro-session-id tiro-session) "session") ending))
         (path (read-file-name (format-prompt prompt name) nil name)))
    (if (file-directory-p path) (expand-file-name name path) path)))

;;;###autoload (autoload 'tiro-load-session "tiro" nil t)
(defun tiro-load-session (id &optional file)
  "Make the saved session ID the current one, and show it.
With a prefix argument it is read from FILE, and lives there from then
on.  The session that was current is saved first."
  (interactive (if current-prefix-arg
                   (list nil (tiro-session-local-file
                              (read-file-name "Load session from: " nil nil t)))
                 (list (tiro-saved-read "Load session"))))
  (tiro-session-load id file)
  (pop-to-buffer (tiro-chat-buffer))
  (message "Tiro: %s goes on" (tiro-session-id tiro-session)))

(defalias 'tiro-switch-session #'tiro-load-session)

;;;###autoload (autoload 'tiro-resume-session "tiro" nil t)
(defun tiro-resume-session ()
  "Go on with the session that was saved last."
  (interactive)
  (tiro-session-resume)
  (pop-to-buffer (tiro-chat-buffer)))

(defvar tiro-saved--search-history nil "History of what was searched for.")

;;;###autoload (autoload 'tiro-search-sessions "tiro" nil t)
(defun tiro-search-sessions (query)
  "Show the messages of all sessions that hold every word of QUERY.
\"A phrase\" has to stand as it is; word* may have any ending."
  (interactive (list (read-string "Search sessions: " nil 'tiro-saved--search-history)))
  (when (string-blank-p query) (user-error "Tiro: give a word to search for"))
  (tiro-saved--show-hits query))

(defconst tiro-saved--export-formats
  '(("md" . "markdown") ("json" . "json") ("yaml" . "yaml") ("yml" . "yaml")
    ("jsonl" . "jsonl"))
  "Endings of file names and what is written to them.")

(defconst tiro-saved--formats
  '("markdown" "json" "yaml" "jsonl" "agently" "agently-yaml" "go-agent" "magent" "nanobot")
  "The formats that the server writes.")

(defun tiro-export (path &optional format)
  "Write the current session to PATH, whose ending says in which FORMAT.
That is md for reading, json or yaml for everything, jsonl for a message
a line.  With a prefix argument FORMAT is asked for: also those of other
programs.  What looks like a key is left out; what is lost is told."
  (interactive
   (let ((format (and current-prefix-arg
                      (completing-read "Format: " tiro-saved--formats nil t))))
     (list (tiro-saved--read-new (if format (format "Export as %s to" format)
                                   "Export to .md, .json, .yaml or .jsonl")
                                 (if format "" ".md"))
           format)))
  (let* ((path (tiro-session-local-file path))
         (format (or format
                     (cdr (assoc-string (file-name-extension path) tiro-saved--export-formats t))
                     (user-error "Tiro: the name has to end in %s"
                                 (mapconcat (lambda (it) (concat "." (car it)))
                                            tiro-saved--export-formats ", "))))
         (result (tiro-session-call 'tiro/session/export
                                    (list :format format :path path))))
    (message "Tiro: %s"
             (string-join
              `(,(format "exported to %s" (abbreviate-file-name (plist-get result :path)))
                ,@(and (eq t (plist-get result :redacted))
                       '("what looks like a key was left out"))
                ,@(append (plist-get result :notes) nil))
              "; "))))

(defun tiro-import (path)
  "Make the session in PATH the current one.
That is an export, a transcript of another assistant, a buffer of gptel, …"
  (interactive (list (read-file-name "Import: " nil nil t)))
  (let ((view (tiro-session-call 'tiro/session/import
                                 (list :path (tiro-session-local-file path) :limit 0))))
    (tiro-session-refresh)
    (pop-to-buffer (tiro-chat-buffer))
    (message "Tiro: %s" (string-join (cons (format "imported as %s" (plist-get view :id))
                                           (append (plist-get view :notes) nil))
                                     "; "))))

;;;; Saved sessions

(defun tiro-saved-sessions (&optional limit)
  "Return the saved sessions, newest first, up to LIMIT (1000)."
  (append (plist-get (tiro-session-call 'tiro/session/list (list :limit (or limit 1000)))
                     :sessions)
          nil))

(defun tiro-saved-read (prompt)
  "Read one of the saved sessions with PROMPT and return its id.
The default is the newest that is not the current one."
  (let* ((choices (mapcar (lambda (session) (cons (tiro-saved--choice session) session))
                          (or (tiro-saved-sessions) (user-error "Tiro: no session is saved yet"))))
         (annotate (lambda (choice) (tiro-saved--annotation (cdr (assoc choice choices)))))
         (default (or (cl-find (tiro-session-id tiro-session) choices :test-not #'equal
                               :key (lambda (choice) (plist-get (cdr choice) :id)))
                      (car choices)))
         (choice (completing-read
                  (format-prompt prompt (tiro-saved--name (cdr default)))
                  (lambda (string predicate action)
                    (if (eq action 'metadata)
                        ;; They come newest first and stay so.
                        `(metadata (category . tiro-session)
                                   (display-sort-function . identity)
                                   (cycle-sort-function . identity)
                                   (annotation-function . ,annotate))
                      (complete-with-action action choices string predicate)))
                  nil t nil nil (car default))))
    (plist-get (cdr (assoc choice choices)) :id)))

(defun tiro-saved--name (session)
  "Return the title of SESSION, or its id."
  (tiro-visible-line (or (plist-get session :title) (plist-get session :id))))

(defun tiro-saved--choice (session)
  "Return SESSION as a choice: its title, then its id, which no other has."
  (if (plist-get session :title)
      (concat (tiro-view-one-line (plist-get session :title) 60) "  " (plist-get session :id))
    (tiro-visible-line (plist-get session :id))))

(defun tiro-saved--count (session)
  "Return how many messages SESSION holds, those that left the window included."
  (+ (or (plist-get session :messages) 0) (or (plist-get session :archived) 0)))

(defun tiro-saved--annotation (session)
  "Return what to say beside SESSION in a list to choose from."
  (if (plist-get session :error) (format "  damaged: %s" (tiro-visible-line (plist-get session :error)))
    (format "  %s ago, %s%s%s" (tiro-view-age (plist-get session :savedAt))
            (tiro-view-messages (tiro-saved--count session))
            (if (plist-get session :agent) (concat ", " (plist-get session :agent)) "")
            (if (equal (plist-get session :id) (tiro-session-id tiro-session)) ", current" ""))))

(defvar tiro-saved-sessions-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'tiro-saved-load)
    (define-key map (kbd "C-c C-c") #'tiro-saved-load)
    (define-key map (kbd "d") #'tiro-saved-delete)
    (define-key map (kbd "C-c C-d") #'tiro-saved-delete)
    (define-key map (kbd "R") #'tiro-saved-rename)
    (define-key map (kbd "C-c C-r") #'tiro-saved-rename)
    (define-key map (kbd "u") #'tiro-restore-session)
    (define-key map (kbd "C-c C-u") #'tiro-restore-session)
    map)
  "Keymap of `tiro-saved-sessions-mode'.")

(define-derived-mode tiro-saved-sessions-mode tabulated-list-mode "Tiro-Sessions"
  "Major mode of the list of saved sessions.
\\<tiro-saved-sessions-mode-map>\\[tiro-saved-load] loads one, \\[tiro-saved-rename] renames one, \\[tiro-saved-delete] deletes one,
\\[tiro-restore-session] brings a deleted one back."
  (setq tabulated-list-format [("Saved" 10 nil) ("Messages" 8 nil :right-align t)
                               ("Agent" 10 nil) ("Title" 40 nil) ("Id" 0 nil)]
        tabulated-list-entries #'tiro-saved--entries)
  (tabulated-list-init-header))

(defun tiro-saved--entries ()
  "Return the rows of the list of saved sessions."
  (mapcar (lambda (session)
            (list (plist-get session :id)
                  (vector (tiro-view-age (plist-get session :savedAt))
                          (if (plist-get session :error) ""
                            (number-to-string (tiro-saved--count session)))
                          (tiro-visible-line (or (plist-get session :agent) ""))
                          (tiro-visible-line
                           (or (plist-get session :error) (plist-get session :title) ""))
                          (tiro-visible-line (or (plist-get session :id) "")))))
          (tiro-saved-sessions)))

;;;###autoload (autoload 'tiro-list-sessions "tiro" nil t)
(defun tiro-list-sessions ()
  "Show the list of saved sessions."
  (interactive)
  (with-current-buffer (get-buffer-create "*tiro sessions*")
    (tiro-saved-sessions-mode)
    (tabulated-list-print))
  (pop-to-buffer "*tiro sessions*"))

(defun tiro-saved-load ()
  "Load the session on this line."
  (interactive nil tiro-saved-sessions-mode)
  (tiro-session-load (or (tabulated-list-get-id) (user-error "No session on this line")))
  (pop-to-buffer "*tiro*"))

(defun tiro-saved-delete (&optional for-good)
  "Move the session on this line to the trash.
With a prefix argument FOR-GOOD delete it for good, after asking."
  (interactive "P" tiro-saved-sessions-mode)
  (let ((id (or (tabulated-list-get-id) (user-error "No session on this line"))))
    (when (or (not for-good) (yes-or-no-p (format "Delete %s for good? " id)))
      (tiro-session-call 'tiro/session/delete
                         (append (list :id id) (and for-good (list :forGood t))))
      (when (equal id (tiro-session-id tiro-session)) (tiro-session-refresh))
      (revert-buffer)
      (message (if for-good "Tiro: %s is deleted for good"
                 (substitute-command-keys
                  "Tiro: %s is in the trash; \\[tiro-restore-session] brings it back"))
               id))))

(defun tiro-saved-rename (title)
  "Give the session on this line TITLE; an empty one takes its own away."
  (interactive (list (read-string "Title: ")) tiro-saved-sessions-mode)
  (let ((id (or (tabulated-list-get-id) (user-error "No session on this line"))))
    (tiro-session-call 'tiro/session/rename
                       (list :id id :title (and (not (string-blank-p title)) title)))
    (when (equal id (tiro-session-id tiro-session)) (tiro-session-refresh))
    (revert-buffer)))

;;;###autoload (autoload 'tiro-restore-session "tiro" nil t)
(defun tiro-restore-session (id)
  "Bring the deleted session ID back, by default the one deleted last."
  (interactive (list (tiro-saved--read-deleted)))
  (let ((result (tiro-session-call 'tiro/trash/restore (list :id id))))
    (when (derived-mode-p 'tiro-saved-sessions-mode) (revert-buffer))
    (message "Tiro: %s is back" (plist-get result :id))))

(defun tiro-saved--read-deleted ()
  "Read one of the sessions in the trash and return its id."
  (let* ((sessions (append (plist-get (tiro-session-call 'tiro/trash/list (list :limit 1000))
                                      :sessions)
                           nil))
         (choices (mapcar (lambda (session)
                            (cons (tiro-saved--choice session) (plist-get session :id)))
                          (or sessions (user-error "Tiro: the trash is empty")))))
    (cdr (assoc (completing-read (format-prompt "Restore session" (caar choices))
                                 choices nil t nil nil (caar choices))
                choices))))

;;;; What a search found

(defvar tiro-saved-search-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'tiro-saved-load-hit)
    (define-key map (kbd "C-c C-c") #'tiro-saved-load-hit)
    map)
  "Keymap of `tiro-saved-search-mode'.")

(define-derived-mode tiro-saved-search-mode tabulated-list-mode "Tiro-Search"
  "Major mode of what a search in all sessions found, the newest message first.
\\<tiro-saved-search-mode-map>\\[tiro-saved-load-hit] loads the session of one."
  (setq tabulated-list-format [("Saved" 10 nil) ("Who" 9 nil) ("Session" 26 nil)
                               ("Message" 0 nil)])
  (tabulated-list-init-header))

(defun tiro-saved--show-hits (query)
  "Show the messages of all sessions that hold QUERY."
  ;; The first search reads every file, which may take minutes.
  (let ((hits (plist-get (tiro-session-call 'tiro/session/search
                                            (list :query query :limit 200) 1800)
                         :hits)))
    (when (seq-empty-p hits) (user-error "Tiro: nothing was found for %s" query))
    (with-current-buffer (get-buffer-create "*tiro search*")
      (tiro-saved-search-mode)
      (setq tabulated-list-entries (mapcar #'tiro-saved--hit hits))
      (setq-local revert-buffer-function (lambda (&rest _) (tiro-saved--show-hits query)))
      (tabulated-list-print))
    (pop-to-buffer "*tiro search*")))

(defun tiro-saved--hit (hit)
  "Return the row of HIT."
  (list hit
        (vector (if (plist-get hit :savedAt) (tiro-view-age (plist-get hit :savedAt)) "")
                (plist-get hit :role)
                (or (plist-get hit :id) "")
                (concat (if (eq t (plist-get hit :takenBack)) "(taken back) " "")
                        (tiro-visible-line (plist-get hit :snippet))))))

(defun tiro-saved-load-hit ()
  "Load the session of the message on this line, and go to that message."
  (interactive nil tiro-saved-search-mode)
  (let ((hit (or (tabulated-list-get-id) (user-error "No message on this line"))))
    (unless (equal (plist-get hit :id) (tiro-session-id tiro-session))
      (tiro-session-load nil (plist-get hit :path)))
    (pop-to-buffer (tiro-chat-buffer))
    (tiro-chat-go (plist-get hit :seq))))

(provide 'tiro-saved)
;;; tiro-saved.el ends here
