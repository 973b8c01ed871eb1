#!/usr/bin/env bash
# Tests the page: its pure parts under Node, then a real report in a real headless Chromium. Builds the program, unless WHYSO names one.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"

place=$(mktemp -d /var/tmp/whyso-page-XXXXXX)
trap 'rm -rf "$place"' EXIT
whyso=${WHYSO:-}
if [[ -z $whyso ]]; then
	cargo build --release --locked --quiet
	whyso=$CARGO_TARGET_DIR/release/whyso
fi
"$whyso" run oltp-read-write --users 1,2,4,8 --seconds 3 --warmup 1 --tables 2 --rows 2000 --stacks \
	--server-dir "$place" --out "$place/runs" >"$place/out" 2>&1 || { cat "$place/out"; exit 1; }
# A second start with another setting, to compare with.
"$whyso" run oltp-read-write --users 4,8 --seconds 3 --warmup 1 --tables 2 --rows 2000 --stacks \
	--set innodb_flush_log_at_trx_commit=0 --server-dir "$place" --out "$place/others" >"$place/out" 2>&1 || { cat "$place/out"; exit 1; }

cd web
npm run --silent check
npm run --silent test:unit
WHYSO=$whyso REPORT_HTML=$(echo "$place"/runs/*/report.html) OTHER_REPORT_HTML=$(echo "$place"/others/*/report.html) npm run --silent test:browser
