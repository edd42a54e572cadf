;;; tiro-history-test.el --- Tests of rewind, edit and retry  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defun tiro-history-test-at (text)
  "Put point on TEXT in the chat."
  (set-buffer "*tiro*")
  (goto-char (point-min))
  (search-forward text)
  (backward-char))

(defun tiro-history-test-seqs ()
  "Return the seqs of the window's messages."
  (mapcar (lambda (message) (plist-get message :seq))
          (plist-get (tiro-session-call 'tiro/session/get) :messages)))

(ert-deftest tiro-history-rewind-says-what-goes-and-asks ()
  "What comes after the message at point goes, tool results with their uses."
  (tiro-testing-with-server
    (tiro-testing-write "notes.txt" "first line\n")
    (tiro-testing-ask "hello")
    (tiro-testing-ask "read notes.txt")
    (should (equal '(1 2 3 4 5 6) (tiro-history-test-seqs)))
    (save-current-buffer
      (tiro-history-test-at "You said: hello")
      (let (asked)
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (prompt) (setq asked prompt) nil)))
          (tiro-rewind)
          (should (equal asked (concat "Take back 1 question, 2 answers, 1 tool result, from "
                                       "“read notes.txt” (what tools did stays done)? "))))
        (should (string-search "read_file" (tiro-testing-chat)))
        (cl-letf (((symbol-function 'y-or-n-p) #'always)) (tiro-rewind)))
      (should (equal '(1 2) (tiro-history-test-seqs)))
      (should-not (string-search "read_file" (tiro-testing-chat)))
      (should (equal "read notes.txt" (tiro-transcript-draft)))
      (tiro-history-test-at "You said: hello")
      (should-error (tiro-rewind) :type 'user-error))
    (tiro-testing-ask "goes on")
    (should (equal '(1 2 7 8) (tiro-history-test-seqs)))))

(ert-deftest tiro-history-rewind-to-a-tool-use-counts-its-group ()
  "What is asked is what happens: a tool use goes with its results."
  (tiro-testing-with-server
    (tiro-testing-write "notes.txt" "first line\n")
    (tiro-testing-ask "read notes.txt")
    (save-current-buffer
      (tiro-history-test-at "* read_file")
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (prompt)
                   (string-prefix-p "Take back 2 answers, 1 tool result, from " prompt))))
        (tiro-rewind)))
    (should (equal '(1) (tiro-history-test-seqs)))))

(ert-deftest tiro-history-message-is-edited ()
  "The new wording is sent from then on, what was attached stays."
  (tiro-testing-with-server
    (tiro-ask "what is it" '((:kind "text" :text "an attached text")))
    (tiro-testing-wait-idle)
    (save-current-buffer
      (tiro-history-test-at "You: what is it")
      (tiro-edit-message))
    (with-current-buffer "*tiro message*"
      (let ((places (alist-get 'text tiro-form--fields)))
        (should (equal "what is it" (buffer-substring (car places) (cdr places))))
        (goto-char (cdr places))
        (insert " not"))
      (tiro-form-apply))
    (should (string-search "You: what is it not\n  + text" (tiro-testing-chat)))
    (with-current-buffer "*tiro*" (should (looking-at "You: what is it not")))
    (tiro-explain)
    (should (string-search "an attached text"
                           (with-current-buffer "*tiro request*" (buffer-string))))))

(ert-deftest tiro-history-message-with-a-tool-use-is-not-edited ()
  (tiro-testing-with-server
    (tiro-testing-write "notes.txt" "first line\n")
    (tiro-testing-ask "read notes.txt")
    (save-current-buffer
      (tiro-history-test-at "* read_file")
      (should (string-search "tool_use" (error-message-string
                                         (should-error (tiro-edit-message) :type 'user-error))))
      (goto-char (point-max))
      (should-error (tiro-edit-message) :type 'user-error))))

(ert-deftest tiro-history-retry-asks-the-same-again ()
  (tiro-testing-with-server
    (should-error (tiro-retry) :type 'user-error)
    (tiro-testing-ask "before")
    (tiro-ask "break" '((:kind "text" :text "attached")))
    (tiro-testing-wait-idle)
    (tiro-retry)
    (should-error (tiro-retry) :type 'user-error)
    (tiro-testing-wait-idle)
    (should (equal '(1 2 5 6) (tiro-history-test-seqs)))
    (should (string-search "You: break\n  + text" (tiro-testing-chat)))
    (should (string-search "You said: before" (tiro-testing-chat)))))

(defconst tiro-history-test-image
  '(:type "image" :source (:type "base64" :media_type "image/png" :data "iVBORw0KGgo="))
  "A picture in the form of a message.")

(defun tiro-history-test-asked ()
  "Return the content of the last question."
  (plist-get (car (last (seq-filter (lambda (message) (equal "user" (plist-get message :role)))
                                    (tiro-history--window))))
             :content))

(ert-deftest tiro-history-a-picture-goes-along-again ()
  "A question with a picture is asked again, and edited, with its picture."
  (tiro-testing-with-server
    (tiro-session-ask "what is it" '((:kind "text" :text "beside it")) (list tiro-history-test-image))
    (tiro-testing-wait-idle)
    (should (string-search "You: what is it\n[image]\n  + text" (tiro-testing-chat)))
    (let ((asked (tiro-history-test-asked)))
      (should (seq-contains-p asked tiro-history-test-image))
      (tiro-retry)
      (tiro-testing-wait-idle)
      (should (equal asked (tiro-history-test-asked)))
      (save-current-buffer
        (tiro-history-test-at "You: what is it")
        (tiro-edit-message))
      (with-current-buffer "*tiro message*"
        (let ((places (alist-get 'text tiro-form--fields)))
          (should (equal "what is it" (buffer-substring (car places) (cdr places))))
          (goto-char (cdr places))
          (insert " not"))
        (tiro-form-apply))
      (should (equal (tiro-history-test-asked)
                     (vconcat '((:type "text" :text "what is it not")) (seq-drop asked 1)))))))

(ert-deftest tiro-history-steered-text-is-a-message-of-its-own ()
  "Point on what was said to the running answer finds that message."
  (tiro-testing-with-server
    (tiro-ask "slow 60")
    (tiro-testing-wait-for "word5")
    (tiro-steer "and in German")
    (tiro-testing-go-on)
    (tiro-testing-wait-idle)
    (save-current-buffer
      (tiro-history-test-at "You: and in German")
      (let ((streamed (tiro-message-at-point)))
        (tiro-session-refresh)
        (tiro-history-test-at "You: and in German")
        (should (= streamed (tiro-message-at-point)))))))

(provide 'tiro-history-test)
;;; tiro-history-test.el ends here
