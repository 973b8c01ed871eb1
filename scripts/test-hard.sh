#!/usr/bin/env bash
# test-hard.sh: what takes too long for every change: the tests marked `#[ignore = "long: make test-hard"]`, every command of the book, the page in all its looks,
# the web API for API_SECONDS (300), then the fuzz targets for FUZZ_SECONDS (900) in all. Adds what was run, and what it found, to bench/hard/log.md: commit that.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"
seconds=${FUZZ_SECONDS:-900}
# A bound on all long tests.
TESTS_S_MAX=$((4 * 3600))
log=bench/hard/log.md
status=0

commit=$(git rev-parse --short=10 HEAD)$(git diff --quiet HEAD -- . ":!$log" || echo ", changed")
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
printf '\n## %s, commit %s\n\n%s CPUs (%s), Linux %s\n\n' "$(date -u '+%F %H:%M') UTC" "$commit" "$(nproc)" "${model:-not known}" "$(uname -r)" >>"$log"
printf '| what | cases | seconds | edges reached | found |\n| --- | --- | --- | --- | --- |\n' >>"$log"

make --no-print-directory web
if [[ -z ${FUZZ_TARGETS:-} ]]; then
	echo "== long tests"
	# Ten minutes of CPU time, once. The test that needs it says so where it could not be had.
	cargo build --release --locked --quiet
	"$CARGO_TARGET_DIR/release/whyso" server fetch mysql-cluster || true
	# Some minutes of CPU time, once, too.
	if WHYSO_S3_SERVER=$(scripts/s3_server.sh); then export WHYSO_S3_SERVER; else unset WHYSO_S3_SERVER; fi
	output=$(mktemp)
	begin=$SECONDS
	timeout "$TESTS_S_MAX" cargo test --release --workspace --locked --no-fail-fast --lib --bins --tests -- --ignored --nocapture 2>&1 | tee "$output" || status=1
	passed=$(sed -n 's/^test result: .* \([0-9]*\) passed; .*/\1/p' "$output" | paste -sd+ | bc)
	failed=$(sed -n 's/^test result: .* \([0-9]*\) failed; .*/\1/p' "$output" | paste -sd+ | bc)
	printf '| long tests | %s | %s | | %s |\n' "$((${passed:-0} + ${failed:-0}))" $((SECONDS - begin)) "${failed:-0} failed" >>"$log"
	for script in scripts/test-guide.sh "env WHYSO_PAGE=all WHYSO=$CARGO_TARGET_DIR/release/whyso scripts/test-page.sh" "env API_SECONDS=${API_SECONDS:-300} scripts/test-api.sh"; do
		echo "== $script"
		begin=$SECONDS
		failed=0
		$script || failed=1
		status=$((status | failed))
		printf '| `%s` | | %s | | %s |\n' "${script##*/}" $((SECONDS - begin)) "$failed failed" >>"$log"
	done
fi

results=$(mktemp)
FUZZ_RESULTS=$results scripts/fuzz.sh "$seconds" || status=1
while IFS=$'\t' read -r target cases took first last found; do
	printf '| `%s` | %s | %s | %s, %s at first | %s |\n' "$target" "$cases" "$took" "${last:-?}" "${first:-?}" "$found" >>"$log"
done <"$results"

tail -20 "$log"
((status == 0)) || echo "something failed: see above"
exit "$status"
