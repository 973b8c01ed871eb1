#!/usr/bin/env bash
# Has Schemathesis ask a real `whyso serve` everything that its description of the API allows, and much that it does not allow: see
# scripts/schemathesis.toml. What may be deleted, pruned and imported are copies of one run that is recorded for this.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
whyso=$CARGO_TARGET_DIR/release/whyso

# How long, in seconds. The result in CI must depend only on the change.
seconds=${API_SECONDS:-20}
seed=()
if [[ ${CI:-} == true ]]; then
	seed=(--seed "${SCHEMATHESIS_SEED:-20261121}")
fi

needs=scripts/api-tests.txt
tools=${XDG_CACHE_HOME:-$HOME/.cache}/whyso/schemathesis-$(sha256sum "$needs" | cut -c1-12)
if [[ ! -x $tools/bin/schemathesis ]]; then
	rm -rf "$tools"
	if ! (python3 -m venv "$tools" && timeout 300 "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$needs") >&2; then
		echo "not tested: the API by Schemathesis: it could not be fetched" | tee -a "${WHYSO_NOT_TESTED:-/dev/null}"
		rm -rf "$tools"
		exit 0
	fi
fi

place=$(mktemp -d /var/tmp/whyso-api-XXXXXX)
started=()
end() {
	for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$place"
}
trap end EXIT

"$whyso" run oltp-read-write --users 1,4 --seconds 3 --warmup 1 --no-repeat --tables 2 --rows 2000 --stacks --server-dir "$place" \
	--out "$place/made" >"$place/run.log" 2>&1 || { cat "$place/run.log"; exit 1; }
made=$(echo "$place"/made/*)

# Serves a folder of runs, under names that are known here; writes the address with the token.
serve() {
	local runs=$1 name
	shift
	mkdir "$runs"
	for name in "$@"; do cp -r "$made" "$runs/$name"; done
	# It can be begun to be recorded, and never is: nobody listens there.
	printf '[[server]]\nname = "nobody"\ndsn = "mysql://nobody@127.0.0.1:1/"\ntrace = false\n' >"$runs.toml"
	chmod 600 "$runs.toml"
	HOME=$place XDG_CACHE_HOME=$place/cache XDG_STATE_HOME=$place/state "$whyso" serve --runs "$runs" --servers "$runs.toml" \
		--listen 127.0.0.1:0 >"$runs.address" 2>"$runs.log" &
	started+=($!)
	for _ in {1..100}; do
		[[ -s $runs.address ]] && break
		sleep 0.1
	done
	[[ -s $runs.address ]] || { cat "$runs.log" >&2; return 1; }
}

# Asks a server for this many seconds, with more arguments.
ask() {
	local runs=$1 most=$2 address
	shift 2
	address=$(<"$runs.address")
	export WHYSO_TOKEN=${address#*#token=} WHYSO_HOOKS=$PWD/scripts/schemathesis_hooks.py
	python3 - "${address%%/#*}/api/v1/openapi.json" >"$runs.json" <<-'PYTHON'
		import os, sys, urllib.request
		asked = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + os.environ["WHYSO_TOKEN"]})
		print(urllib.request.urlopen(asked, timeout=20).read().decode())
	PYTHON
	# It keeps what it saw in the folder that it is started in.
	local config=$PWD/scripts/schemathesis.toml
	(cd "$place/seen" && timeout $((most + 120)) "$tools/bin/schemathesis" --config-file "$config" run "$runs.json" \
		--url "${address%%/#*}/api/v1" --checks all --max-time "$most" --max-examples 60 --request-timeout 20 --suppress-health-check all \
		--generation-database none "${seed[@]}" "$@")
}

mkdir "$place/seen"
serve "$place/runs" one two
serve "$place/doomed" one two three four
# What removes runs asks a folder of its own: the others would soon find none.
ask "$place/runs" "$seconds" --exclude-operation-id remove
ask "$place/doomed" $((seconds / 5)) --include-operation-id remove --phases coverage,fuzzing

# Nothing was written but into the two folders.
for one in "$place"/*; do
	case ${one##*/} in
	made | run.log | seen | runs | runs.* | doomed | doomed.* | cache | state) ;;
	*) echo "this was written outside of the folders: $one"; exit 1 ;;
	esac
done
for run in one two; do
	[[ -f $place/runs/$run/run.json ]] || { echo "nobody asked to remove the run $run, and it is gone"; exit 1; }
done
[[ ! -e /tmp/outside ]]
