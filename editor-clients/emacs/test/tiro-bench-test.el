;;; tiro-bench-test.el --- How long Emacs stalls with a very long session  -*- lexical-binding: t; -*-

;;; Commentary:

;; Figures, printed and never failed by time: of a session of 10,000 messages
;; the newest page is shown, then 10,000 deltas stream into a chat that holds
;; all of them.  What is asserted is that nothing is lost meanwhile.

;;; Code:

(require 'tiro-testing)

(defconst tiro-bench-messages 10000 "Messages in the long session.")

(defun tiro-bench-print (format &rest arguments)
  "Print the figure that FORMAT and ARGUMENTS tell."
  (princ (concat "bench: " (apply #'format format arguments) "\n")))

(defun tiro-bench-message (n)
  "Return the N-th message of the long session."
  (list :role (if (cl-evenp n) "user" "assistant")
        :content (concat (format "message %d: " n)
                         (mapconcat #'identity (make-list 25 "a word,") " "))))

(defun tiro-bench-write ()
  "Write the long session into a file and return its path."
  (tiro-testing-write
   "long.json"
   (json-serialize
    `( :schema_version 1 :id "long"
       :messages ,(vconcat (mapcar #'tiro-bench-message (number-sequence 0 (1- tiro-bench-messages))))))))

(defun tiro-bench-cpu ()
  "Return the seconds of processor time that Emacs took so far."
  (float-time (get-internal-run-time)))

(defun tiro-bench-longest-wait (done)
  "Wait until DONE; return for how many ms Emacs worked at a time, at most.
It is processor time, which does not depend on what else the machine does."
  (let ((longest 0.0) (end (+ (float-time) 120)))
    (while (and (not (funcall done)) (< (float-time) end))
      (let ((start (tiro-bench-cpu)))
        (accept-process-output nil 0.005)
        (setq longest (max longest (- (tiro-bench-cpu) start)))))
    (* 1000 longest)))

(ert-deftest tiro-bench-long-session ()
  (tiro-testing-with-peer
    (tiro-session-live)
    (with-current-buffer (tiro-chat-buffer)
      (dotimes (n tiro-bench-messages)
        (tiro-message-show `(:seq ,(1+ n) ,@(tiro-bench-message n)))))
    (garbage-collect)
    (tiro-ask "flood 10000")
    (tiro-bench-print "longest stall while 10,000 deltas stream below %d messages: %.0f ms"
                      tiro-bench-messages
                      (tiro-bench-longest-wait (lambda () (not (tiro-session-turn tiro-session)))))
    (tiro-testing-wait-idle)
    (should (string-search "9998 9999" (tiro-testing-chat)))
    (should (string-search "message 0: " (tiro-testing-chat))))
  (tiro-testing-with-server
    (let ((file (tiro-bench-write)))
      (tiro)
      (let ((start (float-time)) (cpu (tiro-bench-cpu)))
        (tiro-load-session nil file)
        (tiro-bench-print "newest page of a session of %d messages: %.0f ms, %.0f ms of it Emacs"
                          tiro-bench-messages (* 1000 (- (float-time) start))
                          (* 1000 (- (tiro-bench-cpu) cpu))))
      (should (string-search (format "message %d" (1- tiro-bench-messages)) (tiro-testing-chat)))
      (should-not (string-search "message 0:" (tiro-testing-chat))))))

(provide 'tiro-bench-test)
;;; tiro-bench-test.el ends here
