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

(ert-deftest tiro-keys-commands-are-all-tested ()
  "Each command of the key table is called by a test beside this one."
  (with-temp-buffer
    (dolist (file (directory-files tiro-testing-directory t "-test\\.el\\'"))
      (unless (string-suffix-p "tiro-keys-test.el" file) (insert-file-contents file)))
    (pcase-dolist (`(,_ . ,rows) tiro-keys-table)
      (pcase-dolist (`(,_ ,command ,_) rows)
        (goto-char (point-min))
        (should (re-search-forward (format "\\_<%s\\_>" command) nil t))))))

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
