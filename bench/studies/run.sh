#!/usr/bin/env bash
# Runs the short form of every study that ships, one after the other, and prints how long each took and what it found.
#
#   bench/studies/run.sh WHYSO OUT [NAME…]
#
# OUT is a new folder, or that of an earlier run, which continues where it was. A study that takes longer than 15 minutes is stopped.
set -euo pipefail
(($# >= 2)) || {
	echo "usage: bench/studies/run.sh WHYSO OUT [NAME…]" >&2
	exit 2
}
whyso=$1 out=$2
shift 2
studies=$(cd "$(dirname "$0")/../../studies" && pwd)
mkdir -p "$out"
names=("$@")
((${#names[@]} > 0)) || mapfile -t names < <(basename -s .toml "$studies"/*.toml)

failed=0
echo "| study | minutes | starts | what it found |"
echo "| --- | ---: | ---: | --- |"
for name in "${names[@]}"; do
	dir=$out/$name
	# What was done before counts.
	[[ -s $dir.seconds ]] || echo 0 >"$dir.seconds"
	began=$(date +%s)
	command=(run "$studies/$name.toml" --quick --out "$dir")
	[[ ! -e $dir/study.json ]] || command=(resume "$dir")
	status=0
	timeout --signal INT --kill-after 60 900 "$whyso" study "${command[@]}" --json >"$dir.json" 2>"$dir.log" || status=$?
	echo $(($(cat "$dir.seconds") + $(date +%s) - began)) >"$dir.seconds"
	"$whyso" study show "$dir" --markdown >"$dir.md" 2>>"$dir.log" || true
	minutes=$(awk '{ printf "%.1f", $1 / 60 }' "$dir.seconds")
	((status == 0)) || {
		failed=1
		echo "| $name | $minutes | | exit status $status: $(tail -n 1 "$dir.log") |"
		continue
	}
	starts=$(grep -c . "$dir/starts.jsonl")
	found=$(sed -n 's/^- //p' "$dir.md" | head -n 1)
	echo "| $name | $minutes | $starts | $found |"
done
exit "$failed"
