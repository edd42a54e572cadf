;;; tiro-server-test.el --- Tests of looking at the server, and of the menu  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(ert-deftest tiro-server-doctor-shows-what-it-finds ()
  "It runs beside everything else, also where the server cannot start."
  (tiro-testing-with-program
    (tiro-doctor)
    (tiro-testing-wait "its words" (lambda ()
                                     (with-current-buffer "*tiro doctor*"
                                       (string-search "fake-model" (buffer-string)))))
    (tiro-testing-wait "its end" (lambda () (not (get-process "tiro-doctor"))))
    (should-not (string-search "\e[" (with-current-buffer "*tiro doctor*" (buffer-string))))
    (let ((tiro-server-command '("no-such-program" "serve")))
      (should (string-search "no-such-program"
                             (error-message-string
                              (should-error (tiro-doctor) :type 'user-error)))))))

(ert-deftest tiro-server-restart-goes-on-with-the-session ()
  (tiro-testing-with-server
    (tiro-restart)
    (should (tiro-session-running-p))
    (tiro-testing-ask "hello")
    (let ((id (tiro-session-id tiro-session))
          (process (tiro-rpc-process (tiro-session-connection tiro-session))))
      (tiro-restart)
      (should-not (process-live-p process))
      (should (equal id (tiro-session-id tiro-session))))
    (should (string-search "You said: hello" (tiro-testing-chat)))
    (tiro-testing-ask "goes on")
    (should (string-search "You said: goes on" (tiro-testing-chat)))))

(ert-deftest tiro-server-stderr-is-shown ()
  (tiro-testing-with-peer
    (tiro-ask "die")
    (tiro-testing-wait-for "the disk is on fire")
    (save-window-excursion
      (tiro-show-stderr)
      (should (string-search "warming up\nthe disk is on fire" (buffer-string))))))

(ert-deftest tiro-server-log-is-shown-where-it-is-kept ()
  (let ((tiro-log-size 100000))
    (tiro-testing-with-peer
      (should-error (tiro-show-log) :type 'user-error)
      (tiro-testing-ask "hello")
      (save-window-excursion
        (tiro-show-log)
        (should (string-search "tiro/turn/start" (buffer-string)))))))

(ert-deftest tiro-server-menu-has-every-command ()
  "All of the key table but the menu itself, loaded only when it is wanted."
  (require 'tiro-menu)
  (let (found)
    (cl-labels ((walk (layout)
                  (pcase layout
                    ((pred vectorp) (mapc #'walk (append layout nil)))
                    (`(,(pred integerp) ,_ ,(and (pred listp) fields))
                     (push (list (plist-get fields :key) (plist-get fields :command)) found))
                    ((pred proper-list-p) (mapc #'walk layout)))))
      (walk (get 'tiro-menu-transient 'transient--layout)))
    (let (known)
      (pcase-dolist (`(,_ . ,rows) tiro-keys-table)
        (pcase-dolist (`(,key ,command ,_) rows)
          (should (commandp command))
          (unless (eq command 'tiro-menu) (push (list key command) known))))
      (should (equal (sort known (lambda (a b) (string< (car a) (car b))))
                     (sort found (lambda (a b) (string< (car a) (car b)))))))))

(provide 'tiro-server-test)
;;; tiro-server-test.el ends here
