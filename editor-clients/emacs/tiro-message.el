;;; tiro-message.el --- Messages and tool uses in the transcript  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What a message looks like: the same for one that is being streamed and
;; one that comes from a stored session.

;;; Code:

(require 'button)
(require 'cl-lib)
(require 'tiro-attachment)
(require 'tiro-session)
(require 'tiro-transcript)
(require 'tiro-view)
(require 'tiro-visible)

(defun tiro-message-show (message)
  "Show MESSAGE, one of a stored session."
  (let ((role (plist-get message :role))
        (content (plist-get message :content)))
    (pcase role
      ("user" (tiro-message--show-user content))
      ("assistant"
       (tiro-transcript-close-text)
       (seq-do #'tiro-message--show-block (tiro-message-blocks content))
       (when (eq t (plist-get (plist-get (plist-get message :metadata) :tiro) :interrupted))
         (tiro-transcript-add 'note "[interrupted]")))
      ("tool" (seq-do (lambda (block) (tiro-message--show-block block message))
                      (tiro-message-blocks content)))
      (_ (tiro-transcript-add 'note (format "[%s] %s" role (tiro-message-text content)))))
    (tiro-message-stored (plist-get message :seq) role)))

(defvar-local tiro-message-answer nil
  "The seq of the last message that was no tool result.")

(defun tiro-message-stored (seq role)
  "Note that what was shown last is the message SEQ of ROLE.
The line of a tool use is part of the answer that wanted it."
  (unless (equal role "tool") (setq tiro-message-answer seq))
  (tiro-transcript-note-seq tiro-message-answer
                            (memql tiro-message-answer (tiro-session-pins tiro-session))))

(defun tiro-message-show-prompt (prompt attachments)
  "Show that the user asked PROMPT with ATTACHMENTS."
  (tiro-transcript-close)
  (tiro-transcript-add 'user (concat "You: " prompt))
  (seq-do (lambda (attachment)
            (tiro-transcript-add
             'user (concat "\n  + " (tiro-attachment-label attachment))))
          attachments)
  (tiro-transcript-close))

(defun tiro-message--show-user (content)
  "Show CONTENT, that of a user message."
  (let ((blocks (tiro-message-blocks content)))
    (tiro-message-show-prompt
     (tiro-message-text content)
     (seq-filter (lambda (block) (equal (plist-get block :type) "attachment")) blocks))))

(defun tiro-message--show-block (block &optional message)
  "Show BLOCK, a content block of an assistant or tool message.
MESSAGE is the one that holds the block, if that is a result."
  (pcase (plist-get block :type)
    ("text" (tiro-transcript-add 'text (plist-get block :text)))
    ("thinking" (tiro-message-show-thinking (or (plist-get block :thinking) "")))
    ;; Its result, if there is one, comes later and says better.
    ("tool_use" (tiro-message-show-tool-use block "interrupted"))
    ("tool_result" (tiro-message-show-tool-result
                    (plist-get block :tool_use_id)
                    (tiro-message-text (plist-get block :content))
                    (eq t (plist-get block :is_error))
                    (plist-get message :seq)
                    (plist-get (plist-get (plist-get message :metadata) :tiro) :output_chars)))
    (type (tiro-transcript-add 'note (format "[%s]" type)))))

(defun tiro-message-show-thinking (text)
  "Show TEXT of the model's thinking, folded away below a line."
  (unless (and (string-blank-p text) (not (tiro-transcript-adding-p 'thinking)))
    (tiro-transcript-add-folded
     'thinking "* thinking" text
     (tiro-message-button
      (lambda (button) (tiro-transcript-toggle-fold (button-start button)))))))

(defun tiro-message-blocks (content)
  "Return CONTENT, a string, a block or a vector of them, as a sequence."
  (cond ((stringp content) (list (list :type "text" :text content)))
        ((vectorp content) content)
        (content (list content))))

(defun tiro-message-text (content)
  "Return the text in CONTENT; blocks that are no text in brackets."
  (mapconcat (lambda (block)
               (pcase (plist-get block :type)
                 ("text" (plist-get block :text))
                 ("attachment" nil)
                 (type (format "[%s]" type))))
             (seq-remove (lambda (block) (equal (plist-get block :type) "attachment"))
                         (tiro-message-blocks content))
             "\n"))

(defun tiro-message-line (message)
  "Return MESSAGE as one line: its seq, its role and how it begins."
  (format "#%s %s%s: %s" (plist-get message :seq) (plist-get message :role)
          (if (memql (plist-get message :seq) (tiro-session-pins tiro-session)) ", pinned" "")
          (tiro-view-one-line (tiro-message-words message) 70)))

(defun tiro-message-words (message)
  "Return what MESSAGE says or does in words, a block a line or more."
  (string-join (delete "" (mapcar #'tiro-message--words
                                  (tiro-message-blocks (plist-get message :content))))
               "\n"))

(defun tiro-message--words (block)
  "Return BLOCK in words; thinking has none."
  (pcase (plist-get block :type)
    ("text" (plist-get block :text))
    ("thinking" "")
    ("attachment" (concat "+ " (tiro-attachment-label block)))
    ("tool_use" (concat "* " (plist-get block :name)
                        (tiro-message--input-text (plist-get block :input))))
    ("tool_result" (tiro-message-text (plist-get block :content)))
    (type (format "[%s]" type))))

(defvar-local tiro-message-session nil
  "The id of the session whose messages this buffer shows; t: the current one.")

(defun tiro-message-go (seq)
  "Put point on the message SEQ in this buffer and the windows that show it.
Return nil where it is not in the buffer."
  (when-let ((place (text-property-any (point-min) (point-max) 'tiro-seq seq)))
    (goto-char place)
    (skip-chars-forward "\n")
    (dolist (window (get-buffer-window-list nil nil t)) (set-window-point window (point)))
    t))

(defun tiro-message-at-point ()
  "Return the seq of the message at point; it is one of the current session."
  (let ((seq (tiro-transcript-seq-at-point)))
    (unless (and seq tiro-message-session)
      (user-error "Tiro: put point on a message, in the chat or in what %s shows"
                  (substitute-command-keys "\\[tiro-show-session]")))
    (unless (member tiro-message-session (list t (tiro-session-id tiro-session)))
      (user-error "Tiro: this shows another session; look again first"))
    seq))

;;;; Tool uses

(defun tiro-message-show-tool-use (tool-use status &optional parent)
  "Show the line of TOOL-USE, a plist of :id, :name and :input, with STATUS.
PARENT is the id of the tool use that it works for, if a sub-agent made it.
Some servers give an id again in the next step, so an id whose result
has come stands for a new line when its tool is used again."
  (let* ((id (plist-get tool-use :id))
         (key (tiro-transcript-value id))
         (known (tiro-transcript-value key)))
    (when (or (null known)
              (and (plist-get known :result) (member status '("proposed" "running" "interrupted"))))
      (setq key (make-symbol "tool") known nil)
      (tiro-transcript-note-value id key))
    (tiro-message--put-tool
     key (list :name (concat (and parent "↳ ") (plist-get tool-use :name))
               :input (plist-get tool-use :input) :status status :result (plist-get known :result)))))

(defun tiro-message-show-tool-result (id text is-error &optional seq cut)
  "Show that the tool use ID was answered with TEXT; IS-ERROR if it failed.
SEQ is that of the message, which holds more than TEXT if CUT."
  (when-let* ((key (tiro-transcript-value id))
              (tool (tiro-transcript-value key)))
    (tiro-message--put-tool
     key (list :name (plist-get tool :name) :input (plist-get tool :input)
               :status (cond ((not (or is-error (tiro-message--failure tool text))) "done")
                             ((member (plist-get tool :status) '("rejected" "cancelled"))
                              (plist-get tool :status))
                             (t "failed"))
               :result text :seq seq :cut cut))))

(defun tiro-message-event-result (event)
  "Return what EVENT, a \"toolResult\", tells; of a long one its two ends."
  (concat (plist-get event :content)
          (when-let* ((end (plist-get event :end)))
            (concat (tiro-message--left-out (plist-get event :leftOut)) end))))

(defun tiro-message--left-out (count)
  "Return a line that says that COUNT characters are not shown."
  (format "\n[… %d characters are not shown here …]\n" count))

(defun tiro-message--failure (tool result)
  "Return how TOOL, if that is a command, failed by the end of RESULT, or nil."
  (when (string-suffix-p "run_command" (plist-get tool :name))
    (cl-loop for line in (nreverse (split-string (string-trim-right result) "\n"))
             when (string-match (concat "\\`\\[\\(exit code [0-9]+\\|ended by the signal [A-Z0-9]+"
                                        "\\|timed out after [0-9]+ seconds\\).*\\]\\'")
                                line)
             return (let ((how (match-string 1 line))) (unless (equal how "exit code 0") how))
             ;; Notes of the server may follow it.
             while (string-prefix-p "[" line))))

(defun tiro-message--put-tool (key tool)
  "Draw TOOL, a plist of :name, :input, :status and :result, as the line KEY."
  (tiro-transcript-note-value key tool)
  (tiro-transcript-put-line
   key (if (member (plist-get tool :status) '("failed" "rejected")) 'error 'tool)
   (tiro-message-tool-text tool)
   (tiro-message-button (lambda (_) (tiro-message--show-details key)))))

(defun tiro-message-tool-text (tool)
  "Return the line of TOOL, a plist of :name, :input, :status and :result."
  (let ((result (plist-get tool :result)))
    (concat "* " (plist-get tool :name)
            (tiro-message--input-text (plist-get tool :input))
            ": " (plist-get tool :status)
            (and result
                 (pcase (plist-get tool :status)
                   ("done" (concat ", " (tiro-message--lines tool)))
                   ("failed" (let ((how (tiro-message--failure tool result)))
                               (if how (format ", %s, %s" how (tiro-message--lines tool))
                                 (concat ": " (tiro-view-one-line (tiro-message--reason result)
                                                                  160))))))))))

(defun tiro-message--lines (tool)
  "Say how many lines the result of TOOL has."
  (let ((lines (length (split-string (string-trim-right (plist-get tool :result)) "\n"))))
    (format "%s%d line%s" (if (plist-get tool :cut) "more than " "") lines
            (if (= lines 1) "" "s"))))

(defun tiro-message--reason (result)
  "Return the first line of RESULT, that of a tool that failed."
  (car (split-string (string-trim result) "\n")))

(defun tiro-message--input-text (input)
  "Return the first strings of INPUT, a tool's, for its line."
  (mapconcat (lambda (value) (format " %s" value))
             (seq-take (cl-loop for (_key value) on input by #'cddr
                                when (or (stringp value) (numberp value)) collect value)
                       3)
             ""))

(defun tiro-message--show-details (key)
  "Show the whole input and result of the tool use whose line is KEY."
  (let ((tool (tiro-transcript-value key)))
    (tiro-view-show-text
     "*tiro tool*"
     (concat (plist-get tool :name) ": " (plist-get tool :status) "\n"
             (cl-loop for (key value) on (plist-get tool :input) by #'cddr
                      concat (tiro-visible (format "\n%s: %s" (substring (symbol-name key) 1)
                                                   value)))
             "\n\n" (tiro-message--whole tool)))))

(defconst tiro-message--shown-chars 2000000 "So much of a result is shown: its two ends.")

(defun tiro-message--whole (tool)
  "Return the whole result of TOOL; of a very long one its two ends."
  (let ((seq (plist-get tool :seq)))
    (cond ((null (plist-get tool :result)) "(no result yet)")
          ;; The seq is one of the current session.
          ((and seq (plist-get tool :cut) (eq t tiro-message-session))
           (let* ((half (/ tiro-message--shown-chars 2))
                  (head (tiro-message--piece seq 0 half))
                  (total (plist-get head :totalChars))
                  (left (- total (* 2 half))))
             (concat (plist-get head :text)
                     (when (> left 0) (tiro-message--left-out left))
                     (when (> total half)
                       (plist-get (tiro-message--piece seq (max half (- total half)) half)
                                  :text)))))
          (t (plist-get tool :result)))))

(defun tiro-message--piece (seq offset limit)
  "Ask for LIMIT characters of the message SEQ from OFFSET on."
  (tiro-session-call 'tiro/session/content (list :seq seq :offset offset :limit limit)))

(defun tiro-message-button (action)
  "Return text properties that make a line a button for ACTION."
  (list 'button '(t) 'category 'default-button 'action action
        'follow-link t 'help-echo "mouse-1, RET: show"))

(provide 'tiro-message)
;;; tiro-message.el ends here
