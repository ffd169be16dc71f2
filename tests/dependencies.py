#!/usr/bin/env python3
"""Checks the dependencies without the network against `deny.toml`: licenses, duplicate versions, sources, and the Rust version.

Dependencies for tests and benches alone may come in two versions; what is shipped may not, unless `deny.toml` skips it."""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allows(expression, allowed):
    """Whether an SPDX expression can be met: `AND` before `OR`, parentheses, and the old slash for `OR`."""
    tokens = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))

    def any_of():
        met = all_of()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = all_of() or met
        return met

    def all_of():
        met = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = one() and met
        return met

    def one():
        token = tokens.pop(0)
        if token != "(":
            return token in allowed
        met = any_of()
        tokens.pop(0)
        return met

    return any_of()


def version(text):
    return [int(part) for part in re.findall(r"\d+", text)]


def packages(metadata, kinds):
    """The packages that the program reaches through dependencies of these kinds, our own left out."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    seen, queue = {root}, [root]
    while queue:
        for dependency in nodes[queue.pop()]["deps"]:
            used = any(kind["kind"] in kinds for kind in dependency["dep_kinds"])
            if used and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                queue.append(dependency["pkg"])
    return [package for package in metadata["packages"] if package["id"] in seen.difference(metadata["workspace_members"])]


def problems(metadata, rules):
    """What is wrong with the dependencies of one target."""
    exceptions = {entry["crate"]: set(entry["allow"]) for entry in rules["licenses"].get("exceptions", [])}
    rust = next(package["rust_version"] for package in metadata["packages"] if package["id"] == metadata["resolve"]["root"])
    for package in packages(metadata, {None, "build", "dev"}):
        name = f"{package['name']} {package['version']}"
        allowed = set(rules["licenses"]["allow"]) | exceptions.get(package["name"], set())
        if not allows(package["license"] or "none", allowed):
            yield f"{name}: license {package['license']}"
        if package["source"] != "registry+https://github.com/rust-lang/crates.io-index":
            yield f"{name}: from {package['source']}"
        if version(package["rust_version"] or "1") > version(rust) + [0]:
            yield f"{name}: needs Rust {package['rust_version']}, we promise {rust}"
    versions = collections.defaultdict(set)
    for package in packages(metadata, {None}):
        versions[package["name"]].add(package["version"])
    skipped = {entry.get("crate", entry.get("name", "")).split("@")[0] for entry in rules["bans"].get("skip", [])}
    for name, found in versions.items():
        if len(found) > 1 and name not in skipped:
            yield f"{name}: shipped in versions {', '.join(sorted(found))}"


def self_test():
    allowed = {"MIT", "ISC", "Apache-2.0 WITH LLVM-exception"}
    for expression, met in {
        "MIT": True, "GPL-3.0": False, "MIT OR GPL-3.0": True, "GPL-3.0/MIT": True, "MIT AND GPL-3.0": False,
        "(MIT OR GPL-3.0) AND ISC": True, "(GPL-3.0 OR AGPL-3.0) AND ISC": False, "Apache-2.0 WITH LLVM-exception": True, "none": False,
    }.items():
        assert allows(expression, allowed) == met, expression
    root = {"id": "r", "name": "r", "version": "1", "rust_version": "1.90", "license": "MIT", "source": None}
    bad = {"id": "b", "name": "b", "version": "1.0", "rust_version": "1.91", "license": "GPL-3.0", "source": "git"}
    other = {**bad, "id": "b2", "version": "2.0"}
    edge = [{"pkg": name, "dep_kinds": [{"kind": None}]} for name in ("b", "b2")]
    nodes = [{"id": "r", "deps": edge}, {"id": "b", "deps": []}, {"id": "b2", "deps": []}]
    metadata = {"workspace_members": ["r"], "packages": [root, bad, other], "resolve": {"root": "r", "nodes": nodes}}
    found = list(problems(metadata, {"licenses": {"allow": ["MIT"]}, "bans": {}}))
    assert len(found) == 7, found


def main():
    self_test()
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    found = set()
    for target in rules["graph"]["targets"]:
        command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"FAILED: {run.stderr}")
        found.update(problems(json.loads(run.stdout), rules))
    for problem in sorted(found):
        print(f"FAILED {problem}")
    if found:
        sys.exit(1)
    print(f"ok: licenses, versions, sources and Rust version on {len(rules['graph']['targets'])} targets")


main()
