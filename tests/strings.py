#!/usr/bin/env python3
"""Lists every string of the server and of the Neovim plugin that a person or a model may read, by file, so that they can be read in
one sitting (those of the VS Code extension are in editors/vscode/l10n).

The doc comments of `src/cli` are included, because clap prints them as help. Tests, log messages and strings that no one reads
(identifiers, queries, patterns) are left out. `tests/prose.py` lints the rest."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>\bb?r(?P<fence>\#*)"(?P<inner>.*?)"(?P=fence))
      | (?P<text>\bb?"(?:[^"\\]|\\.)*"|"(?:[^"\\]|\\.)*")
      | (?P<char>'(?:[^'\\]|\\.[^']*)')""",
    re.S | re.X,
)
LUA = re.compile(r"""(?P<comment>--[^\n]*)|(?P<raw>\[\[(?P<inner>.*?)\]\])|(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""", re.S)
# Functions whose string arguments no person reads.
UNREAD = re.compile(r"(tracing::\w+!|vim\.cmd|require|expect(_err)?|reason =|include_\w+!|Regex::new|starts_with|ends_with|contains|env!)\s*\(?\s*$")


def strings(path):
    """The line number and text of each string."""
    source = path.read_text()
    tests = re.search(r"^#\[cfg\((all\()?test\b.*\n(#\[.*\n)*mod \w+ \{", source, re.M)
    for token in (LUA if path.suffix == ".lua" else TOKEN).finditer(source, 0, tests.start() if tests else len(source)):
        literal = token["inner"] if token["raw"] else token["text"]
        if (token["comment"] or "").startswith("/// ") and "cli" in path.parts:
            yield source.count("\n", 0, token.start()) + 1, token["comment"].removeprefix("/// ")
        if literal is None or UNREAD.search(source, max(0, token.start() - 40), token.start()):
            continue
        text = literal if token["raw"] else re.sub(r"\\\n\s*", "", literal).strip("\"'").replace('\\"', '"')
        if is_sentence(text):
            yield source.count("\n", 0, token.start()) + 1, text


def is_sentence(text):
    is_shell = re.search(r"&&|\./|\$[@#(\"]|/dev/null", text)
    return not is_shell and len(re.findall(r"[A-Za-z]{2,}", text)) > 1 and " " in text.strip() and "\0" not in text


def test_modules(root):
    """The test-only modules, as their paths without `.rs`."""
    for path in root.rglob("*.rs"):
        inside = path.parent if path.name in ("lib.rs", "main.rs") else path.with_suffix("")
        for name in re.findall(r"^#\[cfg\(test\)\]\n(?:#\[.*\n)*(?:pub(?:\(.*\))? )?mod (\w+);", path.read_text(), re.M):
            yield inside / name


def files():
    tests = set(test_modules(ROOT / "src"))
    server = sorted(path for path in (ROOT / "src").rglob("*.rs") if tests.isdisjoint([path.with_suffix(""), *path.parents]))
    return server + sorted(path for name in ("lua", "plugin") for path in (ROOT / "editors/neovim" / name).rglob("*.lua"))


def main():
    for path in files():
        found = list(strings(path))
        if found:
            print(f"\n{path.relative_to(ROOT)}")
        for line, text in found:
            print(f"{line:5}  {text}")


if __name__ == "__main__":
    main()
