#!/usr/bin/env bash
# From nothing to reports of three troubles of a web application: a row that all pages lock, two workers of PHP-FPM, sessions in one folder.
# The last one is shown next to its remedy.
# Each is planted in the sample application, loaded, and recorded. `make demo-web` calls it, as root: only root may trace all programs.
set -euo pipefail
cd "$(dirname "$0")/.."
WHYSO=${WHYSO:-${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}/release/whyso}
SECONDS_RECORDED=${SECONDS_RECORDED:-10}
USERS=${USERS:-8}

started=""
# Ends what this script has started, whatever it ends with.
clean_up() {
	if [[ -n $started ]]; then "$WHYSO" server app stop "$started" >/dev/null || true; fi
}
trap clean_up EXIT

# The rest of the line that begins with a word, of what the start printed.
value() {
	sed -n "s/^ *$1 *//p" <<<"$printed"
}

# The number of a program's first process.
pid_of() {
	value processes | grep -oP "$1 \K[0-9]+"
}

# Of what `whyso why` prints (and the recording printed, too): the answer, which names the longest line and its cause, and the table of lines.
answer_and_budget() {
	awk -v RS= -v ORS='\n\n' 'NR == 2 || /^Where the time /'
}

# TITLE PAGE OPTIONS…: plants a trouble, loads the page, and reports where its time goes.
show() {
	local title=$1 page=$2
	shift 2
	printf '\n== %s: whyso server app start %s\n' "$title" "$*"
	printed=$("$WHYSO" server app start "$@")
	started=$(value folder)
	local url
	url=$(head -n 1 <<<"$printed")
	local tiers=(--process "$(pid_of httpd)" --process "$(pid_of php-fpm)")
	[[ $(value processes) != *memcached* ]] || tiers+=(--process "$(pid_of memcached)")
	# A page that asks no database leaves nothing to judge there.
	[[ $page == /alive.php ]] || tiers+=(--dsn "$(value dsn)")
	"$WHYSO" run --url "${url%/}$page" "${tiers[@]}" --users "$USERS" --warmup 2 --seconds "$SECONDS_RECORDED" --name "$title" >/dev/null
	"$WHYSO" why latest | answer_and_budget
	"$WHYSO" server app stop "$started" >/dev/null
	started=""
}

show "a row that all pages lock" "/event.php?id=1" --trouble hot-row
show "two workers of PHP-FPM" "/event.php?id=1" --workers 2
show "sessions in one folder" "/alive.php" --trouble session-folder
show "the same page with sessions in memcached" "/alive.php" --sessions memcached --session-changes 8
