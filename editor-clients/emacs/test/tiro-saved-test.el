;;; tiro-saved-test.el --- Tests of saved sessions  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(ert-deftest tiro-save-session-names-the-file ()
  "An older copy is written over, what is somebody else's is not; neither is asked about."
  (tiro-testing-with-server
    (tiro-testing-ask "hello")
    (should (string-match-p "saved .*/sessions/session-.*\\.json, [0-9]+ bytes"
                            (tiro-testing-said #'tiro-save-session)))
    (let ((copy (expand-file-name "copy.json")) (path (tiro-testing-path)))
      (cl-letf (((symbol-function 'read-file-name) (lambda (&rest _) copy)))
        (call-interactively #'tiro-save-session-as)
        (should (file-exists-p copy))
        (should (equal path (tiro-testing-path)))
        (call-interactively #'tiro-save-session-as))
      (write-region "mine" nil "other.json" nil 'silent)
      (should (string-search "holds something else"
                             (error-message-string
                              (should-error (tiro-save-session-as "other.json") :type 'user-error))))
      (should (equal "mine" (with-temp-buffer (insert-file-contents "other.json")
                                              (buffer-string)))))))

(ert-deftest tiro-session-is-renamed-and-found-by-its-title ()
  (tiro-testing-with-server
    (tiro-testing-ask "hello")
    (tiro-rename-session "About quokkas")
    (should (string-search "About quokkas" (tiro-chat-header-line)))
    (should-error (tiro-rename-session " ") :type 'user-error)
    (tiro-clear-session)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt table &rest _)
                 (car (all-completions "About" table)))))
      (call-interactively #'tiro-switch-session))
    (should (string-search "You: hello" (tiro-testing-chat)))))

(ert-deftest tiro-files-on-other-machines-are-refused ()
  "A session is never written to or read from elsewhere, and nothing waits for that."
  (tiro-testing-with-server
    (dolist (command '(tiro-export tiro-import tiro-save-session))
      (should (string-search "this machine only"
                             (error-message-string
                              (should-error (funcall command "/ssh:nowhere.invalid:/tmp/a.md")
                                            :type 'user-error)))))))

(ert-deftest tiro-load-session-shows-the-whole-talk ()
  "B63: text, tool uses and results are back, and the talk goes on."
  (tiro-testing-with-server
    (tiro-testing-write "notes.txt" "first line\nsecond line\n")
    (tiro-testing-ask "read notes.txt")
    (let ((before (tiro-testing-chat)) (id (tiro-session-id tiro-session)))
      (tiro-clear-session)
      (tiro-testing-ask "something else")
      (tiro-load-session id)
      (should (equal (string-trim-left before "\\(Type a question.*\n\\)?\n*")
                     (string-trim-left (tiro-testing-chat) "\n*")))
      (should (equal id (tiro-session-id tiro-session))))
    (tiro-testing-ask "goes on")
    (should (string-search "You said: goes on" (tiro-testing-chat)))
    (should-error (tiro-load-session "session-of-nobody") :type 'user-error)
    (should (string-search "goes on" (tiro-testing-chat)))))

(ert-deftest tiro-saved-sessions-count-what-left-the-window ()
  "A long talk is not listed as the few messages of its window."
  (should (= (tiro-saved--count '(:messages 48 :archived 1950)) 1998)))

(ert-deftest tiro-load-session-shows-odd-messages ()
  "Neighbours do not run together, an unknown block shows, a use without a result too."
  (tiro-testing-with-server
    (dolist (content '("one" "two"
                       [(:type "thinking" :thinking "hm") (:type "strange" :x 1)
                        (:type "tool_use" :id "u1" :name "glob" :input (:pattern "*.el"))
                        (:type "tool_use" :id "u2" :name "grep" :input (:pattern "x"))]))
      (tiro-session-call 'tiro/session/addMessage `(:role "assistant" :content ,content)))
    (tiro-session-call 'tiro/session/addToolResult
                       '(:toolUseId "u1" :content "no such folder" :isError t))
    (tiro-session-refresh)
    (should (string-prefix-p (concat "one\n\ntwo\n\n* thinking\nhm\n\n[strange]\n\n"
                                     "* glob *.el: failed: no such folder\n* grep x: interrupted")
                             (tiro-testing-chat)))))

(ert-deftest tiro-search-finds-and-loads ()
  "P12: in saved sessions and in the current one, which is not loaded again."
  (tiro-testing-with-server
    (tiro-testing-ask "the first quokka")
    (let ((first (tiro-session-id tiro-session)))
      (tiro-clear-session)
      (tiro-testing-ask "another QUOKKA")
      (tiro-search-sessions "quokka first")
      (with-current-buffer "*tiro search*"
        (goto-char (point-min))
        (search-forward "the first quokka")
        (tiro-saved-load-hit))
      (should (equal first (tiro-session-id tiro-session)))
      (tiro-search-sessions "quokka")
      (with-current-buffer "*tiro search*"
        (should (= 4 (length tabulated-list-entries))))
      (should-error (tiro-search-sessions "wombat") :type 'user-error)
      (should-error (tiro-search-sessions " ") :type 'user-error))))

(ert-deftest tiro-search-goes-to-the-message ()
  "Also to one that stands on an earlier page or has left the window."
  (tiro-testing-with-server
    (dotimes (n 250)
      (tiro-session-call 'tiro/session/addMessage
                         `(:role "user" :content ,(format "puffin %d" n))))
    (tiro-session-call 'tiro/session/configure '(:maxHistory 5))
    (tiro-session-refresh)
    (dolist (n '(249 246 200 20))
      (tiro-search-sessions (format "puffin %d" n))
      (with-current-buffer "*tiro search*"
        (goto-char (point-min))
        (tiro-saved-load-hit))
      (with-current-buffer "*tiro*"
        (should (= (1+ n) (tiro-message-at-point)))
        (should (looking-at (format "You: puffin %d\\b" n)))))))

(ert-deftest tiro-export-and-import ()
  "The ending says the format; what comes back is a new session."
  (tiro-testing-with-server
    (tiro-testing-ask "keep this")
    (let ((id (tiro-session-id tiro-session)) (path (expand-file-name "talk.yaml")))
      (should (string-search "exported to" (tiro-testing-said (lambda () (tiro-export "talk.yaml")))))
      (tiro-export "talk.md")
      (should (string-search "## User" (with-temp-buffer (insert-file-contents "talk.md")
                                                         (buffer-string))))
      (tiro-rename-session "a title")
      (should (string-search "nanobot has no place for: the title"
                             (tiro-testing-said (lambda () (tiro-export "t.txt" "nanobot")))))
      (should-error (tiro-export "talk.doc") :type 'user-error)
      (should-error (tiro-export "talk") :type 'user-error)
      (should-error (tiro-import "talk.md") :type 'user-error)
      (should (string-search (format "imported as %s-01" id)
                             (tiro-testing-said (lambda () (tiro-import path)))))
      (should (string-search "You said: keep this" (tiro-testing-chat))))))

(ert-deftest tiro-load-session-offers-the-newest-first ()
  "What RET loads is not the session that is there already."
  (tiro-testing-with-server
    (tiro-testing-ask "the first")
    (tiro-clear-session)
    (tiro-testing-ask "the second")
    (tiro-save-session)
    (let (offered annotated)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (prompt table &rest _)
                   (should (equal prompt "Load session (default the first): "))
                   (let* ((metadata (completion-metadata "" table nil))
                          (annotate (completion-metadata-get metadata 'annotation-function)))
                     (should (eq (completion-metadata-get metadata 'display-sort-function)
                                 #'identity))
                     (setq offered (all-completions "" table)
                           annotated (funcall annotate (car offered)))
                     (car offered)))))
        (call-interactively #'tiro-load-session))
      (should (string-search "the second" (car offered)))
      (should (string-search "the first" (cadr offered)))
      (should (string-match-p "[0-9]+ \\(?:s\\|min\\) ago, 2 messages" annotated))
      (should (string-search "You: the second" (tiro-testing-chat))))))

(ert-deftest tiro-long-session-is-shown-in-pages ()
  "The newest 100 messages are shown, the earlier ones on demand."
  (tiro-testing-with-server
    (dotimes (n 130)
      (tiro-session-call 'tiro/session/addMessage
                         `(:role "user" :content ,(format "message-%d-" n))))
    (tiro-session-refresh)
    (should (string-search "message-129-" (tiro-testing-chat)))
    (should-not (string-search "message-29-" (tiro-testing-chat)))
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "[Earlier messages]")
      (push-button (1- (point)))
      (should (looking-at "You: message-30-"))
      (should (= 31 (tiro-message-at-point)))
      (search-backward "message-5-")
      (should (= 6 (tiro-message-at-point))))
    (let ((chat (tiro-testing-chat)))
      (should-not (string-search "[Earlier messages]" chat))
      (dotimes (n 130)
        (should (string-search (format "message-%d-" n) chat)))
      (should (< (string-search "message-29-" chat) (string-search "message-30-" chat))))))

(ert-deftest tiro-list-sessions-loads-and-deletes ()
  (tiro-testing-with-server
    (tiro-testing-ask "the first")
    (tiro-clear-session)
    (tiro-testing-ask "the second")
    (tiro-list-sessions)
    (with-current-buffer "*tiro sessions*"
      (goto-char (point-min))
      (search-forward "the first")
      (tiro-saved-load))
    (should (string-search "You: the first" (tiro-testing-chat)))
    (with-current-buffer "*tiro sessions*"
      (goto-char (point-min))
      (search-forward "the second")
      (call-interactively #'tiro-saved-delete)
      (should-not (string-search "the second" (buffer-string)))
      (should (= 1 (length (tiro-testing-sessions))))
      (cl-letf (((symbol-function 'completing-read) (lambda (&rest given) (nth 6 given))))
        (call-interactively #'tiro-restore-session))
      (should (string-search "the second" (buffer-string)))
      (goto-char (point-min))
      (search-forward "the second")
      (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "another title")))
        (call-interactively #'tiro-saved-rename))
      (should (string-search "another title" (buffer-string)))
      (goto-char (point-min))
      (search-forward "another title")
      (tiro-saved-rename " ")
      (goto-char (point-min))
      (search-forward "the second")
      (cl-letf (((symbol-function 'yes-or-no-p) #'always)) (tiro-saved-delete t))
      (should-error (call-interactively #'tiro-restore-session) :type 'user-error))
    (should (= 1 (length (tiro-testing-sessions))))))

(provide 'tiro-saved-test)
;;; tiro-saved-test.el ends here
