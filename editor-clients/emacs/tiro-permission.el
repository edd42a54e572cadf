;;; tiro-permission.el --- Questions about tools, asked in the chat  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A permission request is asked in the chat buffer and never in the
;; minibuffer, which may be in use.  Its answer is given later; one that can
;; no longer be given by the user is a rejection, so that no turn hangs.

;;; Code:

(require 'cl-lib)
(require 'tiro-chat)
(require 'tiro-rpc)
(require 'tiro-transcript)
(require 'tiro-visible)

(defvar tiro-permission-pending nil
  "Questions that wait, oldest first, each a cons (NUMBER . LATER).")

(defconst tiro-permission--lines-shown 40
  "Lines of a preview that the chat shows; a key shows the rest.")

(defvar tiro-permission--subjects (make-hash-table)
  "Number of a question that waits -> what it is about, in a few words.")

(defvar tiro-permission--previews (make-hash-table)
  "Number of a question that waits -> what its tool use would do.")

(defvar tiro-permission--count 0 "Number of the last question.")

(defconst tiro-permission--choices
  '(("once" "y" "Allow once" "allowed once")
    ("always" "a" "Always in this session" "allowed for this session")
    ("reject" "n" "Reject" "rejected")
    (reason "r" "Reject and say why" "rejected"))
  "The answers: decision, key, label, and what to say afterwards.
The decision `reason' is \"reject\" with a reason that is read.")

(cl-defmethod tiro-handle-request
  (_connection (_method (eql 'tiro/permission/request))
               &key toolUse agent effect rule always preview &allow-other-keys)
  "Ask for AGENT whether TOOLUSE, of EFFECT, may run; RULE says why we are asked.
ALWAYS are the rules that this answer adds, PREVIEW shows what it would do."
  (let* ((later (tiro-rpc-later))
         (question (cons (cl-incf tiro-permission--count) later))
         (key (cons 'permission (car question))))
    (setq tiro-permission-pending (append tiro-permission-pending (list question)))
    (puthash (car question) (tiro-permission--subject toolUse) tiro-permission--subjects)
    (when preview (puthash (car question) preview tiro-permission--previews))
    (with-current-buffer (tiro-chat-buffer)
      (tiro-chat-flush)
      (tiro-transcript-close)
      (tiro-transcript-note-value key (copy-marker tiro-transcript-end))
      (tiro-transcript-add
       'permission
       (concat (format "Tiro (%s) asks to use %s (%s%s)" (or agent "no agent")
                       (plist-get toolUse :name) effect
                       (if rule (format "; rule %s" rule) ""))
               (if preview "" (concat "\n" (tiro-permission--input (plist-get toolUse :input))))))
      (tiro-permission--begin key)
      (when preview
        (tiro-transcript-add 'diff (tiro-permission--beginning preview)))
      (unless (seq-empty-p always)
        (tiro-transcript-add 'permission (concat "Always adds " (string-join always "; "))))
      (tiro-transcript-put-line key 'permission (tiro-permission--buttons)
                                (list 'keymap (tiro-permission--keymap question)))
      (tiro-transcript-put-line (list key) 'note (tiro-permission--keys))
      (unless (tiro-chat-seen-p)
        (message "Tiro asks to use %s: %s shows the question"
                 (gethash (car question) tiro-permission--subjects)
                 (tiro-permission-key 'tiro-next-attention))))
    (force-mode-line-update t)
    later))

(defun tiro-permission--begin (key)
  "Note that the question KEY starts behind the gap above it."
  (save-excursion
    (let ((start (tiro-transcript-value key)))
      (goto-char start)
      (skip-chars-forward "\n")
      (set-marker start (point)))))

(defun tiro-permission--beginning (preview)
  "Return the lines of PREVIEW that the chat shows."
  (let* ((lines (split-string (string-trim-right preview "\n+") "\n"))
         (more (- (length lines) tiro-permission--lines-shown)))
    (if (<= more 0) (string-join lines "\n")
      (format "%s\n@@ %d more lines: d shows all @@"
              (string-join (butlast lines more) "\n") more))))

(defvar-local tiro-permission--shown nil "The question whose preview this buffer shows.")

(defun tiro-permission-show-preview (question)
  "Show all that the tool use of QUESTION would do."
  (let ((preview (or (gethash (car question) tiro-permission--previews)
                     (user-error "Tiro: there is no more to show"))))
    (with-current-buffer (get-buffer-create "*tiro diff*")
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (tiro-visible preview))
        (goto-char (point-min)))
      (if (string-prefix-p "--- " preview) (diff-mode) (special-mode))
      (setq buffer-read-only t
            tiro-permission--shown question
            header-line-format (concat " " (string-replace "%" "%%" (tiro-permission--keys))))
      (display-buffer (current-buffer)))))

(defun tiro-permission--put-away (question)
  "Give the windows that show the preview of QUESTION what they showed before."
  (when-let ((buffer (get-buffer "*tiro diff*")))
    (when (eq question (buffer-local-value 'tiro-permission--shown buffer))
      (quit-windows-on buffer))))

(defun tiro-permission--subject (tool-use)
  "Return the name of TOOL-USE and its file or its command, short and in one line."
  (let* ((input (plist-get tool-use :input))
         (about (format "%s" (or (plist-get input :command) (plist-get input :path) "")))
         (lines (split-string (string-trim about) "\n"))
         (line (tiro-visible (concat (car lines) (and (cdr lines) "…")))))
    (string-trim-right
     (concat (plist-get tool-use :name) " " (truncate-string-to-width line 60 nil nil "…")))))

(defun tiro-permission--input (input)
  "Return INPUT, a tool's, as lines."
  (cl-loop for (key value) on input by #'cddr
           concat (format "  %s: %s\n" (substring (symbol-name key) 1) value)))

(defun tiro-permission--buttons ()
  "Return the line that offers the answers, with their keys."
  (mapconcat (pcase-lambda (`(,_ ,key ,label ,_)) (format "[%s %s]" key label))
             tiro-permission--choices "  "))

(defun tiro-permission--keys ()
  "Return the line that says which keys answer while point is elsewhere."
  (concat "From here: "
          (mapconcat (pcase-lambda (`(,command . ,label))
                       (concat (tiro-permission-key command) " " label))
                     '((tiro-allow-once . "allow") (tiro-allow-always . "always")
                       (tiro-reject . "reject") (tiro-next-attention . "go there"))
                     " · ")))

(defun tiro-permission-key (command)
  "Return the key of COMMAND that works everywhere, or one of the chat."
  (if-let ((key (where-is-internal command global-map t))) (key-description key)
    (with-current-buffer (tiro-chat-buffer)
      (substitute-command-keys (format "\\[%s]" command)))))

(defun tiro-permission-check ()
  "Signal a `user-error' that says how to answer, if a question waits."
  (when tiro-permission-pending
    (user-error "Tiro waits for your answer: %s allows, %s rejects, %s goes to the question"
                (tiro-permission-key 'tiro-allow-once) (tiro-permission-key 'tiro-reject)
                (tiro-permission-key 'tiro-next-attention))))

(add-hook 'tiro-session-busy-hook #'tiro-permission-check)

(defun tiro-permission--keymap (question)
  "Return the keymap on QUESTION; its letters act only there."
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,decision ,key . ,_) tiro-permission--choices)
      (define-key map (kbd key) (lambda () (interactive)
                                  (tiro-permission--choose question decision))))
    (define-key map (kbd "d") (lambda () (interactive)
                                (tiro-permission-show-preview question)))
    (define-key map [mouse-1] (lambda (event) (interactive "e")
                                (tiro-permission--click question event)))
    (define-key map (kbd "RET") (lambda () (interactive)
                                  (tiro-permission--press question (point))))
    map))

(defun tiro-permission--click (question event)
  "Answer QUESTION as the label that EVENT, a mouse click, is on says."
  (let ((position (event-start event)))
    (with-current-buffer (window-buffer (posn-window position))
      (tiro-permission--press question (posn-point position)))))

(defun tiro-permission--press (question position)
  "Answer QUESTION as the label around POSITION says."
  (save-excursion
    (goto-char position)
    (let* ((line (line-beginning-position))
           (before (1+ (cl-count ?\] (buffer-substring line position)))))
      (when-let ((choice (nth (1- before) tiro-permission--choices)))
        (tiro-permission--choose question (car choice))))))

(defun tiro-permission--choose (question decision)
  "Answer QUESTION with DECISION, one of `tiro-permission--choices'."
  (if (eq decision 'reason)
      (tiro-permission-answer question "reject" (tiro-permission-read-reason))
    (tiro-permission-answer question decision)))

(defun tiro-permission-read-reason ()
  "Read why a tool use is rejected; nothing is no reason."
  (let ((reason (string-trim (read-string "Why not, for Tiro to know: "))))
    (unless (string-empty-p reason) reason)))

(defun tiro-permission-go ()
  "Go to a question that waits in the chat; from one, to the next.
Return nil if none waits."
  (when tiro-permission-pending
    (pop-to-buffer (tiro-chat-buffer))
    (let ((places (cl-loop for (number . _) in tiro-permission-pending
                           for place = (tiro-transcript-place (cons 'permission number))
                           when place collect place)))
      (goto-char (or (cl-find-if (lambda (place) (> place (point))) places)
                     (car places) (point)))
      (tiro-permission--reveal)
      t)))

(defun tiro-permission-show (question)
  "Go to QUESTION in the chat."
  (pop-to-buffer (tiro-chat-buffer))
  (goto-char (or (tiro-transcript-place (cons 'permission (car question))) (point)))
  (tiro-permission--reveal))

(defun tiro-permission--seen-p (question)
  "Return non-nil if QUESTION is on the screen: in the chat, or its preview."
  (or (when-let ((preview (get-buffer "*tiro diff*")))
        (with-current-buffer preview
          (and (eq question tiro-permission--shown) (tiro-chat-seen-p))))
      (with-current-buffer (tiro-chat-buffer)
        (when-let ((place (tiro-transcript-place (cons 'permission (car question)))))
          (and (tiro-chat-seen-p)
               (cl-some (lambda (window) (tiro-permission--in-window-p place window))
                        (get-buffer-window-list nil nil 'visible)))))))

(defun tiro-permission--in-window-p (place window)
  "Return non-nil if WINDOW shows the question whose answers stand at PLACE.
It shows all of it, or the user went there: it may be longer than the window."
  (let ((end (save-excursion (goto-char place) (line-end-position))))
    (or (and (eq window (selected-window)) (<= place (window-point window) end))
        (and (pos-visible-in-window-p (tiro-permission--start place) window)
             (pos-visible-in-window-p end window)))))

(defun tiro-permission--reveal ()
  "Scroll so that all of the question at point is seen, or its end."
  (let ((start (tiro-permission--start (point))) (end (line-end-position 2)))
    (unless (and (pos-visible-in-window-p start) (pos-visible-in-window-p end))
      (recenter (- -2 (count-screen-lines (point) end))))))

(defun tiro-permission--start (position)
  "Return where the question starts whose answers stand at POSITION."
  (cl-loop for (number . _) in tiro-permission-pending
           for key = (cons 'permission number)
           when (eql position (tiro-transcript-place key))
           return (tiro-transcript-value key)
           finally return position))

(defun tiro-permission-answer (question decision &optional reason)
  "Answer QUESTION with DECISION and perhaps a REASON."
  (unless (memq question tiro-permission-pending)
    (user-error "That question was answered before"))
  (setq tiro-permission-pending (delq question tiro-permission-pending))
  (remhash (car question) tiro-permission--previews)
  (remhash (car question) tiro-permission--subjects)
  (tiro-permission--put-away question)
  (tiro-rpc-reply (cdr question) `(:decision ,decision ,@(and reason (list :message reason))))
  (when (get-buffer "*tiro*")
    (with-current-buffer (tiro-chat-buffer)
      (tiro-permission--leave question)
      (tiro-transcript-put-line
       (cons 'permission (car question)) 'permission
       (concat "-> " (nth 3 (assoc decision tiro-permission--choices))
               (and reason (concat ": " reason))))))
  (force-mode-line-update t))

(defun tiro-permission--leave (question)
  "Take the keys of QUESTION away, and every point in it on.
It goes to the next question that waits or to the prompt, where its
window follows what comes; a point elsewhere stays."
  (let* ((key (cons 'permission (car question)))
         (start (tiro-transcript-value key))
         (end (save-excursion (goto-char (or (tiro-transcript-place (list key)) (point-min)))
                              (line-end-position)))
         (windows (cl-remove-if-not (lambda (window) (<= start (window-point window) end))
                                    (get-buffer-window-list nil nil t)))
         (is-here (<= start (point) end))
         (next (tiro-transcript-place (cons 'permission (caar tiro-permission-pending)))))
    (tiro-transcript-delete-line (list key))
    (when is-here (goto-char (or next (point-max))))
    (dolist (window windows)
      (with-selected-window window
        (goto-char (or next (point-max)))
        (when next (tiro-permission--reveal))))))

(defun tiro-permission--oldest ()
  "Return the question that waits longest; signal a `user-error' if none does."
  (or (car tiro-permission-pending) (user-error "Tiro: nothing waits for an answer")))

(defun tiro-permission-allow-oldest (decision)
  "Answer the oldest question with DECISION if it is seen; show it if not."
  (let ((question (tiro-permission--oldest)))
    (if (tiro-permission--seen-p question)
        (tiro-permission-answer question decision)
      (tiro-permission-show question)
      (message "Tiro: %s is shown; press again to allow"
               (gethash (car question) tiro-permission--subjects)))))

(defun tiro-permission-reject-all ()
  "Reject every question that waits."
  (dolist (question tiro-permission-pending) (tiro-permission-answer question "reject")))

(defun tiro-permission--on-session (kind _value)
  "Let no question outlive its turn or its session: KIND says what happened."
  (when (memq kind '(over view)) (tiro-permission-reject-all)))

;; First, so that the chat can still show the answers.
(add-hook 'tiro-session-functions #'tiro-permission--on-session -50)

(defun tiro-permission--chat-killed ()
  "Reject what can no longer be answered in the chat buffer."
  (tiro-permission-reject-all))

(add-hook 'tiro-chat-killed-hook #'tiro-permission--chat-killed)

;;;; Commands

(defun tiro-allow-once ()
  "Allow the tool use that waits longest, this once.
A question that is not on the screen is shown first."
  (interactive)
  (tiro-permission-allow-oldest "once"))

(defun tiro-allow-always ()
  "Allow the tool use that waits longest, and its like in this session.
A question that is not on the screen is shown first."
  (interactive)
  (tiro-permission-allow-oldest "always"))

(defun tiro-reject (&optional reason)
  "Reject the tool use that waits longest; with a prefix argument give a REASON."
  (interactive (list (and current-prefix-arg (tiro-permission-read-reason))))
  (tiro-permission-answer (tiro-permission--oldest) "reject" reason))

(defun tiro-show-diff ()
  "Show in a window of its own what the tool use that waits longest would do."
  (interactive)
  (tiro-permission-show-preview (tiro-permission--oldest)))

(provide 'tiro-permission)
;;; tiro-permission.el ends here
