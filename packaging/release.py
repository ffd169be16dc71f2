#!/usr/bin/env python3
"""Makes the files of a release. `RELEASING.md` says when; the workflow `release.yml` runs it, and so can a person:

  release.py archive --target TRIPLE [--binary FILE] --out DIR     one archive of a program that was built; `--asked FILE` is a
                                                                   program of this machine, for manual and completions
  release.py finish --repository OWNER/NAME --tag vX.Y.Z --vsix FILE --out DIR
                                                                   from the archives in DIR: packages for npm, VS Code and Debian,
                                                                   installers, checksums, SBOM, notes, manifests of package managers

`--vsix` is the extension that `npm --prefix editors/vscode run package` makes. `--dry-run` takes the notes from the section
"Unreleased".

The manifests are templates with `@NAME@` where a release's own values go; one that is left over is an error."""

import argparse
import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import packages

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "packaging/templates"
SHELLS = {"bash": "tandem.bash", "zsh": "_tandem", "fish": "tandem.fish", "powershell": "tandem.ps1", "elvish": "tandem.elv"}
INSTALLERS = ROOT / "packaging/installers"
TARGETS = list(packages.PLATFORMS)


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]


def archive_name(target):
    return f"tandem-{target}" + (".zip" if "windows" in target else ".tar.gz")


def contents(binary, program_here, target):
    """The files of an archive: name, bytes and whether it can be run."""
    program = "tandem.exe" if "windows" in target else "tandem"

    def asked(*arguments):
        return subprocess.run([program_here, *arguments], check=True, capture_output=True).stdout

    yield program, pathlib.Path(binary).read_bytes(), True
    yield "man/tandem.1", asked("man"), False
    for shell, name in SHELLS.items():
        yield f"completions/{name}", asked("completions", shell), False
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]:
        yield name, (ROOT / name).read_bytes(), False


def archive(arguments):
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    program = "tandem.exe" if "windows" in arguments.target else "tandem"
    binary = arguments.binary or ROOT / "target" / arguments.target / "dist" / program
    path = out / archive_name(arguments.target)
    files = list(contents(binary, arguments.asked or binary, arguments.target))
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name, data, _ in files:
                packed.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)
    else:
        # No times and no owners: the same program gives the same archive.
        with open(path, "wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as zipped, tarfile.open(fileobj=zipped, mode="w") as packed:
            for name, data, runs in files:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o755 if runs else 0o644
                packed.addfile(entry, io.BytesIO(data))
    print(f"{path} {path.stat().st_size} bytes")


def sbom():
    """CycloneDX: the crates that the program is built from, on any target."""
    run = subprocess.run(["cargo", "metadata", "--locked", "--format-version", "1"], cwd=ROOT, check=True, capture_output=True)
    metadata = json.loads(run.stdout)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    seen, queue = set(), [metadata["resolve"]["root"]]
    while queue:
        package = queue.pop()
        if package not in seen:
            seen.add(package)
            queue += [d["pkg"] for d in nodes[package]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]

    def component(package):
        purl = f"pkg:cargo/{package['name']}@{package['version']}"
        license = (package["license"] or "").replace("/", " OR ")
        return {"type": "library", "bom-ref": purl, "purl": purl, "name": package["name"], "version": package["version"], "licenses": [{"expression": license}]}

    crates = sorted((p for p in metadata["packages"] if p["id"] in seen and p["source"]), key=lambda p: (p["name"], p["version"]))
    program = {"type": "application", "name": "tandem", "version": version()}
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": program}, "components": [component(p) for p in crates]}


def notes(tag, dry_run):
    """The section of the changelog about this version; in a dry run the one that is not released."""
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    name = "Unreleased" if dry_run else tag.removeprefix("v")
    found = [section for section in sections if section.startswith((name, f"[{name}]"))]
    if len(found) != 1:
        sys.exit(f"CHANGELOG.md has no section for {tag}")
    return found[0].split("\n", 1)[1].strip() + "\n"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fill(text, values):
    """A template with its values. What has none is a mistake."""
    return re.sub(r"@([A-Z0-9_]+)@", lambda match: values.get(match[1]) or sys.exit(f"no value for {match[0]}"), text)


def finish(arguments):
    out = pathlib.Path(arguments.out)
    if arguments.tag != f"v{version()}":
        sys.exit(f"the tag {arguments.tag} is not v{version()}, the version of Cargo.toml")
    (out / "notes.md").write_text(notes(arguments.tag, arguments.dry_run))
    (out / "tandem-sbom.cdx.json").write_text(json.dumps(sbom(), indent=1) + "\n")
    missing = [target for target in TARGETS if not (out / archive_name(target)).exists()]
    if missing:
        sys.exit(f"no archive for {', '.join(missing)}")
    download = f"https://github.com/{arguments.repository}/releases/download/{arguments.tag}"
    values = {"VERSION": version(), "REPOSITORY": f"https://github.com/{arguments.repository}", "DOWNLOAD": download, "OWNER": arguments.repository.split("/")[0]}
    archives = {target: out / archive_name(target) for target in TARGETS}
    for target, path in archives.items():
        values["SHA256_" + target.replace("-", "_").upper()] = digest(path)
    for installer in INSTALLERS.iterdir():
        (out / f"tandem-{installer.name}").write_text(fill(installer.read_text(), values))
    packages.npm(out, version(), values["REPOSITORY"], archives)
    packages.vsix(out, pathlib.Path(arguments.vsix), archives)
    packages.deb(out, version(), values["REPOSITORY"], archives)
    sums = {path.name: digest(path) for kind in ["tandem-*", "npm-*"] for path in sorted(out.glob(kind))}
    (out / "SHA256SUMS").write_text("".join(f"{sum}  {name}\n" for name, sum in sums.items()))
    with tarfile.open(out / "manifests.tar.gz", "w:gz") as packed:
        for template in sorted(path for path in TEMPLATES.rglob("*") if path.is_file()):
            data = fill(template.read_text(), values).encode()
            entry = tarfile.TarInfo(fill(str(template.relative_to(TEMPLATES)), values))
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    print(f"{len(sums)} files, {out / 'manifests.tar.gz'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("archive")
    one.add_argument("--target", required=True, choices=TARGETS)
    one.add_argument("--binary")
    one.add_argument("--asked")
    one.add_argument("--out", required=True)
    one.set_defaults(run=archive)
    all_of_it = commands.add_parser("finish")
    all_of_it.add_argument("--repository", required=True)
    all_of_it.add_argument("--tag", required=True)
    all_of_it.add_argument("--vsix", required=True)
    all_of_it.add_argument("--out", required=True)
    all_of_it.add_argument("--dry-run", action="store_true")
    all_of_it.set_defaults(run=finish)
    arguments = parser.parse_args()
    arguments.run(arguments)


main()
