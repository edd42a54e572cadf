;;; run-tests.el --- Run ERT and close with a plain line  -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs -Q --batch -L . -L test -l test/run-tests.el test/*-test.el
;; The last line is "N passed, N failed, N skipped"; the exit code is 1 when
;; something failed or nothing ran.  SELECTOR in the environment picks tests;
;; when all run, a command that none of them ran is a failure too.

;;; Code:

(require 'ert)
(require 'commands-run)

(setq backtrace-on-error-noninteractive nil
      debug-on-error nil
      native-comp-deferred-compilation nil
      load-prefer-newer t
      ert-batch-backtrace-right-margin 160)

(let ((files command-line-args-left))
  (setq command-line-args-left nil)
  (dolist (file files) (load (expand-file-name file) nil t))
  (commands-run-watch "tiro")
  (let* ((stats (ert-run-tests-batch (or (getenv "SELECTOR") t)))
         (untested (unless (getenv "SELECTOR") (commands-run-missing "tiro")))
         (failed (+ (ert-stats-completed-unexpected stats) (length untested)))
         (skipped (ert-stats-skipped stats))
         (passed (ert-stats-completed-expected stats)))
    (when untested (princ (format "No test ran these commands: %s\n" untested)))
    (princ (format "%d passed, %d failed, %d skipped\n" passed failed skipped))
    (kill-emacs (if (and (zerop failed) (> passed 0)) 0 1))))

;;; run-tests.el ends here
