#!/bin/sh
# Builds the controllers of other projects, and the operator of examples/operator, into bin/controllers. Each folder beside this file with a
# tools.go is a Go module that requires one project: its version, and the replace lines of its own go.mod, which Go does not take over.
# make verify does not look whether these are tidy, because go mod tidy downloads the tests of all their dependencies.
#
# Does nothing for a program that is there and newer than the go.mod it comes from. With an empty build cache it takes about 6 minutes on 2
# cores; hack/gobuild.sh says how far it is.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../../.." && pwd)
out=$root/bin/controllers
# A module of its own: no workspace and no -mod of the caller may change what is built.
# Nothing of it is debugged or fast: without inlining and the data for debuggers the compiler takes a quarter less.
export GOWORK=off GOFLAGS="-mod=readonly '-gcflags=all=-l -dwarf=false'"

mkdir -p "$out"
# Built aside and moved when whole, so that an interrupted build is never taken for a finished one.
aside=$(mktemp -d "$out/.build.XXXXXX")
trap 'rm -rf "$aside"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# build NAME PACKAGE
build() {
	"$root/hack/gobuild.sh" "controllers: $1" -ldflags '-s -w' -o "$aside/$1" "$2"
	mv "$aside/$1" "$out/$1"
}

for tools in "$here"/*/tools.go; do
	dir=$(dirname "$tools") package=$(sed -n 's/^import _ "\(.*\)"$/\1/p' "$tools")
	name=$(basename "$dir")
	if [ -x "$out/$name" ] && [ -z "$(find "$dir/go.mod" -newer "$out/$name")" ]; then continue; fi
	cd "$dir"
	echo "controllers: building $package $(go list -f '{{.Module.Version}}' "$package"). This is done once."
	build "$name" "$package"
done

# It is small, and go build knows when it has to be built.
cd "$root/examples/operator"
build supersafe .
