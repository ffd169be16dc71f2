#!/usr/bin/env python3
"""A dry run of `packaging/release.py` with a placeholder for the program: archives, checksums, SBOM and manifests are complete."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "packaging/release.py"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
sys.path.insert(0, str(SCRIPT.parent))

import packages  # noqa: E402

TARGETS = list(packages.PLATFORMS)


def run(*arguments, fails=False):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def finish(out, tag=f"v{VERSION}", fails=False):
    vsix = f"{out}/../universal.vsix"
    return run("finish", "--repository", "someone/tandem", "--tag", tag, "--vsix", vsix, "--out", out, "--dry-run", fails=fails)


def make_extension(path):
    """A package like vsce's, as far as the release changes it."""
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("extension.vsixmanifest", f'<PackageManifest><Metadata><Identity Language="en-US" Id="tandem" Version="{VERSION}"/></Metadata></PackageManifest>')
        packed.writestr("[Content_Types].xml", '<Types><Default Extension=".json" ContentType="application/json"/></Types>')
        packed.writestr("extension/package.json", "{}")


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
    assert "winget/someone.tandem.installer.yaml" in texts, "winget-pkgs wants the identifier in the name"
    registry = json.loads(texts["acp-registry/agent.json"])
    assert {target["archive"].rsplit("/", 1)[1] for target in registry["distribution"]["binary"].values()} < set(sums)
    components = json.loads(pathlib.Path(f"{out}/tandem-sbom.cdx.json").read_text())["components"]
    names = {component["name"] for component in components}
    assert {"tokio", "serde", "reqwest"} <= names and "criterion" not in names, "the SBOM has what is shipped"


def check_packages(out, folder):
    """The packages contain the program of their platform; those for this machine are unpacked with its own tools."""
    for target, (system, machine) in packages.PLATFORMS.items():
        program = "tandem.exe" if system == "win32" else "tandem"
        with tarfile.open(f"{out}/npm-tandem-ls-{system}-{machine}-{VERSION}.tgz") as packed:
            assert packed.getmember(f"package/bin/{program}").mode == 0o755
            about = json.load(packed.extractfile("package/package.json"))
            assert (about["os"], about["cpu"], about["version"]) == ([system], [machine], VERSION), about
        with zipfile.ZipFile(f"{out}/tandem-{system}-{machine}.vsix") as packed:
            assert packed.getinfo(f"extension/server/{program}").external_attr >> 16 == 0o100755
            assert f'TargetPlatform="{system}-{machine}"' in packed.read("extension.vsixmanifest").decode()
            assert (b".exe" in packed.read("[Content_Types].xml")) == (system == "win32")
    with tarfile.open(f"{out}/npm-tandem-ls-{VERSION}.tgz") as packed:
        about = json.load(packed.extractfile("package/package.json"))
        assert set(about["optionalDependencies"]) == {f"tandem-ls-{system}-{machine}" for system, machine in packages.PLATFORMS.values()}
    package = f"{out}/tandem-ls_{VERSION}_amd64.deb"
    if shutil.which("dpkg-deb"):
        root = f"{folder}/root"
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        assert os.access(f"{root}/usr/bin/tandem", os.X_OK)
        about = subprocess.run(["dpkg-deb", "--field", package], check=True, capture_output=True, text=True).stdout
        assert "Package: tandem-ls" in about and "Architecture: amd64" in about, about


def check_installer(out, folder):
    """The shell installer installs what this release has, and nothing else."""

    def install(source, fails=False):
        home = tempfile.mkdtemp(dir=folder)
        environment = {"HOME": home, "PATH": os.environ["PATH"], "TANDEM_DOWNLOAD": f"file://{source}"}
        done = subprocess.run(["sh", f"{out}/tandem-install.sh"], env=environment, capture_output=True, text=True)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        left = sorted(os.listdir(f"{home}/.local/bin"))
        assert left == ([] if fails else ["tandem"]), left
        return done.stdout + done.stderr

    assert "is not on PATH" in install(out)
    other = pathlib.Path(folder, "other")
    other.mkdir()
    for target in TARGETS[:4]:
        (other / f"tandem-{target}.tar.gz").write_bytes(b"something else")
    assert "nothing was installed" in install(other, fails=True)
    assert "cannot be downloaded" in install(folder, fails=True)


def check_mirror(folder):
    """The mirror receives the plugin as its root folder, one commit per change, and tags, which leave its main where it is."""

    def git(*arguments, cwd=None):
        return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()

    clone, mirror = f"{folder}/clone", f"{folder}/mirror.git"
    git("clone", "--quiet", "--shared", str(ROOT), clone)
    shutil.copy(ROOT / "packaging/mirror.sh", f"{clone}/packaging/mirror.sh")
    git("init", "--quiet", "--bare", "--initial-branch=main", mirror)
    def bring(ref):
        subprocess.run([f"{clone}/packaging/mirror.sh", mirror, ref], check=True)
        return git("rev-parse", "main", cwd=mirror)

    git("tag", "v9.9.9", cwd=clone)
    first = bring("HEAD")
    assert bring("HEAD") == bring("refs/tags/v9.9.9") == first
    assert git("rev-parse", "v9.9.9", cwd=mirror) == first
    pathlib.Path(clone, "editors/neovim/new.txt").write_text("new\n")
    git("add", "--all", cwd=clone)
    git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message=new", cwd=clone)
    second = bring("HEAD")
    git("tag", "v9.9.8", "HEAD^", cwd=clone)
    assert bring("refs/tags/v9.9.8") == second
    assert git("rev-list", "--count", "main", cwd=mirror) == "2"
    assert "new.txt" not in git("ls-tree", "--name-only", "v9.9.8", cwd=mirror)
    assert "plugin" in git("ls-tree", "--name-only", "main", cwd=mirror).split()


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
        make_extension(f"{folder}/universal.vsix")
        finish(out)
        check_archives(out)
        check_manifests(out)
        check_packages(out, folder)
        if shutil.which("curl"):
            check_installer(out, folder)
        check_mirror(folder)
    print("ok: a release comes out whole")


main()
