#!/usr/bin/env bash
# Writes the packages into dist/: a .deb, a tarball, a Python wheel, an OCI image, and the debug information. `make package` calls it.
# The same program, changelog and Debian packages give the same bytes: times are that of the release, and files are sorted.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"
umask 022

fail() {
	echo "package: $*" >&2
	exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "packages are built on x86_64 only, and this is $(uname -m)"
for program in dpkg-deb apt-get objcopy xz python3; do
	command -v "$program" >/dev/null || fail "$program is missing: packages are built on Debian 12, with apt-get install binutils xz-utils python3 python3-venv"
done

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
day=$(sed -n "s/^## \[$version\] - //p" CHANGELOG.md)
[ -n "$day" ] || fail "CHANGELOG.md has no section '## [$version] - DATE'"

build=$CARGO_TARGET_DIR/package
packaging/build.sh "$build"

# Only now: crates that contain C are compiled again where SOURCE_DATE_EPOCH is another.
export LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=$(date -d "$day" +%s)
export VERSION=$version SOURCE_DATE_EPOCH

work=$(mktemp -d /var/tmp/whyso-package-XXXXXX)
trap 'rm -rf "$work"' EXIT
rm -rf dist
mkdir dist

# archive FILE FOLDER NAME: writes FOLDER/NAME as a tar archive, compressed as the file's ending has it.
archive() {
	local compressor="gzip -9n"
	case $1 in *.xz) compressor="xz -2 -T0" ;; esac
	tar --create --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--directory "$2" --use-compress-program="$compressor" --file "$1" "$3"
}

shared=$work/shared
packaging/shared.sh "$build/whyso" "$shared"

packaging/deb.sh "$build/whyso" "$shared" "dist/whyso_${version}_amd64.deb"

name=whyso-$version-x86_64-linux
cp -r "$shared" "$work/$name"
install -m 755 "$build/whyso" "$work/$name/whyso"
archive "dist/$name.tar.gz" "$work" "$name"

python3 packaging/wheel.py "$build/whyso" "$shared" dist

# Where gdb looks for it: next to its program in /usr/lib/debug.
name=whyso-$version-debug
install -D -m 644 "$build/whyso.debug" "$work/$name/usr/lib/debug/usr/bin/whyso.debug"
archive "dist/$name.tar.xz" "$work" "$name"

packaging/oci.sh "$build/whyso" "$shared" "dist/whyso_${version}_oci.tar"

(cd dist && sha256sum -- * >SHA256SUMS && ls -l)
