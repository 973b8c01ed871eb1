#!/usr/bin/env bash
# Runs the guide's examples (DuckDB, pandas, ClickHouse) over a real recording, and checks what they print.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"

venv=$HOME/.cache/whyso-venv
if [ ! -e "$venv/.complete" ]; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet duckdb duckdb-cli pandas pyarrow chdb
	touch "$venv/.complete"
fi
export PATH="$venv/bin:$PATH"

place=$(mktemp -d /var/tmp/whyso-guide-XXXXXX)
trap 'rm -rf "$place"' EXIT
whyso=$CARGO_TARGET_DIR/release/whyso
"$whyso" run oltp-point-select --users 1,2 --seconds 2 --warmup 1 --tables 1 --rows 1000 --no-repeat \
	--server-dir "$place" --out "$place/runs" >"$place/out" 2>&1 || { cat "$place/out"; exit 1; }

examples=$PWD/docs/examples
cd "$place"

# expect WHAT WORD COMMAND…: the command must succeed and print the word
expect() {
	local what=$1 word=$2
	shift 2
	"$@" >"$place/out" 2>&1 || { echo "FAILED: $what"; cat "$place/out"; exit 1; }
	grep -q -- "$word" "$place/out" || { echo "FAILED: $what does not print $word"; cat "$place/out"; exit 1; }
	echo "ok: $what"
}

expect "DuckDB over a recording" server_process sh -c "duckdb < '$examples/duckdb.sql'"
expect "pandas over a recording" server_process sh -c "python3 '$examples/pandas_read.py' runs/*"
expect "ClickHouse over a recording" server_process python3 "$examples/chdb_read.py" runs
expect "whyso sql" oltp-point-select "$whyso" sql --runs runs --command "SELECT * FROM runs"
expect "whyso sql over readings" Questions "$whyso" sql --runs runs --command \
	"SELECT metric, count(*) FROM readings WHERE metric = 'Questions' GROUP BY metric"
