#!/usr/bin/env bash
# lab.sh: two load hosts, a database host and a hub, all of this machine: each has a network and a PID namespace of its own, so that it sees its own
# processes only, and the database host's clock is a day ahead. Runs one load from both load hosts, and draws the report. Nothing is left of the hosts
# afterwards. Needs root.
#
#   tests/lab.sh [OPTIONS OF whyso run…]        such as --users 1,4,16 --seconds 8
#
# LAB_TROUBLE plants one: disk (reads, writes and syncs of the database take 20 times as long), cpu (other programs fill the CPU of load-2), or
# network (a relay before the database delays each way by 10 ms).
set -euo pipefail
cd "$(dirname "$0")/.."
whyso=$(realpath "${WHYSO:-${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}/release/whyso}")
WHYSO_NATS_SERVER=$(scripts/nats_server.sh)
export WHYSO_NATS_SERVER
out=$PWD/runs
[ "$(id -u)" -eq 0 ] || { echo "lab: it makes network namespaces, which needs root" >&2 && exit 2; }
place=$(mktemp -d /var/tmp/whyso-lab-XXXXXX)
id=$$
trouble=${LAB_TROUBLE:-}
case $trouble in "" | disk | cpu | network) ;; *) echo "lab: LAB_TROUBLE is disk, cpu or network" >&2 && exit 2 ;; esac
database=10.97.0.2:3306
hosts="hub db load-1 load-2"
declare -A first
pids=()

end() {
	# With its first process, all that runs on a host is ended at once: nothing of it is kept.
	for host in $hosts; do [ -z "${first[$host]:-}" ] || kill -KILL "${first[$host]}" || true; done
	for pid in "${first[@]}" "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
	for host in $hosts; do ip netns delete "wl$id-$host" 2>/dev/null || true; done
	rm -rf "$place"
}
trap end EXIT

# Begins a host: a process that only holds its namespaces, and ends all others there when it ends.
begin() {
	local host=$1 spaces=(--pid --fork --mount-proc --kill-child=SIGKILL)
	[ "$host" != db ] || spaces+=(--time --monotonic 86400)
	# With a CPU of its own, it is a machine of its own.
	[ "$trouble $host" != "cpu load-2" ] || spaces+=(--uts)
	ip netns exec "wl$id-$host" unshare "${spaces[@]}" sh -c '[ "$1" = "$(hostname)" ] || hostname "$1"; echo >"$2"; exec sleep infinity' \
		sh "$([ "$trouble $host" = "cpu load-2" ] && echo load-2 || hostname)" "$place/begun-$host" &
	first[$host]=$!
	until [ -e "$place/begun-$host" ]; do kill -0 "${first[$host]}" && sleep 0.1; done
}

# Runs a command on a host.
on() {
	local host=$1
	shift
	local cpus=0-$(($(nproc) - 1))
	# So load-2 has a CPU of its own.
	[ "$trouble" != cpu ] || cpus=0
	[ "$trouble $host" != "cpu load-2" ] || cpus=1
	local of=/proc/${first[$host]}/ns
	exec taskset --cpu-list "$cpus" nsenter --net="$of/net" --mount="$of/mnt" --uts="$of/uts" --time="$of/time_for_children" --pid="$of/pid_for_children" \
		env --chdir="$PWD" "$@"
}

for host in $hosts; do
	ip netns add "wl$id-$host"
	ip -n "wl$id-$host" link set lo up
done
# The hub's host is also the switch between the others.
ip -n "wl$id-hub" link add switch type bridge
ip -n "wl$id-hub" addr add 10.97.0.1/24 dev switch
ip -n "wl$id-hub" link set switch up
number=2
for host in db load-1 load-2; do
	ip link add "to-$host" netns "wl$id-hub" type veth peer name e0 netns "wl$id-$host"
	ip -n "wl$id-hub" link set "to-$host" master switch up
	ip -n "wl$id-$host" addr add "10.97.0.$number/24" dev e0
	ip -n "wl$id-$host" link set e0 up
	number=$((number + 1))
done
for host in $hosts; do begin "$host"; done

echo "lab: a database on db, 10.97.0.2"
mkdir "$place/data"
mariadb-install-db --no-defaults --user=root --datadir="$place/data" --auth-root-authentication-method=normal --skip-test-db >"$place/install.log" 2>&1
slow=()
if [ "$trouble" = disk ]; then
	clang -shared -fPIC -O2 -o "$place/slow.so" crates/server/src/throwaway/slow/slow.c
	# Thousandths of a call's own time that are added: of storage, and of work.
	python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("=II", 19000, 0))' >"$place/speeds"
	slow=(env LD_PRELOAD="$place/slow.so" WHYSO_SPEEDS="$place/speeds")
fi
(on db "${slow[@]}" mariadbd --no-defaults --user=root --datadir="$place/data" --socket="$place/s" --bind-address=10.97.0.2 --port=3306 --skip-name-resolve) \
	>"$place/server.log" 2>&1 &
pids+=($!)
sql() {
	mariadb --no-defaults --user=root --socket="$place/s" --execute "$1" 2>/dev/null
}
for _ in $(seq 300); do sql "SELECT 1" >/dev/null && break || sleep 0.1; done
sql "CREATE USER lab@'%'; GRANT ALL ON *.* TO lab@'%'"

if [ "$trouble" = network ]; then
	database=10.97.0.1:3307
	(on hub python3 tests/lab_relay.py 10.97.0.1 3307 10.97.0.2 3306 10) &
	pids+=($!)
fi
if [ "$trouble" = cpu ]; then
	for _ in 1 2 3; do
		(on load-2 sh -c 'while :; do :; done') &
		pids+=($!)
	done
fi

echo "lab: a hub on hub, and an agent on each other host"
(on hub "$whyso" hub --folder "$place/hub" start --listen 10.97.0.1:4222) 2>"$place/hub.log" &
pids+=($!)
until (on hub "$whyso" hub --folder "$place/hub" members) >/dev/null 2>&1 && grep -q "the hub is at" "$place/hub.log"; do sleep 0.1; done
printf '[[server]]\nname = "shop"\ndsn = "mysql://root@localhost/?socket=%s"\n' "$place/s" >"$place/db.toml"
for host in load-1 load-2; do
	printf 'may = ["observe", "load"]\n[[target]]\nname = "shop"\ndsn = "mysql://lab@%s/whyso"\n' "$database" >"$place/$host.toml"
done
for host in db load-1 load-2; do
	(on hub "$whyso" hub --folder "$place/hub" invite "$host") | (on "$host" "$whyso" agent --folder "$place/agent-$host" join -) >/dev/null
	(on "$host" "$whyso" agent --folder "$place/agent-$host" run --settings "$place/$host.toml") 2>"$place/agent-$host.log" &
	pids+=($!)
done
for host in db load-1 load-2; do
	until grep -q "joined the hub" "$place/agent-$host.log"; do sleep 0.1; done
done
(on hub "$whyso" hub --folder "$place/hub" agents)

printf 'hub = "hub"\n[[host]]\nname = "db"\nserver = "shop"\n[[host]]\nname = "load-1"\nload = "shop"\n[[host]]\nname = "load-2"\nload = "shop"\n' >"$place/lab.toml"
options=("$@")
[ $# -gt 0 ] || options=(--users 1,4,16 --seconds 6 --warmup 2 --tables 2 --rows 10000)
(on hub "$whyso" run oltp-read-write --dsn "mysql://lab@$database/whyso" --hosts "$place/lab.toml" --out "$out" "${options[@]}")
