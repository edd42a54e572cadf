;;; tiro-agent-test.el --- Tests of choosing agent and model  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(ert-deftest tiro-agents-are-shown-and-selected ()
  "M6.3 and M6.4."
  (tiro-testing-with-server
    (should (string-match-p "no agent is selected; the default, build, will be used"
                            (tiro-testing-said #'tiro-show-current-agent)))
    (tiro-testing-wait "the names of who answers"
                       (lambda () (string-prefix-p " build · fake/fake-model · "
                                                   (tiro-chat-header-line))))
    (let (offered)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt table &rest _) (setq offered (all-completions "" table))
                   "plan")))
        (call-interactively #'tiro-select-agent))
      (should (member "build" offered)))
    (should (string-prefix-p " plan · " (tiro-chat-header-line)))
    (should (string-match-p "agent plan" (tiro-testing-said #'tiro-show-current-agent)))
    (should-error (tiro-select-agent "nobody") :type 'user-error)))

(ert-deftest tiro-models-are-selected ()
  (tiro-testing-with-server
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt table &rest _)
                 (should (member "fake/fake-model" (all-completions "" table)))
                 "fake/fake-model")))
      (should (string-search "model fake/fake-model"
                             (tiro-testing-said
                              (lambda () (call-interactively #'tiro-select-model))))))
    (should (string-search "fake/fake-model" (tiro-chat-header-line)))
    (should-error (tiro-select-model "nobody/none") :type 'user-error)))

(ert-deftest tiro-models-change-in-mid-talk ()
  "B61: the new model gets the whole talk with its tool uses; a change while one
answers takes effect with the next question."
  (tiro-testing-with-server
    (tiro-testing-write "notes.txt" "first line\n")
    (tiro-testing-ask "read notes.txt")
    (tiro-select-model "fake/fake-two")
    (tiro-testing-ask "and now")
    (should (string-search "fake/fake-two" (tiro-chat-header-line)))
    (tiro-ask "slow 30")
    (tiro-testing-wait-for "word3")
    (tiro-select-model "fake/fake-model")
    (tiro-testing-go-on)
    (tiro-testing-wait-idle)
    (should (string-search "word29" (tiro-testing-chat)))
    (tiro-explain)
    (should (string-prefix-p "To fake/fake-model" (with-current-buffer "*tiro request*"
                                                    (buffer-string))))
    (tiro-testing-ask "at last")
    (should (string-search "You said: at last" (tiro-testing-chat)))))

(provide 'tiro-agent-test)
;;; tiro-agent-test.el ends here
