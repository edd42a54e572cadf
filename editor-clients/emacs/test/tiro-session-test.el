;;; tiro-session-test.el --- Tests of turns and of the server's life  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(ert-deftest tiro-session-second-question-is-refused ()
  "M6.5, B45: a second prompt while one runs is an error; nothing is queued or lost."
  (tiro-testing-with-peer
    (tiro-ask "permission")
    (tiro-testing-wait-for "asks to use")
    (with-current-buffer (tiro-chat-buffer)
      (goto-char (point-max))
      (insert "typed")
      (should-error (tiro-prompt-send) :type 'user-error)
      (should (equal (tiro-transcript-draft) "typed")))
    (should-error (tiro-ask "another") :type 'user-error)
    (tiro-testing-allow)
    (tiro-testing-wait-idle)
    (should-not (string-search "another" (tiro-testing-chat))))
  (tiro-testing-with-server
    (tiro-ask "slow 2000")
    (should (string-match-p "still answering"
                            (error-message-string
                             (should-error (tiro-ask "another") :type 'user-error))))
    (tiro-cancel)
    (tiro-testing-wait-idle)))

(ert-deftest tiro-session-view-of-before-a-turn-hides-no-answer ()
  "B11: what another editor did is told just before a prompt is sent; the old state
that comes after it neither ends the new turn nor wipes out its prompt."
  (tiro-testing-with-peer
    (tiro-testing-ask "hello")
    (let ((draws 0))
      (cl-letf* ((take (symbol-function 'tiro-session-take-view))
                 ((symbol-function 'tiro-session-take-view)
                  (lambda (view) (cl-incf draws)
                    (should-not (tiro-session-turn tiro-session))
                    (funcall take view))))
        (tiro-session-look-again nil "It was changed outside")
        (tiro-ask "permission")
        (tiro-testing-wait-for "[y Allow once]")
        (should (zerop draws))
        (should (string-search "You: permission" (tiro-testing-chat)))
        (tiro-testing-allow)
        (tiro-testing-wait-for "It was changed outside")
        (should (= 1 draws))))))

(ert-deftest tiro-session-events-of-another-turn-are-dropped ()
  "B62: nothing of an old turn shows."
  (tiro-testing-with-peer
    (tiro-testing-ask "stale")
    (should (string-search "fresh" (tiro-testing-chat)))
    (should-not (string-search "STALE" (tiro-testing-chat)))))

(ert-deftest tiro-session-dead-server-is-told-and-started-again ()
  "A dying server: one line with the end of its stderr; the next question restarts it."
  (tiro-testing-with-peer
    (tiro-ask "die")
    (tiro-testing-wait-for "The server ended (exit code 3): the disk is on fire")
    (should-not (tiro-session-turn tiro-session))
    (should (equal (tiro-chat-mode-line) ":stopped"))
    (tiro-testing-ask "hello")
    (should (string-search "The server was started again; session-1 goes on"
                           (tiro-testing-chat)))
    (should (string-search "You said: hello" (tiro-testing-chat)))))

(ert-deftest tiro-session-server-dying-while-asked-blocks-nothing ()
  (tiro-testing-with-peer
    (tiro-testing-ask "hello")
    (cl-letf (((symbol-function 'jsonrpc-async-request)
               (lambda (&rest _) (error "Process tiro not running"))))
      (tiro-ask "lost"))
    (should-not (tiro-session-turn tiro-session))
    (should (string-search "You: lost\n\nProcess tiro not running" (tiro-testing-chat)))
    (tiro-testing-ask "again")
    (should (string-search "You said: again" (tiro-testing-chat)))))

(ert-deftest tiro-session-failed-turn-is-told-once ()
  (tiro-testing-with-peer
    (tiro-testing-ask "fail")
    (should (string-search "You: fail\n\nThe provider refused\n" (tiro-testing-chat)))
    (should-not (tiro-session-turn tiro-session))
    (tiro-testing-ask "hello")
    (should (string-search "You said: hello" (tiro-testing-chat)))))

(ert-deftest tiro-session-progress-is-one-line ()
  "The load of a local model is shown, in a line that changes."
  (tiro-testing-with-peer
    (tiro-testing-ask "progress")
    (should (string-search "\nweights: done\n" (tiro-testing-chat)))
    (should-not (string-search "50%" (tiro-testing-chat)))))

(ert-deftest tiro-session-messages-and-changes-are-shown ()
  (tiro-testing-with-peer
    (tiro-testing-ask "message config.yaml:3 has no key \"modle\"")
    (should (string-search "\nconfig.yaml:3 has no key" (tiro-testing-chat)))
    (tiro-testing-ask "changed saveFailed")
    (should (string-search "cannot be saved; it goes on" (tiro-testing-chat)))
    (tiro-handle-notification nil 'tiro/session/changed :reason "saveFailed" :id nil
                              :why "No space left on device")
    (should (string-search "cannot be saved: No space left on device; it" (tiro-testing-chat)))
    (tiro-testing-ask "refused The memo cannot be used: it is empty")
    (should (string-search "\nThe memo cannot be used: it is empty\n" (tiro-testing-chat)))
    (should-not (string-search "left the window" (tiro-testing-chat)))))

(ert-deftest tiro-session-change-by-another-is-shown-when-the-turn-is-over ()
  "B11: what another process wrote is asked for, but not in the midst of an answer."
  (tiro-testing-with-peer
    (tiro-testing-ask "hello")
    (tiro-ask "changed changedOnDisk")
    (tiro-testing-wait-idle)
    ;; The stand-in's session is empty.
    (tiro-testing-wait "redrawn" (lambda ()
                                   (not (string-search "You: hello" (tiro-testing-chat)))))
    (should (string-search "was changed outside" (tiro-testing-chat)))))

(ert-deftest tiro-session-root-is-never-the-home-folder ()
  "Tools may read all of a root, so the home folder is none."
  (tiro-testing-call
   (lambda ()
     (should (equal (tiro-session-root) default-directory))
     (let ((default-directory (file-name-as-directory (getenv "HOME"))))
       (should-not (tiro-session-root)))
     (let ((default-directory "/")) (should-not (tiro-session-root)))
     (let ((default-directory "/ssh:nowhere:/tmp/")) (should-not (tiro-session-root))))))

(provide 'tiro-session-test)
;;; tiro-session-test.el ends here
