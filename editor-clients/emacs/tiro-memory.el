;;; tiro-memory.el --- What the model remembers: resize, memo, summary, pins  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands that look at, change and take back what leaves the model's
;; window and what is kept of it.  A resize is shown before it is done, and
;; what it would write can be edited first.
;;
;; A memo is JSON of any form.  Emacs reads null and {} alike, so the server
;; gives its text too, and it is sent back only when that was edited.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tiro-form)
(require 'tiro-message)
(require 'tiro-session)
(require 'tiro-view)

(defvar tiro-confirm-compact)

;;;; Resize

(defun tiro-resize (&optional force)
  "Show what a resize would take out of the window, to be edited and applied.
With a prefix argument FORCE one even where the window is under its limits."
  (interactive "P")
  (tiro-memory--preview (and force t)))

(defun tiro-memory--preview (force)
  "Ask for a preview with FORCE, as in previewResize, and show it when it comes."
  (let ((keys num-nonmacro-input-events))
    (tiro-session-work-on
     "looking ahead" 'tiro/session/previewResize (list :force force)
     (lambda (preview)
       (if (= keys num-nonmacro-input-events) (tiro-memory--show-preview preview)
         ;; Whoever has gone on typing is not to type into the preview.
         (save-selected-window (tiro-memory--show-preview preview))
         (message "Tiro: the preview is there; %s goes to it"
                  (substitute-command-keys "\\[tiro-next-attention]")))))))

(defun tiro-memory--show-preview (preview)
  "Show PREVIEW, the answer to previewResize, as a form."
  (cond
   ((null (plist-get preview :draftId))
    (message "Tiro: nothing would go, the window is under its limits; %s looks what a resize would take"
             (substitute-command-keys "\\[universal-argument] \\[tiro-resize]")))
   ((tiro-memory--gains-nothing-p preview)
    (message "Tiro: there is nothing to gain: all %s would stay, and so would the %s tokens"
             (tiro-view-messages (length (plist-get preview :keep)))
             (plist-get preview :tokensBefore)))
   (t
    (let ((memo (plist-get preview :memoText))
          (summary (or (plist-get preview :summary) "")))
      (tiro-form-open
       "*tiro resize*" "applies it"
       (list (tiro-memory--preview-text preview)
             "\nSummary:\n" (cons 'summary summary)
             "\n\nMemo, in JSON:\n" (cons 'memo memo))
       (lambda (texts)
         (tiro-memory--apply (plist-get preview :draftId)
                             (tiro-memory--changed texts memo summary))))))))

(defun tiro-memory--gains-nothing-p (preview)
  "Return non-nil if what PREVIEW shows would change nothing to speak of."
  (and (seq-empty-p (plist-get preview :evict))
       (null (plist-get preview :memoRefused))
       (= (plist-get preview :tokensBefore) (plist-get preview :tokensAfter))))

(defun tiro-memory--preview-text (preview)
  "Say what the resize of PREVIEW would do."
  (let ((evict (append (plist-get preview :evict) nil))
        (refused (plist-get preview :memoRefused)))
    (format "%s of %d would leave the window and stay in the archive; %s tokens become about %s.\n%s\n%s"
            (tiro-view-messages (length evict))
            (+ (length evict) (length (plist-get preview :keep)))
            (plist-get preview :tokensBefore) (plist-get preview :tokensAfter)
            (if refused (format "The memo stays as it was: %s\n" refused) "")
            (mapconcat (lambda (message) (concat "  " (tiro-message-line message) "\n"))
                       (tiro-memory--messages evict) ""))))

(defun tiro-memory--messages (seqs)
  "Return the messages with SEQS, the newest 200 of them."
  (when seqs
    (let ((last (apply #'max seqs)))
      (seq-filter (lambda (message) (memql (plist-get message :seq) seqs))
                  (plist-get (tiro-session-call 'tiro/session/get
                                                (list :limit 200 :beforeSeq (1+ last)))
                             :messages)))))

(defun tiro-memory--apply (draft changed)
  "Apply the resize DRAFT with the texts CHANGED, a plist."
  (tiro-memory--tell-resize
   (tiro-session-call 'tiro/session/applyResize `(:draftId ,draft ,@changed))))

(defun tiro-memory--tell-resize (result)
  "Say what a resize or a compaction with RESULT did."
  (tiro-session-update)
  (tiro-session-tell
   'notice
   (if (null (plist-get result :decision)) "There was nothing to take out of the window"
     (format "%s left the window, %s tokens became %s; %s takes that back"
             (tiro-view-messages (plist-get result :evicted))
             (plist-get result :tokensBefore) (plist-get result :tokensAfter)
             (substitute-command-keys "\\[tiro-undo-resize]")))))

(defun tiro-undo-resize ()
  "Give the window, memo and summary of before the last resize or compaction."
  (interactive)
  (tiro-session-note (tiro-session-call 'tiro/session/undoResize))
  (tiro-session-update)
  (tiro-session-tell 'notice "The window, memo and summary are those of before the last resize"))

(defun tiro-memory--confirm-compact ()
  "Do before a compaction what `tiro-confirm-compact' says.
Return non-nil if it is to be previewed."
  (tiro-session-check-idle)
  (or (eq tiro-confirm-compact 'preview)
      (not (or (null tiro-confirm-compact)
               (y-or-n-p (substitute-command-keys
                          (concat "Let a model fold all messages of the window into the summary"
                                  " (\\[tiro-undo-resize] takes it back)? ")))
               (user-error "Tiro: nothing was changed")))))

(defun tiro-compact (&optional preview)
  "Fold the whole window into the summary, which a model writes.
With a prefix argument PREVIEW it first, to edit the summary and apply
or drop it; otherwise `tiro-confirm-compact' says what happens before.
Pinned messages stay; `tiro-undo-resize' takes it back."
  (interactive (list (or current-prefix-arg (tiro-memory--confirm-compact))))
  (tiro-session-check-idle)
  (if preview (tiro-memory--preview "compact")
    (tiro-session-work-on "compacting" 'tiro/session/compact nil #'tiro-memory--tell-resize)))

;;;; Memo and summary

(defun tiro-edit-memory ()
  "Show and edit the memo and the summary of this session."
  (interactive)
  (let* ((known (tiro-session-call 'tiro/memo/get))
         (memo (plist-get known :memoText))
         (summary (or (plist-get known :summary) "")))
    (tiro-form-open
     "*tiro memory*" "stores what was changed"
     (list (format "Summary of what left the window%s:\n"
                   (if (eq t (plist-get known :summaryInProgress))
                       "; a model is writing the next one" ""))
           (cons 'summary summary)
           "\n\nMemo, in JSON: key facts that go with every request.\n" (cons 'memo memo))
     (lambda (texts)
       (tiro-memory--store (tiro-memory--changed texts memo summary) memo summary)))))

(defun tiro-memory--store (changed memo summary)
  "Store CHANGED, a plist, in the place of the texts MEMO and SUMMARY."
  (let ((now (tiro-session-call 'tiro/memo/get)))
    (unless (or (and (equal memo (plist-get now :memoText))
                     (equal summary (or (plist-get now :summary) "")))
                (y-or-n-p "They were changed meanwhile; write over them? "))
      (user-error "Tiro: nothing was stored")))
  (if (null changed) (message "Tiro: nothing was changed")
    (tiro-session-call 'tiro/memo/set changed)
    (tiro-session-update)
    (message "Tiro: stored the %s" (string-join (cl-loop for (key) on changed by #'cddr
                                                         collect (substring (symbol-name key) 1))
                                                " and the "))))

(defun tiro-memory--changed (texts memo summary)
  "Return what in TEXTS differs from the texts MEMO and SUMMARY, as a plist."
  (let ((new-memo (alist-get 'memo texts)) (new-summary (alist-get 'summary texts)))
    `(,@(unless (equal new-memo memo) (list :memo (tiro-memory--read new-memo)))
      ,@(unless (equal new-summary summary) (list :summary new-summary)))))

(defun tiro-memory--read (text)
  "Return the value of TEXT, JSON; a blank one is an empty memo."
  (if (string-blank-p text) (make-hash-table)
    (condition-case err
        (json-parse-string text :null-object nil :false-object :json-false)
      (error (pcase-let ((`(,line ,column) (seq-filter #'integerp (cdr err))))
               (user-error "Tiro: the memo is no JSON%s"
                           (if line (format " in line %d, column %s" line column) "")))))))

;;;; Pins

(defun tiro-toggle-pin ()
  "Pin the message at point, or unpin it.
A pinned message stays in the window, whatever the limits are."
  (interactive)
  (let* ((seq (tiro-message-at-point))
         (pinned (not (memql seq (tiro-session-pins tiro-session))))
         (result (tiro-session-call 'tiro/session/pin
                                    (list :seq seq :pinned (or pinned :json-false)))))
    (setf (tiro-session-pins tiro-session) (append (plist-get result :pins) nil))
    (tiro-session-tell 'pins)
    (message "Tiro: message %d %s" seq
             (if pinned "is pinned: it stays in the window" "is not pinned any more"))))

(provide 'tiro-memory)
;;; tiro-memory.el ends here
