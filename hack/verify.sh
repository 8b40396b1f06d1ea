#!/usr/bin/env bash
# Regenerates in a copy and compares, so that a dirty tree is neither needed nor made.
set -euo pipefail
export LC_ALL=C
root=$(git rev-parse --show-toplevel)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
# test/peers has modules of other projects below it: to tidy those would download several hundred MB.
for module in . test/controlplane test/controlplane/versions/1.* hack/tools test/crdrefdocs/tools test/deploy/tools test/observability test/browser test/peers examples/operator generators/analyzer; do
  go -C "$module" mod tidy -diff || { echo "verify: $module/go.mod is not tidy: run go mod tidy there" >&2; exit 1; }
done
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do
  if [[ -e $f ]]; then printf '%s\0' "$f"; fi
done | tar -c --null -T - | tar -x -C "$copy"
sums() { (cd "$copy" && find . -type f -exec sha256sum {} + | sort); }
before=$(sums)
go -C "$copy" generate ./...
# The generators that it runs are those of the copy.
make -s -C "$copy/examples/operator/website" manifests
after=$(sums)
status=0
while read -r _ f; do
  echo "verify: ${f#./} is not in the tree as its generator writes it: run make generate" >&2
  status=1
done < <(comm -3 <(echo "$before") <(echo "$after") | sort -u -k 2)
if [[ $status == 0 ]]; then echo "verify: modules tidy, generated files up to date"; fi
exit $status
