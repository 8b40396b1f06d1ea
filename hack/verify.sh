#!/usr/bin/env bash
# Regenerates in a copy and compares, so that a dirty tree is neither needed nor made.
set -euo pipefail
export LC_ALL=C
root=$(git rev-parse --show-toplevel)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
for module in . test/controlplane hack/tools test/deploy/tools test/observability; do
  go -C "$module" mod tidy -diff || { echo "verify: $module/go.mod is not tidy: run go mod tidy there" >&2; exit 1; }
done
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do
  if [[ -e $f ]]; then printf '%s\0' "$f"; fi
done | tar -c --null -T - | tar -x -C "$copy"
go -C "$copy" generate ./...
status=0
while IFS= read -r -d '' f; do
  if [[ -e $f ]] && ! cmp -s "$f" "$copy/$f"; then
    echo "verify: $f is not what its generator writes: run make generate" >&2
    status=1
  fi
done < <(git ls-files -z --cached --others --exclude-standard)
new=$(comm -13 <(git ls-files --cached --others --exclude-standard | LC_ALL=C sort) <(find "$copy" -type f -printf '%P\n' | LC_ALL=C sort))
if [[ -n $new ]]; then
  echo "verify: generators write files that are not in the tree: $new: run make generate" >&2
  status=1
fi
if [[ $status == 0 ]]; then echo "verify: modules tidy, generated files up to date"; fi
exit $status
