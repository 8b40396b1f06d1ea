#!/bin/sh
# make.sh MINOR… writes the module of each minor release of Kubernetes, such as 1.35, into a directory beside this file: that of its newest
# patch release. It is made from the go.mod of k8s.io/kubernetes itself: the version of Go, the settings of GODEBUG, and a replace for each of the
# modules that are released with it. Add a minor, or a patch release, by this command.
#
# etcd is not in it: that of test/controlplane serves every minor.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
export GOWORK=off GOFLAGS=-mod=mod
# Where no module is above, whose replaced modules would count.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for minor in "$@"; do
	case $minor in
	1.[0-9]*) ;;
	*)
		echo "versions: \"$minor\" is not a minor release: say 1.35" >&2
		exit 1
		;;
	esac
	version=$(cd "$work" && go list -m -f '{{.Version}}' "k8s.io/kubernetes@v$minor")
	case $version in v"$minor".[0-9]*) ;; *)
		echo "versions: there is no release of $minor, but $version" >&2
		exit 1
		;;
	esac
	own=$(cd "$work" && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^[[:space:]]*"GoMod": "\(.*\)",*$/\1/p')
	mkdir -p "$here/$minor"
	cd "$here/$minor"
	rm -f go.sum
	{
		echo "// Written by make.sh $minor from the go.mod of k8s.io/kubernetes $version."
		echo "module github.com/fieldperm/fieldperm/test/controlplane/versions/$minor"
		echo
		sed -n 's/^go /go /p' "$own"
		echo
		sed -n -e '/^godebug (/,/^)/p' -e '/^godebug [^(]/p' "$own"
		echo
		printf 'tool (\n\tk8s.io/kubernetes/cmd/kube-apiserver\n\tk8s.io/kubernetes/cmd/kubectl\n)\n\n'
		echo "require k8s.io/kubernetes $version"
		echo
		echo 'replace ('
		# What k8s.io/kubernetes requires at v0.0.0 is the one released with it.
		sed -n "s/^[[:space:]]*\(k8s\.io\/[a-z-]*\) v0\.0\.0\( .*\)\{0,1\}$/	\1 => \1 v0.${version#v1.}/p" "$own" | sort -u
		echo ')'
	} >go.mod
	# Adds the modules that the programs need, and the sums.
	go mod tidy
	echo "versions: $minor is $version"
done
