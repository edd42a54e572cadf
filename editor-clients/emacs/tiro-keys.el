;;; tiro-keys.el --- The keys of all commands  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; One table of keys, commands and labels: `tiro-command-map' and the menu
;; are made of it, and README.md is compared with it.

;;; Code:

(defconst tiro-keys-table
  '(("Ask"
     ("o" tiro "Open the chat")
     ("a" tiro-ask "Ask")
     ("r" tiro-ask-region "Ask about the region")
     ("p" tiro-ask-at-point "Ask about point")
     ("b" tiro-ask-buffer "Ask about the buffer")
     ("C" tiro-compose "Compose")
     ("+" tiro-attach "Attach")
     ("!" tiro-attach-diagnostics "Attach what is wrong")
     ("-" tiro-list-attachments "What is attached?")
     ("." tiro-steer "Tell the running answer")
     ("k" tiro-cancel "Cancel")
     ("t" tiro-retry "Try again"))
    ("Message at point"
     ("w" tiro-rewind "Rewind to it")
     ("," tiro-edit-message "Edit it")
     ("P" tiro-toggle-pin "Pin it"))
    ("Session"
     ("s" tiro-show-session "Show")
     ("c" tiro-clear-session "Clear")
     ("N" tiro-new-session "New")
     ("T" tiro-rename-session "Rename")
     ("S" tiro-save-session "Save")
     ("W" tiro-save-session-as "Save a copy as")
     ("l" tiro-load-session "Load, switch")
     ("R" tiro-resume-session "Resume the latest")
     ("L" tiro-list-sessions "List")
     ("f" tiro-search-sessions "Search")
     ("x" tiro-export "Export")
     ("I" tiro-import "Import"))
    ("Memory"
     ("v" tiro-resize "Preview a resize")
     ("V" tiro-undo-resize "Undo a resize")
     ("K" tiro-compact "Compact")
     ("M" tiro-edit-memory "Memo and summary")
     ("z" tiro-show-context-size "How full is the window?"))
    ("Agent and model"
     ("i" tiro-show-current-agent "Which agent?")
     ("A" tiro-select-agent "Agent")
     ("m" tiro-select-model "Model")
     ("E" tiro-explain "The next request"))
    ("Tools and files"
     ("j" tiro-next-attention "What waits for me?")
     ("y" tiro-allow-once "Allow once")
     ("Y" tiro-allow-always "Allow always")
     ("n" tiro-reject "Reject")
     ("d" tiro-show-diff "Show what it would do")
     ("u" tiro-undo-edits "Take edits back")
     ("U" tiro-redo-edits "Make edits again"))
    ("Server"
     ("D" tiro-doctor "Doctor")
     ("g" tiro-show-log "Traffic")
     ("e" tiro-show-stderr "Its words")
     ("Q" tiro-restart "Start again")
     ("q" tiro-shutdown "End")
     ("?" tiro-menu "Menu")))
  "Groups of commands: (TITLE (KEY COMMAND LABEL) ...).")

(defvar tiro-command-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,_ . ,rows) tiro-keys-table)
      (pcase-dolist (`(,key ,command ,_) rows)
        (define-key map (kbd key) command)))
    map)
  "Keymap of the commands of Tiro, for a prefix of the user's own.")

(provide 'tiro-keys)
;;; tiro-keys.el ends here
