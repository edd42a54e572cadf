;;; tiro-rpc-test.el --- Tests of the connection  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(ert-deftest tiro-rpc-flood-is-complete-and-in-order ()
  "6,000 deltas around a request of the server: each one, in order."
  (tiro-testing-with-peer
    (tiro-testing-ask "flood 6000")
    (should (string-search (mapconcat #'number-to-string (number-sequence 0 5999) " ")
                           (with-current-buffer "*tiro*"
                             (filter-buffer-substring (point-min) (point-max)))))))

(ert-deftest tiro-rpc-nothing-is-stranded-behind-an-answer ()
  "A notification in the same write as the answer we wait for is handled too.
The `jsonrpc-request' of Emacs 28 would leave it until more arrives."
  (tiro-testing-with-peer
    (tiro)
    (tiro-session-call 'tiro/session/getId)
    (tiro-testing-wait-for "right behind the answer")))

(ert-deftest tiro-rpc-unknown-request-is-answered ()
  "What the server may ask tomorrow gets an error, not silence."
  (tiro-testing-with-peer
    (tiro-testing-ask "unknown")
    (should (string-search "-32601" (tiro-testing-chat)))))

(ert-deftest tiro-rpc-text-that-json-cannot-carry-is-mended ()
  "B12: raw bytes and lone surrogates become U+FFFD, the rest stays."
  (tiro-testing-with-peer
    (tiro-testing-ask (concat "a" (string #x3fff80) "b" (string #xd83d) "c😀日本"))
    (should (string-search "a\N{U+FFFD}b\N{U+FFFD}c😀日本" (tiro-testing-chat)))))

(ert-deftest tiro-rpc-clean-keeps-what-is-clean ()
  (let ((text "plain ü 😀\n"))
    (should (eq text (tiro-rpc-clean text)))
    (should (equal `(:a [,text ,"x"] :b 3) (tiro-rpc-clean `(:a [,text ,"x"] :b 3))))
    (should (equal "\N{U+FFFD}" (tiro-rpc-clean (unibyte-string 200))))))

(ert-deftest tiro-rpc-missing-server-is-one-clear-line ()
  (tiro-testing-call
   (lambda ()
     (let* ((tiro-server-command '("tiro-that-is-not-here" "serve"))
            (text (error-message-string (should-error (tiro-ask "hi") :type 'user-error))))
       (should (string-match-p "no program .tiro-that-is-not-here.*tiro-server-command" text))))))

(ert-deftest tiro-rpc-server-that-cannot-start-says-why ()
  (tiro-testing-call
   (lambda ()
     (let* ((tiro-server-command
             '("sh" "-c" "echo No module named tiro >&2; exit 1"))
            (text (error-message-string (should-error (tiro-ask "hi") :type 'user-error))))
       (should (string-search "did not start: No module named tiro" text))
       (should-not (tiro-session-running-p))))))

(ert-deftest tiro-rpc-positions-follow-the-agreed-encoding ()
  (with-temp-buffer
    (insert "one\nab😀cd")
    (let ((connection (make-instance 'tiro-rpc-connection :name "none"
                                     :process (start-process "none" nil "true"))))
      (setf (tiro-rpc-encoding connection) "utf-32")
      (should (equal (tiro-rpc-position connection (1- (point))) '(:line 1 :character 4)))
      (setf (tiro-rpc-encoding connection) "utf-16")
      (should (equal (tiro-rpc-position connection (1- (point))) '(:line 1 :character 5))))))

(ert-deftest tiro-rpc-uri-escapes ()
  (should (equal (tiro-rpc-uri "/a b/ü%.py") "file:///a%20b/%C3%BC%25.py")))

(provide 'tiro-rpc-test)
;;; tiro-rpc-test.el ends here
