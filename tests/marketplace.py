#!/usr/bin/env python3
"""Packages the extension as a release does, for somebody else's repository: without a warning, with links to that repository, and each link of its page
leads to a file of this tree. It stays as editors/vscode/tandem.vsix until the next package is made."""

import json
import os
import pathlib
import re
import subprocess
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "editors/vscode"
URL = "https://github.com/someone/tandem"
KINDS = {"blob": "a page", "raw": "a picture"}

made = subprocess.run(["npm", "run", "package", "--", "someone/tandem", "v1.2.3"], cwd=FOLDER, capture_output=True, text=True)
words = made.stdout + made.stderr
assert made.returncode == 0 and "DONE" in words, words
assert "WARN" not in re.sub("npm warn.*", "", words), words
assert "repository" not in json.loads((FOLDER / "package.json").read_text()), "the clone's own package.json is as before"

with zipfile.ZipFile(FOLDER / "tandem.vsix") as packed:
    about = json.loads(packed.read("extension/package.json"))
    page = packed.read("extension/readme.md").decode()
    manifest = packed.read("extension.vsixmanifest").decode()
assert [about["repository"]["url"], about["bugs"]["url"]] == [f"{URL}.git", f"{URL}/issues"], about
for link in ["Source", "Support", "Learn"]:
    assert f'Links.{link}" Value="{URL}' in manifest, manifest

links = re.findall(r'\]\(([^)\s]+)|(?:src|href)="([^"]+)"', page)
links = [plain or html for plain, html in links]
assert len(links) > 10, links
seen = set()
for link in links:
    if link.startswith("#"):
        continue
    kind, path = re.fullmatch(rf"{URL}/(blob|raw)/v1\.2\.3/([^#]+)(?:#.*)?", link).groups()
    assert os.path.exists(ROOT / os.path.normpath(path)), link
    assert (kind == "raw") == path.endswith(".png"), f"{link} is {KINDS[kind]}"
    seen.add(kind)
assert seen == set(KINDS), seen
print(f"{len(links)} links")
