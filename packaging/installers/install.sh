#!/bin/sh
# Installs tandem @VERSION@ into ~/.local/bin (or TANDEM_INSTALL_DIR). Nothing else is touched; removing the file uninstalls it.
set -eu

main() {
  target=$(find_target)
  case $target in
    x86_64-unknown-linux-musl) digest=@SHA256_X86_64_UNKNOWN_LINUX_MUSL@ ;;
    aarch64-unknown-linux-musl) digest=@SHA256_AARCH64_UNKNOWN_LINUX_MUSL@ ;;
    x86_64-apple-darwin) digest=@SHA256_X86_64_APPLE_DARWIN@ ;;
    aarch64-apple-darwin) digest=@SHA256_AARCH64_APPLE_DARWIN@ ;;
  esac
  folder=${TANDEM_INSTALL_DIR:-${HOME:?set HOME or TANDEM_INSTALL_DIR}/.local/bin}
  mkdir -p "$folder" || fail "$folder cannot be written to; set TANDEM_INSTALL_DIR to a directory that can"
  # Beside the destination, since /tmp may be small or not executable.
  work=$(mktemp -d "$folder/.tandem-install-XXXXXX") || fail "$folder cannot be written to; set TANDEM_INSTALL_DIR to a directory that can"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  get "${TANDEM_DOWNLOAD:-@DOWNLOAD@}/tandem-$target.tar.gz" "$work/archive"
  [ "$(sum "$work/archive")" = "$digest" ] || fail "the archive is not the one of this release (SHA-256 differs); nothing was installed"
  tar -xzf "$work/archive" -C "$work" tandem
  "$work/tandem" --version >/dev/null || fail "$folder does not let programs run; set TANDEM_INSTALL_DIR to a directory that does"
  mv -f "$work/tandem" "$folder/tandem"
  echo "installed $("$folder/tandem" --version) in $folder"
  case ":$PATH:" in
    *":$folder:"*) echo 'try it: tandem demo' ;;
    *) echo "$folder is not on PATH; add it, or run $folder/tandem demo" ;;
  esac
}

find_target() {
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) echo x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) echo aarch64-unknown-linux-musl ;;
    Darwin-x86_64) echo x86_64-apple-darwin ;;
    Darwin-arm64) echo aarch64-apple-darwin ;;
    *) fail "there is no program for $(uname -s) on $(uname -m); with Rust 1.95: cargo install tandem-ls" ;;
  esac
}

get() {
  if command -v curl >/dev/null; then
    curl --proto '=https,file' --tlsv1.2 -fsSL -o "$2" "$1" || fail "$1 cannot be downloaded"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1" || fail "$1 cannot be downloaded"
  else
    fail 'needs curl or wget'
  fi
}

sum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  else
    fail 'needs sha256sum or shasum to check the download'
  fi
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

main
