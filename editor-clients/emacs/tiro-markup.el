;;; tiro-markup.el --- Headings, bold and code in answers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Answers are Markdown.  The little of it that helps to read is shown by
;; faces, and only in what is on the screen: Emacs asks for those lines as it
;; draws them, so that streaming costs nothing more.

;;; Code:

(require 'tiro-transcript)

(defface tiro-heading '((t :inherit (bold font-lock-function-name-face)))
  "Face of headings in answers." :group 'tiro)

(defconst tiro-markup--regexp
  "^\\(#\\{1,6\\} .+\\)$\\|\\(\\*\\*[^*\n]+\\*\\*\\)\\|\\(`[^`\n]+`\\)"
  "Matches a heading (1), bold text (2) or code in a line (3).")

(defun tiro-markup-lines (beg end)
  "Give the text of answers in the lines from BEG to END its faces."
  (save-excursion
    (save-match-data
      (let ((start (progn (goto-char beg) (line-beginning-position)))
            (last (progn (goto-char end) (line-end-position))))
        (while (< start last)
          (let ((next (next-single-property-change start 'tiro-kind nil last)))
            (when (eq 'text (get-text-property start 'tiro-kind))
              (tiro-markup--paint start next))
            (setq start next)))))))

(defun tiro-markup--paint (start end)
  "Give the text from START to END, part of an answer, its faces."
  (with-silent-modifications
    (put-text-property start end 'face 'tiro-assistant)
    (goto-char start)
    (while (re-search-forward tiro-markup--regexp end t)
      (put-text-property (match-beginning 0) (match-end 0) 'face
                         (cond ((match-beginning 1) 'tiro-heading)
                               ((match-beginning 2) 'bold)
                               (t 'tiro-code))))))

(provide 'tiro-markup)
;;; tiro-markup.el ends here
