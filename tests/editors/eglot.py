#!/usr/bin/env python3
"""Drives Eglot ($EMACS, an Emacs with Eglot) with the real tandem ($TANDEM_BIN) against a scripted model.

    tests/editors/eglot.py

A client that knows nothing of tandem, as Helix: what works here works by the standard alone. Each test is a function of
eglot.el, which runs in a batch Emacs on a project of its own. The last line is `N passed, N failed`.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from helix_driver import CHAT, CODE, HERE, TANDEM, Model, model_environment

EMACS = os.environ.get("EMACS", "emacs")
EDIT = {"path": "src/lib.rs", "edits": [{"old_text": "a + b", "new_text": "a - b"}]}
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
    "chat-is-read": [
        [{"call": {"id": "call_1", **READ}}],
        [{"text": "It is in src/lib.rs:3, I think."}],
    ],
}


def run(name, replies):
    """The output of a test, and whether it passed."""
    with tempfile.TemporaryDirectory(prefix="tandem-eglot-") as home, Model() as model:
        model.script(*replies)
        project = pathlib.Path(home, "project")
        for folder in (project / ".git", project / "src"):
            folder.mkdir(parents=True)
        (project / "src/lib.rs").write_text(CODE)
        (project / "notes.tandem.md").write_text(CHAT)
        environment = {
            **os.environ,
            **model_environment(model),
            "HOME": home,
            "TANDEM_BIN": TANDEM,
            "TANDEM_CONFIG": f"{home}/none.toml",
            "TANDEM_STATE_DIR": f"{home}/state",
            "MODEL_CONTROL": f"http://127.0.0.1:{model.port}/ctl",
        }
        command = [EMACS, "-q", "--batch", "--load", str(HERE / "eglot.el"), "--funcall", f"tandem-test-{name}"]
        process = subprocess.run(
            command, cwd=project, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
        )
        return process.stdout, process.returncode == 0


def main():
    failed = 0
    for name, replies in TESTS.items():
        output, passed = run(name, replies)
        failed += not passed
        print(f"ok {name}" if passed else f"FAILED {name}\n{output}", flush=True)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
