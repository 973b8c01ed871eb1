#!/usr/bin/env bash
# Runs the tests of every change: formatting, lints, Rust (unit, property, end to end over real servers), the lessons of the book, the page.
# What takes longer is in scripts/test-hard.sh.
# `make test` calls it after the set-up; each part can be run by its own command below.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"

# The result in CI depends on the change only: properties and fuzzers look at the same values each time there, and at new
# ones elsewhere. A test that could not trace fails there, too.
if [[ ${CI:-} == true ]]; then
	export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-20261121} BOLERO_RANDOM_SEED=${BOLERO_RANDOM_SEED:-20261121}
	export WHYSO_MUST_TRACE=${WHYSO_MUST_TRACE:-1}
	# A clean clone is compiled once: nothing is kept for a next compilation.
	export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
fi

# Tests and scripts add a line for whatever they could not test.
export WHYSO_NOT_TESTED=${WHYSO_NOT_TESTED:-$(mktemp)}

not_tested() {
	echo "not tested: $*" | tee -a "$WHYSO_NOT_TESTED"
}

list_not_tested() {
	local lines
	lines=$(sed 's/^not tested: //' "$WHYSO_NOT_TESTED" | sort -u)
	printf '\nnot tested here: %s\n' "$(grep -c . <<<"$lines" || true)"
	sed 's/^./  &/' <<<"$lines"
}
trap list_not_tested EXIT

step() {
	local begin=$SECONDS
	printf '\n== %s\n' "$*"
	"$@"
	printf -- '-- took %s s: %s\n' $((SECONDS - begin)) "$*"
}

step scripts/remove_old_programs.py "$CARGO_TARGET_DIR"
step make --no-print-directory web
step cargo fmt --all --check
step cargo clippy --release --workspace --all-targets --locked -- -D warnings
step cargo test --release --workspace --locked --no-run --quiet
# The program as it was built with the tests. `cargo build` would choose other features, and compile most of it again.
export WHYSO=$CARGO_TARGET_DIR/release/whyso
# MySQL is quick to fetch where this machine's apt reaches Debian. tests/sql_trace_servers.rs takes every build that is here, and long tests do.
timeout 240 "$WHYSO" server fetch mysql-sid || not_tested "mysql-sid: it could not be fetched"
# Tests of hubs start it.
WHYSO_NATS_SERVER=$(scripts/nats_server.sh)
export WHYSO_NATS_SERVER
step python3 scripts/setup_test.py
step python3 scripts/run_tests_test.py
step python3 scripts/guide_test.py
step python3 bench/causes/causes_test.py
step python3 bench/tables_test.py
step python3 packaging/packaging_test.py
step scripts/run_tests.py --script "scripts/test-guide.sh --lessons" --script scripts/test-api.sh --script scripts/test-openmetrics.sh --workspace --locked
step scripts/test-page.sh
echo "all tests passed"
