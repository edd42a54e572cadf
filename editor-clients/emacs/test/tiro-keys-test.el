;;; tiro-keys-test.el --- Tests of manners: keys, loading, faces  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defun tiro-keys-test-bound (map)
  "Return the commands of Tiro that are bound to one key in MAP."
  (let (commands)
    (map-keymap (lambda (_ binding)
                  (when (and (symbolp binding) (string-prefix-p "tiro-" (symbol-name binding)))
                    (push binding commands)))
                map)
    commands))

(ert-deftest tiro-keys-are-reachable-under-evil ()
  "Evil takes plain letters and RET in lists and views; C-c and a letter stay."
  (let ((everywhere (tiro-keys-test-bound tiro-command-map)))
    (dolist (map (list tiro-view-mode-map tiro-outline-mode-map tiro-saved-sessions-mode-map
                       tiro-saved-search-mode-map tiro-attached-mode-map tiro-form-mode-map))
      (dolist (command (tiro-keys-test-bound map))
        (should (or (memq command everywhere)
                    (memq command (tiro-keys-test-bound (lookup-key map (kbd "C-c"))))))))))

(ert-deftest tiro-keys-of-a-question-beat-those-of-a-modal-editor ()
  "Evil keeps its maps in `emulation-mode-map-alists'; here one takes every letter."
  (let ((greedy (make-sparse-keymap)))
    (dolist (key '("y" "a" "n" "r" "d" "RET" "TAB")) (define-key greedy (kbd key) #'ignore))
    (let ((emulation-mode-map-alists (list (list (cons t greedy)))))
      (tiro-testing-with-peer
        (tiro-ask "permission")
        (tiro-testing-wait-for "[y Allow once]")
        (with-current-buffer "*tiro*"
          (goto-char (point-max))
          (should (eq #'ignore (key-binding (kbd "y"))))
          (should (eq #'tiro-allow-once (key-binding (kbd "C-c C-y"))))
          (should (eq #'tiro-prompt-send (key-binding (kbd "C-c C-c"))))
          (tiro-next-attention)
          (call-interactively (key-binding (kbd "y"))))
        (tiro-testing-wait-idle)
        (should (string-search "-> allowed once" (tiro-testing-chat)))))))

;;;; By keys alone

(defun tiro-keys-test-press (keys)
  "Press KEYS, as `kbd' reads them, with the commands of Tiro behind C-c o."
  (tiro-testing-with-prefix (execute-kbd-macro (kbd keys))))

(defmacro tiro-keys-test-in-a-window (&rest body)
  "Run BODY with the windows that a user has at first."
  (declare (indent 0) (debug t))
  `(save-window-excursion
     (delete-other-windows)
     (switch-to-buffer (generate-new-buffer "notes"))
     ,@body))

(ert-deftest tiro-keys-carry-a-whole-talk ()
  "What a command asks in the minibuffer is answered there, as by a user."
  (tiro-testing-with-server
    (tiro-keys-test-in-a-window
      (tiro-testing-write "notes.txt" "first line\nsecond line\n")
      (tiro-keys-test-press "C-c o o")
      (should (equal "*tiro*" (buffer-name)))
      (tiro-keys-test-press "C-u C-c o + notes.txt RET")
      (tiro-keys-test-press "C-c o a hello RET")
      (tiro-testing-wait-idle)
      (should (string-search "You: hello\n  + notes.txt\n" (tiro-testing-chat)))
      (tiro-keys-test-press "slow SPC 20 RET")
      (tiro-testing-wait-for "word3")
      (tiro-keys-test-press "C-c o . and SPC more RET")
      (tiro-testing-go-on)
      (tiro-testing-wait-for "You said: and more")
      (tiro-testing-wait-idle)
      (tiro-keys-test-press "half M-p M-p M-n")
      (should (equal "slow 20" (tiro-transcript-draft)))
      (tiro-keys-test-press "M-n")
      (should (equal "half" (tiro-transcript-draft)))
      (tiro-keys-test-press "C-a C-k read SPC notes.txt RET")
      (tiro-testing-wait-idle)
      (dolist (key '("TAB" "<backtab>"))
        (goto-char (point-max))
        (tiro-keys-test-press key)
        (should (looking-at "\\* read_file notes\\.txt")))
      (tiro-keys-test-press "C-c o T C-a C-k About SPC quokkas RET")
      (should (string-search "About quokkas" (tiro-chat-header-line)))
      (tiro-keys-test-press "C-u C-c o S copy.json RET")
      (tiro-keys-test-press "C-c o x talk.json RET")
      (should (file-exists-p "copy.json"))
      (tiro-keys-test-press "C-c o N Next RET")
      (should (string-search "Next" (tiro-chat-header-line)))
      (tiro-keys-test-press "C-c o I talk.json RET")
      (should (string-search "\n\nI look.\n" (tiro-testing-chat)))
      (tiro-keys-test-press "C-c o f hello RET")
      (should (equal "*tiro search*" (buffer-name)))
      (tiro-keys-test-press "q C-c o v")
      (tiro-testing-wait "the answer" (lambda () (not (tiro-session-work tiro-session)))))))

(ert-deftest tiro-keys-reject-with-a-reason ()
  (tiro-testing-with-peer
    (tiro-keys-test-in-a-window
      (tiro-ask "permission")
      (tiro-testing-wait-for "[y Allow once]")
      (tiro-keys-test-press "C-u C-c o n not SPC now RET")
      (tiro-testing-wait-idle)
      (should (string-search "-> rejected: not now" (tiro-testing-chat)))
      (tiro-keys-test-press "C-c o ? C-g"))))

(ert-deftest tiro-loading-does-nothing ()
  "No process, no timer, no key, nothing that is only needed later."
  (with-temp-buffer
    (should (zerop (call-process
                    (expand-file-name invocation-name invocation-directory) nil t nil
                    "-Q" "--batch" "-L" (expand-file-name ".." tiro-testing-directory)
                    "--eval" (format "%S" '(setq before (list timer-list timer-idle-list)))
                    "-l" "tiro"
                    "--eval" (format "%S" '(princ (list (process-list)
                                                        (equal before
                                                               (list timer-list timer-idle-list))
                                                        (where-is-internal 'tiro global-map)
                                                        (lookup-key global-map (kbd "C-c o"))
                                                        (featurep 'transient)
                                                        (featurep 'tramp)
                                                        (featurep 'dired)))))))
    (should (string-suffix-p "(nil t nil nil nil nil nil)" (buffer-string)))))

(ert-deftest tiro-faces-follow-the-theme ()
  "Each inherits from a standard face, so light, dark and terminal are the user's."
  (dolist (face (face-list))
    (when (string-prefix-p "tiro-" (symbol-name face))
      (let ((spec (face-default-spec face)))
        (should (plist-get (cdr (assq t spec)) :inherit))
        (dolist (colour '(:foreground :background))
          (should-not (plist-get (cdr (assq t spec)) colour)))))))

(provide 'tiro-keys-test)
;;; tiro-keys-test.el ends here
