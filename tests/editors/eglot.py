#!/usr/bin/env python3
"""Drives Eglot and lsp-mode ($EMACS, an Emacs with Eglot) with the real tandem ($TANDEM_BIN) against a scripted model.

    tests/editors/eglot.py

Clients that know nothing of tandem, as Helix: what works here works by the standard alone. Each test is a function of
eglot.el or lsp-mode.el, which runs in a batch Emacs on a project of its own: once in text-mode, and once where
`markdown-mode` is installed, which makes the chat another mode. `screen` is played in a terminal, with keys. The last
line is `N passed, N failed`.
"""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from again import really_failed
from helix_driver import CHAT, CODE, HERE, TANDEM, Model, model_environment
from terminal import Terminal, Timeout

EMACS = os.environ.get("EMACS", "emacs")
EDIT = {"path": "src/lib.rs", "edits": [{"old_text": "a + b", "new_text": "a - b"}]}
RENAME = {"path": "src/twice.c", "edits": [{"old_text": "twice", "new_text": "doubled"}]}
READ = {"name": "read_file", "arguments": {"path": "src/lib.rs"}}

TESTS = {
    "answer-and-next-question": [
        [{"words": "The first half,"}, {"gate": "middle"}, {"words": " and the second half."}],
        [{"text": "Once more."}],
    ],
    "edit-is-allowed-by-a-code-action": [
        [{"call": {"id": "call_1", "name": "edit_file", "arguments": EDIT}}],
        [{"text": "There you are."}],
    ],
    "screen": [
        [{"words": "A long answer.\n" * 20}, {"call": {"id": "call_1", "name": "edit_file", "arguments": EDIT}}],
        [{"text": "There you are."}],
    ],
    "turn-is-undone-after-a-restart": [
        [{"call": {"id": "call_1", "name": "edit_file", "arguments": EDIT}}],
        [{"text": "There you are."}],
    ],
    "chat-is-read": [
        [{"call": {"id": "call_1", **READ}}],
        [{"text": "It is in src/lib.rs:3, I think."}],
    ],
    "lsp-mode-answer": [
        [{"words": "The first half,"}, {"gate": "middle"}, {"words": " and the second half."}],
        [{"text": "Once more."}],
    ],
    "lsp-mode-edit": [
        [{"call": {"id": "call_1", "name": "edit_file", "arguments": EDIT}}],
        [{"text": "There you are."}],
    ],
    "lsp-mode-undo-after-a-restart": [
        [{"call": {"id": "call_1", "name": "edit_file", "arguments": EDIT}}],
        [{"text": "There you are."}],
    ],
    "clangd-runs-beside-tandem": [
        [{"call": {"id": "call_1", "name": "edit_file", "arguments": RENAME}}],
        [{"text": "There you are."}],
    ],
}


# Installed packages are excluded before they are activated.
WITHOUT_MARKDOWN = "(setq package-load-list '((markdown-mode nil) all))"


def has(mode):
    """Whether a mode is installed."""
    find = f"(progn (package-activate-all) (kill-emacs (if (locate-library \"{mode}\") 0 1)))"
    return subprocess.run([EMACS, "-q", "--batch", "--eval", find], capture_output=True).returncode == 0


def run(name, replies, mode):
    """The output of a test, and whether it passed."""
    with tempfile.TemporaryDirectory(prefix="tandem-eglot-") as home, Model() as model:
        model.script(*replies)
        project = pathlib.Path(home, "project")
        for folder in (project / ".git", project / "src"):
            folder.mkdir(parents=True)
        (project / "src/lib.rs").write_text(CODE)
        (project / "src/twice.c").write_text("int twice(int a) { return a * 2; }\n")
        (project / "notes.tandem.md").write_text(CHAT)
        environment = {
            **os.environ,
            **model_environment(model),
            "HOME": home,
            "TANDEM_BIN": TANDEM,
            "TANDEM_CONFIG": f"{home}/none.toml",
            "TANDEM_STATE_DIR": f"{home}/state",
            "MODEL_CONTROL": f"http://127.0.0.1:{model.port}/ctl",
            "CHAT_MODE": mode,
        }
        packages = [] if mode == "markdown-mode" else ["--eval", WITHOUT_MARKDOWN]
        client = "lsp-mode.el" if name.startswith("lsp-mode") else "eglot.el"
        test = ["--load", str(HERE / client), "--funcall", f"tandem-test-{name}"]
        command = [EMACS, "-q", "--batch", *packages, *test]
        if name == "screen":
            quiet = ["--eval", "(setq native-comp-async-report-warnings-errors nil)"]
            return on_screen([EMACS, "-q", "-nw", *quiet, *packages, *test[:2], "notes.tandem.md"], project, environment)
        process = subprocess.run(
            command, cwd=project, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
        )
        return process.stdout, process.returncode == 0


def on_screen(command, project, environment):
    """The last lines of a small terminal: the request, which is below the window, and each outcome."""
    with Terminal(command, str(project), environment, columns=80, rows=24) as emacs:

        def run(command, *answers):
            emacs.keys("M-x")
            for text in (command, *answers):
                emacs.shows(r"(M-x|action.*:)\s*$")
                emacs.type(text)
                emacs.keys("Enter")

        try:
            emacs.shows("## You")
            run("eglot")
            emacs.shows("Connected!")
            emacs.keys("M->")
            emacs.type("Subtract, please.")
            emacs.keys("C-x", "C-s")
            emacs.shows(r"tandem: needs approval: Edit src/lib\.rs\s*$")
            run("eglot-code-actions", "tandem: Allow: Edit src/lib.rs")
            emacs.shows(r"tandem: done\s*$")
            run("eglot-code-actions", "tandem: Undo the last turn")
            emacs.shows(r"tandem: undid “Subtract, please\.”: src/lib\.rs\s*$")
        except Timeout as missed:
            return str(missed), False
    return "", True


def reason(output):
    """Emacs' message about the error, without the backtrace."""
    return next((line for line in output.splitlines() if "Lisp error" in line), f"Emacs failed: {output[-200:]}")


def main():
    played = skipped = 0
    failures = {}
    missing = {"clangd": not shutil.which("clangd"), **{mode: not has(mode) for mode in ("markdown-mode", "lsp-mode")}}
    tests = {f"{name} in {mode}": (name, TESTS[name], mode) for mode, name in itertools.product(("text-mode", "markdown-mode"), TESTS)}
    # lsp-mode needs markdown-mode.
    tests = {title: test for title, test in tests.items() if title.startswith("lsp-mode") <= (test[2] == "markdown-mode")}
    for title, test in tests.items():
        absent = [needed for needed, is_missing in missing.items() if is_missing and needed in title]
        if absent:
            skipped += 1
            print(f"skipped {title}: there is no {absent[0]}", flush=True)
            continue
        output, is_ok = run(*test)
        played += 1
        print(f"ok {title}" if is_ok else f"FAILED {title}\n{output}", flush=True)
        if not is_ok:
            failures[title] = reason(output)

    def play(title):
        output, is_ok = run(*tests[title])
        return None if is_ok else reason(output)

    failed = len(really_failed(failures, play))
    passed = played - failed
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
