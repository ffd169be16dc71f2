# Sourced by tests/run and tests/editors/*.sh: where the editors are stored, and how to fetch things over an
# unreliable network.
# shellcheck shell=bash
set -euo pipefail

# Outside the tree, so that a fresh clone and `cargo clean` find it warm.
CACHE=${TANDEM_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem-editors}
mkdir -p "$CACHE"
CACHE=$(cd "$CACHE" && pwd -P)

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# retry COMMAND…: up to four tries, for networks and locks that hiccup.
retry() {
  local pause
  for pause in 2 5 15; do
    "$@" && return
    say "'$1 ${2:-}' failed, again in $pause s"
    sleep "$pause"
  done
  "$@"
}

# The distribution's mirror, as this system is configured to use it.
mirror() {
  { cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true; } |
    sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' | head -n 1
}

# once NAME: only one process at a time runs the rest of the script, so that two runs don't fetch the same thing.
once() {
  exec {lock}>"$CACHE/.lock-$1"
  flock --timeout 900 "$lock" || { say "another run has held $CACHE/.lock-$1 for 15 minutes"; exit 1; }
}

# apt_install PACKAGE…: installs packages that are missing.
apt_install() {
  local package missing=()
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || { say "please install: ${missing[*]}"; return 1; }
  retry apt_refresh_and_install "${missing[@]}"
}

apt_refresh_and_install() {
  apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Check-Valid-Until=false -o APT::Update::Error-Mode=any update >/dev/null &&
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@" >/dev/null
}
