#!/usr/bin/env python3
"""Follows "Your first change" of CONTRIBUTING.md in a copy of the repository: writes its files, makes its changes, runs its command.

`--dry` stops before the command. The copy shares the build folder, so that only tandem itself is compiled."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent


def blocks():
    """The fenced blocks of the section: language, file and text."""
    page = (ROOT / ".github/CONTRIBUTING.md").read_text()
    section = page.split("## Your first change", 1)[1].split("\n## ", 1)[0]
    for match in re.finditer(r"^( *)```(\w+) ?(\S*)\n(.*?)^\1```$", section, re.DOTALL | re.MULTILINE):
        yield match[2], match[3], textwrap.dedent("".join(cut(line, len(match[1])) for line in match[4].splitlines(True)))


def cut(line, indent):
    return line[indent:] if line.strip() else "\n"


def change(path, diff):
    """Replaces the lines that a diff shows without its `+` by those without its `-`. They must stand there once."""
    lines = diff.splitlines(True)
    before = "".join(line[1:] for line in lines if line[:1] in " -")
    after = "".join(line[1:] for line in lines if line[:1] in " +")
    text = path.read_text()
    if text.count(before) != 1:
        sys.exit(f"FAILED: {path.name} has these lines {text.count(before)} times:\n{before}")
    path.write_text(text.replace(before, after))


def follow(copy, dry):
    commands = 0
    for language, name, text in blocks():
        path = copy / name
        if language == "diff":
            change(path, text)
        elif language == "rust":
            path.write_text(text)
        elif not dry:
            target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
            run = subprocess.run(text, shell=True, cwd=copy, env={**os.environ, "CARGO_TARGET_DIR": target}, text=True, capture_output=True)
            print(run.stdout, run.stderr)
            if run.returncode != 0 or "test result: ok. 1 passed" not in run.stdout:
                sys.exit("FAILED: the command of the page")
            commands += 1
    if not dry and commands != 1:
        sys.exit("FAILED: the page has no command")


def main():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for name in filter(None, files):
            if name.startswith(("src/", "tests/it", "tests/streams", "tests/hidden.json", "tests/slips", "benches/", "Cargo", "README", "editors/")):
                target = copy / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((ROOT / name).read_bytes())
        follow(copy, "--dry" in sys.argv)
    print("ok: the first change works as the page says")


main()
