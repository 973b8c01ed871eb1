#!/usr/bin/env bash
# setup.sh build|demo|test|hard|packages: reports which Debian packages are missing. It installs them where it may, except for a build.
set -euo pipefail
export PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"

purpose=${1:-demo}
packages=()
# The long tests need what the others need, and what compiles the data nodes of MySQL Cluster.
hard=
[ "$purpose" != hard ] || { hard=1 && purpose=test; }

# need COMMAND PACKAGE: notes the package where the command is not to be found
need() {
	command -v "$1" >/dev/null 2>&1 || packages+=("$2")
}

need cc build-essential
# The tracer's programs for the kernel.
need clang clang
[ -e /usr/include/gelf.h ] || packages+=(libelf-dev)
[ -e /usr/include/zlib.h ] || packages+=(zlib1g-dev)
if [ "$purpose" = demo ] || [ "$purpose" = test ]; then
	# The server itself, without the service that the package mariadb-server would start.
	command -v mariadbd >/dev/null 2>&1 || command -v mysqld >/dev/null 2>&1 || packages+=(mariadb-server-core)
	need mariadb mariadb-client
fi
if [ "$purpose" = test ]; then
	need chromium chromium
	need sysbench sysbench
	need openssl openssl
	need tmux tmux
	# What makes MariaDB's servers a Galera cluster is a library.
	[ -e /usr/lib/galera/libgalera_smm.so ] || packages+=(galera-4)
	[ -e /usr/sbin/haproxy ] || packages+=(haproxy)
	# What shipped add-ons ask with, and the sample application. Tests of memcached run where it is.
	need curl curl
	[ -e /usr/sbin/apache2 ] || packages+=(apache2-bin)
	compgen -G '/usr/lib/apache2/modules/libphp*.so' >/dev/null || packages+=(libapache2-mod-php)
	compgen -G '/usr/lib/php/*/pdo_mysql.so' >/dev/null || packages+=(php-mysql)
	compgen -G '/usr/sbin/php-fpm*' >/dev/null || packages+=(php-fpm)
	[ -e /usr/sbin/nginx ] || packages+=(nginx)
fi
if [ -n "$hard" ]; then
	need cmake cmake
	need bison bison
	need pkg-config pkg-config
	need rpcgen rpcsvc-proto
	[ -e /usr/include/openssl/ssl.h ] || packages+=(libssl-dev)
	[ -e /usr/include/ncurses.h ] || packages+=(libncurses-dev)
	[ -e /usr/include/tirpc/rpc/rpc.h ] || packages+=(libtirpc-dev)
fi
if [ "$purpose" = packages ]; then
	need dpkg-deb dpkg
	need xz xz-utils
	need mmdebstrap mmdebstrap
fi
if [ "$purpose" = test ] || [ "$purpose" = packages ]; then
	need python3 python3
	need ip iproute2
	python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || packages+=(python3-venv)
fi

fail() {
	echo "setup: $*" >&2
	exit 1
}

command -v cargo >/dev/null 2>&1 || fail "cargo is missing: install Rust 1.95 or later, then type this again"
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 ||
	fail "node or npm is missing: install Node.js 20 or later, then type this again"

[ ${#packages[@]} -eq 0 ] && exit 0

install="apt-get install --no-install-recommends ${packages[*]}"
[ "$(id -u)" -eq 0 ] || install="sudo $install"
if [ "$purpose" = build ]; then
	fail "the build needs packages that are missing here: type '$install' (on Debian), then this again"
fi

echo "setup: these Debian packages are missing: ${packages[*]}"
if ! command -v apt-get >/dev/null 2>&1; then
	fail "this is no Debian: install what these packages hold with your own package manager, then type this again"
fi
if [ "$(id -u)" -ne 0 ]; then
	fail "installing needs root: type '$install', then this again"
fi
echo "setup: installing them with apt-get"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
