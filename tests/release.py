#!/usr/bin/env python3
"""A dry run of `packaging/release.py` with a program that is none: archives, checksums, SBOM and manifests come out whole."""

import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "packaging/release.py"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
TARGETS = re.findall(r'"([\w-]+-(?:musl|darwin|msvc))"', SCRIPT.read_text().split("TARGETS = [", 1)[1].split("]", 1)[0])


def run(*arguments, fails=False):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def finish(out, tag=f"v{VERSION}", fails=False):
    return run("finish", "--repository", "someone/tandem", "--tag", tag, "--out", out, "--dry-run", fails=fails)


def check_archives(out):
    wanted = {"man/tandem.1", "completions/_tandem", "completions/tandem.bash", "README.md", "LICENSE-MIT", "LICENSE-APACHE"}
    with tarfile.open(f"{out}/tandem-{TARGETS[0]}.tar.gz") as packed:
        assert wanted | {"tandem"} <= set(packed.getnames()), packed.getnames()
        assert packed.getmember("tandem").mode == 0o755
    with zipfile.ZipFile(f"{out}/tandem-x86_64-pc-windows-msvc.zip") as packed:
        assert wanted | {"tandem.exe"} <= set(packed.namelist()), packed.namelist()


def check_manifests(out):
    sums = dict(reversed(line.split("  ")) for line in pathlib.Path(f"{out}/SHA256SUMS").read_text().splitlines())
    for name, digest in sums.items():
        assert hashlib.sha256(pathlib.Path(f"{out}/{name}").read_bytes()).hexdigest() == digest, name
    with tarfile.open(f"{out}/manifests.tar.gz") as packed:
        texts = {member.name: packed.extractfile(member).read().decode() for member in packed}
    assert len(texts) == 8, sorted(texts)
    for name, text in texts.items():
        assert VERSION in text and not re.search(r"@[A-Z0-9_]+@", text), name
        for digest in re.findall(r"\b[0-9a-f]{64}\b", text):
            assert digest in sums.values(), name
        if name.endswith(".json"):
            json.loads(text)
    registry = json.loads(texts["acp-registry/agent.json"])
    assert {target["archive"].rsplit("/", 1)[1] for target in registry["distribution"]["binary"].values()} < set(sums)
    components = json.loads(pathlib.Path(f"{out}/tandem-sbom.cdx.json").read_text())["components"]
    names = {component["name"] for component in components}
    assert {"tokio", "serde", "reqwest"} <= names and "criterion" not in names, "the SBOM has what is shipped"


def main():
    assert len(TARGETS) == 6, TARGETS
    with tempfile.TemporaryDirectory() as folder:
        program, out = pathlib.Path(folder) / "program", f"{folder}/out"
        program.write_text('#!/bin/sh\necho "$@"\n')
        program.chmod(0o755)
        for target in TARGETS[:-1]:
            run("archive", "--target", target, "--binary", str(program), "--out", out)
        before = pathlib.Path(f"{out}/tandem-{TARGETS[0]}.tar.gz").read_bytes()
        run("archive", "--target", TARGETS[0], "--binary", str(program), "--out", out)
        assert pathlib.Path(f"{out}/tandem-{TARGETS[0]}.tar.gz").read_bytes() == before, "the same program gives the same archive"
        assert "is not" in finish(out, "v99.0.0", fails=True)
        assert "no archive for" in finish(out, fails=True)
        run("archive", "--target", TARGETS[-1], "--binary", str(program), "--out", out)
        finish(out)
        check_archives(out)
        check_manifests(out)
    print("ok: a release comes out whole")


main()
