;;; tiro-outline.el --- The session as an outline  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What show-session shows: the summary as the server gives it, the facts,
;; then memo, summary and messages as headings that unfold.  Bodies are
;; indented, so that nothing in them is taken for a heading.

;;; Code:

(require 'cl-lib)
(require 'outline)
(require 'subr-x)
(require 'tiro-message)
(require 'tiro-session)
(require 'tiro-view)
(require 'tiro-visible)

(defvar tiro-outline-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'outline-cycle)
    (define-key map (kbd "<backtab>") #'outline-cycle-buffer)
    (define-key map (kbd "RET") #'outline-toggle-children)
    (define-key map (kbd "n") #'outline-next-visible-heading)
    (define-key map (kbd "p") #'outline-previous-visible-heading)
    (define-key map (kbd "P") 'tiro-toggle-pin)
    (define-key map (kbd "w") 'tiro-rewind)
    (define-key map (kbd "e") 'tiro-edit-message)
    map)
  "Keymap of `tiro-outline-mode'.")

(define-derived-mode tiro-outline-mode tiro-view-mode "Tiro-Session"
  "Major mode of a session as an outline.
\\<tiro-outline-mode-map>\\[outline-cycle] unfolds a heading, \\[outline-cycle-buffer] all of them;
On a message \\[tiro-toggle-pin] pins it, \\[tiro-edit-message] edits it and
\\[tiro-rewind] takes back what came after it."
  (setq-local outline-regexp "\\*+ ")
  (setq-local outline-level (lambda () (- (match-end 0) (match-beginning 0) 1)))
  (outline-minor-mode))

(defun tiro-show-session ()
  "Show the current session: its summary, facts, memo and newest messages."
  (interactive)
  (let ((summary (plist-get (tiro-session-call 'tiro/session/show) :text))
        (view (tiro-session-call 'tiro/session/get '(:limit 100))))
    (tiro-session-note view)
    (tiro-view-show-text "*tiro session*"
                         (concat (or summary "The session is empty.") "\n\n"
                                 (tiro-outline--fields view)
                                 (tiro-outline--memory (tiro-session-call 'tiro/memo/get))
                                 (tiro-outline--messages view))
                         #'tiro-show-session #'tiro-outline-mode)
    (setq tiro-message-session (plist-get view :id))
    (outline-hide-body)))

(defun tiro-outline--fields (view)
  "Return the facts in VIEW, a SessionView, as lines."
  (let ((size (plist-get view :contextSize)))
    (cl-loop
     for (label value) in
     `(("Session" ,(or (plist-get view :id) "not stored yet"))
       ("Title" ,(plist-get view :title))
       ("Agent" ,(or (plist-get view :agent) "none selected: the default is used"))
       ("Model" ,(plist-get view :model))
       ("Messages" ,(format "%s in the window, %s in the archive%s"
                            (plist-get view :total) (plist-get view :archived)
                            (if (seq-empty-p (plist-get view :pins)) ""
                              (format ", %d pinned" (length (plist-get view :pins))))))
       ("Tokens" ,(and size (format "%s%s" (plist-get size :tokens)
                                    (if (plist-get size :contextWindow)
                                        (format " of %s" (plist-get size :contextWindow)) ""))))
       ("File" ,(and (plist-get view :path) (abbreviate-file-name (plist-get view :path)))))
     when value concat (format "%-9s %s\n" label (tiro-visible-line value)))))

(defun tiro-outline--memory (known)
  "Return the memo and the summary in KNOWN under headings, where there are any."
  (concat (when (plist-get known :memo)
            (tiro-outline--section "* Memo" (plist-get known :memoText)))
          (unless (string-empty-p (or (plist-get known :summary) ""))
            (tiro-outline--section "* Summary of what left the window"
                                   (plist-get known :summary)))))

(defun tiro-outline--messages (view)
  "Return the messages in VIEW, each under a heading that carries its seq."
  (let ((messages (plist-get view :messages)))
    (if (seq-empty-p messages) ""
      (concat (tiro-outline--section
               (format "* Messages%s" (if (< 1 (or (plist-get (elt messages 0) :seq) 1))
                                          (format ", the newest %d" (length messages)) ""))
               nil)
              (mapconcat (lambda (message)
                           (propertize (tiro-outline--section
                                        (concat "** " (tiro-message-line message))
                                        (tiro-message-words message))
                                       'tiro-seq (plist-get message :seq)))
                         messages "")))))

(defconst tiro-outline--most-chars 20000
  "Characters of a message that are shown; the chat shows all.")

(defun tiro-outline--section (heading body)
  "Return HEADING and below it BODY, indented, where there is one."
  (concat (propertize heading 'face (if (string-prefix-p "** " heading) 'outline-2 'outline-1))
          "\n"
          (and body (concat (replace-regexp-in-string "^" "  " (tiro-outline--bounded body) t t)
                            "\n"))))

(defun tiro-outline--bounded (body)
  "Return BODY, or its beginning and how much more there is."
  (let ((more (- (length body) tiro-outline--most-chars)))
    (if (<= more 0) (string-trim body)
      (format "%s\n[%d more characters]"
              (string-trim (substring body 0 tiro-outline--most-chars)) more))))

(defun tiro-outline--on-session (kind _value)
  "Look again when KIND says that the session is another one now."
  (when (and (memq kind '(pins view)) (get-buffer "*tiro session*"))
    ;; What comes from the server may come within its filter, which must not wait.
    (run-at-time 0 nil #'tiro-outline--again)))

(defun tiro-outline--again ()
  "Show the session anew where it is shown."
  (when-let ((buffer (get-buffer "*tiro session*")))
    (with-current-buffer buffer
      (let ((line (line-number-at-pos)))
        (save-window-excursion (tiro-show-session))
        (goto-char (point-min))
        (forward-line (1- line))
        (dolist (window (get-buffer-window-list nil nil t))
          (set-window-point window (point)))))))

(add-hook 'tiro-session-functions #'tiro-outline--on-session)

(provide 'tiro-outline)
;;; tiro-outline.el ends here
