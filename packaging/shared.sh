#!/usr/bin/env bash
# shared.sh WHYSO DIR: writes what each package contains next to the program: manual pages, completions, the systemd unit, licenses, changelog.
set -euo pipefail
whyso=$1
out=$2
cd "$(dirname "$0")/.."

mkdir -p "$out/completions"
"$whyso" man-pages "$out/man" >/dev/null
"$whyso" completions bash >"$out/completions/whyso.bash"
"$whyso" completions zsh >"$out/completions/_whyso"
"$whyso" completions fish >"$out/completions/whyso.fish"
mkdir "$out/systemd"
cp packaging/systemd/whyso-record.service packaging/systemd/record.env "$out/systemd"
cp LICENSE-MIT LICENSE-APACHE CHANGELOG.md README.md "$out"
{
	echo "The program whyso contains these libraries, with the licenses that each names."
	echo
	echo "elfutils libelf: LGPL-3.0-or-later OR GPL-2.0-or-later"
	echo "libbpf: LGPL-2.1-only OR BSD-2-Clause"
	echo "LuaJIT: MIT"
	echo "zlib: Zlib"
	echo "zstd: BSD-3-Clause OR GPL-2.0-only"
	cargo tree --locked --package whyso --edges normal --prefix none --format '{p}: {l}' | sed -E 's/ \((proc-macro|\*)\)//g' | grep -v '(/' | sort -u
} >"$out/LIBRARIES.txt"
