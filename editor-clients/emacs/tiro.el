;;; tiro.el --- An assistant with a memory of its own  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; Author: The Tiro authors
;; URL: https://example.org/tiro
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Talk to Tiro, the assistant that keeps one conversation in plain files
;; of yours, with any model.  Start with \\[tiro]; bind the other commands
;; to a prefix of your own:
;;
;;   (global-set-key (kbd "C-c o") 'tiro-command-map)
;;
;; This file holds the options, the commands and their map.  Policy:
;; nothing runs when it is loaded, no key and no option outside of this
;; package is touched, the server is started by the first command.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defgroup tiro nil
  "An assistant with a memory of its own."
  :group 'tools
  :prefix "tiro-")

(defcustom tiro-server-command '("tiro" "serve")
  "Command that starts the server, as a list of strings."
  :type '(repeat string))

(defcustom tiro-settings nil
  "Settings that beat the config file, in its form.
For example (:model \"local/NAME\" :session (:max_history 50))."
  :type '(plist :options ((:model string) (:agent string)) :value-type sexp))

(defcustom tiro-display-action '(nil . ((inhibit-same-window . t)))
  "How the chat buffer is shown when a question is asked from elsewhere."
  :type 'display-buffer--action-custom-type)

(defcustom tiro-flush-interval 0.03
  "Seconds for which streamed text is gathered before it is shown."
  :type 'number)

(defcustom tiro-max-line 2000
  "Longer lines are shown with breaks, since Emacs gets slow with them.
The breaks are left out when text is copied."
  :type 'natnum)

(defcustom tiro-log-size 0
  "Characters of traffic with the server to keep; 0 for none.
A log makes Emacs several times slower while an answer arrives."
  :type 'natnum)

(defcustom tiro-save-edited-buffers t
  "Whether a buffer that Tiro changes is saved, if all in it was saved before.
Commands that Tiro runs see what is on the disk."
  :type 'boolean)

(require 'tiro-attachment)
(require 'tiro-chat)
(require 'tiro-diagnostics)
(require 'tiro-edit)
(require 'tiro-permission)
(require 'tiro-rpc)
(require 'tiro-session)
(require 'tiro-view)

;;;; Asking

;;;###autoload
(defun tiro ()
  "Open the chat with Tiro, starting the server where needed."
  (interactive)
  (tiro-session-live)
  (pop-to-buffer (tiro-chat-open))
  (goto-char (point-max)))

;;;###autoload
(defun tiro-ask (prompt &optional attachments)
  "Ask PROMPT, read in the minibuffer, with ATTACHMENTS; show the chat."
  (interactive (list (tiro--read-prompt "Ask Tiro: ")))
  (tiro-session-ask prompt attachments)
  (unless (eq (current-buffer) (tiro-chat-buffer)) (tiro-chat-show)))

;;;###autoload
(defun tiro-ask-region (beg end)
  "Ask about the text from BEG to END, the region."
  (interactive "r")
  (unless (use-region-p) (user-error "No region is active"))
  (tiro--ask-about (tiro-attachment-range (tiro-session-live) beg end)))

;;;###autoload
(defun tiro-ask-at-point ()
  "Ask about the definition, paragraph or line at point."
  (interactive)
  (pcase-let ((`(,beg . ,end) (tiro-attachment-bounds-at-point)))
    (tiro--ask-about (tiro-attachment-range (tiro-session-live) beg end))))

;;;###autoload
(defun tiro-ask-buffer ()
  "Ask about the whole buffer."
  (interactive)
  (tiro--ask-about (tiro-attachment-buffer)))

(defun tiro--ask-about (attachment)
  "Read a question and ask it with ATTACHMENT."
  (tiro-ask (tiro--read-prompt
             (format "Ask Tiro about %s: " (tiro-attachment-label attachment)))
            (list attachment)))

(defvar tiro--prompt-history nil "History of questions read in the minibuffer.")

(defun tiro--read-prompt (prompt)
  "Read a question with PROMPT; refuse at once while a turn runs."
  (tiro-session-check-idle)
  (read-string prompt nil 'tiro--prompt-history))

(defun tiro-steer (text)
  "Say TEXT, read in the minibuffer, to the answer that is being written.
It is taken into account from the next step on."
  (interactive
   (progn (unless (tiro-session-turn tiro-session) (user-error "Tiro: nothing is running"))
          (list (read-string "Tell Tiro: " nil 'tiro--prompt-history))))
  (tiro-session-steer text)
  (message "Tiro: said; the next step takes it into account"))

(defun tiro-cancel ()
  "Cancel the answer that is being written."
  (interactive)
  (tiro-permission-reject-all)
  (tiro-session-cancel))

;;;; The session

(defun tiro-show-session ()
  "Show the summary of the current session."
  (interactive)
  (tiro-view-show-session))

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
                       (saved-as (format "cleared %s; saved as %s" (tiro--messages cleared)
                                         (abbreviate-file-name saved-as)))
                       (t (format "cleared %s, which were not saved"
                                  (tiro--messages cleared)))))))))

(defun tiro--messages (count)
  "Return COUNT messages in words."
  (format "%d message%s" count (if (= count 1) "" "s")))

(defun tiro-new-session (title)
  "Save the current session and start a new one called TITLE."
  (interactive (list (read-string "Title (empty: none): ")))
  (tiro-session-take-view
   (tiro-session-call 'tiro/session/new
                      (and (not (string-blank-p title)) (list :title title))))
  (message "Tiro: a new session starts; the old one is in %s"
           (substitute-command-keys "\\[tiro-load-session]")))

(defun tiro-save-session (&optional path)
  "Save the current session; with a prefix argument a copy to PATH."
  (interactive (list (and current-prefix-arg
                          (expand-file-name (read-file-name "Save a copy as: ")))))
  (let ((result (tiro-session-call 'tiro/session/save (and path (list :path path)))))
    (message "Tiro: saved %s, %s bytes" (abbreviate-file-name (plist-get result :path))
             (plist-get result :bytes))))

(defun tiro-load-session (id &optional file)
  "Make the saved session ID the current one, and show it.
With a prefix argument it is read from FILE, and lives there from then
on.  The session that was current is saved first."
  (interactive (if current-prefix-arg
                   (list nil (expand-file-name (read-file-name "Load session from: " nil nil t)))
                 (list (tiro-view-read-session "Load session"))))
  (tiro-session-load id file)
  (pop-to-buffer (tiro-chat-buffer))
  (message "Tiro: %s goes on" (tiro-session-id tiro-session)))

(defun tiro-resume-session ()
  "Go on with the session that was saved last."
  (interactive)
  (tiro-session-resume)
  (pop-to-buffer (tiro-chat-buffer)))

(defun tiro-list-sessions ()
  "Show the list of saved sessions."
  (interactive)
  (tiro-view-list-sessions))

(defvar tiro--search-history nil "History of what was searched for.")

(defun tiro-search-sessions (query)
  "Show the messages of all sessions that hold every word of QUERY.
\"A phrase\" has to stand as it is; word* may have any ending."
  (interactive (list (read-string "Search sessions: " nil 'tiro--search-history)))
  (when (string-blank-p query) (user-error "Tiro: give a word to search for"))
  (tiro-view-search query))

(defconst tiro--export-formats
  '(("md" . "markdown") ("json" . "json") ("yaml" . "yaml") ("yml" . "yaml")
    ("jsonl" . "jsonl"))
  "Endings of file names and what is written to them.")

(defun tiro-export (path)
  "Write the current session to PATH, whose ending says in which format.
That is md for reading, json or yaml for everything, jsonl for a message
a line.  What looks like a key is left out."
  (interactive
   (list (read-file-name "Export to (.md, .json, .yaml, .jsonl): " nil nil nil
                         (concat (or (tiro-session-id tiro-session) "session") ".md"))))
  (let* ((path (expand-file-name path))
         (format (or (cdr (assoc-string (file-name-extension path) tiro--export-formats t))
                     (user-error "Tiro: the name has to end in %s"
                                 (mapconcat (lambda (it) (concat "." (car it)))
                                            tiro--export-formats ", "))))
         (result (tiro-session-call 'tiro/session/export
                                    (list :format format :path path))))
    (message "Tiro: exported to %s%s" (abbreviate-file-name (plist-get result :path))
             (if (eq t (plist-get result :redacted)) "; what looks like a key was left out" ""))))

(defun tiro-import (path)
  "Make the session in PATH, an export of any format, the current one."
  (interactive (list (read-file-name "Import: " nil nil t)))
  (let ((view (tiro-session-call 'tiro/session/import (list :path (expand-file-name path)))))
    (tiro-session-refresh)
    (pop-to-buffer (tiro-chat-buffer))
    (message "Tiro: %s" (string-join (cons (format "imported as %s" (plist-get view :id))
                                           (append (plist-get view :notes) nil))
                                     "; "))))

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

;;;; Agent and model

(defun tiro-show-current-agent ()
  "Say which agent is selected, or that the default will be used."
  (interactive)
  (if-let ((agent (plist-get (tiro-session-call 'tiro/session/getAgent) :agent)))
      (message "Tiro: agent %s: %s" (plist-get agent :name) (plist-get agent :description))
    (message "Tiro: no agent is selected; the default, %s, will be used"
             (plist-get (tiro-session-call 'tiro/agents/list) :default))))

(defun tiro-select-agent (name)
  "Let the agent NAME answer from now on."
  (interactive
   (list (tiro--read-choice
          "Agent" (plist-get (tiro-session-call 'tiro/agents/list) :agents)
          :description (tiro-session-agent tiro-session))))
  (let ((agent (plist-get (tiro-session-call 'tiro/session/setAgent (list :name name))
                          :agent)))
    (setf (tiro-session-agent tiro-session) (plist-get agent :name))
    (force-mode-line-update t)
    (message "Tiro: agent %s" (plist-get agent :name))))

(defun tiro-select-model (name)
  "Use the model NAME in this session."
  (interactive
   (list (tiro--read-choice
          "Model" (seq-filter (lambda (model) (eq t (plist-get model :available)))
                                (plist-get (tiro-session-call 'tiro/models/list) :models))
          :provider (tiro-session-model tiro-session))))
  (let ((result (tiro-session-call 'tiro/models/set (list :name name))))
    (setf (tiro-session-model tiro-session) (plist-get result :model))
    (force-mode-line-update t)
    (message "Tiro: model %s" (plist-get result :model))))

(defun tiro--read-choice (prompt choices field current)
  "Read the :name of one of CHOICES with PROMPT; FIELD is shown beside it.
CURRENT is the name that is used now, or nil."
  (let* ((table (mapcar (lambda (choice) (cons (plist-get choice :name) choice)) choices))
         (completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (when-let ((text (plist-get (cdr (assoc name table)) field)))
                    (concat "  " text))))))
    (completing-read (format-prompt prompt current)
                     (or table (user-error "Tiro: there is none to choose"))
                     nil t nil nil current)))

;;;; Permission

(defun tiro-allow-once ()
  "Allow the tool use that waits longest, this once."
  (interactive)
  (tiro-permission-answer-oldest "once"))

(defun tiro-allow-always ()
  "Allow the tool use that waits longest, and its like in this session."
  (interactive)
  (tiro-permission-answer-oldest "always"))

(defun tiro-reject (&optional reason)
  "Reject the tool use that waits longest; with a prefix argument give a REASON."
  (interactive (list (and current-prefix-arg (read-string "Reason for Tiro: "))))
  (tiro-permission-answer-oldest "reject" reason))

(defun tiro-show-diff ()
  "Show in a window of its own what the tool use that waits longest would do."
  (interactive)
  (tiro-permission-show-preview
   (or (car tiro-permission-pending) (user-error "Tiro: nothing waits for an answer"))))

;;;; Edits

(defun tiro-undo-edits ()
  "Take back the changes that the newest turn made to files.
Those of a file that was changed since are merged, or nothing is done.
Asks first where the turn is of another session."
  (interactive)
  (tiro-session-sync)
  (let* ((made (cl-remove-if (lambda (edit) (eq t (plist-get edit :undone)))
                             (plist-get (tiro-session-call 'tiro/edits/list) :edits)))
         (mine (cl-find-if (lambda (edit) (equal (plist-get edit :sessionId)
                                                 (tiro-session-id tiro-session)))
                           made))
         (newest (or mine (cl-find-if #'tiro--edit-here-p made)
                     (user-error "Tiro: there is nothing to take back here")))
         (turn (plist-get newest :turnId)))
    (when (or mine (y-or-n-p (tiro--other-edits-text newest made)))
      (tiro--tell-edits "Took back"
                        (tiro-session-call 'tiro/edits/undo (list :turnId turn))))))

(defun tiro--edit-here-p (edit)
  "Return non-nil if EDIT is of a file in one of the workspace roots."
  (cl-some (lambda (root) (string-prefix-p root (plist-get edit :path)))
           (tiro-session-roots tiro-session)))

(defun tiro--other-edits-text (edit edits)
  "Ask whether to take back the turn of EDIT, one of EDITS, in another session."
  (format "Take back what another session did at %s to %s? "
          (substring (plist-get edit :at) 0 16)
          (string-join
           (delete-dups
            (cl-loop for one in (append edits nil)
                     when (equal (plist-get one :turnId) (plist-get edit :turnId))
                     collect (file-name-nondirectory (plist-get one :path))))
           ", ")))

(defun tiro-redo-edits ()
  "Make the newest changes again that were taken back in this workspace."
  (interactive)
  (tiro-session-sync)
  (let* ((edits (plist-get (tiro-session-call 'tiro/edits/list) :edits))
         (undone (or (cl-find-if (lambda (edit)
                                   (and (eq t (plist-get edit :undone)) (tiro--edit-here-p edit)))
                                 edits)
                     (user-error "Tiro: nothing was taken back here"))))
    (tiro--tell-edits "Made again"
                      (tiro-session-call 'tiro/edits/redo
                                         (list :turnId (plist-get undone :turnId))))))

(defun tiro--tell-edits (deed result)
  "Say that DEED was done to the files in RESULT."
  (let ((names (mapcar #'abbreviate-file-name (plist-get result :paths))))
    (message "Tiro: %s %s" deed
             (if names (concat "the changes of " (string-join names ", ")) "nothing"))))

;;;; The server

(defun tiro-show-stderr ()
  "Show what the server wrote to its standard error."
  (interactive)
  (pop-to-buffer (or (tiro-rpc-stderr-buffer)
                     (user-error "Tiro: no server was started yet"))))

(defun tiro-shutdown ()
  "End the server; the session is saved."
  (interactive)
  (tiro-session-stop)
  (message "Tiro: the server has ended"))

;;;; Keys

(defvar tiro-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "o") #'tiro)
    (define-key map (kbd "a") #'tiro-ask)
    (define-key map (kbd "r") #'tiro-ask-region)
    (define-key map (kbd "p") #'tiro-ask-at-point)
    (define-key map (kbd "b") #'tiro-ask-buffer)
    (define-key map (kbd ".") #'tiro-steer)
    (define-key map (kbd "k") #'tiro-cancel)
    (define-key map (kbd "s") #'tiro-show-session)
    (define-key map (kbd "c") #'tiro-clear-session)
    (define-key map (kbd "N") #'tiro-new-session)
    (define-key map (kbd "S") #'tiro-save-session)
    (define-key map (kbd "l") #'tiro-load-session)
    (define-key map (kbd "R") #'tiro-resume-session)
    (define-key map (kbd "L") #'tiro-list-sessions)
    (define-key map (kbd "f") #'tiro-search-sessions)
    (define-key map (kbd "x") #'tiro-export)
    (define-key map (kbd "I") #'tiro-import)
    (define-key map (kbd "E") #'tiro-explain)
    (define-key map (kbd "z") #'tiro-show-context-size)
    (define-key map (kbd "i") #'tiro-show-current-agent)
    (define-key map (kbd "A") #'tiro-select-agent)
    (define-key map (kbd "m") #'tiro-select-model)
    (define-key map (kbd "y") #'tiro-allow-once)
    (define-key map (kbd "Y") #'tiro-allow-always)
    (define-key map (kbd "n") #'tiro-reject)
    (define-key map (kbd "d") #'tiro-show-diff)
    (define-key map (kbd "u") #'tiro-undo-edits)
    (define-key map (kbd "U") #'tiro-redo-edits)
    (define-key map (kbd "e") #'tiro-show-stderr)
    (define-key map (kbd "q") #'tiro-shutdown)
    map)
  "Keymap of the commands of Tiro, for a prefix of the user's own.")
;;;###autoload (autoload 'tiro-command-map "tiro" nil nil 'keymap)
(fset 'tiro-command-map tiro-command-map)

(provide 'tiro)
;;; tiro.el ends here
