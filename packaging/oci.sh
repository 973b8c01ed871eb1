#!/usr/bin/env bash
# oci.sh WHYSO SHARED FILE.tar: writes an OCI image with the program and the glibc of this machine's Debian, and nothing else: no shell, no server.
set -euo pipefail
whyso=$1
shared=$2
image=$3
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d /var/tmp/whyso-oci-XXXXXX)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root" "$work/debs"
chmod 755 "$root"

packages=(libc6 libgcc-s1 gcc-12-base)
# apt as root gives its downloads to a user of its own.
chmod 777 "$work" "$work/debs"
(cd "$work/debs" && apt-get download -qq "${packages[@]}") ||
	{ echo "package: apt-get can't download ${packages[*]}, which the image contains: run 'apt-get update', then this again" >&2; exit 1; }
for deb in "$work"/debs/*.deb; do
	dpkg-deb --extract "$deb" "$root"
done
# Character sets of other programs, and documents other than the licenses.
rm -rf "$root"/usr/lib/x86_64-linux-gnu/gconv "$root"/usr/share/lintian "$root"/usr/lib/x86_64-linux-gnu/audit
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root/usr/share" -depth -type d -empty -delete

install -D -m 755 "$whyso" "$root/usr/bin/whyso"
install -D -m 644 -t "$root/usr/share/doc/whyso" "$shared"/{LICENSE-MIT,LICENSE-APACHE,LIBRARIES.txt}
install -d -m 755 "$root/etc" "$root/data" "$root/proc" "$root/sys" "$root/dev"
install -d -m 1777 "$root/tmp"
echo 'root:x:0:0:root:/data:/usr/bin/whyso' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
chmod 644 "$root"/etc/{passwd,group,nsswitch.conf}

tar --create --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --directory "$root" --file "$work/layer.tar" .
base=$(cd "$work/debs" && for deb in *.deb; do dpkg-deb --show --showformat='${Package} ${Version}, ' "$deb"; done)
python3 "$here/oci.py" "$work/layer.tar" "$image" "${base%, }"
