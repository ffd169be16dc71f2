#!/usr/bin/env bash
# get-code-server.sh: the real VS Code workbench (npm: code-server), playwright-core and Debian's Chromium to drive it.
# Prints its folder, which has node_modules/{code-server,playwright-core}. No compiler is needed: install scripts do
# not run, and the native modules they would build serve only terminals and file watching.
. "$(dirname "$0")/common.sh"

CODE_SERVER=4.139.1 PLAYWRIGHT=1.65.1
DEST=$CACHE/code-server
environment=$("$(dirname "$0")/get-node24.sh")
# shellcheck source=/dev/null
. "$environment"
once code-server

command -v "${CHROMIUM:-chromium}" >/dev/null || apt_install chromium fonts-dejavu-core
if [ "$(cat "$DEST/.done" 2>/dev/null)" != "$CODE_SERVER $PLAYWRIGHT" ]; then
  say "getting code-server $CODE_SERVER and playwright-core $PLAYWRIGHT"
  rm -rf "$DEST/node_modules" "$DEST/.done"
  echo '{"name": "code-server", "private": true}' >"$DEST/package.json"
  install=(retry npm install --ignore-scripts --no-audit --no-fund --loglevel=error)
  (cd "$DEST" && "${install[@]}" "code-server@$CODE_SERVER" "playwright-core@$PLAYWRIGHT" >&2)
  for folder in lib/vscode lib/vscode/extensions; do
    (cd "$DEST/node_modules/code-server/$folder" && "${install[@]}" --omit=dev >&2)
  done
  node "$DEST/node_modules/code-server/out/node/entry.js" --config "$DEST/config.yaml" --version >&2
  echo "$CODE_SERVER $PLAYWRIGHT" >"$DEST/.done"
fi
echo "$DEST"
