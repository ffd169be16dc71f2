#!/usr/bin/env python3
"""Follows "Your first change" of CONTRIBUTING.md in a copy of the repository: writes its files, makes its changes, runs its command.

`--dry` stops before the command. The copy is in the build folder and stays there, so that only what changed since the last time is compiled."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def blocks():
    """The fenced blocks of the section: language, file and text."""
    page = (ROOT / ".github/CONTRIBUTING.md").read_text()
    section = page.split("## Your first change", 1)[1].split("\n## ", 1)[0]
    for match in re.finditer(r"^( *)```(\w+) ?(\S*)\n(.*?)^\1```$", section, re.DOTALL | re.MULTILINE):
        yield match[2], match[3], textwrap.dedent("".join(cut(line, len(match[1])) for line in match[4].splitlines(True)))


def cut(line, indent):
    return line[indent:] if line.strip() else "\n"


def changed(text, name, diff):
    """The text, with the lines before a diff replaced by those after it. They must occur exactly once."""
    lines = diff.splitlines(True)
    before = "".join(line[1:] for line in lines if line[:1] in " -")
    after = "".join(line[1:] for line in lines if line[:1] in " +")
    if text.count(before) != 1:
        sys.exit(f"FAILED: {name} has these lines {text.count(before)} times:\n{before}")
    return text.replace(before, after)


def files():
    """The sources of the library and its tests."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    parts = ("src/", "tests/", "benches/", "Cargo", "README", "editors/")
    return {name: (ROOT / name).read_bytes() for name in listed if name.startswith(parts) and (ROOT / name).exists()}


def write(copy, texts):
    """Makes the copy consist of these files. Files that are the same already are not touched, so nothing is compiled for them."""
    for path in copy.rglob("*"):
        if path.is_file() and str(path.relative_to(copy)) not in texts:
            path.unlink()
    for name, text in texts.items():
        path = copy / name
        if not path.exists() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)


def main():
    texts, commands = files(), []
    for language, name, text in blocks():
        if language == "diff":
            texts[name] = changed(texts[name].decode(), name, text).encode()
        elif language == "rust":
            texts[name] = text.encode()
        else:
            commands.append(text)
    # A version of its own: Cargo identifies packages by name, version and place in the workspace, and shares the build folder.
    for name in ("Cargo.toml", "Cargo.lock"):
        texts[name] = changed(texts[name].decode(), name, f' name = "tandem-ls"\n-version = "{VERSION}"\n+version = "{VERSION}-first-change"\n').encode()
    if len(commands) != 1:
        sys.exit(f"FAILED: the page has {len(commands)} commands")
    if "--dry" not in sys.argv:
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        copy = target / "first-change"
        write(copy, texts)
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        run = subprocess.run(commands[0], shell=True, cwd=copy, env=environment, text=True, capture_output=True)
        print(run.stdout, run.stderr)
        if run.returncode != 0 or "test result: ok. 1 passed" not in run.stdout:
            sys.exit("FAILED: the command of the page")
    print("ok: the first change works as the page says")


main()
