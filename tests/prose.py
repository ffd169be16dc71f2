#!/usr/bin/env python3
"""Lints the prose of every Markdown page, of Neovim's help, and of the server's texts: with proselint (in the Python of
tests/editors/get-linters.sh), and for phrases that read translated. Code is left out."""

import pathlib
import re
import sys

import strings
from proselint.tools import lint

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["*.md", "docs/**/*.md", "editors/*/*.md", ".github/**/*.md", "src/*.md", "benches/*.md"]
# Fenced blocks, inline code, HTML tags and the targets of links; what replaces them keeps lines and columns.
CODE = re.compile(r"^```.*?^```$|``.+?``|`[^`\n]+`|<[^>\n]+>|(?<=\])\([^)\n]+\)", re.S | re.M)

# Phrases that read translated, and names that have been replaced: each with what to write.
PHRASES = [
    (r"\balso (after|when|in|on|while|from)\b", "even after, in … too"),
    (r"(?:^|\. )What (a|you|the|is|was|turns)\b[^?]*\.", "name the thing instead of a clause"),
    (r"\bonce [^.|]*? was\b", "once … has been"),
    (r"\b(type|typing|write) on\b", "keep typing"),
    (r"\btakes? [^.|]{0,40}along\b|\b(goes|sent) along\b", "moves with, is attached"),
    (r"\btandem asks\b", "tandem requires approval, fetches, queries"),
    (r"\bwas (changed|edited|removed) since\b", "has been changed since"),
    (r"\b(says|tells) (what|which|why)\b", "shows, lists, prints"),
    (r"\bblanks?\b", "whitespace"),
    (r"\b(shadow turn|dialects?)\b", "`/try` turn, API"),
]


def phrases(text):
    for pattern, better in PHRASES:
        for found in re.finditer(pattern, text, re.M):
            yield text.count("\n", 0, found.start()), f"`{found.group()[:40]}`: write {better}"


def prose(text):
    return CODE.sub(lambda code: re.sub(r"\S", "·", code.group()), text)


def main():
    pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})
    assert len(pages) > 20, pages
    wrong = []
    for page in pages:
        for check, message, line, column, *_ in lint(prose(page.read_text())):
            wrong.append(f"{page.relative_to(ROOT)}:{line + 1}:{column + 1}: {check}: {message}")
    for page in [*pages, ROOT / "editors/neovim/doc/tandem.txt"]:
        found = phrases(prose(page.read_text())) if page.name != "CHANGELOG.md" else []
        wrong += [f"{page.relative_to(ROOT)}:{line + 1}: {message}" for line, message in found]
    said = [(path, *found) for path in strings.files(ROOT / "src") for found in strings.strings(path)]
    assert len(said) > 800, len(said)
    wrong += [f"{path.relative_to(ROOT)}:{at}: {message}" for path, at, text in said for _, message in phrases(text)]
    # One text, because the linter is slow to start; each string has a line, and a line after it that ends its sentence.
    for check, message, line, *_ in lint(prose("\n·\n".join(text.replace("\n", " ") for *_, text in said))):
        path, at, text = said[line // 2]
        if check == "annotations.misc" and "todo" in text and "TODO" not in text:
            continue  # what models call a plan, and write in place of code
        wrong.append(f"{path.relative_to(ROOT)}:{at}: {check}: {message}")
    print("\n".join(wrong))
    assert lint("It is is wrong.") and list(phrases("It works, also after a restart.")), "the linter finds nothing"
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
