;;; eglot.el --- Drives Eglot, the language client of Emacs, as a person would. -*- lexical-binding: t -*-

;; tests/editors/eglot.py starts a batch Emacs for each of the tests: (tandem-test-NAME). The configuration is the one on
;; the page for Emacs.

;;; Code:

(when (fboundp 'package-activate-all) (package-activate-all)) ; Emacs 29 has it built in, Debian's older one as a package
(require 'eglot)

(setq make-backup-files nil
      create-lockfiles nil
      eglot-sync-connect 10
      eglot-autoshutdown nil)

(push (file-name-directory (getenv "TANDEM_BIN")) exec-path)
(with-temp-buffer
  (insert-file-contents (expand-file-name "../../editors/emacs/README.md" (file-name-directory load-file-name)))
  (re-search-forward "^## Eglot$")
  (let ((begin (re-search-forward "^```elisp\n")))
    (re-search-forward "^```$")
    (eval-region begin (match-beginning 0))))

;; Emacs has none of its own.
(define-derived-mode rust-mode prog-mode "Rust")
(add-to-list 'auto-mode-alist '("\\.rs\\'" . rust-mode))

(defvar tandem-told nil "The messages of the server, the last one first.")
(cl-defmethod eglot-handle-notification :before (_server (_method (eql window/showMessage)) &key message &allow-other-keys)
  "Remember MESSAGE."
  (push message tandem-told))

(defun tandem-wait (what fits)
  "Wait until FITS returns something; WHAT is said when it does not."
  (let ((until (+ (float-time) 60)) result)
    (while (not (setq result (funcall fits)))
      (when (> (float-time) until)
        (error "Waited in vain for %s in:\n%s" what (buffer-string)))
      (accept-process-output nil 0.02)
      (run-hooks 'post-command-hook)
      ;; Changes are reported when Emacs is idle, which a batch Emacs never is.
      (dolist (buffer (buffer-list))
        (with-current-buffer buffer
          (when (eglot-managed-p) (eglot--signal-textDocument/didChange)))))
    result))

(defun tandem-shows (text)
  "Wait until TEXT stands in the current buffer."
  (tandem-wait text (lambda () (string-match-p (regexp-quote text) (buffer-string)))))

(defconst tandem-project default-directory)

(defun tandem-open (file)
  "Open FILE of the project with Eglot on it."
  (find-file (expand-file-name file tandem-project))
  (unless (eglot-managed-p)
    (eglot-ensure)
    (run-hooks 'post-command-hook))
  (tandem-wait "Eglot" #'eglot-managed-p))

(defun tandem-say (words)
  "Write WORDS at the end of the chat and save it."
  (goto-char (point-max))
  (insert words "\n")
  (eglot--signal-textDocument/didChange)
  (save-buffer))

(defun tandem-act (title)
  "Take the code action that begins with TITLE."
  (let* ((range (list :start (eglot--pos-to-lsp-position) :end (eglot--pos-to-lsp-position)))
         (find (lambda ()
                 (seq-find (lambda (action) (string-prefix-p title (plist-get action :title)))
                           (jsonrpc-request (eglot--current-server-or-lose) :textDocument/codeAction
                                            (list :textDocument (eglot--TextDocumentIdentifier) :range range
                                                  :context '(:diagnostics [] :triggerKind 1))))))
         (command (plist-get (tandem-wait title find) :command)))
    ;; As `eglot-code-actions' does: in Emacs 28 it leaves what follows its answer in the same chunk unread until more comes.
    (jsonrpc-request (eglot--current-server-or-lose) :workspace/executeCommand
                     (list :command (plist-get command :command) :arguments (plist-get command :arguments)))))

(defun tandem-release (gate)
  "Let the model go on behind GATE."
  (call-process "curl" nil nil nil "-sf" "-d" "{}" (format "%s/open/%s" (getenv "MODEL_CONTROL") gate)))

(defun tandem-test-answer-and-next-question ()
  "The answer streams into the file; what is typed below it is the next question."
  (tandem-open "notes.tandem.md")
  (unless (string= major-mode (getenv "CHAT_MODE")) (error "The chat is in %s" major-mode))
  (tandem-say "How does streaming look?")
  (tandem-shows "The first half,")
  (tandem-shows "## You\n\n")
  (goto-char (point-max))
  (insert "And again?\n")
  (tandem-release "middle")
  (tandem-shows "The first half, and the second half.\n\n## You\n\nAnd again?\n")
  (tandem-wait "the message that the turn ended"
               (lambda () (member "tandem: done" tandem-told)))
  (save-buffer)
  (tandem-shows "Once more."))

(defun tandem-test-edit-is-allowed-by-a-code-action ()
  "An edit is asked for, made in the open buffer alone, beside what is not saved there, and undone."
  (tandem-open "src/lib.rs")
  (insert "// not saved\n")
  (let ((server (eglot--current-server-or-lose)))
    (tandem-open "notes.tandem.md")
    (unless (eq server (eglot--current-server-or-lose)) (error "A second server runs for %s" major-mode)))
  (tandem-say "Subtract, please.")
  (tandem-shows "Answer with a code action")
  (tandem-act "tandem: Allow")
  (tandem-shows "There you are.")
  (tandem-shows "> **allowed:** Edit src/lib.rs")
  (with-current-buffer "lib.rs"
    (tandem-shows "// not saved")
    (tandem-shows "a - b")
    (unless (buffer-modified-p) (error "The file was written"))
    (tandem-act "tandem: Undo the last turn")
    (tandem-shows "a + b")))

(defun tandem-test-turn-is-undone-after-a-restart ()
  "A server that is started again undoes what a turn of the one before it changed, by an action in the code."
  (tandem-open "notes.tandem.md")
  (tandem-say "Subtract, please.")
  (tandem-shows "Answer with a code action")
  (tandem-act "tandem: Allow")
  (tandem-shows "There you are.\n\n## You\n")
  (eglot-shutdown (eglot--current-server-or-lose))
  (tandem-open "src/lib.rs")
  (tandem-shows "a - b")
  (tandem-act "tandem: Undo the last turn")
  (tandem-shows "a + b"))

(defun tandem-test-chat-is-read ()
  "Symbols, places and outputs of a chat."
  (tandem-open "notes.tandem.md")
  (tandem-say "Where does it add?")
  (tandem-shows "I think.")
  (let ((symbols (jsonrpc-request (eglot--current-server-or-lose) :textDocument/documentSymbol
                                  (list :textDocument (eglot--TextDocumentIdentifier)))))
    (unless (equal (plist-get (aref symbols 0) :name) "Where does it add?") (error "Symbols: %S" symbols)))
  (goto-char (point-min))
  (search-forward "✓ Read")
  (let ((hover (jsonrpc-request (eglot--current-server-or-lose) :textDocument/hover
                                (eglot--TextDocumentPositionParams))))
    (unless (string-match-p "pub fn add" (format "%S" hover)) (error "Hover: %S" hover)))
  (search-forward "src/lib.rs:3")
  (call-interactively #'xref-find-definitions)
  (unless (and (equal (buffer-name) "lib.rs") (= (line-number-at-pos) 3))
    (error "Went to %s:%s" (buffer-name) (line-number-at-pos))))

(defun tandem-test-clangd-runs-beside-tandem ()
  "Eglot runs one server for a buffer: clangd keeps the C files, and tandem the chat and what is closed."
  (tandem-open "src/twice.c")
  (let ((clangd (eglot--current-server-or-lose)))
    (tandem-open "notes.tandem.md")
    (when (eq clangd (eglot--current-server-or-lose)) (error "One server for both"))
    (tandem-say "Call it doubled.")
    (tandem-shows "Answer with a code action")
    (tandem-act "tandem: Allow")
    (tandem-shows "There you are.")
    (with-current-buffer "twice.c"
      (unless (eq clangd (eglot--current-server-or-lose)) (error "clangd is gone"))
      (revert-buffer t t)
      (tandem-shows "int doubled")
      (let ((symbols (tandem-wait "the symbols of clangd"
                                  (lambda () (eglot--signal-textDocument/didChange)
                                    (jsonrpc-request clangd :textDocument/documentSymbol
                                                     (list :textDocument (eglot--TextDocumentIdentifier)))))))
        (unless (equal (plist-get (aref symbols 0) :name) "doubled") (error "Symbols: %S" symbols))))))

;;; eglot.el ends here
