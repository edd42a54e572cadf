;;; tiro-question-test.el --- Tests of what any editor is asked  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defun tiro-question-test-press (text)
  "Press the line that holds TEXT in the chat."
  (with-current-buffer "*tiro*"
    (goto-char (point-min))
    (search-forward text)
    (push-button (1- (point)))))

(ert-deftest tiro-question-is-asked-and-answered-in-the-chat ()
  (tiro-testing-with-peer
    (tiro-ask "question Which one?")
    (tiro-testing-wait-for "Which one?\n[First]\n[Second]")
    (with-temp-buffer
      (tiro-next-attention)
      (should (looking-at "\\[First\\]")))
    (tiro-question-test-press "[Second]")
    (tiro-testing-wait-idle)
    (should (string-search "answer {\"title\": \"Second\"}" (tiro-testing-chat)))
    (should (string-search "Which one?\n\n-> Second\n" (tiro-testing-chat)))
    (should-not (string-search "[First]" (tiro-testing-chat)))))

(ert-deftest tiro-question-of-a-killed-chat-is-dismissed ()
  (tiro-testing-with-peer
    (tiro-ask "question Which one?")
    (tiro-testing-wait-for "[Second]")
    (kill-buffer "*tiro*")
    (tiro-testing-wait "the turn ends" (lambda () (not (tiro-session-turn tiro-session))))
    (should-not tiro-question--pending)))

(ert-deftest tiro-question-of-the-real-server-selects-an-agent ()
  "A command without its argument is asked for."
  (tiro-testing-with-server
    (let (result)
      (tiro-rpc-send (tiro-session-live) 'workspace/executeCommand
                     '(:command "tiro.selectAgent" :arguments [])
                     (lambda (given) (setq result given)) #'ignore)
      (tiro-testing-wait-for "[plan]")
      (tiro-question-test-press "[plan]")
      (tiro-testing-wait "the answer" (lambda () result))
      (should (equal "plan" (plist-get (plist-get result :agent) :name))))))

(ert-deftest tiro-question-document-is-shown-where-told ()
  (tiro-testing-with-peer
    (let ((file (tiro-testing-write "ä file.txt" "one\ntwo\n")))
      (tiro-testing-ask (concat "document " (tiro-rpc-uri file)))
      (should (string-search "answer {\"success\": true}" (tiro-testing-chat)))
      (with-selected-window (get-buffer-window (find-buffer-visiting file))
        (should (looking-at "two"))))
    (tiro-testing-ask "document https://example.org/")
    (tiro-testing-ask "document file:///ssh:nowhere.invalid:/etc/passwd")
    (should (= 2 (cl-count-if (lambda (line) (string-search "\"success\": false" line))
                              (split-string (tiro-testing-chat) "\n"))))))

(provide 'tiro-question-test)
;;; tiro-question-test.el ends here
