;;; tiro.el --- An assistant with a memory of its own  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; Author: The Tiro authors
;; URL: https://example.org/tiro
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.2"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Talk to Tiro, the assistant that keeps one conversation in plain files
;; of yours, with any model.  Start with \\[tiro]; bind the other commands
;; to a prefix of your own:
;;
;;   (global-set-key (kbd "C-c o") 'tiro-command-map)
;;
;; This file holds the options and how to ask.  Policy:
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

(defcustom tiro-confirm-compact t
  "What `tiro-compact' does before it folds the window into the summary."
  :type '(choice (const :tag "Ask" t) (const :tag "Show a preview" preview)
                 (const :tag "Nothing" nil)))

(require 'tiro-agent)
(require 'tiro-attached)
(require 'tiro-attachment)
(require 'tiro-chat)
(require 'tiro-compose)
(require 'tiro-diagnostics)
(require 'tiro-edit)
(require 'tiro-history)
(require 'tiro-keys)
(require 'tiro-memory)
(require 'tiro-outline)
(require 'tiro-permission)
(require 'tiro-question)
(require 'tiro-rpc)
(require 'tiro-saved)
(require 'tiro-server)
(require 'tiro-session)
(require 'tiro-view)
(require 'tiro-visible)

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
  (tiro-attached-ask prompt attachments)
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
  "Cancel the answer that is being written, or a preview or compaction."
  (interactive)
  (unwind-protect (tiro-session-cancel) ; nothing may run that we know of
    ;; Only now: the model would be asked what to do after a rejection.
    (tiro-permission-reject-all)))

;;;; Edits

(defun tiro-undo-edits ()
  "Take back the changes that the newest turn made to files.
Those of a file that was changed since are merged, or nothing is done."
  (interactive)
  (tiro--move-edits 'tiro/edits/undo :undo "Take back" "Took back"))

(defun tiro-redo-edits ()
  "Make the changes again that were taken back last."
  (interactive)
  (tiro--move-edits 'tiro/edits/redo :redo "Make again" "Made again"))

(defun tiro--move-edits (method next question deed)
  "Do METHOD to the turn that the server names as NEXT, and say that DEED was done.
Ask QUESTION first where that is a turn of another session."
  (tiro-session-sync)
  (let* ((turn (plist-get (tiro-session-call 'tiro/edits/next) next))
         (session (plist-get turn :sessionId)))
    (when (or (null turn) ; the server says in a sentence that there is none
              (equal session (tiro-session-id tiro-session))
              (y-or-n-p (format "%s what another session, %s, did %s ago to %s? " question
                                (or session "one without a name")
                                (tiro-view-age (plist-get turn :at))
                                (tiro-visible-line
                                 (mapconcat #'file-name-nondirectory (plist-get turn :paths) ", ")))))
      (tiro--tell-edits
       deed (plist-get turn :at)
       (tiro-session-call method (and turn (list :turnId (plist-get turn :turnId))))))))

(defconst tiro--max-told-commands 5
  "How many commands of an undone turn are told.")

(defun tiro--tell-edits (deed at result)
  "Say that DEED was done to the files in RESULT, by a turn of the time AT.
The newest turn may have changed none: its time tells which one it was."
  (let* ((paths (append (plist-get result :paths) nil))
         (unsaved (seq-filter #'tiro-edit-unsaved-p paths))
         (commands (append (plist-get result :commands) nil)))
    (message "Tiro: %s %s%s%s" deed
             (if paths (format "the changes of %s, %s old"
                               (tiro-visible-line (mapconcat #'abbreviate-file-name paths ", "))
                               (tiro-view-age at))
               "nothing: all of it was done already")
             (if unsaved (format "; not saved: %s" (tiro-visible-line
                                                    (mapconcat #'file-name-nondirectory unsaved ", ")))
               "")
             (if commands
                 (format "\nWhat its commands did stays done: %s%s"
                         (tiro-visible
                          (string-join (seq-take commands tiro--max-told-commands) "; "))
                         (if (nthcdr tiro--max-told-commands commands) "; and more" ""))
               ""))))

;;;; The menu

(autoload 'tiro-menu-transient "tiro-menu" nil t)

;;;###autoload
(defun tiro-menu ()
  "Show all commands in a menu; without Transient, in a help buffer."
  (interactive)
  (if (require 'transient nil t) (call-interactively #'tiro-menu-transient)
    (describe-keymap 'tiro-command-map)))

;;;###autoload (autoload 'tiro-command-map "tiro" nil nil 'keymap)
(fset 'tiro-command-map tiro-command-map)

(provide 'tiro)
;;; tiro.el ends here
