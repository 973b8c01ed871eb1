#!/usr/bin/env bash
# fuzz.sh [SECONDS]: looks for inputs that break a property or a fuzz target, at other ones each time: SECONDS (3600) in all, shared evenly.
#
# Fuzz targets (bolero, by libFuzzer) keep their corpus in the target folder, and what fails next to their test:
# crates/fuzz/failed, crates/wire/tests/__fuzz__. Properties (proptest) write what fails next to their test, as
# *.proptest-regressions. The ordinary tests try all of it again: commit what failed.
#
# FUZZ_TARGETS="a b" runs only these, and no properties. FUZZ_JOBS=N runs N at a time. FUZZ_KEEP=1 adds what reaches new code to crates/fuzz/corpus, a few cases
# for each target. One line per target goes to the file FUZZ_RESULTS, separated by tabs: name, cases, seconds, edges reached at first
# and at last, and what failed.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:$HOME/.cargo/bin"
unset PROPTEST_RNG_SEED BOLERO_RANDOM_SEED

seconds=${1:-${FUZZ_SECONDS:-3600}}
results=${FUZZ_RESULTS:-$(mktemp)}
failed=$(mktemp)
jobs=${FUZZ_JOBS:-1}

# libFuzzer follows which branches an input takes, by code that the compiler adds.
coverage=(--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module)
for option in inline-8bit-counters level=4 pc-table trace-compares stack-depth; do
	coverage+=("-Cllvm-args=-sanitizer-coverage-$option")
done
# With --target, build scripts are compiled without these flags.
host=$(rustc --version --verbose | sed -n 's/^host: //p')
build() {
	RUSTFLAGS="${coverage[*]}" BOLERO_FUZZER=libfuzzer cargo test --release --locked --target "$host" --target-dir "$CARGO_TARGET_DIR/fuzz" \
		--test fuzz --no-run "$@"
}
program_of() {
	build -p "$1" --message-format=json 2>/dev/null | sed -n 's/.*"name":"fuzz".*"executable":"\([^"]*\)".*/\1/p' | tail -1
}
echo "== build the fuzz targets"
build -p whyso-fuzz
build -p whyso-wire

# Package, target, program.
targets=()
for package in whyso-fuzz whyso-wire; do
	program=$(program_of "$package")
	for target in $("$program" --list 2>/dev/null | sed -n 's/: test$//p'); do
		if [[ -z ${FUZZ_TARGETS:-} || " $FUZZ_TARGETS " == *" $target "* ]]; then
			targets+=("$package $target $program")
		fi
	done
done
# The properties have a share of their own.
properties=1
[[ -z ${FUZZ_TARGETS:-} ]] || properties=0
share=$((seconds / ((${#targets[@]} + jobs - 1) / jobs + properties) + 1))

# fuzz PACKAGE TARGET PROGRAM: runs one target for its share.
fuzz() {
	local folder=crates/${1#whyso-} target=$2 program=$3 found seeds crashes
	case $1 in
	whyso-fuzz) seeds=$folder/corpus/$target crashes=$folder/failed/$target ;;
	*) seeds=$folder/tests/__fuzz__/$target/seeds crashes=$folder/tests/__fuzz__/$target/crashes ;;
	esac
	local working=$CARGO_TARGET_DIR/fuzz/corpus/$1/$target log
	mkdir -p "$working" "$crashes" && log=$(mktemp)
	local folders=("$working")
	for one in "$PWD/$seeds" "$PWD/$crashes"; do [[ -d $one ]] && folders+=("$one"); done
	found=$(find "$crashes" -type f | wc -l)
	local begin=$SECONDS status=0
	(cd "$folder" && BOLERO_TEST_NAME=$target BOLERO_LIBTEST_HARNESS=1 RUST_BACKTRACE=0 \
		BOLERO_LIBFUZZER_ARGS="${folders[*]} -artifact_prefix=$OLDPWD/$crashes/ -max_len=4096 -timeout=60 -rss_limit_mb=2048 -max_total_time=$share -print_final_stats=1" \
		timeout $((share + 300)) "$program" "$target" --exact --nocapture --quiet --test-threads 1) >"$log" 2>&1 || status=$?
	echo "-- $target"
	grep -E 'INITED|DONE|^stat::number_of|fuzz target|panicked at|SUMMARY' "$log" || true
	local edges cases
	edges=$(sed -n 's/^#[0-9]*\t*[ \t]*\(INITED\|NEW\|pulse\|REDUCE\|DONE\|RELOAD\) *cov: \([0-9]*\).*/\2/p' "$log")
	cases=$(sed -n 's/^stat::number_of_executed_units: //p' "$log" | tail -1)
	found=$(($(find "$crashes" -type f | wc -l) - found))
	if ((status != 0 || found > 0)); then
		echo "$target" >>"$failed"
		tail -40 "$log"
	fi
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$target" "${cases:-0}" $((SECONDS - begin)) \
		"$(head -1 <<<"$edges")" "$(tail -1 <<<"$edges")" "$found" >>"$results"
	rmdir --ignore-fail-on-non-empty "$crashes"
	if [[ ${FUZZ_KEEP:-} && $1 == whyso-fuzz ]]; then
		mkdir -p "$seeds"
		keep "$folder" "$target" "$program" "$working" "$seeds"
	fi
}

# keep FOLDER TARGET PROGRAM FROM TO: the smallest cases that reach the same code, as many as are worth their place.
KEPT_MAX=120
keep() {
	local merged
	merged=$(mktemp -d)
	(cd "$1" && BOLERO_TEST_NAME=$2 BOLERO_LIBTEST_HARNESS=1 BOLERO_LIBFUZZER_ARGS="-merge=1 -max_len=400 $merged $OLDPWD/$5 $4" \
		timeout 900 "$3" "$2" --exact --quiet --test-threads 1) >/dev/null 2>&1 || true
	find "$merged" -type f -size -2k | shuf | head -"$KEPT_MAX" | xargs -r cp -t "$5"
	rm -rf "$merged"
}

echo "== fuzz targets, $share s each"
for one in "${targets[@]}"; do
	while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
	# shellcheck disable=SC2086
	fuzz $one &
done
wait

if [[ -z ${FUZZ_TARGETS:-} ]]; then
	echo "== properties, for $share s or one round"
	begin=$SECONDS
	until ((SECONDS - begin > share)); do
		PROPTEST_CASES=${PROPTEST_CASES:-2000} cargo test --release --workspace --locked --no-fail-fast --lib --test any_input --test round_trip \
			--test damage -- --quiet || { echo properties >>"$failed"; break; }
	done
fi

echo "== target, cases, seconds, edges at first, edges at last, failed"
column -t "$results"
[[ ! -s $failed ]] || { echo "failed: $(paste -sd' ' "$failed"); commit what git status shows, and mend it"; git status --short crates; exit 1; }
echo "nothing failed"
