;;; tiro-chat.el --- The chat buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The chat buffer shows the session that is current: what happens comes in
;; through `tiro-session-functions', streamed text is gathered for
;; `tiro-flush-interval' and added at once.  Below it is the prompt area.
;;
;; Its law: a window follows the answer only while its point is in the
;; prompt area.  Emacs does that by itself, since text is added before the
;; prompt; nothing here moves a point or scrolls a window.

;;; Code:

(require 'cl-lib)
(require 'tiro-attached)
(require 'tiro-code)
(require 'tiro-event)
(require 'tiro-markup)
(require 'tiro-message)
(require 'tiro-prompt)
(require 'tiro-session)
(require 'tiro-transcript)
(require 'tiro-visible)
(require 'tiro-view)

(defvar tiro-flush-interval)
(defvar tiro-display-action)
(defvar tiro-permission-pending)

(defvar tiro-chat-killed-hook nil
  "Hook run when the chat buffer is killed.")

(defvar-local tiro-chat--waiting nil
  "Streamed text not yet shown: a list of (KIND . TEXT), newest first.")
(defvar-local tiro-chat--timer nil "Timer that shows `tiro-chat--waiting'.")
(defvar-local tiro-chat--late nil
  "Non-nil if what is shown misses something until the turn is over.
A string is told then.")

(defvar-local tiro-chat--noticed nil "The last notice and where it ends, a cons.")

(defvar tiro-chat-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'tiro-prompt-send)
    (define-key map (kbd "C-c C-c") #'tiro-prompt-send)
    (define-key map (kbd "C-j") #'newline)
    (define-key map (kbd "S-<return>") #'newline)
    (define-key map (kbd "M-p") #'tiro-prompt-previous)
    (define-key map (kbd "M-n") #'tiro-prompt-next)
    (define-key map (kbd "TAB") #'tiro-transcript-next-button)
    (define-key map (kbd "<backtab>") #'tiro-transcript-previous-button)
    (define-key map (kbd "C-c C-k") 'tiro-cancel)
    (define-key map (kbd "C-c C-y") 'tiro-allow-once)
    (define-key map (kbd "C-c C-n") 'tiro-reject)
    (define-key map (kbd "C-c C-o") 'tiro-compose)
    (define-key map (kbd "C-c C-a") 'tiro-list-attachments)
    (define-key map (kbd "C-c C-p") 'tiro-toggle-pin)
    (define-key map (kbd "C-c C-w") 'tiro-rewind)
    (define-key map (kbd "C-c C-e") 'tiro-edit-message)
    (define-key map (kbd "C-c C-r") 'tiro-retry)
    map)
  "Keymap of `tiro-chat-mode'.")

(define-derived-mode tiro-chat-mode nil "Tiro"
  "Major mode of the chat with Tiro.

Type at the end and send with \\[tiro-prompt-send]; \\[newline] breaks the line.
\\<tiro-chat-mode-map>\\[tiro-cancel] cancels the answer that is being written.

\\{tiro-chat-mode-map}"
  (setq-local mode-line-process '(:eval (tiro-chat-mode-line)))
  (setq-local header-line-format '(:eval (tiro-chat-header-line)))
  (setq tiro-message-session t)
  (setq-local truncate-lines nil)
  (setq-local word-wrap t
              word-wrap-by-category t)
  ;; Lines are wrapped between words, where arrows in the fringe only distract.
  (setq-local fringe-indicator-alist (cons '(continuation nil nil) fringe-indicator-alist))
  (setq-local scroll-conservatively 101)
  (setq-local bidi-inhibit-bpa t)
  (setq-local filter-buffer-substring-function #'tiro-transcript-copied)
  (setq tiro-chat--late (and (tiro-session-turn tiro-session) t))
  (add-hook 'kill-buffer-hook #'tiro-chat--killed nil t)
  (electric-indent-local-mode -1)
  (add-to-invisibility-spec '(tiro-fold . t))
  (jit-lock-register #'tiro-markup-lines)
  (tiro-transcript-setup)
  (tiro-prompt-setup)
  (goto-char (point-max)))

(defun tiro-chat-buffer ()
  "Return the chat buffer, made where needed."
  (or (get-buffer "*tiro*")
      (with-current-buffer (get-buffer-create "*tiro*")
        ;; File names are read here, and reading a remote one connects.
        (when (file-remote-p default-directory) (setq default-directory (expand-file-name "~/")))
        (tiro-chat-mode)
        (tiro-chat--greet)
        (current-buffer))))

(defun tiro-chat-open ()
  "Return the chat buffer with the session in it, made where needed."
  (unless (get-buffer "*tiro*")
    (tiro-chat-buffer)
    (when (tiro-session-id tiro-session) (tiro-session-refresh)))
  (tiro-chat-buffer))

(defun tiro-chat-show ()
  "Show the chat buffer without selecting it, and return its window."
  (display-buffer (tiro-chat-buffer) tiro-display-action))

(defun tiro-chat-seen-p ()
  "Return non-nil if a window shows this buffer where the user can see it.
Of the frames of a terminal only one is on the screen."
  (cl-some (lambda (window)
             (let ((frame (window-frame window)))
               (and (eq t (frame-visible-p frame))
                    (memq (tty-top-frame frame) (list nil frame)))))
           (get-buffer-window-list nil nil t)))

(defun tiro-chat--greet ()
  "Say in an empty chat what to do."
  (tiro-transcript-add
   'note (substitute-command-keys
          (concat "Type a question and press \\<tiro-chat-mode-map>\\[tiro-prompt-send]."
                  "  \\[newline] breaks the line, \\[tiro-cancel] cancels, \\[tiro-menu] shows more."))))

(defun tiro-chat--killed ()
  "Leave nothing behind when the chat buffer is killed; the turn goes on."
  (when tiro-chat--timer (cancel-timer tiro-chat--timer))
  (setq tiro-chat--timer nil)
  (run-hooks 'tiro-chat-killed-hook))

;;;; What happens in the session

(defun tiro-chat--on-session (kind value)
  "Show that KIND with VALUE happened; see `tiro-session-functions'.
A chat buffer that was killed stays so until it is asked for again."
  (if (eq kind 'state) (force-mode-line-update t)
    (if (or (get-buffer "*tiro*") (memq kind '(ask view offer)))
        (with-current-buffer (tiro-chat-buffer) (tiro-chat--show kind value))
      (pcase kind
        ('notice (message "Tiro: %s" (tiro-visible-prose value)))
        ('over (when (consp value)
                 (message "Tiro: %s" (tiro-visible-prose (tiro-rpc-error-text value)))))))))

(defun tiro-chat--show (kind value)
  "Show that KIND with VALUE happened, in this buffer."
  (unless (eq kind 'event) (tiro-chat-flush))
  (pcase kind
    ('event (tiro-chat--event value))
    ('view (tiro-chat--draw value))
    ('offer (tiro-chat--offer value))
    ('ask (tiro-transcript-delete-line 'offer)
          (tiro-message-show-prompt
           (string-join (cons (plist-get value :prompt)
                              (mapcar (lambda (_) "[image]") (plist-get value :images)))
                        "\n")
           (plist-get value :attachments))
          (tiro-prompt-remember (plist-get value :prompt)))
    ('told (tiro-message-show-prompt value nil))
    ('over (tiro-chat--over value))
    ('stale (setq tiro-chat--late (or value t)))
    ('notice (tiro-chat--notice value))
    ('progress (tiro-chat--progress value))
    ('pins (tiro-transcript-mark-pinned (tiro-session-pins tiro-session)))))

(add-hook 'tiro-session-functions #'tiro-chat--on-session)

(defun tiro-chat--event (event)
  "Show EVENT, an event of the running turn."
  (pcase (plist-get event :type)
    ("text" (tiro-chat--stream 'text (plist-get event :delta)))
    ("thinking" (tiro-chat--stream 'thinking (plist-get event :delta)))
    (type
     (tiro-chat-flush)
     (pcase type
       ("toolUse" (tiro-message-show-tool-use (plist-get event :toolUse)
                                              (plist-get event :status)
                                              (plist-get event :parentToolUseId)))
       ("toolResult" (tiro-message-show-tool-result
                      (plist-get event :toolUseId) (tiro-message-event-result event)
                      (eq t (plist-get event :isError))
                      (plist-get event :seq) (eq t (plist-get event :truncated))))
       ("stored" (tiro-message-stored (plist-get event :seq) (plist-get event :role)))
       ("retry" (tiro-transcript-add
                 'note (format "Trying again in %s s: %s" (plist-get event :waitSeconds)
                               (plist-get event :reason))))
       ("resize"
        (let ((evicted (plist-get event :evicted)) (refused (plist-get event :memoRefused)))
          (unless (eql evicted 0)
            (tiro-transcript-add 'note (format "%s older messages left the window" evicted)))
          (when refused (tiro-transcript-add 'note refused))))
       ("finished" (tiro-chat--finished (plist-get event :stopReason)))))))

(defconst tiro-chat--stop-notes
  '(("cancelled" . "[cancelled]")
    ("max_tokens" . "[the answer reached the model's output limit]")
    ("max_steps" . "[the turn reached its limit of steps; say \"continue\" to go on]")
    ("refusal" . "[the model refused to answer]"))
  "What to say for the reasons why a turn stopped early.")

(defun tiro-chat--finished (stop-reason)
  "Show that the turn has finished for STOP-REASON."
  (when-let ((note (cdr (assoc stop-reason tiro-chat--stop-notes))))
    (tiro-transcript-add 'note note)))

(defun tiro-chat--over (err)
  "Show that the turn is over; ERR is as in `tiro-session-functions'."
  (let ((text (and (consp err) (tiro-rpc-error-text err))))
    (when text (tiro-transcript-add 'error text))
    (unless (or (eq err 'lost) (tiro-chat-seen-p))
      (message "Tiro: %s" (tiro-visible-prose (or text "the answer is there")))))
  (tiro-transcript-close)
  (tiro-code-later tiro-transcript-end)
  (when tiro-chat--late
    (let ((notice (and (stringp tiro-chat--late) tiro-chat--late)))
      (setq tiro-chat--late nil)
      (when (tiro-session-running-p) (tiro-session-look-again nil notice)))))

(defun tiro-chat--notice (text)
  "Show the notice TEXT in the chat, and below if the chat is not seen.
What was told last and nothing came after is not told twice."
  (unless (equal tiro-chat--noticed (cons text (marker-position tiro-transcript-end)))
    (tiro-transcript-add 'note text)
    (setq tiro-chat--noticed (cons text (marker-position tiro-transcript-end))))
  (unless (tiro-chat-seen-p) (message "Tiro: %s" (tiro-visible-prose text))))

(defun tiro-chat--progress (progress)
  "Show PROGRESS, a plist of :token and :text, in a line of its own."
  (let ((text (plist-get progress :text)))
    (tiro-transcript-put-line (cons 'progress (plist-get progress :token)) 'progress text)
    (unless (tiro-chat-seen-p)
      (let ((message-log-max nil)) (message "Tiro: %s" (tiro-visible-line text))))))

(defun tiro-chat--offer (earlier)
  "Offer to resume EARLIER, a plist of :id, :title and :savedAt."
  (tiro-transcript-put-line
   'offer 'note
   (format "[Go on with “%s”, %s ago]  or ask something new"
           (or (plist-get earlier :title) (plist-get earlier :id))
           (tiro-view-age (plist-get earlier :savedAt)))
   (tiro-message-button (lambda (_) (tiro-session-resume)))))

(defun tiro-chat--draw (view)
  "Show the session of VIEW, a SessionView, instead of what is shown."
  (tiro-transcript-setup)
  (setq tiro-chat--late (and (tiro-session-turn tiro-session) t))
  (let ((messages (plist-get view :messages)))
    (if (seq-empty-p messages)
        (tiro-chat--greet)
      (let ((first (plist-get (elt messages 0) :seq)))
        (when (and first (> first 1)) (tiro-chat--offer-earlier first)))
      (seq-doseq (message messages) (tiro-message-show message)))
    (tiro-transcript-close)
    (tiro-code-later tiro-transcript-end)
    ;; A window that shows the buffer stays in the prompt area.
    (goto-char (point-max))
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point-max)))))

(defun tiro-chat--offer-earlier (first)
  "Add a button that shows the messages before the one with seq FIRST."
  (tiro-transcript-put-line
   'earlier 'note "[Earlier messages]"
   (tiro-message-button (lambda (_) (tiro-chat--show-earlier first)))))

(defun tiro-chat-go (seq)
  "Put point on the message SEQ of the session, or on the answer it belongs to.
What was said since then is shown first where it is not yet."
  (let ((first (tiro-chat--first-seq)))
    (when (and first (< seq first))
      (tiro-chat--show-earlier first (+ 100 (- first seq)))))
  (cl-loop for place downfrom seq to 1 until (tiro-message-go place)))

(defun tiro-chat--first-seq ()
  "Return the seq of the first message in this buffer, or nil."
  (when-let ((place (text-property-not-all (point-min) (point-max) 'tiro-seq nil)))
    (get-text-property place 'tiro-seq)))

(defun tiro-chat--show-earlier (first &optional count)
  "Show COUNT (100) messages before the one with seq FIRST, point above that."
  (let ((messages (plist-get (tiro-session-call 'tiro/session/get
                                                (list :limit (or count 100) :beforeSeq first))
                             :messages))
        (place (copy-marker (point-min) t)))
    (tiro-transcript-delete-line 'earlier)
    (unless (seq-empty-p messages)
      (let ((next (plist-get (elt messages 0) :seq))
            (tiro-message-answer nil))
        (tiro-transcript-at-start
         (when (> next 1) (tiro-chat--offer-earlier next))
         (seq-doseq (message messages) (tiro-message-show message)))
        (tiro-code-again))
      (goto-char place))))

;;;; Gathered streaming

(defun tiro-chat--stream (kind text)
  "Show TEXT of KIND soon, together with what else comes until then."
  (push (cons kind text) tiro-chat--waiting)
  (if (<= tiro-flush-interval 0) (tiro-chat-flush)
    (unless tiro-chat--timer
      (setq tiro-chat--timer
            (run-at-time tiro-flush-interval nil #'tiro-chat--flush-buffer
                         (current-buffer))))))

(defun tiro-chat--flush-buffer (buffer)
  "Show what waits in BUFFER, if that is still there."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer (tiro-chat-flush))))

(defun tiro-chat-flush ()
  "Show the text that waits, neighbours of one kind in one piece."
  (when tiro-chat--timer (cancel-timer tiro-chat--timer))
  (let ((waiting (nreverse tiro-chat--waiting)))
    (setq tiro-chat--timer nil tiro-chat--waiting nil)
    (while waiting
      (let ((kind (caar waiting)) parts)
        (while (eq kind (caar waiting)) (push (cdr (pop waiting)) parts))
        (funcall (if (eq kind 'thinking) #'tiro-message-show-thinking
                   (apply-partially #'tiro-transcript-add kind))
                 (apply #'concat (nreverse parts)))))))

;;;; Mode line and header line

(defun tiro-chat-mode-line ()
  "Return the state for the mode line: what runs and how full the window is."
  (string-replace
   "%" "%%" (concat ":" (tiro-chat-state)
                    (when-let ((size (tiro-session-context-size tiro-session)))
                      (concat " " (tiro-chat-size-text size))))))

(defun tiro-chat-state ()
  "Return what runs, in a word."
  (cond (tiro-permission-pending "approve?")
        ((tiro-session-turn tiro-session) "busy")
        ((tiro-session-work tiro-session) (car (tiro-session-work tiro-session)))
        ((tiro-session-running-p) "idle")
        (t "stopped")))

(defun tiro-chat-size-text (size)
  "Return SIZE, a ContextSize, as a short text.
What is larger than the model takes is not sent: the next prompt makes room."
  (let ((tokens (plist-get size :tokens)) (limit (plist-get size :contextWindow)))
    (cond ((null limit) (format "%s tokens" (tiro-chat--count tokens)))
          ((> tokens limit)
           (format "%s/%s over the limit" (tiro-chat--count tokens) (tiro-chat--count limit)))
          (t (format "%s/%s %d%%" (tiro-chat--count tokens) (tiro-chat--count limit)
                     (round (* 100.0 tokens) limit))))))

(defun tiro-chat--count (number)
  "Return NUMBER in at most four characters or so."
  (cond ((< number 1000) (number-to-string number))
        ((< number 10000) (format "%.1fk" (/ number 1000.0)))
        (t (format "%dk" (round number 1000)))))

(defun tiro-chat-header-line ()
  "Return the header line: who answers, how full the window is, what runs."
  (string-replace
   "%" "%%"
   (concat " " (tiro-visible-line (string-join (delq nil (tiro-chat--header-parts)) " · ")))))

(defun tiro-chat--header-parts ()
  "Return the parts of the header line; nil stands for none."
  (let ((size (tiro-session-context-size tiro-session)))
    (list (or (tiro-session-agent tiro-session) (tiro-session-usual-agent tiro-session)
              "default agent")
          (or (tiro-session-model tiro-session) (tiro-session-usual-model tiro-session)
              "default model")
          (and size (tiro-chat-size-text size))
          (tiro-chat-state)
          (and tiro-attached (format "%d attached" (length tiro-attached)))
          (tiro-view-one-line (or (tiro-session-title tiro-session)
                                  (tiro-session-id tiro-session) "new session")
                              100))))

(provide 'tiro-chat)
;;; tiro-chat.el ends here
