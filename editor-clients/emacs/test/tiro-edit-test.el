;;; tiro-edit-test.el --- Tests of changes that Tiro makes in buffers  -*- lexical-binding: t; -*-

;;; Code:

(require 'json)
(require 'tiro-testing)

(defmacro tiro-edit-test-with (text &rest body)
  "Run BODY in a buffer that visits a file with TEXT, which the server knows."
  (declare (indent 1) (debug t))
  `(tiro-testing-with-peer
     (with-current-buffer (find-file-noselect (tiro-testing-write "a.txt" ,text))
       (buffer-enable-undo)
       (tiro-testing-ask "hello") ; tells the server of the buffer
       ,@body)))

(defun tiro-edit-test-edit (&rest edits)
  "Let the server make EDITS, each (LINE CHARACTER LINE CHARACTER TEXT); its answer."
  (tiro-edit-test-versioned 1 edits))

(defun tiro-edit-test-versioned (version edits)
  "Let the server make EDITS of VERSION of the current buffer; return its answer."
  (let ((uri (tiro-rpc-uri buffer-file-name)))
    (tiro-testing-ask
     (concat "edit "
             (json-encode
              `( :documentChanges
                 [( :textDocument (:uri ,uri :version ,version)
                    :edits ,(vconcat (mapcar #'tiro-edit-test--text-edit edits)))]))))
    (tiro-edit-test-answer)))

(defun tiro-edit-test--text-edit (edit)
  "Return EDIT, a list of positions and a text, in the form of LSP."
  (pcase-let ((`(,line ,character ,line2 ,character2 ,text) edit))
    `( :range (:start (:line ,line :character ,character)
                      :end (:line ,line2 :character ,character2))
       :newText ,text)))

(defun tiro-edit-test-answer ()
  "Return the newest answer that the server got."
  (with-current-buffer "*tiro*"
    (goto-char (point-max))
    (search-backward "answer {")
    (forward-char (length "answer "))
    (json-parse-buffer :object-type 'plist :false-object nil)))

(ert-deftest tiro-edit-is-one-step-of-undo-and-keeps-point ()
  (tiro-edit-test-with "one\ntwo\nthree\n"
    (goto-char (point-min))
    (search-forward "tw")
    (let ((marker (copy-marker (line-end-position))))
      (should (equal '(:applied t)
                     (tiro-edit-test-edit '(0 0 0 3 "ONE") '(2 0 2 0 "new\n") '(2 5 2 5 "!"))))
      (should (equal (buffer-string) "ONE\ntwo\nnew\nthree!\n"))
      (should (looking-back "tw" (line-beginning-position)))
      (should (= marker (line-end-position))))
    (undo-boundary)
    (primitive-undo 1 (cdr buffer-undo-list))
    (should (equal (buffer-string) "one\ntwo\nthree\n"))))

(ert-deftest tiro-edit-undo-takes-back-no-more-than-the-edit ()
  "What the user typed before stays (B55)."
  (tiro-edit-test-with "one\n"
    (goto-char (point-max))
    (insert "typed\n")
    (tiro-testing-ask "hello again")
    (tiro-edit-test-versioned 2 '((0 0 0 3 "ONE")))
    (should (equal (buffer-string) "ONE\ntyped\n"))
    (let ((last-command nil)) (undo))
    (should (equal (buffer-string) "one\ntyped\n"))))

(ert-deftest tiro-edit-saves-what-was-saved-before ()
  "A command that Tiro runs next must see it."
  (tiro-edit-test-with "one\n"
    (tiro-edit-test-edit '(0 0 0 3 "ONE"))
    (should-not (buffer-modified-p))
    (should (equal (with-temp-buffer (insert-file-contents "a.txt") (buffer-string)) "ONE\n"))))

(ert-deftest tiro-edit-leaves-unsaved-text-unsaved ()
  (tiro-edit-test-with "one\n"
    (goto-char (point-max))
    (insert "unsaved\n")
    (tiro-testing-ask "hello again")
    (should (equal "Tiro: a.txt is changed but not saved"
                   (tiro-testing-said
                    (lambda ()
                      (should (equal '(:applied t)
                                     (tiro-edit-test-versioned 2 '((0 0 0 3 "ONE")))))))))
    (should (buffer-modified-p))
    (should (equal (with-temp-buffer (insert-file-contents "a.txt") (buffer-string)) "one\n"))))

(ert-deftest tiro-edit-saves-nothing-where-that-is-not-wanted ()
  (tiro-edit-test-with "one\n"
    (let ((tiro-save-edited-buffers nil)) (tiro-edit-test-edit '(0 0 0 3 "ONE")))
    (should (buffer-modified-p))))

(ert-deftest tiro-edit-of-a-buffer-that-moved-on-is-refused ()
  "Nothing is changed, whoever is late (B55)."
  (tiro-edit-test-with "one\n"
    (should-not (plist-get (tiro-edit-test-versioned 7 '((0 0 0 3 "ONE"))) :applied))
    (should (equal (buffer-string) "one\n"))
    ;; Typed after the text was told, and before the edit came.
    (let ((buffer (current-buffer)))
      (cl-letf* ((apply-it (symbol-function 'tiro-edit--apply))
                 ((symbol-function 'tiro-edit--apply)
                  (lambda (&rest arguments)
                    (with-current-buffer buffer (goto-char 1) (insert "typed "))
                    (apply apply-it arguments))))
        (let ((answer (tiro-edit-test-versioned 1 '((0 0 0 3 "ONE")))))
          (should-not (plist-get answer :applied))
          (should (string-search "was changed meanwhile" (plist-get answer :failureReason))))))
    (should (equal (buffer-string) "typed one\n"))))

(ert-deftest tiro-edit-where-emacs-would-ask-is-refused ()
  "No question comes up in the midst of a turn."
  (tiro-edit-test-with "one\n"
    (setq buffer-read-only t)
    (should (string-search "read-only"
                           (plist-get (tiro-edit-test-edit '(0 0 0 3 "ONE")) :failureReason)))
    (setq buffer-read-only nil)
    (write-region "changed by git\n" nil buffer-file-name nil 'silent)
    (set-file-times buffer-file-name (time-add nil 10))
    (should (string-search "changed on disk"
                           (plist-get (tiro-edit-test-edit '(0 0 0 3 "ONE")) :failureReason)))
    (should (equal (buffer-string) "one\n"))))

(ert-deftest tiro-edit-of-what-is-not-open-is-refused ()
  (tiro-edit-test-with "one\n"
    (let ((answer (progn
                    (tiro-testing-ask
                     (concat "edit "
                             (json-encode
                              '( :changes (:file:///no/such
                                           [( :range (:start (:line 0 :character 0)
                                                             :end (:line 0 :character 0))
                                              :newText "x")])))))
                    (tiro-edit-test-answer))))
      (should (string-search "No buffer visits" (plist-get answer :failureReason))))))

(ert-deftest tiro-edit-survives-a-save-that-fails ()
  "The edit stands and the buffer stays modified; nothing asks."
  (tiro-edit-test-with "one\n"
    (add-hook 'write-region-annotate-functions (lambda (_ _) (read-string "Sure? ")) nil t)
    (let ((answer (tiro-edit-test-edit '(0 0 0 3 "ONE")))) ; `should' would see the failure
      (should (equal '(:applied t) answer)))
    (should (equal (buffer-string) "ONE\n"))
    (should (buffer-modified-p))))

(defmacro tiro-edit-test-after-save (function &rest body)
  "Let FUNCTION run after saves while BODY runs."
  (declare (indent 1) (debug t))
  `(let ((hook ,function))
     (add-hook 'after-save-hook hook)
     (unwind-protect (progn ,@body) (remove-hook 'after-save-hook hook))))

(defun tiro-edit-test-disk ()
  "Return what a.txt holds on the disk."
  (with-temp-buffer (insert-file-contents "a.txt") (buffer-string)))

(ert-deftest tiro-edit-is-followed-by-what-a-hook-makes-of-the-file ()
  "A formatter that runs on the file: the buffer and the server have what is on the disk."
  (tiro-edit-test-with "one\n"
    (tiro-edit-test-after-save
        (lambda ()
          (write-region "formatted\n" nil buffer-file-name nil 'silent)
          (set-file-times buffer-file-name (time-add nil 10)))
      (let ((answer (tiro-edit-test-edit '(0 0 0 3 "ONE"))))
        (should (equal '(:applied t) answer))))
    (should (equal "formatted\n" (tiro-edit-test-disk)))
    (should (equal "formatted\n" (buffer-string)))
    (should-not (buffer-modified-p))
    (should (tiro-buffer-as-told-p nil))))

(ert-deftest tiro-edit-model-is-told-that-a-hook-changed-the-file ()
  (tiro-testing-with-server
    (with-current-buffer (find-file-noselect (tiro-testing-write "a.txt" "one\n"))
      (tiro-edit-test-after-save
          (lambda ()
            (write-region "ONE, formatted\n" nil buffer-file-name nil 'silent)
            (set-file-times buffer-file-name (time-add nil 10)))
        (tiro-ask "edit a.txt")
        (tiro-testing-wait-for "[y Allow once]")
        (tiro-testing-allow)
        (tiro-testing-wait-idle))
      (should (equal "ONE, formatted\n" (buffer-string)))
      (should (string-search "it is changed further in the editor by now" (tiro-testing-chat))))))

(ert-deftest tiro-edit-tells-what-a-hook-makes-of-the-buffer ()
  "What a hook puts into the buffer is no part of the save, and is told."
  (tiro-edit-test-with "one\n"
    (tiro-edit-test-after-save (lambda () (goto-char (point-max)) (insert "more\n"))
      (tiro-edit-test-edit '(0 0 0 3 "ONE")))
    (should (equal "ONE\n" (tiro-edit-test-disk)))
    (should (equal "ONE\nmore\n" (buffer-string)))
    (should (buffer-modified-p))
    (should (tiro-buffer-as-told-p nil))))

(ert-deftest tiro-edit-is-made-whatever-hooks-do-after-the-save ()
  (tiro-edit-test-with "one\n"
    (should (equal "Tiro: a.txt is changed and saved, but what comes then failed: No"
                   (tiro-edit-test-after-save (lambda () (error "No"))
                     (tiro-testing-said
                      (lambda ()
                        (should (equal '(:applied t) (tiro-edit-test-edit '(0 0 0 3 "ONE")))))))))
    (should-not (buffer-modified-p)))
  (let (answer)
    (tiro-edit-test-with "one\n"
      (let ((file buffer-file-name))
        (tiro-edit-test-after-save (lambda () (kill-buffer (find-buffer-visiting file)))
          (setq answer (tiro-edit-test-edit '(0 0 0 3 "ONE"))))
        (with-temp-buffer
          (insert-file-contents file)
          (should (equal "ONE\n" (buffer-string))))))
    (should (equal '(:applied t) answer))))

(ert-deftest tiro-edit-counts-as-was-agreed ()
  "Emoji, narrowing, and a place behind the last line."
  (tiro-edit-test-with "a😀b\nlast"
    (narrow-to-region 1 2)
    (tiro-edit-test-edit '(0 1 0 2 "🎉🎉") '(1 4 1 4 "!\n"))
    (widen)
    (should (equal (buffer-string) "a🎉🎉b\nlast!\n"))))

(ert-deftest tiro-edit-reads-places-in-utf-16 ()
  (with-temp-buffer
    (insert "a😀b\nzwei")
    (cl-letf (((symbol-function 'tiro-rpc-encoding) (lambda (_) "utf-16")))
      (pcase-dolist (`(,line ,character ,point)
                     '((0 0 1) (0 1 2) (0 3 3) (0 4 4) (0 99 4) (1 2 7) (9 0 9)))
        (should (= point (tiro-rpc-point nil (list :line line :character character))))))))

;;;; The real server

(defun tiro-edit-test-read (file)
  "Return the text of FILE on the disk."
  (with-temp-buffer (insert-file-contents file) (buffer-string)))

(defun tiro-edit-test-visit (file text &optional unsaved)
  "Return a buffer that visits FILE with TEXT, and UNSAVED text at its end."
  (with-current-buffer (find-file-noselect (tiro-testing-write file text))
    (buffer-enable-undo)
    (goto-char (point-max))
    (when unsaved (insert unsaved))
    (undo-boundary)
    (current-buffer)))

(ert-deftest tiro-edit-a-turn-is-made-undone-and-redone ()
  "Three open buffers and two closed files, byte for byte, also after a restart."
  (tiro-testing-with-server
    (let* ((a (tiro-edit-test-visit "a.txt" "one a\n"))
           (b (tiro-edit-test-visit "b.txt" "one b\n" "typed\n"))
           (c (tiro-edit-test-visit "c.txt" "c one c\nzwei \u00e9\n"))
           (buffers (list a b c))
           (coding-system-for-write 'utf-8-dos)
           (d (tiro-testing-write "d.txt" "one d\nlast"))
           (e (tiro-testing-write "sub/e.txt" "e\none e\n"))
           (before '("one a\n" "one b\ntyped\n" "c one c\nzwei \u00e9\n" "one d\r\nlast" "e\r\none e\r\n"))
           (after '("ONE a\n" "ONE b\ntyped\n" "c ONE c\nzwei \u00e9\n" "ONE d\r\nlast" "e\r\nONE e\r\n"))
           (state (lambda ()
                    (append (mapcar (lambda (buffer)
                                      (with-current-buffer buffer (buffer-string)))
                                    buffers)
                            (mapcar (lambda (file)
                                      (let ((coding-system-for-read 'utf-8-unix))
                                        (tiro-edit-test-read file)))
                                    (list d e))))))
      (should (equal (funcall state) before))
      (tiro-ask "edit a.txt b.txt c.txt d.txt sub/e.txt")
      (dotimes (_ 5)
        (tiro-testing-wait "a question" (lambda () tiro-permission-pending))
        (tiro-testing-allow))
      (tiro-testing-wait-idle)
      (should (equal (funcall state) after))
      (should (equal (tiro-edit-test-read "a.txt") "ONE a\n"))
      (should (equal (tiro-edit-test-read "b.txt") "one b\n")) ; its text was not saved
      (tiro-undo-edits)
      (should (equal (funcall state) before))
      (tiro-redo-edits)
      (should (equal (funcall state) after))
      ;; The user goes on, and the server dies.
      (with-current-buffer c (goto-char (point-max)) (insert "mine\n"))
      (kill-process (tiro-rpc-process (tiro-session-connection tiro-session)))
      (tiro-testing-wait "the end" (lambda () (not (tiro-session-running-p))))
      (tiro-undo-edits)
      (should (equal (funcall state)
                     (cl-substitute "c one c\nzwei \u00e9\nmine\n" (nth 2 before) before
                                    :test #'equal)))
      ;; The buffer's own undo takes back one step a change.
      (with-current-buffer a
        (let ((last-command nil)) (undo))
        (should (equal (buffer-string) "ONE a\n")))
      (dolist (buffer buffers) (with-current-buffer buffer (set-buffer-modified-p nil))))))

(ert-deftest tiro-edit-a-turn-cancelled-in-the-middle-is-undone-and-redone ()
  "As far as it came, byte for byte; what was asked last is not made."
  (tiro-testing-with-server
    (let* ((a (tiro-edit-test-visit "a.txt" "one a\n"))
           (b (tiro-edit-test-visit "b.txt" "one b\n" "typed\n"))
           (c (tiro-edit-test-visit "c.txt" "one c\n"))
           (coding-system-for-write 'utf-8-dos)
           (d (tiro-testing-write "d.txt" "one d\nlast"))
           (state (lambda ()
                    (append (mapcar (lambda (buffer)
                                      (with-current-buffer buffer (buffer-string)))
                                    (list a b c))
                            (let ((coding-system-for-read 'utf-8-unix))
                              (mapcar #'tiro-edit-test-read (list "a.txt" "b.txt" "c.txt" d))))))
           (before '("one a\n" "one b\ntyped\n" "one c\n"
                     "one a\n" "one b\n" "one c\n" "one d\r\nlast"))
           (after '("one a\n" "ONE b\ntyped\n" "one c\n"
                    "one a\n" "one b\n" "one c\n" "ONE d\r\nlast")))
      (tiro-ask "edit d.txt b.txt a.txt c.txt")
      (dotimes (_ 2)
        (tiro-testing-wait "a question" (lambda () tiro-permission-pending))
        (tiro-testing-allow))
      (tiro-testing-wait-for "-one a\n+ONE a")
      (tiro-cancel)
      (tiro-testing-wait-idle)
      (should (equal (funcall state) after))
      (should (string-match-p "Took back the changes of .*; not saved: b.txt\\'"
                              (tiro-testing-said #'tiro-undo-edits)))
      (should (equal (funcall state) before))
      (tiro-redo-edits)
      (should (equal (funcall state) after))
      ;; Another session's changes are not taken back without a question.
      (tiro-new-session "")
      (let (asked)
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (text) (push text asked) (cdr asked))))
          (tiro-undo-edits)
          (should (equal (funcall state) after))
          (tiro-undo-edits)
          (should (equal (funcall state) before))
          (should (string-match-p "Take back what another session, session-[-0-9]+, did [0-9]+ \\(?:s\\|min\\) ago to .*b\\.txt" (car asked)))))
      (with-current-buffer b (set-buffer-modified-p nil)))))

(ert-deftest tiro-edit-undo-says-which-commands-stay-done ()
  (tiro-testing-with-server
    (let ((a (tiro-edit-test-visit "a.txt" "one a\n")))
      (tiro-ask "edit a.txt and run rm -f  nothing")
      (dotimes (_ 2)
        (tiro-testing-wait "a question" (lambda () tiro-permission-pending))
        (tiro-testing-allow))
      (tiro-testing-wait-idle)
      (should (string-match-p
               "a.txt, [0-9]+ \\(?:s\\|min\\) old\nWhat its commands did stays done: rm -f nothing\\'"
               (tiro-testing-said #'tiro-undo-edits)))
      (should (equal (with-current-buffer a (buffer-string)) "one a\n"))
      (should-not (string-search "stays done" (tiro-testing-said #'tiro-redo-edits))))))

(ert-deftest tiro-edit-is-saved-as-it-was-shown-and-undone ()
  "What cleans up at each save adds nothing to what was allowed; the undo takes it back."
  (tiro-testing-with-server
    (let ((before-save-hook '(delete-trailing-whitespace))
          (buffer (tiro-edit-test-visit "a.py" "one a  \nlast")))
      (with-current-buffer buffer
        (should (derived-mode-p 'python-mode))
        (should require-final-newline)
        (add-hook 'before-save-hook (lambda () (insert "local")) nil t)
        (dolist (hook '(write-contents-functions write-file-functions))
          (add-hook hook (lambda () (insert (symbol-name hook)) nil) nil t)))
      (tiro-ask "edit a.py")
      (tiro-testing-wait "a question" (lambda () tiro-permission-pending))
      (tiro-testing-allow)
      (tiro-testing-wait-idle)
      (should (equal (tiro-edit-test-read "a.py") "ONE a  \nlast"))
      (should (equal (with-current-buffer buffer (buffer-string)) "ONE a  \nlast"))
      (should-not (buffer-modified-p buffer))
      (tiro-undo-edits)
      (should (equal (tiro-edit-test-read "a.py") "one a  \nlast"))
      (should (memq 'delete-trailing-whitespace before-save-hook))
      (should (buffer-local-value 'require-final-newline buffer)))))

(ert-deftest tiro-edit-of-bytes-shown-as-text-is-not-saved-as-that-text ()
  "Only the mode knows how to write what it shows."
  (tiro-edit-test-with "one\n"
    (setq major-mode 'hexl-mode)
    (should (plist-get (tiro-edit-test-edit '(0 0 0 3 "ONE")) :applied))
    (should (buffer-modified-p))
    (should (equal (tiro-edit-test-read "a.txt") "one\n"))))

(ert-deftest tiro-edit-that-was-rejected-changes-nothing ()
  (tiro-testing-with-server
    (let ((a (tiro-edit-test-visit "a.txt" "one a\n")))
      (tiro-ask "edit a.txt")
      (tiro-testing-wait-for "-one a\n+ONE a")
      (tiro-reject "not this one")
      (tiro-testing-wait-idle)
      (should (string-search "not this one" (tiro-testing-chat)))
      (should (equal (with-current-buffer a (buffer-string)) "one a\n"))
      (should-error (tiro-undo-edits) :type 'user-error))))

(ert-deftest tiro-edit-typed-into-while-the-question-waits-is-refused ()
  "The user allowed a change of another text (B55)."
  (tiro-testing-with-server
    (let ((a (tiro-edit-test-visit "a.txt" "one a\n")))
      (tiro-ask "edit a.txt")
      (tiro-testing-wait "a question" (lambda () tiro-permission-pending))
      (with-current-buffer a (goto-char (point-min)) (insert "typed "))
      (tiro-testing-wait "the server knows" (lambda ()
                                              (with-current-buffer a (tiro-buffer-as-told-p nil))))
      (tiro-testing-allow)
      (tiro-testing-wait-idle)
      (should (equal (with-current-buffer a (buffer-string)) "typed one a\n"))
      ;; One line says why, without a key pressed.
      (should (string-match-p "^\\* edit_file .*: failed: .*a\\.txt.*" (tiro-testing-chat)))
      (with-current-buffer a (set-buffer-modified-p nil)))))

(provide 'tiro-edit-test)
;;; tiro-edit-test.el ends here
