#!/usr/bin/env python3
"""frameworks.py REGISTRY OUT: stubs of the macOS frameworks that the crates in REGISTRY declare functions of, to link against.

A stub names symbols and holds no code, so what is linked with it shows that every symbol is declared, and does not run."""

import pathlib
import re
import sys

FRAMEWORKS = ["CoreFoundation", "CoreServices", "Foundation", "IOKit", "Security", "SystemConfiguration"]
CRATES = ["core-foundation-sys", "security-framework-sys", "system-configuration-sys"]

registry, out = map(pathlib.Path, sys.argv[1:])
sources = [path for crate in CRATES for path in registry.glob(f"*/{crate}-*/src/**/*.rs")]
declared = r"\bpub (?:fn|static(?: mut)?) (\w+)"
symbols = sorted({name for path in sources for name in re.findall(declared, path.read_text(errors="replace"))})
assert symbols, f"{registry} has none of {CRATES}; `cargo fetch` gets them"
for framework in FRAMEWORKS:
    folder = out / f"{framework}.framework"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "--- !tapi-tbd",
        "tbd-version: 4",
        "targets: [ x86_64-macos, arm64-macos ]",
        f"install-name: '/System/Library/Frameworks/{framework}.framework/Versions/A/{framework}'",
        "exports:",
        "  - targets: [ x86_64-macos, arm64-macos ]",
        f"    symbols: [ {', '.join('_' + symbol for symbol in symbols)} ]",
        "...",
    ]
    (folder / f"{framework}.tbd").write_text("\n".join(lines) + "\n")
print(f"{len(symbols)} symbols")
