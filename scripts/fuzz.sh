#!/usr/bin/env bash
# fuzz.sh [SECONDS]: looks for inputs that break a property or a fuzz target, at other ones each time: SECONDS (60) for each target.
#
# Properties (proptest) write what fails next to their test, as *.proptest-regressions. Fuzz targets (bolero, by libFuzzer) keep
# their corpus and what fails in crates/wire/tests/__fuzz__. The ordinary tests try all of it again: commit what failed.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin"
unset PROPTEST_RNG_SEED BOLERO_RANDOM_SEED

seconds=${1:-60}
failed=()

echo "== fuzz targets, ${seconds} s each"
# libFuzzer follows which branches an input takes, by code that the compiler adds.
coverage=(--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module)
for option in inline-8bit-counters level=4 pc-table trace-compares stack-depth; do
	coverage+=("-Cllvm-args=-sanitizer-coverage-$option")
done
# With --target, build scripts are compiled without these flags.
target=$(rustc --version --verbose | sed -n 's/^host: //p')
build() {
	RUSTFLAGS="${coverage[*]}" BOLERO_FUZZER=libfuzzer cargo test --release --locked --target "$target" --target-dir "$CARGO_TARGET_DIR/fuzz" \
		-p whyso-wire --test fuzz --no-run "$@"
}
build
program=$(build --message-format=json 2>/dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
for test in $("$program" --list 2>/dev/null | sed -n 's/: test$//p'); do
	kept=$PWD/crates/wire/tests/__fuzz__/$test
	mkdir -p "$kept/corpus" "$kept/crashes"
	echo "-- $test"
	(cd crates/wire && BOLERO_TEST_NAME=$test BOLERO_LIBTEST_HARNESS=1 \
		BOLERO_LIBFUZZER_ARGS="$kept/corpus $kept/crashes -artifact_prefix=$kept/crashes/ -timeout=10 -max_total_time=$seconds -print_final_stats=1" \
		timeout $((seconds + 120)) "$program" "$test" --exact --nocapture --quiet --test-threads 1) || failed+=("$test")
done

echo "== properties, for ${seconds} s or one round"
until ((SECONDS > 2 * seconds)) && [[ ${round:-} ]]; do
	round=done
	PROPTEST_CASES=${PROPTEST_CASES:-2000} cargo test --release --workspace --locked --no-fail-fast --lib --test any_input --test round_trip \
		--test damage -- --quiet || { failed+=("properties"); break; }
done

((${#failed[@]} == 0)) || { echo "failed: ${failed[*]}; commit what git status shows, and mend it"; git status --short crates; exit 1; }
echo "nothing failed"
