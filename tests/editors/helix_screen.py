#!/usr/bin/env python3
"""Takes the pictures for editors/helix/README.md: the real Helix, the real tandem, a scripted model.

    HX=… TANDEM_BIN=… [GRAMMARS=FOLDER] tests/editors/helix_screen.py edit|command|review|hover|undo OUT.png

GRAMMARS holds `markdown.so`, `markdown_inline.so`, `diff.so` and `rust.so` for Helix; Debian's package comes without any, and the
picture is then without colors.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import helix_driver as helix

THEME = 'theme = "catppuccin_mocha"\n'
ANSWER = """`add` overflows for large arguments: it panics in debug builds and wraps in release builds. \
A *checked* addition returns `None` instead:

"""
EDIT = {
    "path": "src/lib.rs",
    "edits": [{"old_text": "-> i32 {\n    a + b", "new_text": "-> Option<i32> {\n    a.checked_add(b)"}],
}


class Home:
    """Permission requests show the project's folder, which must not exist yet."""

    name = "/home/ada"

    def __init__(self):
        pathlib.Path(self.name).mkdir()

    def cleanup(self):
        shutil.rmtree(self.name)


def configure(folder):
    """tandem's configuration with a theme, and Markdown's colors for chats."""
    for name in ("languages.toml", "config.toml"):
        theme = THEME if name == "config.toml" else ""
        (folder / name).write_text(theme + (helix.CONFIG / name).read_text())
    queries = folder / "runtime/queries/tandem-chat"
    queries.mkdir(parents=True)
    for name in ("highlights.scm", "injections.scm"):
        (queries / name).write_text("; inherits: markdown\n")
    if grammars := os.environ.get("GRAMMARS"):
        (folder / "runtime/grammars").symlink_to(pathlib.Path(grammars).resolve())


COMMAND = {"command": "cargo test --lib add -- --nocapture"}
WRITES = {"command": "sed -i s/add/sum/ src/lib.rs"}


def call(name, arguments):
    return {"call": {"id": f"call_{name}", "name": name, "arguments": arguments}}


def review_edit(editor):
    """Allows the edit, and opens the code actions on its line."""
    go_to_edit(editor)
    editor.type(" a")
    editor.shows("Keep this change")


def hover_edit(editor):
    """Allows the edit, and shows the old text of its line."""
    go_to_edit(editor)
    editor.type(" k")
    editor.shows("Before:")


def go_to_edit(editor):
    editor.answer("Allow")
    editor.shows("Done")
    editor.command("open src/lib.rs")
    editor.shows("checked_add")
    editor.shows("●")
    editor.type("gg]d")
    editor.shows("tandem: ")


def undo_command(editor):
    """Allows the command, then undoes its change of a closed file."""
    editor.answer("Allow")
    editor.shows("Renamed `add`")
    editor.action("Undo the last turn")
    editor.shows("tandem: undid “")


# The prompt, the model's reply, the expected screen, and what the person does next.
SCENES = {
    "edit": (
        "Can `add` in src/lib.rs go wrong?",
        ([call("read_file", {"path": "src/lib.rs"})], [{"text": ANSWER}, call("edit_file", EDIT)]),
        r"checked_add[\s\S]*Allow\* or",
        None,
    ),
    "command": (
        "Do the tests for `add` pass?",
        ([{"text": "I'll run them."}, call("run_command", COMMAND)],),
        r"I'll run them[\s\S]*without network",
        None,
    ),
    "review": (
        "Can `add` in src/lib.rs go wrong?",
        ([call("edit_file", EDIT)], [{"text": "Done."}]),
        r"checked_add[\s\S]*Allow\* or",
        review_edit,
    ),
    "hover": (
        "Can `add` in src/lib.rs go wrong?",
        ([call("edit_file", EDIT)], [{"text": "Done."}]),
        r"checked_add[\s\S]*Allow\* or",
        hover_edit,
    ),
    "undo": (
        "Rename `add` to `sum`.",
        ([{"text": "I'll use `sed`."}, call("run_command", WRITES)], [{"text": "Renamed `add` to `sum`."}]),
        r"I'll use `sed`[\s\S]*without network",
        undo_command,
    ),
}


def main():
    scene, out = sys.argv[1:]
    question, replies, shown, act = SCENES[scene]
    with tempfile.TemporaryDirectory() as home, helix.Model() as model:
        folder = pathlib.Path(home, "helix")
        folder.mkdir()
        configure(folder)
        model.script(*replies)
        settings = {**helix.model_environment(model), "XDG_CONFIG_HOME": home}
        with helix.Helix("notes.tandem.md", settings, home=Home()) as editor:
            editor.ask(question)
            editor.shows(shown)
            if editor.has_message_menus:
                editor.shows(r"Always \(session\)")
            if act:
                act(editor)
            screen = editor.colored()
    script = pathlib.Path(__file__).with_name("screen_png.sh")
    subprocess.run([script, out], input=screen, text=True, check=True)


if __name__ == "__main__":
    main()
