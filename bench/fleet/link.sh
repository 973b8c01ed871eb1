#!/usr/bin/env bash
# link.sh: an agent records while its link to the hub is cut for a minute. Prints its readings per second before, during and after the cut, and what was
# lost. The hub and the agent are two hosts of network and PID namespaces. Needs root, three minutes. See README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
before=${BEFORE_S:-30} cut=${CUT_S:-60} after=${AFTER_S:-30}
WHYSO_NATS_SERVER=$(scripts/nats_server.sh)
export WHYSO_NATS_SERVER
whyso=$(realpath "${WHYSO:-${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}/release/whyso}")
place=$(mktemp -d /var/tmp/whyso-fleet-XXXXXX)
id=$$
pids=()
end() {
	for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	for host in hub one; do ip netns delete "wf$id-$host" 2>/dev/null || true; done
	rm -rf "$place"
}
trap end EXIT

# The exec keeps the number of the process. What it starts ends with it.
on() {
	local host=$1
	shift
	exec ip netns exec "wf$id-$host" unshare --pid --fork --mount-proc --kill-child=SIGKILL "$@"
}
for host in hub one; do
	ip netns add "wf$id-$host"
	ip -n "wf$id-$host" link set lo up
done
ip link add to-one netns "wf$id-hub" type veth peer name e0 netns "wf$id-one"
ip -n "wf$id-hub" addr add 10.96.0.1/24 dev to-one
ip -n "wf$id-one" addr add 10.96.0.2/24 dev e0
ip -n "wf$id-hub" link set to-one up
ip -n "wf$id-one" link set e0 up

(on hub "$whyso" hub --folder "$place/hub" start --listen 10.96.0.1:14222) 2>"$place/hub.log" &
pids+=($!)
until grep -qs "the hub is at" "$place/hub.log"; do sleep 0.2; done
# A member is known to the hub when its server has read its file again: that is signalled in its own PID namespace.
first=$(pgrep -P "${pids[0]}")
nsenter --target "$first" --pid --mount "$whyso" hub --folder "$place/hub" invite one >"$place/token"
"$whyso" agent --folder "$place/agent" join - <"$place/token" >/dev/null
(on one "$whyso" agent --folder "$place/agent" run --settings "$place/none.toml") 2>"$place/agent.log" &
pids+=($!)
until grep -qs joined "$place/agent.log"; do sleep 0.2; done
printf 'hub = "hub"\n[[host]]\nname = "one"\n' >"$place/lab.toml"
(on hub "$whyso" record --hosts "$place/lab.toml" --for $((before + cut + after))s --out "$place/runs" --json) >"$place/run.json" 2>"$place/record.log" &
recording=$!
pids+=("$recording")
until compgen -G "$place/runs/*/run.json" >/dev/null; do sleep 0.1; done
monotonic() { python3 -c 'import time; print(time.monotonic_ns())'; }
sleep "$before"
down=$(monotonic)
ip -n "wf$id-hub" link set to-one down
sleep "$cut"
echo "at the end of the cut, the agent's link is $(ip netns exec "wf$id-one" cat /sys/class/net/e0/operstate)"
up=$(monotonic)
ip -n "wf$id-hub" link set to-one up
wait "$recording"
run=$(dirname "$(ls "$place"/runs/*/run.json)")
"$whyso" export "$run" --format csv --host one --source cpu --metric idle_ns >"$place/idle.csv"
python3 - "$run/run.json" "$place/idle.csv" "$down" "$up" <<'END'
import csv, json, sys

run, lines, down, up = json.load(open(sys.argv[1])), open(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
times = sorted(int(row["t_ns"]) for row in csv.DictReader(lines) if row["instance"] == "all")
host = run["hosts"][0]
for name, begin, end in (("before", times[0], down), ("during", down, up), ("after", up, times[-1] + 1)):
    count = sum(begin <= at < end for at in times)
    print(f"{name} the cut: {count} readings in {(end - begin) / 1e9:.1f} s, {count / ((end - begin) / 1e9):.3f} per second")
gaps = [(after - before) / 1e9 for before, after in zip(times, times[1:])]
print(f"longest time between two readings: {max(gaps):.3f} s")
print(f"lost: {host['lost']}; problem: {host.get('problem')}")
END
