#!/usr/bin/env python3
"""Lints the prose of every Markdown page with proselint (in the Python of tests/editors/get-linters.sh). Code is left out."""

import pathlib
import re
import sys

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
    found = [(page, mistake) for page in pages for mistake in lint(prose(page.read_text()))]
    for page, (check, message, line, column, *_) in found:
        print(f"{page.relative_to(ROOT)}:{line + 1}:{column + 1}: {check}: {message}")
    assert lint("It is is wrong."), "the linter finds nothing"
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
