#!/usr/bin/env python3
"""Lints the prose of every Markdown page, and of what the server says, with proselint (in the Python of
tests/editors/get-linters.sh). Code is left out."""

import pathlib
import re
import sys

import strings
from proselint.tools import lint

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["*.md", "docs/**/*.md", "editors/*/*.md", ".github/**/*.md", "src/*.md", "benches/*.md"]
# Fenced blocks, inline code, HTML tags and the targets of links; what replaces them keeps lines and columns.
CODE = re.compile(r"^```.*?^```$|``.+?``|`[^`\n]+`|<[^>\n]+>|(?<=\])\([^)\n]+\)", re.S | re.M)


def prose(text):
    return CODE.sub(lambda code: re.sub(r"\S", "·", code.group()), text)


def main():
    pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})
    assert len(pages) > 20, pages
    wrong = []
    for page in pages:
        for check, message, line, column, *_ in lint(prose(page.read_text())):
            wrong.append(f"{page.relative_to(ROOT)}:{line + 1}:{column + 1}: {check}: {message}")
    said = [(path, *found) for path in strings.files(ROOT / "src") for found in strings.strings(path)]
    assert len(said) > 800, len(said)
    # One text, because the linter is slow to start; each string has a line, and a line after it that ends its sentence.
    for check, message, line, *_ in lint(prose("\n·\n".join(text.replace("\n", " ") for *_, text in said))):
        path, at, text = said[line // 2]
        if check == "annotations.misc" and "todo" in text and "TODO" not in text:
            continue  # what models call a plan, and write in place of code
        wrong.append(f"{path.relative_to(ROOT)}:{at}: {check}: {message}")
    print("\n".join(wrong))
    assert lint("It is is wrong."), "the linter finds nothing"
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
