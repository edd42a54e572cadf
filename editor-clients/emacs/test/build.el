;;; build.el --- Pack the client into a file that package.el installs  -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs -Q --batch -l test/build.el [FOLDER]
;; Writes tiro-VERSION.tar into FOLDER (the current one) and says where.

;;; Code:

(require 'package)

(let* ((source (file-name-as-directory
                (expand-file-name ".." (file-name-directory load-file-name))))
       (folder (expand-file-name (or (pop command-line-args-left) ".")))
       (description (with-temp-buffer
                      (insert-file-contents (concat source "tiro.el"))
                      (package-buffer-info)))
       (name (package-desc-full-name description))
       (scratch (file-name-as-directory (make-temp-file "tiro-build" t)))
       (target (concat scratch name "/")))
  (make-directory target)
  (dolist (file (directory-files source t "\\.el\\'\\|\\`\\(README\\.md\\|NEWS\\)\\'"))
    (copy-file file target))
  (package-generate-description-file description (concat target "tiro-pkg.el"))
  (let ((default-directory scratch) (tar (expand-file-name (concat name ".tar") folder)))
    (unless (zerop (call-process "tar" nil nil nil "-cf" tar name)) (error "No tar was written"))
    (delete-directory scratch t)
    (princ (concat tar "\n"))))

;;; build.el ends here
