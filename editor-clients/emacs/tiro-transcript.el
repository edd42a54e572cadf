;;; tiro-transcript.el --- The read-only part of the chat buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The chat buffer is a transcript, read-only, and below it a prompt area.
;; Everything that changes the transcript goes through one function,
;; `tiro-transcript--commit', which leaves the prompt's text, its undo
;; history and everybody's point alone.
;;
;; Its law: the cost of a change does not depend on the buffer's length.
;; Text is appended at a marker, a line with a key (a tool use, a progress)
;; is replaced in place; nothing is ever searched or drawn again.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tiro-visible)

(defvar tiro-max-line)

(defface tiro-user '((t :inherit font-lock-keyword-face :weight bold))
  "Face of what the user said." :group 'tiro)
(defface tiro-assistant '((t :inherit default))
  "Face of answers." :group 'tiro)
(defface tiro-code '((t :inherit (fixed-pitch font-lock-string-face)))
  "Face of blocks of code in answers." :group 'tiro)
(defface tiro-thinking '((t :inherit shadow :slant italic))
  "Face of the model's thinking." :group 'tiro)
(defface tiro-tool '((t :inherit font-lock-function-name-face))
  "Face of the lines of tool uses." :group 'tiro)
(defface tiro-note '((t :inherit shadow))
  "Face of notes about the session." :group 'tiro)
(defface tiro-error '((t :inherit error))
  "Face of failures." :group 'tiro)
(defface tiro-permission '((t :inherit warning))
  "Face of a question that waits for an answer." :group 'tiro)
(defface tiro-added '((t :inherit success))
  "Face of lines that a change adds." :group 'tiro)
(defface tiro-removed '((t :inherit error :weight normal))
  "Face of lines that a change takes away." :group 'tiro)
(defface tiro-prompt '((t :inherit minibuffer-prompt))
  "Face of the sign before the prompt area." :group 'tiro)

(defface tiro-pin '((t :inherit warning))
  "Face of the mark beside a message that is pinned." :group 'tiro)

(defconst tiro-transcript--pin
  (let ((mark (propertize "| " 'face 'tiro-pin)))
    (list 'line-prefix mark 'wrap-prefix mark 'help-echo "pinned: it stays in the window"))
  "Text properties that mark a message as pinned.")

(defconst tiro-transcript--faces
  '((user . tiro-user) (text . tiro-assistant) (thinking . tiro-thinking)
    (note . tiro-note) (diff . default) (error . tiro-error) (permission . tiro-permission)
    (tool . tiro-tool) (progress . tiro-note))
  "The face of each kind of text.")

(defvar-local tiro-transcript-end nil
  "Marker of the end of the transcript, where text is added.")
(defvar-local tiro-transcript-prompt nil
  "Marker of the start of the prompt area, behind its sign.")
(defvar-local tiro-transcript--since nil
  "Marker of the end of the last message that is complete.")
(defvar-local tiro-transcript--kind nil
  "The kind of text that was added last, or nil at the start.")
(defvar-local tiro-transcript--column 0
  "Characters in the last line of the transcript.")
(defvar-local tiro-transcript--fence '(nil . "")
  "Where the answer stands: (IN-CODE . BEGINNING-OF-THE-LAST-LINE).")
(defvar-local tiro-transcript--lines nil
  "Hash table of the lines that may change: key -> marker of the start.")
(defvar-local tiro-transcript--values nil
  "Hash table of what belongs to a line that may change: key -> value.")

(defun tiro-transcript-setup ()
  "Make the current buffer an empty transcript with a prompt area."
  (let ((inhibit-read-only t) (draft (tiro-transcript-draft)))
    (erase-buffer)
    (setq tiro-transcript-end (copy-marker (point-min))
          tiro-transcript--since (copy-marker (point-min))
          tiro-transcript--kind nil
          tiro-transcript--column 0
          tiro-transcript--lines (make-hash-table :test #'equal)
          tiro-transcript--values (make-hash-table :test #'equal)
          buffer-undo-list nil)
    (insert (propertize "\n\n" 'read-only t 'front-sticky '(read-only))
            (propertize "> " 'read-only t 'face 'tiro-prompt 'field 'prompt
                        'front-sticky '(read-only field)
                        'rear-nonsticky '(read-only face field)))
    (setq tiro-transcript-prompt (copy-marker (point)))
    (insert draft)
    (setq buffer-undo-list nil)))

(defun tiro-transcript-draft ()
  "Return the text in the prompt area."
  (if tiro-transcript-prompt
      (buffer-substring-no-properties tiro-transcript-prompt (point-max))
    ""))

;;;; Adding

(defun tiro-transcript-add (kind text)
  "Add TEXT of KIND at the end of the transcript."
  (setq text (if (memq kind '(diff permission)) (tiro-visible text) (tiro-visible-prose text)))
  (unless (eq kind tiro-transcript--kind)
    ;; Models like to begin with empty lines.
    (setq text (string-trim-left text "[\n\r]+")))
  (unless (string-empty-p text)
    (let ((gap (tiro-transcript--gap tiro-transcript--kind kind tiro-transcript--column))
          (painted (tiro-transcript--paint kind text)))
      (unless (eq kind tiro-transcript--kind) (setq tiro-transcript--column 0))
      (tiro-transcript--append painted gap)
      (setq tiro-transcript--kind kind))))

(defun tiro-transcript--append (painted &optional gap)
  "Add GAP and the text PAINTED at the end, with breaks where lines are too long."
  (let ((shown (tiro-transcript--break painted tiro-transcript--column tiro-max-line)))
    (tiro-transcript--commit tiro-transcript-end tiro-transcript-end
                             (concat gap (car shown)))
    (setq tiro-transcript--column (cdr shown))))

(defun tiro-transcript--paint (kind text)
  "Return TEXT with the face of KIND, and code in answers with its own."
  (pcase kind
    ('thinking (propertize text 'face 'tiro-thinking 'tiro-kind 'thinking
                           'invisible (tiro-transcript--fold-p)))
    ('text
     (unless (eq kind tiro-transcript--kind)
       (setq tiro-transcript--fence '(nil . "")))
     (let ((painted (tiro-transcript--code text tiro-transcript--fence)))
       (setq tiro-transcript--fence (cdr painted))
       (car painted)))
    ('diff (mapconcat #'tiro-transcript--diff-line (split-string text "\n") "\n"))
    (_ (propertize text 'face (alist-get kind tiro-transcript--faces 'default)))))

(defun tiro-transcript--fold-p ()
  "Return whether what goes on with the text added last is folded away."
  (and (> tiro-transcript-end (point-min))
       (get-text-property (1- tiro-transcript-end) 'invisible)))

(defun tiro-transcript-adding-p (kind)
  "Return non-nil if text of KIND was added last and may go on."
  (eq kind tiro-transcript--kind))

(defun tiro-transcript-add-folded (kind heading text properties)
  "Add TEXT of KIND, folded away below the line HEADING, or go on with it.
PROPERTIES are text properties of the heading."
  (if (eq kind tiro-transcript--kind) (tiro-transcript-add kind text)
    (tiro-transcript-put-line (make-symbol heading) kind heading properties)
    (tiro-transcript--append
     (propertize (concat "\n" (string-trim-left (tiro-visible-prose text) "\n+"))
                 'face (alist-get kind tiro-transcript--faces) 'tiro-kind kind
                 'invisible 'tiro-fold))))

(defun tiro-transcript-toggle-fold (position)
  "Show or hide what is folded below the heading at POSITION."
  (let* ((start (save-excursion (goto-char position)
                                ;; What is folded is no end of the line.
                                (next-single-char-property-change (point) 'tiro-kind)))
         (end (next-single-char-property-change start 'tiro-kind)))
    (tiro-transcript--annotate
     (lambda ()
       (put-text-property start end 'invisible
                          (if (get-text-property start 'invisible) nil 'tiro-fold))))))

(defun tiro-transcript-close ()
  "Make sure that what is added next stands in a paragraph of its own."
  (when tiro-transcript--kind (setq tiro-transcript--kind 'closed)))

(defun tiro-transcript-close-text ()
  "Make sure that an answer added next does not go on with the last one."
  (when (memq tiro-transcript--kind '(text thinking)) (tiro-transcript-close)))

(defun tiro-transcript-put-line (key kind text &optional properties)
  "Show TEXT of KIND as the line KEY: add it, or replace it where it stands.
PROPERTIES are text properties of the line."
  (let* ((line (tiro-transcript--one-line text))
         (shown (apply #'propertize line 'face (alist-get kind tiro-transcript--faces)
                       properties))
         (start (gethash key tiro-transcript--lines)))
    (if start
        (tiro-transcript--commit
         start (save-excursion (goto-char start) (line-end-position)) shown)
      (let ((gap (tiro-transcript--gap tiro-transcript--kind kind tiro-transcript--column)))
        (setq start (copy-marker tiro-transcript-end))
        (tiro-transcript--commit tiro-transcript-end tiro-transcript-end (concat gap shown))
        (set-marker start (+ start (length gap)))
        (puthash key start tiro-transcript--lines))
      (setq tiro-transcript--kind kind
            tiro-transcript--column (max 1 (length line))))))

;;;; Which message stands where

(defun tiro-transcript-note-seq (seq pinned)
  "Note that what was added since the last message is message SEQ.
PINNED says whether it is marked as that."
  (when seq
    (tiro-transcript--annotate
     (lambda ()
       (put-text-property tiro-transcript--since tiro-transcript-end 'tiro-seq seq)
       (when pinned
         (tiro-transcript--mark tiro-transcript--since tiro-transcript-end t)))))
  (set-marker tiro-transcript--since tiro-transcript-end))

(defun tiro-transcript-seq-at-point ()
  "Return the seq of the message at point, or nil."
  (or (get-text-property (point) 'tiro-seq)
      (and (> (point) (point-min)) (get-text-property (1- (point)) 'tiro-seq))))

(defun tiro-transcript-mark-pinned (pins)
  "Mark the messages whose seq is in the list PINS, and only those."
  (tiro-transcript--annotate
   (lambda ()
     (let ((start (point-min)))
       (while (< start tiro-transcript-end)
         (let ((end (next-single-property-change start 'tiro-seq nil tiro-transcript-end)))
           (tiro-transcript--mark start end (memq (get-text-property start 'tiro-seq) pins))
           (setq start end)))))))

(defun tiro-transcript--mark (start end pinned)
  "Mark what stands from START to END as PINNED, or as not."
  (if pinned
      (add-text-properties start end tiro-transcript--pin)
    (remove-text-properties start end tiro-transcript--pin)))

(defun tiro-transcript--annotate (function)
  "Call FUNCTION, which changes nothing but text properties."
  (with-silent-modifications (funcall function)))

;;;; Lines that change

(defun tiro-transcript-place (key)
  "Return where the line KEY starts, or nil."
  (when-let ((start (gethash key tiro-transcript--lines))) (marker-position start)))

(defun tiro-transcript-value (key)
  "Return what was noted for the line KEY."
  (gethash key tiro-transcript--values))

(defun tiro-transcript-note-value (key value)
  "Note VALUE for the line KEY."
  (puthash key value tiro-transcript--values))

(defmacro tiro-transcript-at-start (&rest body)
  "Run BODY with everything it adds standing before the whole transcript."
  (declare (indent 0) (debug t))
  `(let ((tiro-transcript-end (copy-marker (point-min)))
         (tiro-transcript--since (copy-marker (point-min)))
         (tiro-transcript--kind nil)
         (tiro-transcript--column 0))
     ,@body
     (tiro-transcript--commit tiro-transcript-end tiro-transcript-end "\n\n")))

(defun tiro-transcript-delete-line (key)
  "Remove the line KEY and the gap beside it, if it is there."
  (when-let ((start (gethash key tiro-transcript--lines)))
    (save-excursion
      (goto-char start)
      (let* ((end (line-end-position)) (last (= end tiro-transcript-end)))
        (if last (skip-chars-backward "\n")
          (goto-char end)
          (skip-chars-forward "\n" tiro-transcript-end))
        (tiro-transcript--commit (min (point) start) (max (point) end) "")
        (when last
          (setq tiro-transcript--kind (and (> tiro-transcript-end (point-min)) 'closed)
                tiro-transcript--column 1))))
    (remhash key tiro-transcript--lines)))

(defun tiro-transcript-next-button (count)
  "Go to the next line that a key opens, COUNT times; after the last, the first."
  (interactive "p")
  (forward-button count t nil t))

(defun tiro-transcript-previous-button (count)
  "Go to the previous line that a key opens, COUNT times."
  (interactive "p")
  (tiro-transcript-next-button (- count)))

;;;; Pure parts

(defun tiro-transcript--gap (before kind column)
  "Return the line breaks between text BEFORE and text of KIND.
Each is a kind, BEFORE nil at the start; COLUMN is that of the last line."
  (cond ((null before) "")
        ((and (eq before kind) (memq kind '(text thinking user))) "")
        ((and (memq before '(tool progress)) (memq kind '(tool progress))) "\n")
        ((and (eq before kind) (memq kind '(note permission))) "\n")
        ((or (eq kind 'diff) (eq before 'diff)) "\n")
        ((zerop column) "\n")
        (t "\n\n")))

(defun tiro-transcript--diff-line (line)
  "Return LINE of a diff with its face."
  (propertize line 'face (pcase (and (not (string-empty-p line)) (aref line 0))
                           (?+ 'tiro-added) (?- 'tiro-removed) (?@ 'tiro-note)
                           (_ 'default))))

(defun tiro-transcript--code (text fence)
  "Return (PAINTED . FENCE): TEXT of an answer with a face for its code.
FENCE is as in `tiro-transcript--fence', before TEXT and after it."
  (let ((in-code (car fence)) (beginning (cdr fence)) (start 0) parts)
    (while (< start (length text))
      (let* ((newline (string-search "\n" text start))
             (end (if newline (1+ newline) (length text))))
        (setq beginning (concat beginning
                                (substring text start (min end (+ start 3)))))
        (let ((mark (string-prefix-p "```" beginning)))
          (push (if (or in-code mark)
                    (propertize (substring text start end) 'face 'tiro-code 'tiro-kind 'code)
                  (propertize (substring text start end) 'face 'tiro-assistant 'tiro-kind 'text))
                parts)
          (when newline
            (when mark (setq in-code (not in-code)))
            (setq beginning "")))
        (setq start end)))
    (cons (apply #'concat (nreverse parts))
          (cons in-code (substring beginning 0 (min 3 (length beginning)))))))

(defun tiro-transcript--break (text column limit)
  "Return (SHOWN . COLUMN): TEXT with a break where a line passes LIMIT.
TEXT starts in COLUMN.  Emacs gets slow with very long lines.  The added
breaks have the property `tiro-break' and are left out of copies."
  (let ((start 0) (size (length text)) parts)
    (while (< start size)
      (let* ((newline (string-search "\n" text start))
             (end (or newline size))
             (room (max 0 (- (max 1 limit) column))))
        (cond
         ((> (- end start) room)
          (push (substring text start (+ start room)) parts)
          (push (apply #'propertize "\n" 'tiro-break t (text-properties-at start text)) parts)
          (setq start (+ start room) column 0))
         (newline
          (push (substring text start (1+ newline)) parts)
          (setq start (1+ newline) column 0))
         (t
          (push (substring text start) parts)
          (setq column (+ column (- end start)) start size)))))
    (cons (apply #'concat (nreverse parts)) column)))

(defun tiro-transcript--one-line (text)
  "Return TEXT as one line of at most 200 characters."
  (truncate-string-to-width
   (tiro-visible-line (substring text 0 (min 1000 (length text))))
   200 nil nil "..."))

(defun tiro-transcript-copied (beg end delete)
  "Return the text from BEG to END without added breaks; DELETE it if told.
A value of `filter-buffer-substring-function'."
  (let ((text (buffer-substring beg end)) (from 0) at parts)
    (while (setq at (text-property-any from (length text) 'tiro-break t text))
      (push (substring text from at) parts)
      (setq from (1+ at)))
    (push (substring text from) parts)
    (when delete (delete-region beg end))
    (substring-no-properties (apply #'concat (nreverse parts)))))

;;;; The one commit

(defun tiro-transcript--commit (start end text)
  "Replace what stands from START to END in the transcript by TEXT."
  (let* ((inhibit-read-only t)
         (from (+ end 0))                    ; a number, also of a marker
         (at-end (= from tiro-transcript-end))
         (delta (- (length text) (- end start)))
         (seq (and (< start from) (get-text-property start 'tiro-seq)))
         (shown (propertize text 'read-only t 'front-sticky '(read-only) 'tiro-seq seq)))
    (let ((buffer-undo-list t) (deactivate-mark nil))
      (save-excursion
        (goto-char start)
        (unless (= start end) (delete-region start end))
        (insert shown)
        (when at-end (set-marker tiro-transcript-end (point)))))
    (tiro-transcript--shift-undo from delta)))

(defun tiro-transcript--shift-undo (from delta)
  "Move the positions behind FROM in the prompt's undo history by DELTA."
  (when (and (consp buffer-undo-list) (/= delta 0))
    (let ((cell buffer-undo-list)
          (moved (lambda (position)
                   (cond ((not (integerp position)) position)
                         ((>= (abs position) from)
                          (if (< position 0) (- position delta) (+ position delta)))
                         (t position)))))
      (while cell
        (pcase (car cell)
          ((and (pred integerp) position) (setcar cell (funcall moved position)))
          (`(nil ,_ ,_ ,beg . ,end)
           (setcdr (nthcdr 2 (car cell))
                   (cons (funcall moved beg) (funcall moved end))))
          (`(apply ,(and (pred integerp) change) ,beg ,end . ,rest)
           (setcar cell `(apply ,change ,(funcall moved beg) ,(funcall moved end) . ,rest)))
          (`(t . ,_) nil)
          (`(,(and (pred integerp) beg) . ,end)
           (setcar cell (cons (funcall moved beg) (funcall moved end))))
          (`(,(and (pred stringp) deleted) . ,position)
           (setcar cell (cons deleted (funcall moved position)))))
        (setq cell (cdr cell))))))

(provide 'tiro-transcript)
;;; tiro-transcript.el ends here
