;;; tiro-visible.el --- What hides in a text, made visible  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A path, a command or a diff may hold characters that are not seen or
;; that turn its text round.  They are shown as the server and its terminal
;; show them: a control character as its picture, any other by its number.

;;; Code:

(defconst tiro-visible--control "\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069"
  "What acts on a screen, or turns the direction of text round.")

(defconst tiro-visible--joining '(#x200c #x200d)
  "What belongs into emoji and words of many scripts, but into none in ASCII.")

(defconst tiro-visible--acting (concat "[" tiro-visible--control "]")
  "Matches a character that acts.")

(defconst tiro-visible--hiding
  (concat "[" tiro-visible--control
          "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028\u2029"
          "\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
          "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")
  "Matches a character that acts or is not seen.")

(defun tiro-visible (text)
  "Return TEXT with a sign for each character that could hide something.
Tabs and line breaks stay."
  (tiro-visible--shown text tiro-visible--hiding))

(defun tiro-visible-line (text)
  "Return TEXT on one line, with a sign for each character that could hide."
  (replace-regexp-in-string "[\n\t]+" " " (tiro-visible (string-replace "\r\n" "\n" text)) t t))

(defun tiro-visible-prose (text)
  "Return TEXT with plain line ends, and a sign for each character that acts."
  (tiro-visible--shown (if (string-search "\r" text)
                           (replace-regexp-in-string "\r+\\(\n\\|\\'\\)" "\\1" text t)
                         text)
                       tiro-visible--acting))

(defun tiro-visible--shown (text regexp)
  "Return TEXT with signs for what REGEXP, one character, matches."
  (if (not (string-match-p regexp text)) text
    (let ((start 0) parts)
      (while (string-match regexp text start)
        (let ((at (match-beginning 0)))
          (push (substring text start at) parts)
          (push (apply #'propertize (tiro-visible--sign text at) (text-properties-at at text))
                parts)
          (setq start (1+ at))))
      (push (substring text start) parts)
      (apply #'concat (nreverse parts)))))

(defun tiro-visible--sign (text at)
  "Return what stands for the character of TEXT at the place AT."
  (let ((code (aref text at)))
    (cond ((and (memq code tiro-visible--joining) (not (tiro-visible--beside-ascii-p text at)))
           (string code))
          ((< code #x20) (string (+ #x2400 code)))
          ((= code #x7f) "\N{U+2421}")
          (t (format "⟨U+%04X⟩" code)))))

(defun tiro-visible--beside-ascii-p (text at)
  "Return non-nil if a neighbour of the character of TEXT at AT is ASCII or no one."
  (or (= at 0) (= (1+ at) (length text))
      (< (aref text (1- at)) 128) (< (aref text (1+ at)) 128)))

(provide 'tiro-visible)
;;; tiro-visible.el ends here
