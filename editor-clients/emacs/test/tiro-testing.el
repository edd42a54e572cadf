;;; tiro-testing.el --- What the tests share  -*- lexical-binding: t; -*-

;;; Commentary:

;; A home, a workspace and a config directory of its own for each test; the
;; real server with the scripted provider, or a stand-in (peer.py) for what
;; the real server does rarely.  Nothing sleeps: waits poll for a fact.
;; TIRO_PYTHON in the environment names a Python with what Tiro needs
;; (python3); the server is the one of this checkout.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'tiro)

(defconst tiro-testing-directory
  (file-name-directory (or load-file-name buffer-file-name))
  "The folder of the tests.")

(defun tiro-testing-python ()
  "Return the Python to use."
  (or (getenv "TIRO_PYTHON") "python3"))

(defun tiro-testing-wait (what predicate)
  "Wait until PREDICATE holds, or fail saying that WHAT did not happen."
  (let ((end (+ (float-time) 60)) value)
    (while (not (setq value (funcall predicate)))
      (when (> (float-time) end)
        (ert-fail (list "did not happen" what (tiro-testing-chat))))
      (accept-process-output nil 0.02))
    value))

(defun tiro-testing-wait-for (text)
  "Wait until the chat shows TEXT."
  (tiro-testing-wait text (lambda () (string-search text (tiro-testing-chat)))))

(defun tiro-testing-wait-idle ()
  "Wait until no turn runs and all that was streamed is shown."
  (tiro-testing-wait "idle" (lambda ()
                              (and (not (tiro-session-turn tiro-session))
                                   (not (buffer-local-value 'tiro-chat--timer
                                                            (tiro-chat-buffer)))))))

(defun tiro-testing-ask (prompt)
  "Ask PROMPT and wait for the end of the turn."
  (tiro-ask prompt)
  (tiro-testing-wait-idle))

(defun tiro-testing-chat ()
  "Return the text of the chat buffer."
  (if (get-buffer "*tiro*")
      (with-current-buffer "*tiro*"
        (buffer-substring-no-properties (point-min) (point-max)))
    ""))

(defun tiro-testing-said (body &optional text)
  "Return the last message that BODY gave, or the one with TEXT that comes of it."
  (let (said)
    (cl-letf (((symbol-function 'message)
               (lambda (format &rest arguments)
                 (when format (setq said (apply #'format-message format arguments))))))
      (funcall body)
      (when text
        (tiro-testing-wait text (lambda () (and said (string-search text said))))))
    said))

(defun tiro-testing-write (file text)
  "Write TEXT into FILE of the workspace and return its path."
  (let ((path (expand-file-name file default-directory)))
    (make-directory (file-name-directory path) t)
    (write-region text nil path nil 'silent)
    path))

(defun tiro-testing-call (body)
  "Call BODY in a fresh workspace and clean up, whatever happens."
  (let* ((home (file-name-as-directory (make-temp-file "tiro-home" t)))
         (default-directory (file-name-as-directory (concat home "workspace")))
         (process-environment
          (append (list (concat "HOME=" home) (concat "TIRO_CONFIG_DIR=" home "config")
                        (concat "XDG_CACHE_HOME=" home "cache")
                        (concat "XDG_STATE_HOME=" home "state")
                        (concat "PYTHONPATH="
                                (expand-file-name "../../../server" tiro-testing-directory)
                                path-separator (getenv "PYTHONPATH")))
                  process-environment))
         (inhibit-message t)
         (before (buffer-list)))
    (make-directory default-directory t)
    (make-directory (concat default-directory ".git"))
    (setq tiro-session (tiro-session--create) tiro-attached nil)
    (unwind-protect (funcall body)
      (tiro-session-stop)
      (dolist (buffer (buffer-list))
        (unless (memq buffer before)
          (with-current-buffer buffer (set-buffer-modified-p nil))
          (kill-buffer buffer)))
      (delete-directory home t))))

(defmacro tiro-testing-with-peer (&rest body)
  "Run BODY with peer.py as the server."
  (declare (indent 0) (debug t))
  `(tiro-testing-call
    (lambda ()
      (let ((tiro-server-command
             (list (tiro-testing-python) (concat tiro-testing-directory "peer.py"))))
        ,@body))))

(defmacro tiro-testing-with-server (&rest body)
  "Run BODY with the real server, forked, and the scripted provider."
  (declare (indent 0) (debug t))
  `(tiro-testing--with-server #'tiro-testing--forked-command (lambda () ,@body)))

(defmacro tiro-testing-with-program (&rest body)
  "Run BODY with the real server as a program that signals reach."
  (declare (indent 0) (debug t))
  `(tiro-testing--with-server (lambda () (list (tiro-testing-python) "-m" "tiro" "serve"))
                              (lambda () ,@body)))

(defun tiro-testing--with-server (command body)
  "Call BODY with the server that COMMAND returns and the scripted provider."
  (tiro-testing-call
   (lambda ()
     (let ((tiro-server-command (funcall command)))
       (pcase-let ((`(,url ,key) (split-string (tiro-testing--provider-address))))
         (tiro-testing-configure (list :base_url url :api_key key)))
       (funcall body)
       (should (equal "[]" (tiro-testing--ask-provider "refused?\n")))))))

(defmacro tiro-testing-with-prefix (&rest body)
  "Run BODY with the commands behind C-c o, as README.md advises."
  (declare (indent 0) (debug t))
  `(tiro-testing--with-prefix (lambda () ,@body)))

(defun tiro-testing--with-prefix (body)
  "Call BODY with a global map of its own, which has the commands behind C-c o."
  (let ((before (current-global-map)) (mine (make-sparse-keymap)))
    (set-keymap-parent mine before)
    (define-key mine (kbd "C-c o") 'tiro-command-map)
    (unwind-protect
        (cl-letf (((symbol-value 'global-map) mine))
          (use-global-map mine)
          (funcall body))
      (use-global-map before))))

;;;; Helpers that run beside the tests

(defun tiro-testing--start-helper (name &rest arguments)
  "Start the Python program NAME of the tests with ARGUMENTS, and wait for its first line."
  (let ((process
         (make-process
          :name name :connection-type 'pipe :noquery t
          :command `(,(tiro-testing-python) ,(concat tiro-testing-directory name) ,@arguments)
          :filter (lambda (process text)
                    (process-put process 'said (concat (process-get process 'said) text))))))
    (tiro-testing-wait name (lambda ()
                              (string-suffix-p "\n" (or (process-get process 'said) ""))))
    process))

(defvar tiro-testing--forks nil "The folder with the socket of fork.py, once it is started.")

(defun tiro-testing--forked-command ()
  "Return the command of a server that costs a fork."
  (unless tiro-testing--forks
    (setq tiro-testing--forks (make-temp-file "tiro-forks" t))
    (tiro-testing--start-helper "fork.py" "--keep" (concat tiro-testing--forks "/s"))
    (add-hook 'kill-emacs-hook (lambda () (delete-directory tiro-testing--forks t))))
  (list (tiro-testing-python) "-I" "-S" (concat tiro-testing-directory "fork.py")
        (concat tiro-testing--forks "/s")))

(defvar tiro-testing--provider nil "The process of the provider, once it is started.")

(defun tiro-testing--provider-address ()
  "Return the base URL and the key of the provider, starting it where needed."
  (unless tiro-testing--provider
    (setq tiro-testing--provider (tiro-testing--start-helper "provider.py"))
    (process-put tiro-testing--provider 'address
                 (string-trim (process-get tiro-testing--provider 'said))))
  (process-get tiro-testing--provider 'address))

(defun tiro-testing--ask-provider (question)
  "Send QUESTION to the provider and return the line that it says."
  (process-put tiro-testing--provider 'said "")
  (process-send-string tiro-testing--provider question)
  (tiro-testing-wait "the provider's answer"
                     (lambda ()
                       (string-suffix-p "\n" (process-get tiro-testing--provider 'said))))
  (string-trim (process-get tiro-testing--provider 'said)))

(defun tiro-testing-go-on ()
  "Let the slow answers of the provider go on to their ends."
  (tiro-testing--ask-provider "go on\n"))

(defun tiro-testing-configure (provider &rest more)
  "Write a config file with PROVIDER, a plist of its settings, and MORE."
  (let ((directory (getenv "TIRO_CONFIG_DIR")))
    (make-directory directory t)
    (set-file-modes directory #o700)
    (write-region
     (json-serialize
      `( :model "fake/fake-model"
         :providers
         (:fake (:api "openai" ,@provider :models (:fake-model (:context_window 100000) :fake-two (:context_window 50000))))
         ,@more))
     nil (expand-file-name "config.yaml" directory) nil 'silent)))

(defun tiro-testing-path ()
  "Return the file of the current session."
  (plist-get (tiro-session-call 'tiro/session/get '(:limit 1)) :path))

(defun tiro-testing-sessions ()
  "Return the snapshots in the sessions directory."
  (let ((directory (expand-file-name "sessions" (getenv "TIRO_CONFIG_DIR"))))
    (and (file-directory-p directory)
         (directory-files directory nil "\\`[^.].*\\.json\\'"))))

(defun tiro-testing-allow (&optional command)
  "Allow what waits longest with COMMAND, once unless given, after a look at it."
  (save-window-excursion
    (tiro-permission-show (car tiro-permission-pending))
    (funcall (or command #'tiro-allow-once))))

(provide 'tiro-testing)
;;; tiro-testing.el ends here
