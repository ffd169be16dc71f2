#!/usr/bin/env bash
# mirror.sh URL REF: mirrors editors/neovim at REF (a branch or tag of this clone) to the repository at URL, as its top
# folder: a branch to main, as a commit when it differs from what is there, and a tag to the tag, which may be an older one.
set -euo pipefail
cd "$(dirname "$0")/.."
url=$1 ref=$2

tree=$(git rev-parse "$ref^{commit}:editors/neovim")
head=$(git ls-remote "$url" refs/heads/main | cut -f 1)
[ -z "$head" ] || git fetch --quiet "$url" refs/heads/main
commit=$head
if [ -z "$head" ] || [ "$(git rev-parse "$head^{tree}")" != "$tree" ]; then
  # Whose change it was: that of the commit it comes from.
  IFS=$'\t' read -r GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE subject < <(git log -1 --format=$'%an\t%ae\t%aI\t%s' "$ref")
  export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE
  export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
  commit=$(git commit-tree ${head:+-p "$head"} -m "$subject" "$tree")
fi
case $ref in refs/tags/*) target=$ref ;; *) target=refs/heads/main ;; esac
git push --quiet "$url" "$commit:$target"
