"""Packages that carry the program, made from the archives of a release: npm, VS Code extensions per platform, Debian, installers.

The same archives give the same packages: no times and no owners are in them."""

import gzip
import io
import json
import pathlib
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Target: how Node (and npm) and VS Code call the platform.
PLATFORMS = {
    "x86_64-unknown-linux-musl": ("linux", "x64"),
    "aarch64-unknown-linux-musl": ("linux", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
    "x86_64-pc-windows-msvc": ("win32", "x64"),
    "aarch64-pc-windows-msvc": ("win32", "arm64"),
}
DEBIAN = {"x86_64-unknown-linux-musl": "amd64", "aarch64-unknown-linux-musl": "arm64"}
DESCRIPTION = "A coding agent that your editor runs as a language server"


def unpacked(archive):
    """The files of an archive by name."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            return {name: packed.read(name) for name in packed.namelist()}
    with tarfile.open(archive) as packed:
        return {member.name: packed.extractfile(member).read() for member in packed if member.isfile()}


def tar(files, path=None):
    """A gzipped tar of `name: (bytes, mode)`, in a file or as bytes."""
    data = io.BytesIO()
    with gzip.GzipFile("", "wb", mtime=0, fileobj=data) as zipped, tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as packed:
        for folder in sorted({str(parent) for name in files for parent in pathlib.PurePosixPath(name).parents} - {"."}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            packed.addfile(entry)
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            packed.addfile(entry, io.BytesIO(content))
    if path:
        path.write_bytes(data.getvalue())
    return data.getvalue()


def npm(out, version, repository, archives):
    """`tandem-ls`, which starts the program, and a package with the program for each platform."""
    common = {"version": version, "license": "MIT OR Apache-2.0", "repository": {"type": "git", "url": f"git+{repository}.git"}}
    optional = {}
    for target, (system, machine) in PLATFORMS.items():
        name = f"tandem-ls-{system}-{machine}"
        program = "tandem.exe" if system == "win32" else "tandem"
        files = unpacked(archives[target])
        about = {"name": name, **common, "description": f"{DESCRIPTION} (the program for {system}-{machine})", "os": [system], "cpu": [machine], "files": ["bin"]}
        content = {"package/package.json": (json.dumps(about, indent=2).encode(), 0o644), f"package/bin/{program}": (files[program], 0o755)}
        content |= {f"package/{license}": (files[license], 0o644) for license in ["LICENSE-APACHE", "LICENSE-MIT"]}
        tar(content, out / f"npm-{name}-{version}.tgz")
        optional[name] = version
    about = {"name": "tandem-ls", **common, "description": DESCRIPTION, "keywords": ["agent", "lsp", "acp", "editor"], "engines": {"node": ">=18"}}
    about |= {"bin": {"tandem": "bin/tandem.js"}, "optionalDependencies": optional}
    content = {"package/package.json": (json.dumps(about, indent=2).encode(), 0o644), "package/bin/tandem.js": ((HERE / "npm/tandem.js").read_bytes(), 0o755)}
    content |= {f"package/{name}": (files[name], 0o644) for name in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"]}
    tar(content, out / f"npm-tandem-ls-{version}.tgz")


def vsix(out, universal, archives):
    """The extension with the program inside, for each platform."""
    data = universal.read_bytes()
    if universal.parent == out:
        universal.unlink()
    (out / "tandem-universal.vsix").write_bytes(data)
    universal = io.BytesIO(data)
    with zipfile.ZipFile(universal) as packed:
        entries = [(entry, packed.read(entry)) for entry in packed.infolist()]
    for target, (system, machine) in PLATFORMS.items():
        program = "tandem.exe" if system == "win32" else "tandem"
        data = unpacked(archives[target])[program]
        with zipfile.ZipFile(out / f"tandem-{system}-{machine}.vsix", "w") as packed:
            for entry, content in entries:
                if entry.filename == "extension.vsixmanifest":
                    content, count = re.subn(rb"<Identity ", b'<Identity TargetPlatform="%s-%s" ' % (system.encode(), machine.encode()), content)
                    assert count == 1, "the extension's manifest has one identity"
                if entry.filename == "[Content_Types].xml" and system == "win32":
                    content = content.replace(b"</Types>", b'<Default Extension=".exe" ContentType="application/octet-stream"/></Types>')
                packed.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
            entry = zipfile.ZipInfo(f"extension/server/{program}", (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100755 << 16
            packed.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


def deb(out, version, repository, archives):
    """A Debian package: an `ar` of a version, the control files and the files."""
    places = {
        "tandem": ("usr/bin/tandem", 0o755),
        "man/tandem.1": ("usr/share/man/man1/tandem.1.gz", 0o644),
        "completions/tandem.bash": ("usr/share/bash-completion/completions/tandem", 0o644),
        "completions/_tandem": ("usr/share/zsh/vendor-completions/_tandem", 0o644),
        "completions/tandem.fish": ("usr/share/fish/vendor_completions.d/tandem.fish", 0o644),
        "LICENSE-MIT": ("usr/share/doc/tandem-ls/copyright", 0o644),
        "CHANGELOG.md": ("usr/share/doc/tandem-ls/changelog.gz", 0o644),
    }
    for target, machine in DEBIAN.items():
        files = unpacked(archives[target])
        content = {}
        for name, (place, mode) in places.items():
            data = gzip.compress(files[name], mtime=0) if place.endswith(".gz") else files[name]
            content[f"./{place}"] = (data, mode)
        control = "".join(
            f"{line}\n"
            for line in [
                "Package: tandem-ls",
                f"Version: {version}",
                f"Architecture: {machine}",
                f"Maintainer: tandem <{repository}>",
                f"Installed-Size: {sum(len(data) for data, _ in content.values()) // 1024}",
                "Recommends: bubblewrap",
                "Section: devel",
                "Priority: optional",
                f"Homepage: {repository}",
                f"Description: {DESCRIPTION}",
            ]
        )
        members = {"debian-binary": b"2.0\n", "control.tar.gz": tar({"./control": (control.encode(), 0o644)}), "data.tar.gz": tar(content)}
        data = b"!<arch>\n"
        for name, member in members.items():
            data += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(member):<10}`\n".encode() + member + b"\n" * (len(member) % 2)
        (out / f"tandem-ls_{version}_{machine}.deb").write_bytes(data)
