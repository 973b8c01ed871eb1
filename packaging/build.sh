#!/usr/bin/env bash
# build.sh DIR: builds the program that packages contain: DIR/whyso without symbols, and DIR/whyso.debug with them.
# It runs with glibc 2.28 and later. libelf and zlib are part of it. Its C compiler is zig, from the Python package ziglang.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin"

ZIG_VERSION=0.17.1
GLIBC_MAX=2.28
STRIPPED_BYTES_MAX=$((40 * 1000 * 1000))

out=${1:?"build.sh DIR: name the folder for the program"}
mkdir -p "$out"

fail() {
	echo "package: $*" >&2
	exit 1
}

venv=$HOME/.cache/whyso-zig-$ZIG_VERSION
if [ ! -e "$venv/.complete" ]; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet "ziglang==$ZIG_VERSION"
	touch "$venv/.complete"
fi
export ZIG_PYTHON=$venv/bin/python

# The static libraries that packaging/zig-cc links. libelf's and zlib's headers lie apart from those of the system's glibc.
static=$CARGO_TARGET_DIR/static
mkdir -p "$static"
for library in libelf.a libz.a; do
	cp "$(gcc -print-file-name=$library)" "$static"
done
for header in libelf.h gelf.h zlib.h zconf.h; do
	cp "$(find /usr/include -maxdepth 2 -name $header | head -1)" "$static"
done
export LIBBPF_SYS_LIBRARY_PATH=$static LIBBPF_SYS_EXTRA_CFLAGS=-I$static

compiler=$PWD/packaging/zig-cc
"$compiler" -O2 -c packaging/later.c -o "$static/later.o"
rm -f "$static/liblater.a"
ar rcs "$static/liblater.a" "$static/later.o"
# .cargo/config.toml has the reason for the hooks.
export CC=$compiler HOST_CC=gcc STATIC_CC="$compiler -DLUAJIT_ENABLE_CHECKHOOK"
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=$compiler
cargo build --profile ship --locked --workspace --bin whyso

built=$CARGO_TARGET_DIR/ship/whyso
objcopy --only-keep-debug --compress-debug-sections=zlib "$built" "$out/whyso.debug"
objcopy --strip-all --remove-section=.comment "$built" "$out/whyso"
(cd "$out" && objcopy --add-gnu-debuglink=whyso.debug whyso)

newest=$(objdump -T "$out/whyso" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -1)
[ "$(printf '%s\n' "$newest" "$GLIBC_MAX" | sort -V | tail -1)" = "$GLIBC_MAX" ] ||
	fail "the program needs glibc $newest, and packages promise $GLIBC_MAX: objdump -T $out/whyso | grep GLIBC_$newest"
needed=$(objdump -p "$out/whyso" | awk '$1 == "NEEDED" { print $2 }')
for library in $needed; do
	case $library in
	libc.so.6 | libm.so.6 | libdl.so.2 | librt.so.1 | libutil.so.1 | libpthread.so.0 | libgcc_s.so.1 | ld-linux-x86-64.so.2) ;;
	*) fail "the program needs $library, which a clean system lacks: link it statically (packaging/build.sh)" ;;
	esac
done
bytes=$(stat -c %s "$out/whyso")
[ "$bytes" -le "$STRIPPED_BYTES_MAX" ] || fail "the program has $bytes bytes without symbols, and at most $STRIPPED_BYTES_MAX are allowed"
echo "package: the program needs glibc $newest, and has $bytes bytes; it needs" $needed
