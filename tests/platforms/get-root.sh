#!/usr/bin/env bash
# get-root.sh [clean]: Debian sid in a folder, with Rust for other systems, zig, Wine and qemu (5 GB, about five minutes);
# or, with `clean`, an old Debian with nothing but its package manager and curl. The running system is not changed. Prints the folder.
. "$(dirname "$0")/../editors/common.sh"

ROOT=${TANDEM_PLATFORM_ROOT:-$CACHE/platforms}
PACKAGES=ca-certificates,rustc,cargo,rust-clippy,rust-src,gcc,libc6-dev,make,gcc-mingw-w64-x86-64-posix,mingw-w64-x86-64-dev
PACKAGES+=,qemu-user,wine,wine64,python3,git,file,binutils

# debian SUITE FOLDER PACKAGES: creates a root of that suite.
debian() {
  local suite=$1 folder=$2 packages=$3 tool
  say "making $folder"
  tool=$(mktemp -d)
  # Unpacked, not installed.
  (cd "$tool" && retry apt-get -qq -o APT::Sandbox::User=root download mmdebstrap && dpkg-deb -x mmdebstrap_*.deb .)
  rm -rf "$folder"
  # The mirror's index may be past its date.
  PATH=$tool/usr/bin:$PATH mmdebstrap --mode=root --variant=apt --architectures=amd64 --include="$packages" \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' "$suite" "$folder" "deb $(mirror) $suite main" >&2
  rm -rf "$tool"
}

[ "$(id -u)" = 0 ] || { say 'needs root, for chroot'; exit 1; }
once platforms
if [ "${1:-}" = clean ]; then
  ROOT+=-clean
  # The oldest release on the mirrors: glibc 2.31.
  [ -e "$ROOT/.done-1" ] || debian bullseye "$ROOT" ca-certificates,curl,mount
elif [ ! -e "$ROOT/.done-1" ]; then
  debian sid "$ROOT" "$PACKAGES"
  # The C compiler and linker for musl and macOS; its wheels are unpacked.
  wheels=$(mktemp -d)
  (cd "$wheels" && retry python3 -m pip download -q --disable-pip-version-check --no-deps ziglang==0.17.1 cargo-zigbuild==0.24.0 >&2)
  for wheel in "$wheels"/*.whl; do python3 -m zipfile -e "$wheel" "$wheels/unpacked"; done
  mkdir -p "$ROOT/opt/zig"
  cp -a "$wheels/unpacked/ziglang" "$ROOT/opt/zig/"
  install -m 755 "$wheels"/unpacked/cargo_zigbuild-*.data/scripts/cargo-zigbuild "$ROOT/usr/local/bin/"
  chmod +x "$ROOT/opt/zig/ziglang/zig"
  rm -rf "$wheels"
fi
touch "$ROOT/.done-1"
echo "$ROOT"
