# Shared by the scripts beside it: sourced, not run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[1]}")/.." && pwd)
cd "$here"

bold='' plain=''
[ ! -t 2 ] || bold=$'\033[1m' plain=$'\033[0m'
say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# usage prints the comment at the head of the calling script.
usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

need_root() { [ "$(id -u)" = 0 ] || die "this needs root (user namespaces, mounts and cgroups); run it with sudo"; }

# install_missing PROGRAM=PACKAGE... installs the packages whose program is not
# in PATH. A program that starts with / is a file.
install_missing() {
	local pair program packages=()
	for pair in "$@"; do
		program=${pair%%=*}
		command -v "$program" >/dev/null 2>&1 || [ -e "$program" ] || packages+=("${pair#*=}")
	done
	[ ${#packages[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || die "install these first: ${packages[*]} (this script knows apt only)"
	say "installing ${packages[*]}"
	local log
	log=$(mktemp)
	if ! { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}" ||
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; }; } >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		rm -f "$log"
		die "apt-get could not install ${packages[*]}"
	fi
	rm -f "$log"
}

need_go() {
	local want have
	command -v go >/dev/null || die "Go is missing; version $(sed -n 's/^go //p' go.mod) or later is needed"
	want=$(sed -n 's/^go //p' go.mod)
	have=$(go env GOVERSION)
	[ "$(printf 'go%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" = "go$want" ] ||
		[ "$(go env GOTOOLCHAIN)" = auto ] || die "Go $want or later is needed; this is $have"
}
