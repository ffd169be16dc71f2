;;; lsp-mode.el --- Drives lsp-mode, the other language client of Emacs, as a person would. -*- lexical-binding: t -*-

;; tests/editors/eglot.py starts a batch Emacs for each of the tests: (tandem-test-NAME). The configuration is the one on
;; the page for Emacs.

;;; Code:

(when (fboundp 'package-activate-all) (package-activate-all))
(require 'lsp-mode)

(setq make-backup-files nil
      create-lockfiles nil
      lsp-auto-guess-root t
      lsp-restart 'ignore
      lsp-session-file (expand-file-name "lsp-session" (getenv "HOME")))

(push (file-name-directory (getenv "TANDEM_BIN")) exec-path)
(with-temp-buffer
  (insert-file-contents (expand-file-name "../../editors/emacs/README.md" (file-name-directory load-file-name)))
  (re-search-forward "^## lsp-mode$")
  (let ((begin (re-search-forward "^```elisp\n")))
    (re-search-forward "^```$")
    (eval-region begin (match-beginning 0))))

;; Emacs has none of its own.
(define-derived-mode rust-mode prog-mode "Rust")
(add-to-list 'auto-mode-alist '("\\.rs\\'" . rust-mode))

(defconst tandem-project default-directory)

(defun tandem-wait (what fits)
  "Wait until FITS returns something; WHAT is said when it does not."
  (let ((until (+ (float-time) 60)) result)
    (while (not (setq result (funcall fits)))
      (when (> (float-time) until)
        (message "%s" (buffer-substring-no-properties (point-min) (point-max)))
        (error "Waited in vain for %s in:\n%s" what (buffer-substring-no-properties (point-min) (point-max))))
      (accept-process-output nil 0.02))
    result))

(defun tandem-shows (text)
  "Wait until TEXT stands in the current buffer."
  (tandem-wait text (lambda () (string-match-p (regexp-quote text) (buffer-string)))))

(defun tandem-open (file)
  "Open FILE of the project with lsp-mode on it."
  (find-file (expand-file-name file tandem-project))
  (lsp-workspace-folders-add tandem-project)
  (lsp)
  (tandem-wait "lsp-mode" (lambda ()
                            (seq-some (lambda (workspace) (eq (lsp--workspace-status workspace) 'initialized))
                                      (lsp-workspaces)))))

(defun tandem-say (words)
  "Write WORDS at the end of the chat and save it."
  (goto-char (point-max))
  (insert words "\n")
  (save-buffer))

(defun tandem-no-warnings ()
  "Fail if lsp-mode has shown its person a warning."
  (when-let ((warnings (get-buffer "*Warnings*")))
    (error "Warnings: %s" (with-current-buffer warnings (buffer-string)))))

(defun tandem-act (title)
  "Take the code action that begins with TITLE, once it is offered: a server that has just started reads sessions."
  (let* ((is-it (lambda (action) (string-prefix-p title (gethash "title" action))))
         (action (tandem-wait title (lambda () (seq-find is-it (lsp-code-actions-at-point)))))
         (command (gethash "command" action)))
    ;; As `lsp-execute-code-action' does: it drops what follows its answer in the same chunk.
    (lsp-request "workspace/executeCommand"
                 (list :command (gethash "command" command) :arguments (gethash "arguments" command)))))

(defun tandem-test-lsp-mode-answer ()
  "The answer streams below its prompt; what is typed below it is the next prompt."
  (tandem-open "notes.tandem.md")
  (tandem-say "How does streaming look?")
  (tandem-shows "How does streaming look?\n\n## tandem\n\nThe first half,\n\n## You\n")
  (goto-char (point-max))
  (insert "And again?\n")
  (call-process "curl" nil nil nil "-sf" "-d" "{}" (format "%s/open/middle" (getenv "MODEL_CONTROL")))
  (tandem-shows "The first half, and the second half.\n\n## You\n\nAnd again?\n")
  (tandem-wait "the message that the turn ended"
               (lambda () (with-current-buffer "*Messages*" (string-match-p "tandem: done" (buffer-string)))))
  (save-buffer)
  (tandem-shows "Once more.")
  (tandem-no-warnings))

(defun tandem-test-lsp-mode-edit ()
  "An edit is asked for, made in the open buffer alone, beside what is not saved there."
  (tandem-open "src/lib.rs")
  (insert "// not saved\n")
  (tandem-open "notes.tandem.md")
  (tandem-say "Subtract, please.")
  (tandem-shows "Answer with a code action")
  (tandem-act "tandem: Allow")
  (tandem-shows "There you are.")
  (tandem-shows "> **allowed:** Edit src/lib.rs")
  (with-current-buffer "lib.rs"
    (tandem-shows "// not saved")
    (tandem-shows "a - b")
    (unless (buffer-modified-p) (error "The file was written")))
  (tandem-no-warnings))

(defun tandem-test-lsp-mode-undo-after-a-restart ()
  "A server that is started again undoes what a turn of the one before it changed, by an action in the code."
  (tandem-open "notes.tandem.md")
  (tandem-say "Subtract, please.")
  (tandem-shows "Answer with a code action")
  (tandem-act "tandem: Allow")
  (tandem-shows "There you are.\n\n## You\n")
  (lsp-workspace-shutdown (car (lsp-workspaces)))
  (tandem-wait "the end of the server" (lambda () (not (lsp-workspaces))))
  (tandem-open "src/lib.rs")
  (tandem-shows "a - b")
  (tandem-act "tandem: Undo the last turn")
  (tandem-shows "a + b")
  (tandem-no-warnings))

;;; lsp-mode.el ends here
