#!/usr/bin/env bash
# Installs each package of dist/ in a clean Debian 11 and a clean Debian 12, and runs the demo there. `make test-packages` builds the packages first.
# The clean systems come from the mirror in this machine's /etc/apt, and are kept in ~/.cache/whyso-roots: remove that folder for newer ones.
# It needs root: it mounts /proc, /sys and /dev in a mount namespace of its own, which ends with it.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export LC_ALL=C

SUITES=(bullseye bookworm)
# A clean system, a server to load, and what installs a wheel.
INCLUDE=default-mysql-server-core,default-mysql-client-core,python3,python3-venv
ROOT_SECONDS_MAX=900
DEMO_SECONDS_MAX=300
DEMO=(run oltp-read-write --users 1,4 --seconds 3 --warmup 1 --tables 1 --rows 1000)

fail() {
	echo "test-packages: $*" >&2
	exit 1
}

[ "$(id -u)" -eq 0 ] || fail "making clean systems needs root: type 'sudo make test-packages'"
for program in mmdebstrap unshare chroot python3; do
	command -v "$program" >/dev/null || fail "$program is missing: apt-get install mmdebstrap util-linux coreutils python3"
done
# Everything that is mounted is gone when this namespace ends.
if [ -z "${WHYSO_OWN_MOUNTS:-}" ]; then
	exec env WHYSO_OWN_MOUNTS=1 unshare --mount --propagation private "$0" "$@"
fi

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
dist=$PWD/dist
for file in "whyso_${version}_amd64.deb" "whyso-$version-x86_64-linux.tar.gz" "whyso-$version-py3-none-manylinux_2_28_x86_64.whl" \
	"whyso_${version}_oci.tar" "whyso-$version-debug.tar.xz"; do
	[ -e "$dist/$file" ] || fail "dist/$file is missing: run 'make package' first"
done
(cd "$dist" && sha256sum --check --quiet SHA256SUMS) || fail "dist/ is damaged: run 'make package' again"

place=$(mktemp -d /var/tmp/whyso-test-packages-XXXXXX)
chmod 755 "$place"
server_root=
stop_server() {
	[ -z "$server_root" ] || in_root "$server_root" "whyso server stop for-image" >/dev/null 2>&1 || true
	server_root=
}
end() {
	stop_server
	# Nothing of the machine's own is below a mount any more when files are removed.
	for mount in $(findmnt --list --noheadings --output TARGET | grep "^$place/" | sort -r); do
		umount "$mount" || umount --lazy "$mount"
	done
	rm -rf --one-file-system "$place"
}
trap end EXIT

# The mirror that this machine's apt uses for Debian itself: the first address of the first entry with `main`.
mirror() {
	{
		{ cat /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
			awk 'BEGIN { RS = "" } /Types:[^\n]*deb/ && /Components:[^\n]*main/ && !/security/' | sed -n 's/^URIs: *\([^ ]*\).*/\1/p'
		{ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
			sed -nE 's#^deb (\[[^]]*\] )?([^ ]+/debian/?) .*main.*#\2#p'
	} | sed -n 1p
}

# clean_root SUITE: a clean system of this release, as a tar archive.
clean_root() {
	local archive=$HOME/.cache/whyso-roots/$1.tar address
	if [ ! -e "$archive" ]; then
		address=$(mirror)
		[ -n "$address" ] || fail "/etc/apt names no mirror of Debian, which clean systems come from"
		mkdir -p "${archive%/*}"
		echo "test-packages: making a clean $1" >&2
		timeout "$ROOT_SECONDS_MAX" mmdebstrap --quiet --variant=minbase --include="$INCLUDE" "$1" "${archive%.tar}.part.tar" \
			"deb $address $1 main" >"$archive.log" 2>&1 ||
			fail "a clean Debian $1 can't be made from this machine's mirror, so the packages are not tested there: see $archive.log"
		mv "${archive%.tar}.part.tar" "$archive"
	fi
	echo "$archive"
}

mount_kernel() {
	mount -t proc proc "$1/proc"
	mount --rbind /sys "$1/sys"
	mount --rbind /dev "$1/dev"
}

# unpack SUITE NAME: unpacks a clean system, and prints its folder.
unpack() {
	local root=$place/$1-$2 archive
	archive=$(clean_root "$1")
	mkdir "$root"
	tar --extract --file "$archive" --directory "$root"
	mkdir -p "$root/dist"
	cp "$dist"/whyso* "$root/dist"
	echo "$root"
}

# in_root ROOT SCRIPT: runs a shell script in the system. Nothing of this machine's environment is there.
in_root() {
	timeout "$DEMO_SECONDS_MAX" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$1" sh -euc "$2"
}

# expect_answer WHERE OUTPUT: the demo's output has its answer, with the table of both levels.
expect_answer() {
	grep -qE '^ +1 .*' "$2" && grep -qE '^ +4 .*' "$2" && grep -q 'report.html' "$2" || {
		cat "$2"
		fail "$1: the demo printed no answer"
	}
	echo "ok: $1: the demo printed its answer:"
	sed -n '1,12s/^/    /p' "$2"
}

# What depends on how the program is linked: dlopen and foreign functions, and errors that unwind through code that LuaJIT compiled.
LUA=$(cat <<'END'
local ffi = require("ffi")
ffi.cdef("int getpid(void); double cos(double);")
local function refuse(at) if at % 2 == 1 then error({ at = at }) end return at end
function event()
   local refused = 0
   for at = 1, 100 do
      local is_even, cause = pcall(refuse, at)
      if not is_even then refused = refused + cause.at end
   end
   assert(refused == 2500 and ffi.C.getpid() > 0 and ffi.C.cos(0) == 1)
end
END
)

# demo WHERE ROOT PROGRAM: runs the demo with a throw-away server. Where the kernel lets whyso trace, it has to.
demo() {
	local output=$place/output
	in_root "$2" "mkdir -p /tmp/demo; cd /tmp/demo; exec $3 ${DEMO[*]}" >"$output" 2>"$output.progress" || {
		cat "$output" "$output.progress"
		fail "$1: the demo failed"
	}
	expect_answer "$1" "$output"
	in_root "$2" "! $3 doctor | grep -q '^ok  *time budget' || ls /tmp/demo/runs/*/rows-file_waits-*.parquet" >/dev/null || fail "$1: the demo was not traced"
	echo "$LUA" >"$2/tmp/demo/foreign.lua"
	in_root "$2" "cd /tmp/demo; $3 sysbench ./foreign.lua --threads=2 --events=2000 --time=60 run" >"$output" 2>&1 &&
		grep -qE 'total number of events: +2000' "$output" || { cat "$output"; fail "$1: a Lua script with foreign functions failed"; }
	echo "ok: $1: the demo is traced, and Lua calls foreign functions"
}

test_deb() {
	local root
	root=$(unpack "$1" deb)
	mount_kernel "$root"
	in_root "$root" "dpkg -i /dist/whyso_${version}_amd64.deb" >"$place/output" 2>&1 || { cat "$place/output"; fail "$1: dpkg -i failed"; }
	in_root "$root" "
		[ \"\$(whyso --version)\" = 'whyso $version' ]
		gzip -dc /usr/share/man/man1/whyso-record.1.gz | grep -q disk
		bash -c '. /usr/share/bash-completion/completions/whyso; complete -p whyso' | grep -q whyso
		[ -s /usr/share/zsh/vendor-completions/_whyso ] && [ -s /usr/share/fish/vendor_completions.d/whyso.fish ]
		[ -e /lib/systemd/system/whyso-record.service ]
		[ -z \"\$(find /etc/systemd -name 'whyso*' 2>/dev/null)\" ]
		[ \"\$(stat -c %a /etc/whyso/record.env)\" = 600 ]
	" || fail "$1: the .deb is not installed as it should be"
	demo "$1, .deb" "$root" whyso
	in_root "$root" "
		dpkg -r whyso >/dev/null
		[ ! -e /usr/bin/whyso ] && [ -e /etc/whyso/record.env ]
		dpkg -P whyso >/dev/null
		[ ! -e /etc/whyso ]
	" || fail "$1: removing the .deb leaves files"
	echo "ok: $1, .deb: removed without a trace"
}

test_tarball() {
	local root name=whyso-$version-x86_64-linux
	root=$(unpack "$1" tarball)
	mount_kernel "$root"
	in_root "$root" "cd /opt; tar xzf /dist/$name.tar.gz"
	demo "$1, tarball" "$root" "/opt/$name/whyso"
}

test_wheel() {
	local root
	root=$(unpack "$1" wheel)
	mount_kernel "$root"
	in_root "$root" "python3 -m venv /opt/venv; /opt/venv/bin/pip --disable-pip-version-check install --quiet --no-index /dist/whyso-$version-*.whl
		[ -e /opt/venv/share/man/man1/whyso.1 ]" || fail "$1: pip can't install the wheel"
	demo "$1, wheel" "$root" /opt/venv/bin/whyso
}

# The image has no server: it loads one that the .deb of this release started.
test_image() {
	local root=$place/$1-image socket output=$place/output
	[ "$(python3 packaging/unpack_image.py "$dist/whyso_${version}_oci.tar" "$root")" = /usr/bin/whyso ] || fail "the image can't be unpacked"
	mount_kernel "$root"
	[ "$(in_image "$root" --version)" = "whyso $version" ] || fail "the image's program does not start"
	in_image "$root" doctor >"$output" || { cat "$output"; fail "the image's program does not check the machine"; }
	grep -q '^ok  *machine' "$output" || { cat "$output"; fail "the image's program does not know the machine"; }

	server_root=$(unpack "$1" image-server)
	mount_kernel "$server_root"
	in_root "$server_root" "dpkg -i /dist/whyso_${version}_amd64.deb >/dev/null 2>&1; whyso server start --as for-image" >"$place/started" 2>&1 || true
	socket=$(sed -nE "s/.*socket=([^'& ]*).*/\1/p" "$place/started" | head -1)
	[ -n "$socket" ] || fail "$1: the server for the image did not start: $(cat "$place/started")"
	mkdir "$root/server"
	mount --bind "$server_root${socket%/*}" "$root/server"
	in_image "$root" "${DEMO[@]}" --out /data/runs --dsn "mysql://root@localhost/?socket=/server/${socket##*/}" >"$output" 2>"$output.progress" || {
		cat "$output" "$output.progress"
		fail "$1: the demo failed in the image"
	}
	expect_answer "$1, OCI image" "$output"
	stop_server
}

# in_image ROOT ARGUMENT…: runs the image's program, as its configuration has it.
in_image() {
	timeout "$DEMO_SECONDS_MAX" env -i PATH=/usr/sbin:/usr/bin HOME=/data chroot "$1" /usr/bin/whyso "${@:2}"
}

test_debug() {
	local folder=$place/debug
	mkdir "$folder"
	tar --extract --file "$dist/whyso-$version-debug.tar.xz" --directory "$folder"
	local debug=$folder/whyso-$version-debug/usr/lib/debug/usr/bin/whyso.debug
	tar --extract --file "$dist/whyso-$version-x86_64-linux.tar.gz" --directory "$folder"
	local program=$folder/whyso-$version-x86_64-linux/whyso
	build_id() { readelf --notes "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'; }
	[ -n "$(build_id "$program")" ] && [ "$(build_id "$program")" = "$(build_id "$debug")" ] || fail "the debug information is not that of the program"
	readelf --string-dump=.gnu_debuglink "$program" | grep -q whyso.debug || fail "the program does not name its debug information"
	readelf --sections --wide "$debug" | grep -q '\.debug_line' || fail "the debug information has no lines"
	echo "ok: the debug information is that of the program"
}

for suite in "${SUITES[@]}"; do
	for package in deb tarball wheel image; do
		"test_$package" "$suite"
	done
done
test_debug
echo "test-packages: all packages work on: ${SUITES[*]}"
