#!/usr/bin/env bash
# get-peers.sh: third-party model servers, ACP clients and MCP servers, from npm, PyPI and crates.io.
# Prints its folder: node_modules/, python/ with a virtual environment, and rust/bin/.
. "$(dirname "$0")/../editors/common.sh"

NPM=(@copilotkit/aimock@1.43.0 openai-mock-api@0.4.0 @agentclientprotocol/sdk@2.4.0 @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/conformance@0.2.0-alpha.12 acpx@0.19.1
  @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server@2.4.0)
PYPI=(agent-client-protocol==0.12.1 lsprotocol==2025.0.0 mcp-server-git==2026.10.19 mcp-server-time==2026.10.19 mcp-server-fetch==2026.10.24 fastmcp==4.1.2 mcp==2.3.0)
CRATE=agent-client-protocol@5.0.0
DEST=$CACHE/peers
environment=$("$(dirname "$0")/../editors/get-node24.sh")
# shellcheck source=/dev/null
. "$environment"
once peers

if [ "$(cat "$DEST/.done" 2>/dev/null)" != "${NPM[*]} ${PYPI[*]} $CRATE" ]; then
  say "getting ${NPM[*]} ${PYPI[*]} $CRATE"
  rm -rf "$DEST"
  mkdir -p "$DEST"
  echo '{"name": "peers", "private": true}' >"$DEST/package.json"
  (cd "$DEST" && retry npm install --ignore-scripts --no-audit --no-fund --loglevel=error "${NPM[@]}" >&2)
  python3 -m venv "$DEST/python" 2>/dev/null || { apt_install python3-venv && python3 -m venv "$DEST/python"; }
  retry "$DEST/python/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: "${PYPI[@]}" >&2
  retry cargo install --quiet --locked --debug --root "$DEST/rust" --features process --example yolo_one_shot_client "$CRATE" >&2
  echo "${NPM[*]} ${PYPI[*]} $CRATE" >"$DEST/.done"
fi
echo "$DEST"
