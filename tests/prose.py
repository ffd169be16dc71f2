#!/usr/bin/env python3
"""Lints the prose of every page and the texts of the interface, with what tests/editors/get-linters.sh gets (run it in its Python):
textlint finds the terms and phrases of tests/words, with what to write instead, and proselint what reads badly. Code is left out."""

import pathlib
import re
import subprocess
import sys
import tempfile

import strings
from proselint.tools import lint

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Fenced blocks, inline code, HTML tags and link targets; their replacement preserves lines and columns.
CODE = re.compile(r"^```.*?^```$|``.+?``|`[^`\n]+`|<[^>\n]+>|(?<=\])\([^)\n]+\)", re.S | re.M)


def prose(text):
    return CODE.sub(lambda code: re.sub(r"\S", "·", code.group()), text)


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, text=True, capture_output=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def textlint(rules, paths, folder):
    """textlint's findings, by path in the repository. The folder contains copies of the texts, with one mistake that must be found."""
    planted = folder / "planted.md"
    planted.write_text("It obeys.\n")
    program = pathlib.Path(sys.executable).parent / "textlint"
    command = [program, "--config", ROOT / f"tests/words/{rules}.json", "--format", "unix", planted, *paths]
    run = subprocess.run(command, text=True, capture_output=True)
    found = [line.removeprefix(f"{folder}/").removeprefix(f"{ROOT}/") for line in run.stdout.splitlines() if "[Error/" in line]
    assert any(line.startswith("planted.md:") for line in found), run.stdout + run.stderr
    return [line for line in found if not line.startswith("planted.md:")]


def terms(pages, said):
    """Retired terms in pages and sources; phrases in pages and in the texts of the interface, each on its line of a copy without code; and
    the word for a directory in those that are not VS Code's, which has its own."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        copies = {}
        for path, at, text in said:
            lines = copies.setdefault(folder / path.relative_to(ROOT), [])
            lines += [""] * (at - len(lines))
            lines[-1] += " " + text.replace("\n", " ")
        for path, lines in copies.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines))
        others = tracked("*/tandem.txt", "*/package.nls.json", "*/bundle.l10n.json", "src/agent/*.md", "src/cli/demo/*/script.json", "*/ISSUE_TEMPLATE/*.yml", "action.yml")
        sources = tracked("src/*.rs", "editors/*.ts", "editors/*.lua")
        texts = [*pages, *others, *copies]
        elsewhere = [path for path in texts if "vscode" not in path.parts]
        return textlint("terms", sources, folder) + textlint("phrases", texts, folder) + textlint("directories", elsewhere, folder)


def main():
    pages = tracked("*.md", ":!src/agent")
    assert len(pages) > 30, pages
    said = [(path, *found) for path in strings.files() for found in strings.strings(path)]
    assert len(said) > 800, len(said)
    wrong = terms(pages, said)
    for page in pages:
        for check, message, line, column, *_ in lint(prose(page.read_text())):
            wrong.append(f"{page.relative_to(ROOT)}:{line + 1}:{column + 1}: {check}: {message}")
    # One text, because the linter is slow to start; each string is on a line, followed by a line that ends its sentence.
    for check, message, line, *_ in lint(prose("\n·\n".join(text.replace("\n", " ") for *_, text in said))):
        path, at, text = said[line // 2]
        if check == "annotations.misc" and "todo" in text and "TODO" not in text:
            continue  # models' names for a plan, and for omitted code
        wrong.append(f"{path.relative_to(ROOT)}:{at}: {check}: {message}")
    print("\n".join(wrong))
    assert lint("It is is wrong."), "the linter finds nothing"
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
