;;; tiro-transcript-test.el --- Tests of the transcript  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defmacro tiro-transcript-test-with (&rest body)
  "Run BODY in a fresh chat buffer."
  (declare (indent 0) (debug t))
  `(with-temp-buffer
     (setq tiro-session (tiro-session--create))
     (tiro-chat-mode)
     ,@body))

(defun tiro-transcript-test-text ()
  "Return the transcript's text."
  (buffer-substring-no-properties (point-min) tiro-transcript-end))

(ert-deftest tiro-transcript-kinds-stand-in-paragraphs ()
  "Text of one kind is joined, another kind starts a paragraph."
  (tiro-transcript-test-with
    (tiro-transcript-add 'user "You: hi")
    (tiro-transcript-add 'text "\n\nHel")
    (tiro-transcript-add 'text "lo\n")
    (tiro-transcript-put-line "a" 'tool "* read a: running")
    (tiro-transcript-put-line "b" 'tool "* read b: running")
    (tiro-transcript-add 'text "Done.")
    (should (equal (tiro-transcript-test-text)
                   (concat "You: hi\n\nHello\n\n* read a: running\n* read b: running\n\n"
                           "Done.")))))

(ert-deftest tiro-transcript-line-is-replaced-in-place ()
  (tiro-transcript-test-with
    (tiro-transcript-put-line "a" 'tool "* read a: running")
    (tiro-transcript-add 'text "Text")
    (tiro-transcript-put-line "a" 'tool "* read a: done,\n 3 lines")
    (tiro-transcript-add 'text " goes on")
    (should (equal (tiro-transcript-test-text) "* read a: done,  3 lines\n\nText goes on"))))

(ert-deftest tiro-transcript-last-line-is-replaced-at-the-end ()
  (tiro-transcript-test-with
    (tiro-transcript-put-line "a" 'tool "* a: running")
    (tiro-transcript-put-line "a" 'tool "* a: done")
    (tiro-transcript-add 'text "x")
    (should (equal (tiro-transcript-test-text) "* a: done\n\nx"))))

(ert-deftest tiro-transcript-typed-text-and-point-stay ()
  "B64 (iv): half-typed text, point, mark and undo survive what is streamed."
  (tiro-transcript-test-with
    (buffer-enable-undo)
    (goto-char (point-max))
    (insert "half typed")
    (undo-boundary)
    (backward-char 3)
    (set-mark (- (point) 4))
    (dotimes (n 500) (tiro-transcript-add 'text (format "chunk %d " n)))
    (tiro-transcript-put-line "t" 'tool "* tool")
    (should (equal (tiro-transcript-draft) "half typed"))
    (should (looking-at-p "ped"))
    (should (equal "f ty" (buffer-substring (mark) (point))))
    (goto-char (point-max))
    (insert " more")
    (undo-boundary)
    (tiro-transcript-add 'text "and more\nlines")
    (tiro-transcript-put-line "t" 'tool "* a much longer tool line")
    (let ((last-command nil)) (undo))
    (should (equal (tiro-transcript-draft) "half typed"))
    (tiro-transcript-add 'text "yet more")
    (let ((last-command 'undo)) (undo))
    (should (equal (tiro-transcript-draft) ""))
    (should (string-match-p "yet more\\'" (tiro-transcript-test-text)))))

(ert-deftest tiro-transcript-deletions-are-undone-in-place ()
  "Undo of a deletion puts the text back where it was, after more was streamed."
  (tiro-transcript-test-with
    (buffer-enable-undo)
    (goto-char (point-max))
    (insert "one two three")
    (undo-boundary)
    (goto-char (- (point-max) 5))
    (delete-char -4)
    (undo-boundary)
    (tiro-transcript-add 'text "streamed meanwhile")
    (let ((last-command nil)) (undo))
    (should (equal (tiro-transcript-draft) "one two three"))))

(ert-deftest tiro-transcript-is-read-only ()
  (tiro-transcript-test-with
    (tiro-transcript-add 'text "answer")
    (dolist (position (list (point-min) (+ 2 (point-min)) tiro-transcript-end
                            (1- tiro-transcript-prompt)))
      (goto-char position)
      (should-error (insert "x") :type 'text-read-only))
    (goto-char tiro-transcript-prompt)
    (insert "allowed")
    (should (equal (tiro-transcript-draft) "allowed"))))

(ert-deftest tiro-transcript-follows-only-at-the-end ()
  "B64 (i)-(iii): a window in the prompt area follows, one that reads back stays."
  (tiro-transcript-test-with
    (dotimes (n 100) (tiro-transcript-add 'text (format "line %d\n" n)))
    (let ((buffer (current-buffer)))
      (save-window-excursion
        (delete-other-windows)
        (set-window-buffer (selected-window) buffer)
        (let* ((reading (selected-window))
               (typing (split-window))
               (aside (split-window typing nil 'right)))
          (dolist (window (list typing aside)) (set-window-buffer window buffer))
          (set-window-point typing (point-max))
          (dolist (window (list reading aside))
            (set-window-point window 50)
            (set-window-start window 40))
          (dotimes (n 500) (tiro-transcript-add 'text (format "chunk %d\n" n)))
          (dolist (window (list reading aside))
            (should (= (window-point window) 50))
            (should (= (window-start window) 40)))
          (should (= (window-point typing) (point-max))))))))

(ert-deftest tiro-transcript-long-lines-are-broken ()
  "A line of 200,000 characters is shown in pieces and copied whole."
  (tiro-transcript-test-with
    (let ((text (apply #'concat (make-list 20000 "0123456789"))) (longest 0))
      (dotimes (n 100) (tiro-transcript-add 'text (substring text (* n 2000) (* (1+ n) 2000))))
      (save-excursion
        (goto-char (point-min))
        (while (< (point) tiro-transcript-end)
          (setq longest (max longest (- (line-end-position) (point))))
          (forward-line)))
      (should (<= longest tiro-max-line))
      (should (equal text (filter-buffer-substring (point-min) tiro-transcript-end))))))

(ert-deftest tiro-transcript-real-line-breaks-are-copied ()
  (tiro-transcript-test-with
    (let ((tiro-max-line 10))
      (tiro-transcript-add 'text "0123456789abc\ndef\n\n0123456789")
      (tiro-transcript-add 'text "!")
      (should (equal (tiro-transcript-test-text)
                     "0123456789\nabc\ndef\n\n0123456789\n!"))
      (should (equal (filter-buffer-substring (point-min) tiro-transcript-end)
                     "0123456789abc\ndef\n\n0123456789!")))))

(ert-deftest tiro-transcript-code-has-its-face ()
  "Blocks of code are told apart, wherever the deltas are cut."
  (let ((text "say\n```python\nx = 1\n```\nand `y`\n"))
    (dotimes (cut (length text))
      (tiro-transcript-test-with
        (tiro-transcript-add 'text (substring text 0 cut))
        (tiro-transcript-add 'text (substring text cut))
        (should (equal (tiro-transcript-test-text) text))
        (pcase-dolist (`(,word ,face) '(("say" tiro-assistant) ("x = 1" tiro-code)
                                        ("and" tiro-assistant)))
          (goto-char (point-min))
          (search-forward word)
          (should (eq face (get-text-property (1- (point)) 'face))))))))

(ert-deftest tiro-transcript-earlier-messages-stand-before ()
  (tiro-transcript-test-with
    (tiro-transcript-add 'user "You: later")
    (tiro-transcript-at-start
      (tiro-transcript-add 'user "You: earlier")
      (tiro-transcript-add 'text "answer"))
    (tiro-transcript-add 'text "end")
    (should (equal (tiro-transcript-test-text)
                   "You: earlier\n\nanswer\n\nYou: later\n\nend"))))

(ert-deftest tiro-transcript-deleted-line-leaves-no-gap ()
  (tiro-transcript-test-with
    (tiro-transcript-add 'note "Type.")
    (tiro-transcript-put-line 'offer 'note "[Go on]")
    (tiro-transcript-delete-line 'offer)
    (tiro-transcript-add 'user "You: hi")
    (should (equal (tiro-transcript-test-text) "Type.\n\nYou: hi")))
  (tiro-transcript-test-with
    (tiro-transcript-put-line 'earlier 'note "[Earlier]")
    (tiro-transcript-add 'user "You: hi")
    (tiro-transcript-delete-line 'earlier)
    (tiro-transcript-delete-line 'earlier)
    (tiro-transcript-add 'text "yes")
    (should (equal (tiro-transcript-test-text) "You: hi\n\nyes"))))

(defun tiro-transcript-test-stream ()
  "Do something random to the transcript."
  (pcase (random 5)
    (0 (tiro-transcript-add 'text (make-string (random 30) ?x)))
    (1 (tiro-transcript-add 'note "a note\nof two lines"))
    (2 (tiro-transcript-put-line (random 5) 'tool (make-string (random 40) ?t)))
    (3 (tiro-transcript-delete-line (random 5)))
    (4 (tiro-transcript-at-start (tiro-transcript-add 'text "earlier")))))

(defun tiro-transcript-test-type ()
  "Type something random into the prompt area."
  (goto-char (+ tiro-transcript-prompt
                (random (1+ (- (point-max) tiro-transcript-prompt)))))
  (if (and (zerop (random 3)) (< (point) (point-max)))
      (delete-region (point) (+ (point) (random (- (1+ (point-max)) (point)))))
    (insert (make-string (1+ (random 5)) (+ ?a (random 26)))))
  (undo-boundary))

(ert-deftest tiro-transcript-undo-survives-anything ()
  "Random typing and streaming in turn: each undo gives the draft of before."
  (random "tiro")
  (dotimes (_ 60)
    (tiro-transcript-test-with
      (buffer-enable-undo)
      (let ((drafts (list "")))
        (dotimes (_ 12)
          (tiro-transcript-test-stream)
          (tiro-transcript-test-type)
          (unless (equal (tiro-transcript-draft) (car drafts))
            (push (tiro-transcript-draft) drafts))
          (tiro-transcript-test-stream)
          (should (equal (tiro-transcript-draft) (car drafts))))
        (let ((last-command nil))
          (while (cdr drafts)
            (undo-boundary)
            (undo)
            (setq last-command 'undo)
            (pop drafts)
            (should (equal (tiro-transcript-draft) (car drafts)))
            (tiro-transcript-test-stream)))))))

(defun tiro-transcript-test-work (length)
  "Count what 200 deltas cost in a transcript of LENGTH lines, in characters touched."
  (tiro-transcript-test-with
    (dotimes (n length) (tiro-transcript-add 'text (format "line %d of the past\n" n)))
    (let ((touched 0))
      (add-hook 'after-change-functions
                (lambda (beg end before) (cl-incf touched (+ before (- end beg)))) nil t)
      (dotimes (_ 200) (tiro-transcript-add 'text "delta "))
      touched)))

(ert-deftest tiro-transcript-cost-does-not-grow ()
  "B44: a delta touches as much of a long transcript as of a short one."
  (should (= (tiro-transcript-test-work 10) (tiro-transcript-test-work 5000))))

(provide 'tiro-transcript-test)
;;; tiro-transcript-test.el ends here
