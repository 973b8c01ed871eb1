#!/usr/bin/env bash
# matrix.sh [BUILD|FOLDER…]: fetches server builds, all that are known where none is named, and tests whyso on every available one.
# mysql-cluster is the server of mysql-sid; tests/ndb.rs tests the rest of it.
# An unpacked server's folder becomes a build of its name. A build that is not available is printed as not tested, and is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"

cargo build --release --locked --quiet
whyso=$CARGO_TARGET_DIR/release/whyso
builds=("$@")
if [ ${#builds[@]} -eq 0 ]; then
	mapfile -t builds < <("$whyso" server list --json | python3 -c \
		'import json, sys; [print(build["name"]) for build in json.load(sys.stdin)["builds"] if not build["at_hand"] and build["name"] != "mysql-cluster"]')
fi
for build in "${builds[@]}"; do
	if [ -d "$build" ]; then
		"$whyso" server add "$(basename "$build")" "$build"
		continue
	fi
	timeout 300 "$whyso" server fetch "$build" || echo "not tested: $build (it could not be fetched)"
done
cargo test --release --locked --test matrix -- --include-ignored --nocapture
