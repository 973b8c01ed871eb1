#!/usr/bin/env bash
# The sample application: an event calendar in PHP on MariaDB, behind Apache. Everything lies in one folder and listens only there or on loopback.
#
#   start.sh start [options]   starts it, and prints its folder, address and processes
#   start.sh list              lists those that run
#   start.sh stop FOLDER       ends the processes of one, and removes its folder
#
# Environment: WHYSO_APP_PARENT, the folder where an application gets one of its own; and for labs of several hosts WHYSO_APP_DATABASE, a database
# elsewhere as HOST:PORT in place of an own one, whose schema calendar was made from sql/, for a user of that name without a password.
set -euo pipefail
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export LC_ALL=C

SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STARTS_WITHIN_S=60
ENDS_WITHIN_S=20
PARENT=${WHYSO_APP_PARENT:-${TMPDIR:-/tmp}}
NAME_PREFIX=whyso-app.
# In place of an own one, such as 10.0.0.2:3306.
DATABASE_ELSEWHERE=${WHYSO_APP_DATABASE:-}

usage() {
	cat <<-'TEXT'
		start.sh start [options] | list | stop FOLDER

		  --php mod|fpm            PHP within Apache's processes (prefork), or in PHP-FPM behind Apache's event MPM (default: fpm)
		  --workers N              children of PHP-FPM (default: 16)
		  --max-clients N          requests that Apache answers at once (default: 64)
		  --keep-alive on|off|N    whether Apache keeps connections open, or for how many seconds (default: on, which is 5)
		  --sessions files|memcached
		                           where sessions are kept (default: files)
		  --session-folder FOLDER  where to make a folder for the files of sessions (default: in the application's own folder)
		  --session-changes N      how often a request changes its session's id (default: 0; with the trouble session-folder: 8)
		  --access-log on|off      whether Apache writes a line for each request (default: on)
		  --connections persistent|new
		                           keep connections to the database, or make one for each request (default: persistent)
		  --trouble hot-row        every view of an event holds the lock of its row while the page is made
		  --trouble session-folder every request changes its session's id, in one folder of files that is written through to the disk
		  --trouble log-file       every line of Apache's access log is written through to the disk
		  --port N                 Apache's port on loopback (default: a free one)
	TEXT
}

fail() {
	echo "app: $*" >&2
	exit 1
}

home=
started=()

# Where the start fails, what it started ends, and its folder goes.
undo() {
	local status=$?
	if [ -n "$home" ] && [ "$status" -ne 0 ]; then
		for log in "$home"/log/*.log; do
			[ ! -s "$log" ] || { echo "app: the end of ${log##*/}:" >&2 && tail -n 5 "$log" >&2; }
		done
		end_processes || true
		remove_folders
	fi
	exit "$status"
}

# The application's folder, and that of sessions where it lies elsewhere.
remove_folders() {
	local sessions
	sessions=$(readlink -f "$home/sessions" || true)
	if [ "$sessions" != "$home/sessions" ] && [[ ${sessions##*/} == "$NAME_PREFIX"* ]]; then
		rm -rf -- "$sessions"
	fi
	rm -rf -- "$home"
}

# facts PID: its session, and when it started, in ticks since the boot. Fails for one that has ended.
facts() {
	local line
	line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	line=${line##*) }
	# The fields 3, 6 and 22 of proc_pid_stat(5); field 3 comes first here.
	set -f
	# shellcheck disable=SC2086
	set -- $line
	set +f
	[ "$1" != Z ] || return 1
	echo "$4 ${20}"
}

# start_time PID: tells a process from a later one of the same number.
start_time() {
	local found
	found=$(facts "$1") && echo "${found#* }"
}

# orphans PID BEGAN: the processes that one left behind in its session. If its number is in use again, there were none: the
# kernel gives a number away only when its session is empty.
orphans() {
	local file pid session started
	! start_time "$1" >/dev/null || return 0
	for file in /proc/[0-9]*; do
		pid=${file#/proc/}
		read -r session started < <(facts "$pid" || true) || continue
		if [ "$session" = "$1" ] && [ "$started" -ge "$2" ]; then echo "$pid"; fi
	done
}

# as_user PROGRAM ...: replaces this subshell by the program. Root's programs run as nobody.
as_user() {
	if [ "$(id -u)" -eq 0 ]; then
		exec setpriv --reuid nobody --regid nogroup --clear-groups "$@"
	fi
	exec "$@"
}

# launch NAME PROGRAM ...: starts it in the background, in its own session, and writes it down.
launch() {
	local name=$1 pid
	shift
	(
		trap - EXIT INT TERM HUP
		cd "$home"
		# The user of the program opens the log, because the folder is that user's.
		# shellcheck disable=SC2016
		as_user bash -c 'exec setsid "${@:2}" >>"$1" 2>&1' bash "$home/log/$name.out.log" "$@"
	) >/dev/null 2>&1 </dev/null &
	pid=$!
	echo "$name $pid $(start_time "$pid" || echo 0)" >>"$home/processes"
	started+=("$pid")
}

# wait_for NAME SECONDS COMMAND ...: waits until the command succeeds. It fails if a program that was started ends.
wait_for() {
	local name=$1 until=$((SECONDS + $2)) pid
	shift 2
	while ! "$@" >/dev/null 2>&1; do
		for pid in "${started[@]}"; do
			start_time "$pid" >/dev/null || fail "$name did not start: a process ended"
		done
		[ "$SECONDS" -lt "$until" ] || fail "$name did not answer in time"
		sleep 0.1
	done
}

# The processes that were written down, each only if it is still the same. The last one started ends first.
end_processes() {
	local name pid began until killed orphan
	[ -s "$home/processes" ] || return 0
	while read -r name pid began; do
		until=$((SECONDS + ENDS_WITHIN_S))
		killed=
		if [ "$(start_time "$pid" || true)" = "$began" ]; then kill -s TERM "$pid" 2>/dev/null || true; fi
		while [ "$(start_time "$pid" || true)" = "$began" ]; do
			if [ "$SECONDS" -ge "$until" ]; then
				[ -z "$killed" ] || break
				echo "app: $name does not end, and is killed" >&2
				kill -s KILL "$pid" 2>/dev/null || true
				killed=1
				until=$((SECONDS + ENDS_WITHIN_S))
			fi
			sleep 0.05
		done
		for orphan in $(orphans "$pid" "$began"); do
			kill -s KILL "$orphan" 2>/dev/null || true
		done
	done < <(tac "$home/processes")
}

is_port_open() {
	(exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

free_port() {
	local attempt port
	for attempt in {1..50}; do
		port=$((20000 + RANDOM % 10000))
		is_port_open "$port" || { echo "$port" && return 0; }
	done
	fail "no free port was found in $attempt attempts"
}

# find PACKAGE PROGRAM ...: prints the path of the first program that is here
find_program() {
	local package=$1 program
	shift
	for program in "$@"; do
		command -v "$program" && return 0
	done
	fail "there is no $1 here: install it (Debian: apt-get install --no-install-recommends $package)"
}

php_fpm() {
	local path
	for path in "$(command -v php-fpm || true)" /usr/sbin/php-fpm[0-9]*; do
		[ ! -x "$path" ] || { echo "$path" && return 0; }
	done
	fail "there is no php-fpm here: install it (Debian: apt-get install --no-install-recommends php-fpm)"
}

apache_modules() {
	local folder
	for folder in /usr/lib/apache2/modules /usr/lib64/httpd/modules /usr/lib/httpd/modules; do
		[ ! -e "$folder/mod_mime.so" ] || { echo "$folder" && return 0; }
	done
	fail "the modules of Apache are not where they are on Debian or Red Hat"
}

# php_module FOLDER: name and file of Apache's module for PHP
php_module() {
	local file
	for file in "$1"/libphp*.so; do
		case $file in
		*/libphp7*.so) echo "php7_module $file" ;;
		*) [ -e "$file" ] && echo "php_module $file" ;;
		esac && return 0
	done
	fail "Apache has no module for PHP here: install it (Debian: apt-get install --no-install-recommends libapache2-mod-php)"
}

is_number() {
	[[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || fail "$1 $2 must be a number from 1 to 9999"
}

is_small() {
	[[ $2 =~ ^(0|[1-9][0-9]?)$ ]] || fail "$1 $2 must be a number from 0 to 99"
}

is_keep_alive() {
	[[ $1 =~ ^(on|off|[1-9][0-9]{0,2})$ ]] || fail "--keep-alive $1 must be on, off, or seconds from 1 to 999"
}

is_port() {
	if ! [[ $1 =~ ^[1-9][0-9]{3,4}$ ]] || [ "$1" -gt 65535 ]; then
		fail "--port $1 must be a number from 1000 to 65535"
	fi
}

is_one_of() {
	local option=$1 value=$2 allowed
	shift 2
	for allowed in "$@"; do
		[ "$value" != "$allowed" ] || return 0
	done
	fail "$option $value must be one of: $*"
}

# render FROM TO: a file of the application, with the values of `values` in the places of their names
render() {
	local text name
	text=$(cat "$1")
	for name in "${!values[@]}"; do
		text=${text//"@$name@"/"${values[$name]}"}
	done
	printf '%s\n' "$text" >"$2"
}

start() {
	local php=fpm workers='' max_clients=64 keep_alive=on sessions=files session_folder='' connections=persistent port='' troubles='' session_changes='' access_log=on
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage && exit 0 ;;
		--*) [ $# -ge 2 ] || fail "$1 needs a value" ;;
		*) fail "$1 is no option: see start.sh --help" ;;
		esac
		case $1 in
		--php) is_one_of "$1" "$2" mod fpm && php=$2 ;;
		--workers) is_number "$1" "$2" && workers=$2 ;;
		--max-clients) is_number "$1" "$2" && max_clients=$2 ;;
		--keep-alive) is_keep_alive "$2" && keep_alive=$2 ;;
		--sessions) is_one_of "$1" "$2" files memcached && sessions=$2 ;;
		--session-folder) session_folder=$2 ;;
		--session-changes) is_small "$1" "$2" && session_changes=$2 ;;
		--access-log) is_one_of "$1" "$2" on off && access_log=$2 ;;
		--connections) is_one_of "$1" "$2" persistent new && connections=$2 ;;
		--trouble) is_one_of "$1" "$2" hot-row session-folder log-file && troubles=${troubles:+$troubles,}$2 ;;
		--port) is_port "$2" && port=$2 ;;
		*) fail "$1 is no option: see start.sh --help" ;;
		esac
		shift 2
	done
	[ "$php" = fpm ] || [ -z "$workers" ] || fail "--workers is for PHP-FPM: give --php fpm, or --max-clients"
	if [[ ",$troubles," == *,session-folder,* ]] && [ "$sessions" != files ]; then
		fail "the trouble session-folder needs --sessions files"
	fi
	if [[ ",$troubles," == *,log-file,* ]] && [ "$access_log" != on ]; then
		fail "the trouble log-file needs --access-log on"
	fi
	[[ ",$troubles," != *,session-folder,* && ",$troubles," != *,log-file,* ]] || find_program e2fsprogs chattr >/dev/null
	workers=${workers:-16}
	if [ -z "$session_changes" ]; then
		session_changes=0
		[[ ",$troubles," != *,session-folder,* ]] || session_changes=8
	fi

	local apache mariadbd client install_db fpm='' memcached='' modules module=none
	apache=$(find_program apache2 apache2 httpd)
	mariadbd=$(find_program mariadb-server-core mariadbd)
	client=$(find_program mariadb-client mariadb)
	install_db=$(find_program mariadb-server-core mariadb-install-db)
	find_program util-linux setpriv >/dev/null
	modules=$(apache_modules)
	if [ "$php" = fpm ]; then fpm=$(php_fpm); else module=$(php_module "$modules"); fi
	[ "$sessions" = files ] || memcached=$(find_program "memcached php-memcached" memcached)
	[ -z "$port" ] || ! is_port_open "$port" || fail "something listens on port $port"

	[[ $DATABASE_ELSEWHERE =~ ^([0-9a-z.-]+:[0-9]+)?$ ]] || fail "WHYSO_APP_DATABASE $DATABASE_ELSEWHERE must be HOST:PORT"

	trap undo EXIT
	trap 'exit 130' INT TERM HUP
	home=$(mktemp -d "$PARENT/${NAME_PREFIX}XXXXXX")
	umask 022
	mkdir "$home"/{conf,php,sessions,www}
	mkdir -m 0700 "$home"/{data,log,run,tmp,uploads}
	: >"$home/processes"
	cp -r "$SOURCE/www/." "$home/www/"

	port=${port:-$(free_port)}
	local memcached_port=''
	[ -z "$memcached" ] || memcached_port=$(free_port)
	write_settings
	if [ "$(id -u)" -eq 0 ]; then
		# Programs write only here. What root reads again at the stop stays root's.
		chown -R nobody:nogroup "$home"/{data,log,run,tmp,uploads}
		chmod 0711 "$home"
		(as_user test -x "$home/www") || fail "the user nobody cannot enter $PARENT: name another folder in WHYSO_APP_PARENT"
	fi
	# The path of a socket has at most 107 bytes.
	[ "${#home}" -le 80 ] || fail "$home is too long for sockets: name a shorter folder in WHYSO_APP_PARENT"

	[ -n "$DATABASE_ELSEWHERE" ] || start_database
	if [ -n "$memcached" ]; then
		launch memcached "$memcached" -l 127.0.0.1 -p "$memcached_port" -U 0 -m 64
		wait_for memcached "$STARTS_WITHIN_S" is_port_open "$memcached_port"
	fi
	local define=(-DMOD)
	if [ "$php" = fpm ]; then
		define=(-DFPM)
		launch php-fpm "$fpm" --nodaemonize --php-ini "$home/php/php.ini" --fpm-config "$home/conf/php-fpm.conf"
		wait_for php-fpm "$STARTS_WITHIN_S" test -S "$home/run/fpm-status.sock"
	fi
	if [ "$access_log" = on ]; then
		define+=(-DLOG)
		[[ ",$troubles," != *,log-file,* ]] || write_log_through
	fi
	launch httpd "$apache" -d "$home" -f "$home/conf/httpd.conf" "${define[@]}" -DFOREGROUND
	wait_for httpd "$STARTS_WITHIN_S" is_port_open "$port"
	{
		echo "folder $home"
		echo "url http://127.0.0.1:$port/"
		if [ -n "$DATABASE_ELSEWHERE" ]; then
			echo "dsn mysql://calendar@$DATABASE_ELSEWHERE/calendar"
		else
			echo "dsn mysql://root@localhost/calendar?socket=$home/run/mariadb.sock"
		fi
		# As the add-ons that ship read them from the environment.
		echo "HTTPD_STATUS_URL http://127.0.0.1:$port/server-status?auto"
		[ "$php" = mod ] || echo "PHP_FPM_STATUS_URL http://127.0.0.1:$port/fpm-status"
		[ -z "$memcached_port" ] || echo "MEMCACHED_ADDRESS 127.0.0.1:$memcached_port"
	} >"$home/addresses"
	trap - EXIT INT TERM HUP
	show
}

# Writes the settings of all programs. Uses the local variables of start.
write_settings() {
	local threads=$max_clients servers=1 path handler=files gc=1 lazy_write=1 kept_s=5
	case $keep_alive in
	on | off) ;;
	*) kept_s=$keep_alive keep_alive=on ;;
	esac
	# Processes of at most 32 threads, as even as the number allows: the event MPM rounds down to whole processes.
	if [ "$max_clients" -gt 32 ]; then
		servers=$(((max_clients + 31) / 32))
		threads=$(((max_clients + servers - 1) / servers))
		max_clients=$((servers * threads))
	fi
	if [ -n "$session_folder" ]; then
		[ -d "$session_folder" ] || fail "--session-folder $session_folder is no folder"
		session_folder=$(mktemp -d "$(cd "$session_folder" && pwd)/${NAME_PREFIX}XXXXXX")
		rmdir "$home/sessions"
		ln -s "$session_folder" "$home/sessions"
	fi
	path=$(readlink -f "$home/sessions")
	if [ "$sessions" = memcached ]; then
		handler=memcached
		path=127.0.0.1:$memcached_port
	elif [[ ",$troubles," == *,session-folder,* ]]; then
		# Each change of the folder is on the disk before the folder's lock is free, as it is on a file system of others (NFS).
		chattr +D "$path" || fail "the trouble session-folder needs a folder whose changes can be written through, as on ext4: name one by --session-folder"
		lazy_write=0
		gc=0
	else
		# One folder for each first digit of a session's name. PHP leaves removing old files of several folders to others.
		mkdir "$path"/{0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f}
		path="1;$path"
		gc=0
	fi
	local database=unix_socket=$home/run/mariadb.sock
	[ -z "$DATABASE_ELSEWHERE" ] || database="host=${DATABASE_ELSEWHERE%:*};port=${DATABASE_ELSEWHERE##*:}"
	chmod -R go= "$home/sessions/"
	[ "$(id -u)" -ne 0 ] || chown -R nobody:nogroup "$home/sessions/"
	declare -A values=(
		[HOME]=$home [PORT]=$port [MODULES]=$modules [PHP_MODULE]=$module [KEEP_ALIVE]=$keep_alive [KEPT_S]=$kept_s [WORKERS]=$workers
		[MAX_CLIENTS]=$max_clients [THREADS]=$threads [SERVERS]=$servers [STARTED]=$((max_clients < 16 ? max_clients : 16))
		[SESSION_HANDLER]=$handler [SESSION_PATH]=$path [SESSION_GC]=$gc [SESSION_LAZY_WRITE]=$lazy_write [SESSION_CHANGES]=$session_changes
		[CONNECTIONS]=$connections [DATABASE]=$database [TROUBLES]=$troubles
	)
	render "$SOURCE/conf/httpd.conf" "$home/conf/httpd.conf"
	render "$SOURCE/conf/php-fpm.conf" "$home/conf/php-fpm.conf"
	render "$SOURCE/conf/php.ini" "$home/php/php.ini"
	render "$SOURCE/conf/my.cnf" "$home/conf/my.cnf"
}

# Each line of the access log is on the disk before the process that wrote it goes on, as where a file system is mounted with sync.
write_log_through() {
	local log=$home/log/access.log
	: >"$log"
	chattr +S "$log" || fail "the trouble log-file needs a file that can be written through, as on ext4: name another folder in WHYSO_APP_PARENT"
	[ "$(id -u)" -ne 0 ] || chown nobody:nogroup "$log"
}

start_database() {
	(
		trap - EXIT INT TERM HUP
		as_user timeout "$STARTS_WITHIN_S" "$install_db" --defaults-file="$home/conf/my.cnf" --auth-root-authentication-method=normal --skip-test-db
	) >"$home/install.log" 2>&1 || fail "the database was not made: $(tail -n 1 "$home/install.log")"
	launch mariadbd "$mariadbd" --defaults-file="$home/conf/my.cnf"
	local sql=("$client" --no-defaults --socket="$home/run/mariadb.sock" --user=root --connect-timeout=5)
	wait_for mariadbd "$STARTS_WITHIN_S" "${sql[@]}" -e 'SELECT 1'
	{
		echo "CREATE DATABASE calendar CHARACTER SET utf8mb4; USE calendar;"
		cat "$SOURCE/sql/schema.sql" "$SOURCE/sql/data.sql"
		echo "CREATE USER calendar@localhost; GRANT SELECT, INSERT, UPDATE, DELETE ON calendar.* TO calendar@localhost;"
	} | timeout "$STARTS_WITHIN_S" "${sql[@]}" >/dev/null
}

show() {
	cat "$home/addresses"
	local name pid began
	while read -r name pid began; do
		if [ "$(start_time "$pid" || true)" = "$began" ]; then echo "pid $name $pid"; fi
	done <"$home/processes"
}

# is_own FOLDER: whether this user started the application in it. What others wrote there is not obeyed.
is_own() {
	[[ ${1##*/} == "$NAME_PREFIX"* && -O $1 && -O $1/processes && ! -L $1 ]]
}

list() {
	local folder
	for folder in "$PARENT/$NAME_PREFIX"*; do
		if is_own "$folder" && [ -e "$folder/addresses" ]; then
			home=$folder
			show
			echo
		fi
	done
}

stop() {
	home=$(cd "${1:?stop needs the folder that start printed}" && pwd)
	is_own "$home" || fail "$home is no folder of a sample application that you started"
	end_processes
	remove_folders
}

case ${1:-} in
start) shift && start "$@" ;;
list) list ;;
stop) stop "${2:-}" ;;
--help | -h) usage ;;
*) usage >&2 && exit 2 ;;
esac
