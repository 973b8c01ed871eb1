#!/usr/bin/env bash
# deb.sh WHYSO SHARED FILE.deb: writes the Debian package. Installing it starts no service.
set -euo pipefail
whyso=$1
shared=$2
deb=$3
root=$(mktemp -d /var/tmp/whyso-deb-XXXXXX)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

doc=$root/usr/share/doc/whyso
install -D -m 755 "$whyso" "$root/usr/bin/whyso"
install -D -m 644 -t "$root/usr/share/man/man1" "$shared"/man/*.1
gzip -9n "$root"/usr/share/man/man1/*.1
install -D -m 644 "$shared/completions/whyso.bash" "$root/usr/share/bash-completion/completions/whyso"
install -D -m 644 "$shared/completions/_whyso" "$root/usr/share/zsh/vendor-completions/_whyso"
install -D -m 644 "$shared/completions/whyso.fish" "$root/usr/share/fish/vendor_completions.d/whyso.fish"
install -D -m 644 "$shared/systemd/whyso-record.service" "$root/lib/systemd/system/whyso-record.service"
# It may hold a password.
install -D -m 600 "$shared/systemd/record.env" "$root/etc/whyso/record.env"

mkdir -p "$doc"
gzip -9nc "$shared/CHANGELOG.md" >"$doc/changelog.gz"
gzip -9nc "$shared/LIBRARIES.txt" >"$doc/LIBRARIES.txt.gz"
gzip -9nc >"$doc/changelog.Debian.gz" <<-END
	whyso ($VERSION) stable; urgency=medium

	  * Version $VERSION, as changelog.gz describes it.

	 -- The authors of whyso <whyso@localhost>  $(date -R -d "@$SOURCE_DATE_EPOCH")
END
{
	cat <<-'END'
		whyso is licensed under MIT OR Apache-2.0, as you prefer. The text of the MIT license follows.
		That of the Apache license is in /usr/share/common-licenses/Apache-2.0 on Debian systems.

		LIBRARIES.txt.gz lists the libraries in the program with their licenses. libelf is one of them,
		under the LGPL: built from whyso's sources with another libelf, the program uses that one.

	END
	cat "$shared/LICENSE-MIT"
} >"$doc/copyright"
chmod 644 "$doc"/*

mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<-END
	Package: whyso
	Version: $VERSION
	Architecture: amd64
	Maintainer: The authors of whyso <whyso@localhost>
	Section: database
	Priority: optional
	Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
	Depends: libc6 (>= 2.28), libgcc-s1 | libgcc1
	Suggests: default-mysql-server-core, default-mysql-client-core
	Description: finds out why a database does not go faster
	 whyso is a performance lab for MySQL-compatible servers: MySQL, MariaDB,
	 Percona Server and Galera. It loads a server or watches it under its own
	 load, and records it on one clock. Then it reports where throughput peaks,
	 what stops it, and how much of the response time each cause holds.
	 .
	 A throw-away server to load needs one of the suggested packages.
END
echo /etc/whyso/record.env >"$root/DEBIAN/conffiles"
# dpkg does not make systemd read the unit, and a unit without its package must not stay enabled. A service that is running continues through an update:
# a restart would begin another recording.
cat >"$root/DEBIAN/postinst" <<-'END'
	#!/bin/sh
	set -e
	if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload || true
	fi
END
cat >"$root/DEBIAN/prerm" <<-'END'
	#!/bin/sh
	set -e
	if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
		systemctl disable --now whyso-record.service || true
	fi
END
sed 's/= configure/= remove/' "$root/DEBIAN/postinst" >"$root/DEBIAN/postrm"
chmod 755 "$root"/DEBIAN/{postinst,prerm,postrm}
(cd "$root" && find usr lib -type f | sort | xargs md5sum >DEBIAN/md5sums)

# xz: dpkg of Debian 11 does not read zstd.
dpkg-deb --build --root-owner-group -Zxz "$root" "$deb" >/dev/null
