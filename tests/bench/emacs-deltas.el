;;; emacs-deltas.el --- What a delta costs below so many messages  -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs -Q -nw -l tiro-testing -l this file, with TIRO_BENCH_SIZES ("10 100")
;; and TIRO_BENCH_OUT, a file that gets a line "SIZE SECONDS" for each round:
;; the processor time that Emacs takes for one delta, from the bytes of the
;; server to the drawn screen.  A round goes on until Emacs has collected its
;; garbage twice: the larger its heap, the more rarely it does and the longer
;; that takes, and a round without it would leave that out.

;;; Code:

(require 'tiro-testing)

(defconst tiro-deltas 1000 "Deltas that come at once.")
(defconst tiro-deltas-collections 2 "Collections of garbage that a round has at least.")
(defconst tiro-deltas-rounds 5 "Rounds of each size.")

(defun tiro-deltas-message (n)
  "Return the N-th message."
  (list :role (if (cl-evenp n) "user" "assistant") :seq (1+ n)
        :content (concat (format "message %d: " n)
                         (mapconcat #'identity (make-list 25 "a word,") " "))))

(defun tiro-deltas-cpu ()
  "Return the seconds of processor time that Emacs took so far."
  (float-time (get-internal-run-time)))

(defun tiro-deltas-round ()
  "Return the seconds of processor time of a delta, drawing it included."
  (garbage-collect)
  (let ((start (tiro-deltas-cpu)) (collected gcs-done) (deltas 0))
    (while (< (- gcs-done collected) tiro-deltas-collections)
      (tiro-ask (format "flood %d" tiro-deltas))
      (while (or (tiro-session-turn tiro-session)
                 (buffer-local-value (quote tiro-chat--timer) (tiro-chat-buffer)))
        (accept-process-output nil 0.005)
        (redisplay t))
      (setq deltas (+ deltas tiro-deltas)))
    (/ (- (tiro-deltas-cpu) start) deltas)))

(defun tiro-deltas-write (sizes out)
  "Measure for SIZES, which grow, and write the figures into the file OUT."
  (tiro-testing-with-peer
    (tiro-session-live)
    (switch-to-buffer (tiro-chat-buffer))
    (goto-char (point-max))
    (let ((shown 0))
      (dolist (size sizes)
        (while (< shown size)
          (tiro-message-show (tiro-deltas-message shown))
          (setq shown (1+ shown)))
        (tiro-deltas-round)
        (dotimes (_ tiro-deltas-rounds)
          (let ((line (format "%d %.9f\n" size (tiro-deltas-round))))
            (write-region line nil out t 'quiet)))))))

(condition-case failure
    (tiro-deltas-write (mapcar #'string-to-number (split-string (getenv "TIRO_BENCH_SIZES")))
                       (getenv "TIRO_BENCH_OUT"))
  (error (write-region (format "failed: %S\n" failure) nil (getenv "TIRO_BENCH_OUT") t)))
(kill-emacs)

;;; emacs-deltas.el ends here
