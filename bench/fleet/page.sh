#!/usr/bin/env bash
# page.sh: ten agents of this machine are recorded from the page of `whyso serve`. Prints how far the newest reading of each host is behind, as a browser
# gets it, over SECONDS (60). See README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${SECONDS_EACH:-60} count=${AGENTS:-10}
WHYSO_NATS_SERVER=$(scripts/nats_server.sh)
export WHYSO_NATS_SERVER
whyso=$(realpath "${WHYSO:-${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}/release/whyso}")
place=$(mktemp -d /var/tmp/whyso-fleet-XXXXXX)
pids=()
end() {
	for ((at = ${#pids[@]} - 1; at >= 0; at--)); do
		kill "${pids[at]}" 2>/dev/null || true
		wait "${pids[at]}" 2>/dev/null || true
	done
	rm -rf "$place"
}
trap end EXIT

"$whyso" hub --folder "$place/hub" start --listen 127.0.0.1:14222 2>"$place/hub.log" &
pids+=($!)
until "$whyso" hub --folder "$place/hub" invite first >/dev/null 2>&1; do sleep 0.2; done
printf 'hub = "hub"\n' >"$place/lab.toml"
for number in $(seq "$count"); do
	name=host-$number
	"$whyso" hub --folder "$place/hub" invite "$name" | "$whyso" agent --folder "$place/$name" join - >/dev/null
	"$whyso" agent --folder "$place/$name" run --settings "$place/none.toml" 2>"$place/$name.log" &
	pids+=($!)
	printf '[[host]]\nname = "%s"\n' "$name" >>"$place/lab.toml"
done
for number in $(seq "$count"); do
	until grep -q joined "$place/host-$number.log"; do sleep 0.2; done
done
printf '[[server]]\nname = "lab"\nhosts = "lab.toml"\n' >"$place/servers.toml"
head -c 24 /dev/urandom | base64 | tr -dc 'a-zA-Z0-9' >"$place/token"
printf '%s' 00000000 >>"$place/token"
chmod 600 "$place/servers.toml" "$place/token"
mkdir "$place/runs"
"$whyso" serve --runs "$place/runs" --studies "$place" --servers "$place/servers.toml" --token-file "$place/token" --listen 127.0.0.1:17979 >"$place/serve.log" &
pids+=($!)
until grep -q http "$place/serve.log"; do sleep 0.2; done
python3 bench/fleet/page.py http://127.0.0.1:17979 "$place/token" lab "$count" "$seconds"
