#!/usr/bin/env bash
# Has promtool check what --openmetrics answers, and a Prometheus scrape it and evaluate every panel of docs/grafana/whyso.json.
# Both come from Debian's package prometheus, unpacked rather than installed: installing it starts a service.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

tools=${XDG_CACHE_HOME:-$HOME/.cache}/whyso/prometheus
if [[ ! -x $tools/usr/bin/promtool || ! -x $tools/usr/bin/prometheus ]]; then
	fetched=$(mktemp -d)
	if ! (cd "$fetched" && chmod 755 . && timeout 300 apt-get download -qq prometheus) >/dev/null 2>&1; then
		echo "not tested: OpenMetrics by Prometheus: the Debian package could not be fetched" | tee -a "${WHYSO_NOT_TESTED:-/dev/null}"
		rm -rf "$fetched"
		exit 0
	fi
	mkdir -p "$tools"
	dpkg -x "$fetched"/prometheus_*.deb "$tools"
	rm -rf "$fetched"
fi

place=$(mktemp -d /var/tmp/whyso-openmetrics-XXXXXX)
started=()
end() {
	for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$place"
}
trap end EXIT

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
metrics=$(free_port)
api=$(free_port)

cat >"$place/prometheus.yml" <<YAML
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: whyso
    static_configs:
      - targets: ["127.0.0.1:$metrics"]
YAML

"$CARGO_TARGET_DIR/release/whyso" run oltp-read-write --users 4 --seconds 40 --warmup 1 --no-repeat --tables 2 --rows 5000 \
	--pfs global --openmetrics "127.0.0.1:$metrics" --out "$place/runs" --server-dir "$place" >"$place/run.log" 2>&1 &
started+=($!)
"$tools/usr/bin/prometheus" --config.file="$place/prometheus.yml" --storage.tsdb.path="$place/tsdb" \
	--web.listen-address="127.0.0.1:$api" >"$place/prometheus.log" 2>&1 &
started+=($!)

if ! timeout 150 python3 scripts/openmetrics.py "http://127.0.0.1:$metrics/metrics" "http://127.0.0.1:$api" \
	"$tools/usr/bin/promtool" docs/grafana/whyso.json; then
	tail -n 5 "$place/run.log" "$place/prometheus.log" >&2
	exit 1
fi
