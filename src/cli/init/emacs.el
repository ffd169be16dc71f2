(use-package agent-shell
  :ensure t
  :config
  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier 'tandem
    :mode-line-name "tandem"
    :buffer-name "tandem"
    :shell-prompt "tandem> "
    :shell-prompt-regexp "tandem> "
    :client-maker (lambda (buffer)
                    (acp-make-client :command "tandem"
                                     :command-params '("acp")
                                     :context-buffer buffer))
    :install-instructions "cargo install --locked --path . # in a clone of tandem")))
