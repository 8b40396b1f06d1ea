#!/bin/sh
# dist.sh VERSION
#
# Builds kubectl-fieldperm for every platform of .krew.yaml, and writes archives and their checksums to bin/dist. Equal sources, versions and
# compilers give equal bytes.
set -eu

PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}

version=${1:?give the version, such as v0.1.0}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
out=$root/bin/dist
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/} suffix=''
	[ "$os" != windows ] || suffix=.exe
	dir=$work/$os-$arch
	mkdir "$dir"
	echo "dist: kubectl-fieldperm $version for $platform" >&2
	(cd "$root" && CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$dir/kubectl-fieldperm$suffix" ./cmd/kubectl-fieldperm)
	install -m 755 "$root/deploy/kubectl-plugin/kubectl_complete-fieldperm" "$dir"
	install -m 644 "$root/LICENSE" "$dir"
	(cd "$dir" && tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - -- * | gzip -9n >"$out/kubectl-fieldperm_${version}_${os}_${arch}.tar.gz")
done
(cd "$out" && sha256sum -- *.tar.gz >checksums.txt)
