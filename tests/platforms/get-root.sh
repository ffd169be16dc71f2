#!/usr/bin/env bash
# get-root.sh: Debian sid in a folder of its own, with Rust for other systems, zig, Wine and qemu (5 GB, about five minutes).
# The running system stays as it is. Prints the folder.
. "$(dirname "$0")/../editors/common.sh"

ROOT=${TANDEM_PLATFORM_ROOT:-$CACHE/platforms}
PACKAGES=ca-certificates,rustc,cargo,rust-clippy,rust-src,gcc,libc6-dev,make,gcc-mingw-w64-x86-64-posix,mingw-w64-x86-64-dev
PACKAGES+=,qemu-user,wine,wine64,python3,git,file,binutils

[ "$(id -u)" = 0 ] || { say 'needs root, for chroot'; exit 1; }
once platforms
if [ ! -e "$ROOT/.done-1" ]; then
  say "making $ROOT"
  tool=$(mktemp -d)
  mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)
  # Unpacked, not installed.
  (cd "$tool" && retry apt-get -qq -o APT::Sandbox::User=root download mmdebstrap && dpkg-deb -x mmdebstrap_*.deb .)
  rm -rf "$ROOT"
  # The mirror's index of sid may be past its date.
  PATH=$tool/usr/bin:$PATH mmdebstrap --mode=root --variant=apt --architectures=amd64 --include="$PACKAGES" \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' sid "$ROOT" "deb $mirror sid main" >&2
  # The C compiler and linker for musl and macOS; its wheels are unpacked.
  (cd "$tool" && retry python3 -m pip download -q --disable-pip-version-check --no-deps ziglang==0.17.1 cargo-zigbuild==0.24.0 >&2)
  for wheel in "$tool"/*.whl; do python3 -m zipfile -e "$wheel" "$tool/wheels"; done
  mkdir -p "$ROOT/opt/zig"
  cp -a "$tool/wheels/ziglang" "$ROOT/opt/zig/"
  install -m 755 "$tool"/wheels/cargo_zigbuild-*.data/scripts/cargo-zigbuild "$ROOT/usr/local/bin/"
  chmod +x "$ROOT/opt/zig/ziglang/zig"
  rm -rf "$tool"
  touch "$ROOT/.done-1"
fi
echo "$ROOT"
