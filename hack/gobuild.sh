#!/bin/sh
# gobuild.sh NAME [-o OUTPUT] [-ldflags FLAGS] PACKAGE…
#
# Runs go build, and says how far it is if that takes longer than a moment. Says nothing if nothing has to be built.
# Packages that Go's build cache has are not compiled again. Only go build knows which these are, so the count is "of at most".
# bin/build-times keeps how long a build of this NAME took last, if it took longer than a moment.
set -eu

name=$1
shift
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
times=$root/bin/build-times
# The moment, and the seconds between two lines: fewer where somebody watches.
first=${GOBUILD_FIRST:-5} every=${GOBUILD_EVERY:-30}
[ ! -t 2 ] || every=${GOBUILD_EVERY:-10}

say() { echo "$name: $1" >&2; }
duration() { if [ "$1" -lt 60 ]; then echo "${1}s"; else echo "$(($1 / 60))m$(($1 % 60))s"; fi; }
# What go build -v writes of a package that it compiles is its name alone; errors have blanks.
compiled() { grep -c '^[^ ][^ ]*$' "$work/log" || true; }

# The flags are told from the packages, which are to be counted.
flags='' packages=''
for argument in "$@"; do
	case $flags,$argument in
	value,*) flags='' ;;
	,-o | ,-ldflags) flags=value ;;
	*) packages="$packages $argument" ;;
	esac
done

# pause takes seconds, and ends soon after the shell that started it.
pause() {
	left=$1
	while [ "$left" -gt 0 ] && kill -0 $$ 2>/dev/null; do
		sleep 1 2>/dev/null
		left=$((left - 1))
	done
}

# progress says how far it is, until it is ended or the shell that started it has ended.
progress() {
	pause "$first"
	kill -0 $$ 2>/dev/null || return
	last=$(sed -n "s/^$key //p" "$times" 2>/dev/null || true)
	if [ -n "$last" ]; then
		say "took $(duration "${last% *}") last time, for ${last#* } packages"
	else
		say "how long it takes is not known: it was not built here before"
	fi
	# shellcheck disable=SC2086 # These are several.
	most=$(go list -deps $packages 2>/dev/null | wc -l)
	while kill -0 $$ 2>/dev/null; do
		n=$(compiled)
		downloads=$(grep -c '^go: downloading ' "$work/log" || true)
		line="$n packages compiled"
		[ "$most" = 0 ] || line="$n of at most $((most)) packages compiled"
		[ "$n" != 0 ] || line="no package had to be compiled so far, it may be linking"
		# A program's own package is its last.
		[ "$(tail -n 1 "$work/log")" != "${packages##* }" ] || line="$line, linking"
		[ "$downloads" = 0 ] || line="$line, $downloads modules downloaded"
		say "$line, after $(duration $(($(date +%s) - begin)))"
		pause "$every"
	done
}

key=$(echo "$name" | tr -c 'A-Za-z0-9.\n-' _)
begin=$(date +%s)
work=$(mktemp -d)
: >"$work/log"
# go build runs in the foreground, where Ctrl-C reaches it. No sleep holds a pipe of the caller open.
progress </dev/null >/dev/null &
ticker=$!
trap 'kill $ticker 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

status=0
go build -v "$@" 2>"$work/log" || status=$?
kill $ticker 2>/dev/null || true
wait $ticker 2>/dev/null || true
if [ $status != 0 ]; then
	grep -v -e '^[^ ][^ ]*$' -e '^go: downloading ' "$work/log" >&2 || cat "$work/log" >&2
	exit $status
fi
seconds=$(($(date +%s) - begin))
if [ $seconds -ge "$first" ]; then
	n=$(compiled)
	say "built in $(duration $seconds), $n packages compiled"
	mkdir -p "$root/bin"
	{
		grep -v "^$key " "$times" 2>/dev/null || true
		echo "$key $seconds $n"
	} >"$work/times"
	mv "$work/times" "$times"
fi
