;;; tiro-visible-test.el --- Tests of what hides in a text  -*- lexical-binding: t; -*-

;;; Code:

(require 'tiro-testing)
(require 'tiro-visible)

(defconst tiro-visible-test-signs
  '(("a\0b" . "a␀b") ("\e[31m" . "␛[31m") ("a\rb" . "a␍b") ("a\x7f" . "a␡")
    ("a\u0085b" . "a⟨U+0085⟩b") ("\u202etxt" . "⟨U+202E⟩txt") ("\u2066a" . "⟨U+2066⟩a")
    ("pay\u200bpal" . "pay⟨U+200B⟩pal") ("pay\u200dpal" . "pay⟨U+200D⟩pal")
    ("a\u200cé" . "a⟨U+200C⟩é") ("so\u00adft" . "so⟨U+00AD⟩ft") ("a\u2028b" . "a⟨U+2028⟩b")
    ("\ufeffa" . "⟨U+FEFF⟩a") ("\U000e0041" . "⟨U+E0041⟩"))
  "Texts, and what is shown of them; the server's own tests have the same.")

(ert-deftest tiro-visible-shows-what-hides ()
  (pcase-dolist (`(,text . ,shown) tiro-visible-test-signs)
    (should (equal shown (tiro-visible text)))
    (should (equal shown (tiro-visible-line text)))))

(ert-deftest tiro-visible-leaves-what-people-write ()
  (dolist (text '("a\tb\n" "Füße 漢字" "👩\u200d👩\u200d👧 ⚠\ufe0f" "می\u200cخواهم" "\u00a0\u3000"))
    (should (equal text (tiro-visible text)))
    (should (equal text (tiro-visible-prose text)))))

(ert-deftest tiro-visible-prose-shows-what-acts ()
  (should (equal "a\nb" (tiro-visible-prose "a\r\nb\r")))
  (should (equal "a␍b␛[2J⟨U+202E⟩" (tiro-visible-prose "a\rb\e[2J\u202e")))
  (should (equal "so\u00adft" (tiro-visible-prose "so\u00adft")))
  (let ((shown (tiro-visible (propertize "a\e" 'face 'bold))))
    (dolist (at '(0 1)) (should (eq 'bold (get-text-property at 'face shown))))))

(ert-deftest tiro-visible-in-questions-titles-and-lists ()
  "Nothing hides in a question, its diff, its subject, a title or a choice."
  (let ((evil "a\u202eb\u200b\e") (seen "a⟨U+202E⟩b⟨U+200B⟩␛"))
    (with-temp-buffer
      (tiro-transcript-setup)
      (dolist (kind '(permission diff)) (tiro-transcript-add kind evil))
      (tiro-transcript-put-line 'x 'tool evil)
      (should (equal (list seen seen seen)
                     (split-string (buffer-substring-no-properties 1 tiro-transcript-end)
                                   "\n" t))))
    (should (equal (concat "run_command " seen)
                   (tiro-permission--subject `(:name "run_command" :input (:command ,evil)))))
    (should (equal (concat seen "  id") (tiro-saved--choice `(:title ,evil :id "id"))))
    (should (equal (concat seen ".py") (tiro-attachment-label `(:path ,(concat "/x/" evil ".py")))))
    (cl-letf (((tiro-session-title tiro-session) evil))
      (should (string-search seen (tiro-chat-header-line))))
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt table &rest _)
                 (should (equal (list seen) (mapcar #'car table)))
                 seen)))
      (should (equal evil (tiro-agent--read-choice "Agent" `((:name ,evil)) :x nil))))))

(provide 'tiro-visible-test)
;;; tiro-visible-test.el ends here
