#!/usr/bin/env bash
# Runs the commands of the book (docs/), page by page, over real recordings and a server of its own. scripts/guide.py has the rules.
# scripts/test-guide.sh PAGE… runs only the commands of these pages, such as how-to/run.md; with --lessons those of the tutorial run, and the
# others are checked.
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

whyso=${WHYSO:-$CARGO_TARGET_DIR/release/whyso}
place=$(mktemp -d /var/tmp/whyso-guide-XXXXXX)
server=guide-$$
end() {
	"$whyso" server stop "$server" >/dev/null 2>&1 || true
	rm -rf "$place"
}
trap end EXIT

# The server that stands for those of the pages, with the schemas that they name.
started=$("$whyso" server start --as "$server" --set performance_schema=ON)
socket=$(sed -E "s/.*socket=([^'&]*).*/\1/" <<<"$started")
mysql --user=root --socket="$socket" <<-'SQL'
	CREATE DATABASE shop;
	CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, total INT NOT NULL);
	INSERT INTO shop.orders (customer, total)
	WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i % 100, 1 FROM n;
SQL

# Commands that need no tracer have two recordings to read from the start.
for _ in 1 2; do
	"$whyso" run oltp-point-select --users 1,2 --seconds 4 --warmup 1 --tables 1 --rows 1000 --no-repeat --stacks \
		--server-dir "$place" --out "$place/runs" >"$place/out" 2>&1 || { cat "$place/out"; exit 1; }
done
can_trace=()
if compgen -G "$place/runs/*/waits-*.parquet" >/dev/null; then can_trace=(--can-trace); fi

cp docs/examples/* "$place"
cp -r studies "$place"
python3 scripts/guide.py --whyso "$whyso" --book docs --place "$place" --socket "$socket" "${can_trace[@]}" "$@"
