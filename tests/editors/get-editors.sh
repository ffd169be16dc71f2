#!/usr/bin/env bash
# get-editors.sh trixie|sid: unpacks Neovim and Helix from that Debian suite beside the running system, which is not
# changed. Prints their folder; `nvim` and `hx` in it run from anywhere. trixie is fixed, sid moves.
. "$(dirname "$0")/common.sh"

SUITE=${1:?usage: get-editors.sh trixie|sid}
DEST=$CACHE/$SUITE ROOT=$CACHE/$SUITE/root-$SUITE
command -v apt-get >/dev/null || { say "needs Debian's apt-get; elsewhere set NVIM and HX to installed editors"; exit 1; }
once "$SUITE"

# Downloads the packages with all their dependencies, down to libc: apt starts from an empty list of installed packages.
download() {
  local apt=$1 packages=(neovim hx)
  mkdir -p "$apt"/{none,state/lists/partial,cache/archives/partial}
  : >"$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $SUITE main" >"$apt/sources.list"
  local options=(-qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none"
    -o Dir::Etc::preferences="$apt/none/file" -o Dir::Etc::preferencesparts="$apt/none"
    -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache"
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
    -o APT::Update::Post-Invoke-Success::= -o Acquire::Check-Valid-Until=false -o APT::Update::Error-Mode=any -o APT::Sandbox::User=root)
  retry apt-get "${options[@]}" update >/dev/null
  retry apt-get "${options[@]}" install -y --no-install-recommends --download-only "${packages[@]}" >/dev/null
}

# wrap NAME VARIABLE FOLDER: bakes the suite's own loader and libraries into the program and writes bin/NAME for it.
wrap() {
  local name=$1 variable=$2 folder=$3 program loader
  program=$(find "$ROOT/usr" -type f -perm -u+x \( -name "$name" -o -name "$name.bin" \) | head -n 1)
  loader=$(find "$ROOT" -name 'ld-linux-*.so.*' | head -n 1)
  patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$ROOT/usr/lib/$(uname -m)-linux-gnu" "$program"
  printf '#!/bin/sh\nexport %s="${%s:-%s}"\nexec "%s" "$@"\n' "$variable" "$variable" "$folder" "$program" >"$DEST/bin/$name"
  chmod +x "$DEST/bin/$name"
}

if [ ! -e "$DEST/.done-$SUITE" ]; then
  say "getting Neovim and Helix from Debian $SUITE"
  apt_install patchelf
  rm -rf "$DEST"
  mkdir -p "$ROOT" "$DEST/bin"
  download "$DEST/apt"
  for package in "$DEST"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$ROOT"; done
  wrap nvim VIMRUNTIME "$ROOT/usr/share/nvim/runtime"
  wrap hx HELIX_RUNTIME "$ROOT/usr/lib/hx/runtime"
  rm -rf "$DEST/apt"
  "$DEST/bin/nvim" --version >/dev/null
  "$DEST/bin/hx" --version >/dev/null
  touch "$DEST/.done-$SUITE"
fi
echo "$DEST/bin"
