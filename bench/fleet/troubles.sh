#!/usr/bin/env bash
# troubles.sh: plants three troubles in the lab of namespaces, one after the other, and prints what whyso names. Needs root, about four minutes.
# troubles.txt has what one run of it printed.
set -euo pipefail
cd "$(dirname "$0")/../.."
load=(--users 4 --seconds 10 --warmup 3 --tables 2 --rows 10000 --no-repeat)
for trouble in "" disk cpu network; do
	echo "== ${trouble:-none}"
	# What is slow behind a lock, its waits' stacks show.
	more=()
	[ "$trouble" != disk ] || more=(--stacks)
	LAB_TROUBLE=$trouble tests/lab.sh "${load[@]}" "${more[@]}" 2>/dev/null | grep -v "^lab: " || echo "the run failed"
done
