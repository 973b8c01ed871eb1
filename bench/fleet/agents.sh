#!/usr/bin/env bash
# agents.sh: CPU time of an agent that is only joined, and of one that records its machine, over SECONDS (60) each. See README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${SECONDS_EACH:-60}
WHYSO_NATS_SERVER=$(scripts/nats_server.sh)
export WHYSO_NATS_SERVER
whyso=${WHYSO:-${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}/release/whyso}
place=$(mktemp -d /var/tmp/whyso-fleet-XXXXXX)
hub= agent=
end() {
	[ -z "$agent" ] || kill "$agent" || true
	[ -z "$hub" ] || kill "$hub" || true
	wait
	rm -rf "$place"
}
trap end EXIT

"$whyso" hub --folder "$place/hub" start --listen 127.0.0.1:14222 2>"$place/hub.log" &
hub=$!
until token=$("$whyso" hub --folder "$place/hub" invite one 2>/dev/null); do sleep 0.2; done
"$whyso" agent --folder "$place/agent" join - <<<"$token" >/dev/null
"$whyso" agent --folder "$place/agent" run --settings "$place/none.toml" 2>"$place/agent.log" &
agent=$!
until grep -q joined "$place/agent.log"; do sleep 0.2; done

# CPU time of the agent in ticks of 10 ms.
ticks() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$agent/stat"
}
share() {
	local before
	before=$(ticks)
	sleep "$seconds"
	awk -v ticks=$(($(ticks) - before)) -v seconds="$seconds" 'BEGIN { printf "%.2f %% of a core\n", ticks / seconds }'
}
echo "joined: $(share)"
printf 'hub = "hub"\n[[host]]\nname = "one"\n' >"$place/lab.toml"
"$whyso" record --hosts "$place/lab.toml" --for $((seconds + 10))s --out "$place/runs" >/dev/null 2>&1 &
recording=$!
sleep 4
echo "recording its machine, one reading per second: $(share)"
wait "$recording"
