#!/bin/sh
# Builds kube-apiserver, kubectl and etcd of the local control plane from their Go modules into bin/controlplane. With the argument
# "controllers" it builds kube-controller-manager and kube-scheduler into bin/controllers instead.
#
# Does nothing when they are there and newer than go.mod, or when $KUBEBUILDER_ASSETS already holds the three of the control plane.
# The versions are those of go.mod beside this file. The first build takes about 5 minutes on 2 cores; hack/gobuild.sh
# says how far it is.
#
# With K8S=1.35 in the environment it builds kube-apiserver and kubectl of that minor release into bin/controlplane-1.35 instead, from the module in
# versions/1.35, whatever $KUBEBUILDER_ASSETS says. etcd is that of go.mod for every minor.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
case ${1:-controlplane} in
controlplane) binaries='kube-apiserver kubectl etcd' ;;
controllers) binaries='kube-controller-manager kube-scheduler' ;;
*)
	echo "controlplane: \"$1\" is not a set of binaries: say controlplane or controllers" >&2
	exit 1
	;;
esac
set_name=${1:-controlplane}
out=$root/bin/$set_name

modules=$here
if [ -n "${K8S:-}" ]; then
	newest=$(sed -n 's/^[[:space:]]*k8s\.io\/kubernetes v\(1\.[0-9]*\)\..*/\1/p' "$here/go.mod")
	modules=$here/versions/$K8S
	if [ "$set_name" != controlplane ] || { [ "$K8S" != "$newest" ] && [ ! -f "$modules/go.mod" ]; }; then
		echo "controlplane: no $set_name of Kubernetes \"$K8S\": say one of $(ls "$here/versions" | grep '^1' | tr '\n' ' ')and $newest, or add it with versions/make.sh" >&2
		exit 1
	fi
	# The newest, and etcd for all.
	env -u K8S -u KUBEBUILDER_ASSETS "$here/build.sh"
	out=$root/bin/controlplane-$K8S
	if [ "$K8S" = "$newest" ]; then
		ln -sfn controlplane "$out"
		exit 0
	fi
	binaries='kube-apiserver kubectl'
	mkdir -p "$out"
	ln -sfn ../controlplane/etcd "$out/etcd"
elif [ "$set_name" = controlplane ] && [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	for binary in $binaries; do
		if [ ! -x "$KUBEBUILDER_ASSETS/$binary" ]; then
			echo "controlplane: \$KUBEBUILDER_ASSETS \"$KUBEBUILDER_ASSETS\" lacks \"$binary\": unset it to have the binaries built" >&2
			exit 1
		fi
	done
	exit 0
fi

missing=
for binary in $binaries; do
	if [ ! -x "$out/$binary" ] || [ -n "$(find "$modules/go.mod" -newer "$out/$binary")" ]; then
		missing="$missing $binary"
	fi
done
[ -n "$missing" ] || exit 0

# A module of its own: no workspace and no -mod of the caller may change what is built.
cd "$modules"
export GOWORK=off GOFLAGS=-mod=readonly

version_of() { go list -m -f '{{.Version}}' "$1"; }
kubernetes=$(version_of k8s.io/kubernetes)
major=${kubernetes#v} major=${major%%.*}
minor=${kubernetes#v*.} minor=${minor%%.*}

# kube-apiserver reads the version that it reports, and the features that it has by default, from these variables.
base=k8s.io/component-base/version
client=k8s.io/client-go/pkg/version
stamp="-X $base.gitVersion=$kubernetes -X $base.gitMajor=$major -X $base.gitMinor=$minor -X $client.gitVersion=$kubernetes"

# Built aside and moved when whole, so that an interrupted build is never taken for a finished one.
mkdir -p "$out"
aside=$(mktemp -d "$out/.build.XXXXXX")
trap 'rm -rf "$aside"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

set -- $missing # A word for each binary.
number=0 count=$#
echo "controlplane: building $(echo $missing | sed 's/ /, /g') of $kubernetes. This is done once; with an empty build cache it takes about 5 minutes on 2 cores."
[ "$set_name" != controlplane ] || [ -n "${K8S:-}" ] || echo "controlplane: quicker: set KUBEBUILDER_ASSETS to a directory that has $(echo $binaries | sed 's/ /, /g'). Then nothing is built."
for binary in $missing; do
	case $binary in
	etcd) package=go.etcd.io/etcd/server/v3 version=$(version_of go.etcd.io/etcd/server/v3) ldflags='-s -w' ;;
	*) package=k8s.io/kubernetes/cmd/$binary version=$kubernetes ldflags="-s -w $stamp" ;;
	esac
	number=$((number + 1))
	echo "controlplane: building $binary $version ($number of $count)"
	"$root/hack/gobuild.sh" "controlplane: $binary${K8S:+ $K8S}" -ldflags "$ldflags" -o "$aside/$binary" "$package"
	mv "$aside/$binary" "$out/$binary"
done
