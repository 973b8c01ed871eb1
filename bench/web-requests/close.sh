#!/usr/bin/env bash
# How well the time of a web request closes: what clients measured, and what the tiers add up to, by users. Prints a line per level.
# Usage: close.sh [fpm|mod]   WHYSO=path of the program, LEVELS="1 4 16 64"
set -euo pipefail
WHYSO=${WHYSO:-whyso}
LEVELS=${LEVELS:-1 2 4 8 16 32 64}
folder=$(mktemp -d)
options=(--php "${1:-fpm}" --max-clients 80)
if [[ ${1:-fpm} == fpm ]]; then options+=(--workers 16); fi
printed=$("$WHYSO" server app start "${options[@]}")
app=$(sed -n 's/^ *folder *//p' <<<"$printed")
trap '"$WHYSO" server app stop "$app" >/dev/null; rm -rf "$folder"' EXIT
url=$(head -n 1 <<<"$printed")
processes=()
for name in httpd php-fpm mariadbd; do
	number=$(grep -oP "^ *processes.*$name \K[0-9]+" <<<"$printed" || true)
	if [[ -n $number ]]; then processes+=(--process "$number"); fi
done
for users in $LEVELS; do
	page=("$WHYSO" load --url "${url%/}/event.php?id=7" --users "$users" --json)
	# Apache starts its processes meanwhile.
	"${page[@]}" --seconds 8 >/dev/null 2>&1
	"${page[@]}" --seconds 8 --warmup 0 >"$folder/load.json" 2>"$folder/load.err" &
	load=$!
	sleep 1
	"$WHYSO" record "${processes[@]}" --for 5s --out "$folder/runs" --json >"$folder/record.json" 2>/dev/null
	wait "$load"
	run=$(find "$folder/runs" -mindepth 1 -maxdepth 1 -name "2*" | sort | tail -n 1)
	"$WHYSO" why "$run" --json >"$folder/why.json"
	python3 - "$users" "$folder" <<-'P'
		import json, sys
		users, folder = sys.argv[1:]
		load = json.load(open(f"{folder}/load.json"))
		why = json.load(open(f"{folder}/why.json"))
		tier = next(tier for tier in why["tiers"] if tier["is_first"])
		level = (load.get("levels") or [load])[0]
		result = level.get("result", level)
		mean = result["latency_ms"]["mean"]
		leaves = sum(line["ms"] for line in tier["lines"] if not line["is_divided"])
		print(f"{users} users: clients {mean:.2f} ms, tiers {tier['mean_ms']:.2f} ms, lines {leaves:.2f} ms, ratio {tier['mean_ms'] / mean:.3f}, {tier['requests_per_s']:.0f} requests/s")
	P
done
