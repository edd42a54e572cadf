;;; tiro-permission-test.el --- Tests of questions about tools  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)

(defmacro tiro-permission-test-with (&rest body)
  "Run BODY while the stand-in server waits for an answer."
  (declare (indent 0) (debug t))
  `(tiro-testing-with-peer
     (tiro-ask "permission")
     (tiro-testing-wait-for "[y Allow once]")
     ,@body))

(defun tiro-permission-test-answer ()
  "Return the answer that the server got."
  (tiro-testing-wait-idle)
  (let ((chat (tiro-testing-chat)))
    (and (string-match "answer \\({.*}\\)" chat)
         (json-parse-string (match-string 1 chat) :object-type 'plist))))

(ert-deftest tiro-permission-shows-what-would-run ()
  (tiro-permission-test-with
    (should (string-search "Tiro (build) asks to use shell (execute; rule bash: ask)
ls -la
Always adds bash: ls -la allow
"
                           (tiro-testing-chat)))
    (should (string-prefix-p ":approve?" (tiro-chat-mode-line)))))

(ert-deftest tiro-permission-begins-with-its-own-words ()
  "What stands above it need not be on the screen for it to be seen."
  (tiro-permission-test-with
    (with-current-buffer "*tiro*"
      (goto-char (tiro-permission--start
                  (tiro-transcript-place (cons 'permission (caar tiro-permission-pending)))))
      (should (looking-at "Tiro (build) asks")))))

(ert-deftest tiro-permission-commands-answer ()
  (pcase-dolist (`(,command ,decision ,text)
                 '((tiro-allow-once "once" "-> allowed once")
                   (tiro-allow-always "always" "-> allowed for this session")
                   (tiro-reject "reject" "-> rejected")))
    (tiro-permission-test-with
      (if (eq command 'tiro-reject) (tiro-reject) (tiro-testing-allow command))
      (should (equal (plist-get (tiro-permission-test-answer) :decision) decision))
      (should (string-search text (tiro-testing-chat)))
      (should-not (string-search "[y Allow once]" (tiro-testing-chat)))
      (should-error (tiro-allow-once) :type 'user-error))))

(ert-deftest tiro-permission-unseen-question-is-shown-before-it-is-allowed ()
  "Nobody allows what is on no screen; whoever went away again has to look again."
  (dolist (command '(tiro-allow-once tiro-allow-always))
    (tiro-permission-test-with
      (save-window-excursion
        (delete-other-windows)
        (dotimes (_ 2)
          (switch-to-buffer (get-buffer-create "mine"))
          (should (equal (tiro-testing-said command)
                         "Tiro: shell ls -la is shown; press again to allow"))
          (should tiro-permission-pending)
          (should (equal "*tiro*" (buffer-name (window-buffer))))
          (should (looking-at "\\[y Allow once")))
        (goto-char (point-min)) ; the question may be out of the window now
        (funcall command)
        (should tiro-permission-pending)
        (funcall command)
        (should-not tiro-permission-pending))
      (tiro-testing-wait-idle))))

(ert-deftest tiro-permission-unseen-question-is-rejected-at-once ()
  (tiro-permission-test-with
    (save-window-excursion
      (delete-other-windows)
      (switch-to-buffer (get-buffer-create "mine"))
      (tiro-reject)
      (should (equal "mine" (buffer-name (window-buffer)))))
    (should (equal (plist-get (tiro-permission-test-answer) :decision) "reject"))))

(ert-deftest tiro-permission-subject-is-a-short-line ()
  (pcase-dolist (`(,input ,subject)
                 `(((:path "src/a.py" :content "b") "tool src/a.py")
                   ((:command "\nmake\nrm x") "tool make…")
                   ((:command ,(make-string 99 ?x)) ,(concat "tool " (make-string 59 ?x) "…"))
                   ((:n 1) "tool")))
    (should (equal subject (tiro-permission--subject (list :name "tool" :input input))))))

(ert-deftest tiro-permission-rejection-carries-a-reason ()
  (tiro-permission-test-with
    (tiro-reject "not now")
    (should (equal (tiro-permission-test-answer) '(:decision "reject" :message "not now")))))

(ert-deftest tiro-permission-rejected-with-a-reason-in-place ()
  "r asks why; it is the user who pressed it, so the minibuffer may be used."
  (tiro-permission-test-with
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "[r Rej")
      (cl-letf (((symbol-function 'read-string) (lambda (&rest _) " too dangerous ")))
        (call-interactively (key-binding (kbd "r")))))
    (should (equal (tiro-permission-test-answer)
                   '(:decision "reject" :message "too dangerous")))
    (should (string-search "-> rejected: too dangerous" (tiro-testing-chat)))))

(ert-deftest tiro-permission-next-attention-goes-to-the-question ()
  "From anywhere, also to a form that waits; it says so when nothing does."
  (tiro-permission-test-with
    (with-temp-buffer
      (tiro-next-attention)
      (should (equal "*tiro*" (buffer-name)))
      (should (looking-at "\\[y Allow once")))
    (with-current-buffer "*tiro*" (call-interactively (key-binding (kbd "n"))))
    (tiro-testing-wait-idle)
    (should-error (tiro-next-attention) :type 'user-error)
    (save-window-excursion (tiro-compose))
    (with-temp-buffer
      (tiro-next-attention)
      (should (equal "*tiro compose*" (buffer-name))))))

(ert-deftest tiro-permission-letters-act-on-the-question-only ()
  "A y typed into the prompt allows nothing; on the question it does."
  (tiro-permission-test-with
    (with-current-buffer "*tiro*"
      (goto-char (point-max))
      (should (eq (key-binding (kbd "y")) #'self-insert-command))
      (goto-char (point-min))
      (search-forward "[y Allow")
      (call-interactively (key-binding (kbd "y"))))
    (should (equal (plist-get (tiro-permission-test-answer) :decision) "once"))))

(ert-deftest tiro-permission-says-which-keys-answer-from-here ()
  "Those of the user's own prefix, or the chat's where there is none; gone with the question."
  (tiro-permission-test-with
    (should (string-search "\nFrom here: C-c C-y allow · M-x tiro-allow-always always · C-c C-n reject"
                           (tiro-testing-chat)))
    (tiro-reject)
    (should-not (string-search "From here" (tiro-testing-chat)))
    (tiro-testing-wait-idle))
  (tiro-testing-with-prefix
    (tiro-permission-test-with
      (should (string-search
               "\nFrom here: C-c o y allow · C-c o Y always · C-c o n reject · C-c o j go there\n"
               (tiro-testing-chat)))
      (tiro-reject)
      (tiro-testing-wait-idle))))

(ert-deftest tiro-permission-refused-prompt-says-what-waits ()
  "It is the user's turn, so the advice is to answer and not to cancel."
  (tiro-permission-test-with
    (with-current-buffer "*tiro*"
      (goto-char (point-max))
      (dolist (typed '("" "y"))
        (insert typed)
        (should (string-match-p "waits for your answer: .* allows, .* rejects, .* goes to"
                                (error-message-string
                                 (should-error (tiro-prompt-send) :type 'user-error)))))
      (should (equal "y" (tiro-transcript-draft))))
    (tiro-reject)
    (tiro-testing-wait-idle)))

(ert-deftest tiro-permission-answered-window-follows-again ()
  "Whoever went to the question is back in the prompt; whoever reads back stays there."
  (tiro-testing-with-peer
    (tiro-testing-ask "hello")
    (tiro-ask "diff 30")
    (tiro-testing-wait-for "[y Allow once]")
    (save-window-excursion
      (delete-other-windows)
      (switch-to-buffer "*tiro*")
      (let ((reading (split-window)))
        (set-window-point reading 3)
        (tiro-next-attention)
        (call-interactively (key-binding (kbd "n")))
        (should (= (point) (window-point) (point-max)))
        (should (= 3 (window-point reading)))))
    (tiro-testing-wait-idle)))

(ert-deftest tiro-permission-return-presses-the-label-at-point ()
  (tiro-permission-test-with
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "[n Rej")
      (call-interactively (key-binding (kbd "RET"))))
    (should (equal (plist-get (tiro-permission-test-answer) :decision) "reject"))))

(ert-deftest tiro-permission-killed-chat-rejects ()
  "An answer that nobody can give any more is a rejection; the turn does not hang."
  (tiro-permission-test-with
    (kill-buffer "*tiro*")
    (tiro-testing-wait "the turn ends" (lambda () (not (tiro-session-turn tiro-session))))
    (should-not tiro-permission-pending)))

(ert-deftest tiro-permission-cancel-rejects-and-ends-the-turn ()
  "The cancel is sent before the rejection, or the model would still answer to that."
  (tiro-permission-test-with
    (let (sent)
      (cl-letf* ((send (symbol-function 'jsonrpc-connection-send))
                 ((symbol-function 'jsonrpc-connection-send)
                  (lambda (&rest args) (push (or (plist-get (cdr args) :method) 'reply) sent)
                    (apply send args))))
        (tiro-cancel))
      (should (equal sent '(reply tiro/turn/cancel))))
    (should (equal (plist-get (tiro-permission-test-answer) :decision) "reject"))))

(ert-deftest tiro-permission-of-a-turn-that-is-not-known-is-rejected-all-the-same ()
  (tiro-permission-test-with
    (setf (tiro-session-turn tiro-session) nil)
    (should-error (tiro-cancel) :type 'user-error)
    (should-not tiro-permission-pending)))

(ert-deftest tiro-permission-dead-server-leaves-no-question ()
  (tiro-permission-test-with
    (signal-process (tiro-rpc-process (tiro-session-connection tiro-session)) 'SIGKILL)
    (tiro-testing-wait-for "The server ended")
    (should-not tiro-permission-pending)
    (should (equal (tiro-chat-mode-line) ":stopped"))))

(ert-deftest tiro-permission-shows-a-diff-in-colours ()
  (tiro-testing-with-peer
    (tiro-ask "diff 1")
    (tiro-testing-wait-for "[y Allow once]")
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "\n--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+line 0\n[y Allow")
      (search-backward "+line 0")
      (should (eq (get-text-property (point) 'face) 'tiro-added))
      (search-backward "-old")
      (should (eq (get-text-property (point) 'face) 'tiro-removed)))
    (tiro-reject)
    (tiro-testing-wait-idle)
    (should-error (tiro-show-diff) :type 'user-error)))

(ert-deftest tiro-permission-shows-a-long-diff-on-demand ()
  "The chat shows its beginning, and `d' all of it."
  (tiro-testing-with-peer
    (tiro-ask "diff 100")
    (tiro-testing-wait-for "[y Allow once]")
    (should (string-search "+line 10\n" (tiro-testing-chat)))
    (should-not (string-search "+line 99" (tiro-testing-chat)))
    (should (string-search "more lines: d shows all" (tiro-testing-chat)))
    (with-current-buffer "*tiro*"
      (goto-char (point-min))
      (search-forward "[y Allow")
      (call-interactively (key-binding (kbd "d"))))
    (with-current-buffer "*tiro diff*"
      (should (derived-mode-p 'diff-mode))
      (should buffer-read-only)
      (should (string-search "+line 99\n" (buffer-string)))
      (should (string-search "C-c C-y allow" header-line-format)))
    (tiro-reject)
    (tiro-testing-wait-idle)))

(ert-deftest tiro-permission-preview-gives-its-window-back ()
  "Whoever looked at the diff beside a file sees the answer there, not the old diff."
  (tiro-testing-with-peer
    (tiro-ask "diff 100")
    (tiro-testing-wait-for "[y Allow once]")
    (save-window-excursion
      (delete-other-windows)
      (switch-to-buffer (get-buffer-create "mine"))
      (let ((window (tiro-chat-show)))
        (set-window-point window (with-current-buffer "*tiro*" (point-max)))
        (tiro-show-diff)
        (should (equal "*tiro diff*" (buffer-name (window-buffer window))))
        (tiro-allow-once) ; it is the question's preview that is seen
        (tiro-testing-wait-idle)
        (should (equal "*tiro*" (buffer-name (window-buffer window))))
        (should (= (window-point window) (with-current-buffer "*tiro*" (point-max))))
        (should (equal "mine" (buffer-name)))))))

(provide 'tiro-permission-test)
;;; tiro-permission-test.el ends here
