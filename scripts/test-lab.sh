#!/usr/bin/env bash
# test-lab.sh: what needs a quiet machine: experiments over planted causes, searches and kills, and the studies of clusters. LAB_MINUTES (60) bounds the
# planted causes; PARTS names what is run (shown plants bisects kills live clusters). Adds what was run, and how it ended, to bench/proof/log.md: commit
# that, and the results next to it.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$CARGO_TARGET_DIR/release:$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"
minutes=${LAB_MINUTES:-60}
parts=${PARTS:-shown plants bisects kills live clusters}
log=bench/proof/log.md
status=0

cargo build --release --locked --quiet
whyso server fetch mysql-cluster || true
commit=$(git rev-parse --short=10 HEAD)$(git diff --quiet HEAD -- . ":!bench" || echo ", changed")
printf '\n## %s, commit %s\n\n%s CPUs, Linux %s\n\n| part | seconds | load average at the end | result |\n| --- | --- | --- | --- |\n' \
	"$(date -u '+%F %H:%M') UTC" "$commit" "$(nproc)" "$(uname -r)" >>"$log"
for part in $parts; do
	case $part in
	shown) command=(bench/proof/shown.py) ;;
	plants) command=(bench/proof/plants.py run --minutes "$minutes") ;;
	bisects) command=(bench/proof/bisects.py run --minutes "$minutes") ;;
	kills) command=(bench/proof/kills.py --count 50) ;;
	live) command=(bench/proof/aa.py live 60) ;;
	clusters) command=(bench/clusters/run.sh) ;;
	*) echo "test-lab: there is no part $part: shown, plants, bisects, kills, live, clusters" >&2 && exit 2 ;;
	esac
	echo "== $part"
	begin=$SECONDS
	result=done
	"${command[@]}" || { result=failed && status=1; }
	printf '| `%s` | %s | %s | %s |\n' "${command[*]}" $((SECONDS - begin)) "$(cut -d' ' -f2 /proc/loadavg)" "$result" >>"$log"
done
bench/proof/plants.py table >/dev/null
bench/proof/bisects.py table >/dev/null
exit $status
