#!/usr/bin/env bash
# tmux capture-pane -p -e -N | screen_png.sh OUT.png: a picture of a terminal screen.
. "$(dirname "$0")/common.sh"

OUT=$(realpath "${1:?usage: screen_png.sh OUT.png <screen}")
apt_install chromium fonts-jetbrains-mono fonts-dejavu-core >&2
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT

size=$(python3 "$(dirname "$(realpath "$0")")/screen_html.py" 2>&1 >"$DIR/screen.html")
chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
  --disable-sync --disable-quic --hide-scrollbars --user-data-dir="$DIR/profile" --force-device-scale-factor=2 \
  --window-size="$size" --screenshot="$OUT" "file://$DIR/screen.html" >"$DIR/log" 2>&1 || { cat "$DIR/log" >&2; exit 1; }
