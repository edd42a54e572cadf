;;; tiro-history.el --- Messages taken back, edited, asked again  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiro authors

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands that change what was said.  What is taken back stays in the
;; archive, where no model sees it; what tools did to files stays done.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tiro-chat)
(require 'tiro-form)
(require 'tiro-message)
(require 'tiro-prompt)
(require 'tiro-session)
(require 'tiro-view)

;;;; Rewind

(defun tiro-rewind ()
  "Take back all messages after the one at point, after saying what they are.
A question that is taken back stands in the prompt again."
  (interactive)
  (tiro-session-check-idle)
  (let* ((seq (tiro-message-at-point))
         (window (tiro-history--window))
         (gone (tiro-history--after seq window)))
    (unless gone (user-error "Tiro: nothing came after this message"))
    (if (y-or-n-p (tiro-history--question gone))
        (tiro-history--rewind seq (car gone))
      (message "Tiro: nothing was taken back"))))

(defun tiro-history--rewind (seq first)
  "Take back what came after SEQ, of which FIRST was the first message."
  (tiro-session-call 'tiro/session/rewind (list :toSeq seq))
  (tiro-session-refresh)
  (let ((asked (and (equal "user" (plist-get first :role))
                    (with-current-buffer (tiro-chat-buffer)
                      (tiro-prompt-offer
                       (tiro-message-text
                        (vconcat (tiro-history--of-type
                                  "text" (tiro-message-blocks (plist-get first :content))))))))))
    (message "Tiro: taken back; no model sees it any more%s"
             (if asked "; your question stands in the prompt again" ""))))

(defun tiro-history--window ()
  "Return the messages in the window, oldest first."
  (append (plist-get (tiro-session-call 'tiro/session/get) :messages) nil))

(defun tiro-history--after (seq window)
  "Return the messages of WINDOW that a rewind to SEQ takes back."
  (let ((place (or (cl-position seq window :key (lambda (it) (plist-get it :seq)))
                   (user-error "Tiro: message %d is not in the window any more" seq))))
    (setq place (1+ place))
    ;; The uses of tools and their results go together.
    (when (equal "tool" (plist-get (nth place window) :role))
      (setq place (or (cl-position "assistant" window :end place :from-end t :test #'equal
                                   :key (lambda (it) (plist-get it :role)))
                      place)))
    (nthcdr place window)))

(defun tiro-history--question (gone)
  "Ask whether the messages GONE may be taken back, saying what they are."
  (format "Take back %s, from “%s”%s? "
          (tiro-history--count gone)
          (tiro-view-one-line (tiro-message-words (car gone)) 40)
          (if (cl-find "tool" gone :test #'equal :key (lambda (it) (plist-get it :role)))
              " (what tools did stays done)" "")))

(defun tiro-history--count (messages)
  "Say how many of MESSAGES there are of each kind."
  (string-join
   (cl-loop for (role one many) in '(("user" "question" "questions")
                                     ("assistant" "answer" "answers")
                                     ("tool" "tool result" "tool results"))
            for count = (cl-count role messages :test #'equal
                                  :key (lambda (it) (plist-get it :role)))
            unless (zerop count) collect (format "%d %s" count (if (= count 1) one many)))
   ", "))

;;;; Again

(defun tiro-retry ()
  "Take back the last answer and ask the last question again."
  (interactive)
  (tiro-session-check-idle)
  (let* ((window (tiro-history--window))
         (place (or (cl-position "user" window :from-end t :test #'equal
                                 :key (lambda (it) (plist-get it :role)))
                    (user-error "Tiro: nothing was asked yet")))
         (asked (tiro-history--editable (nth place window)))
         (before (and (> place 0) (plist-get (nth (1- place) window) :seq))))
    (when (or (not (cl-find "tool" (nthcdr place window) :test #'equal
                            :key (lambda (it) (plist-get it :role))))
              (y-or-n-p "Tools ran for this answer, and what they did stays; ask again? "))
      (tiro-session-call 'tiro/session/rewind (list :toSeq (or before 0)))
      (tiro-session-refresh)
      (tiro-session-ask (car asked) (nth 1 asked) (nth 2 asked)))))

;;;; Edit

(defun tiro-edit-message ()
  "Edit the message at point; the earlier wording stays in the archive."
  (interactive)
  (let* ((seq (tiro-message-at-point))
         (messages (plist-get (tiro-session-call 'tiro/session/get
                                                 (list :limit 1 :beforeSeq (1+ seq)))
                              :messages))
         (message (and (not (seq-empty-p messages)) (elt messages 0)))
         (text (tiro-history--editable message)))
    (tiro-form-open
     "*tiro message*" "stores it"
     (list (format "%s\n" (if (equal "user" (plist-get message :role)) "You said:"
                            "The answer was:"))
           (cons 'text (car text)))
     (lambda (texts)
       (tiro-history--store seq (alist-get 'text texts) (nth 1 text) (nth 2 text))))))

(defun tiro-history--store (seq text attachments images)
  "Make TEXT with ATTACHMENTS and IMAGES the content of the message SEQ."
  (when (string-blank-p text) (user-error "Tiro: a message needs a word; rewind takes it back"))
  (tiro-session-call
   'tiro/session/editMessage
   (list :seq seq
         :content (if (or attachments images)
                      (vconcat (list (list :type "text" :text text)) images
                               (mapcar (lambda (it) `(:type "attachment" ,@it)) attachments))
                    text)))
  (tiro-session-refresh)
  (with-current-buffer (tiro-chat-buffer) (tiro-message-go seq))
  (message "Tiro: stored; the model sees the new wording from the next question on"))

(defun tiro-history--editable (message)
  "Return (TEXT ATTACHMENTS IMAGES) of MESSAGE, or refuse one that holds more."
  (let* ((blocks (append (tiro-message-blocks (plist-get message :content)) nil))
         (other (cl-find-if-not (lambda (block)
                                  (member (plist-get block :type)
                                          '("text" "attachment" "image")))
                                blocks)))
    (when other
      (user-error "Tiro: this message holds a block of type %s, and only text can be edited here"
                  (plist-get other :type)))
    (list (tiro-message-text (vconcat (tiro-history--of-type "text" blocks)))
          (mapcar (lambda (block) (tiro-history--fields block '(:kind :path :range :text)))
                  (tiro-history--of-type "attachment" blocks))
          (mapcar (lambda (block)
                    (list :type "image"
                          :source (tiro-history--fields (plist-get block :source)
                                                        '(:type :media_type :data :url))))
                  (tiro-history--of-type "image" blocks)))))

(defun tiro-history--of-type (type blocks)
  "Return those of BLOCKS that are of TYPE."
  (seq-filter (lambda (block) (equal type (plist-get block :type))) blocks))

(defun tiro-history--fields (block keys)
  "Return the KEYS of BLOCK that say something."
  (cl-loop for key in keys
           when (plist-get block key) nconc (list key (plist-get block key))))

(provide 'tiro-history)
;;; tiro-history.el ends here
