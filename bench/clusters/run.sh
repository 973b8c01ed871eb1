#!/usr/bin/env bash
# The short forms of the studies of clusters, each with its answer in this folder: bench/clusters/run.sh [NAME …]
# It needs root for the tracer, galera-4, and the build mysql-cluster (`whyso server fetch mysql-cluster`).
set -euo pipefail
cd "$(dirname "$0")/../.."
whyso=${WHYSO:-whyso}
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
	names=(semi-sync semi-sync-mysql parallel-appliers galera-conflicts rolling-restart ndb-pool ndb-scaleout ndb-disk-buffer ndb-rolling-restart ndb-data-nodes)
fi
folder=$(mktemp -d /var/tmp/whyso-clusters-XXXXXX)
trap 'rm -rf "$folder"' EXIT
for name in "${names[@]}"; do
	began=$SECONDS
	"$whyso" study run "studies/$name.toml" --quick --out "$folder/$name" >"$folder/answer" 2>"$folder/said" || { tail -3 "$folder/said" >&2; exit 1; }
	{
		echo "$(date -u +%F), $((SECONDS - began)) s, load average $(cut -d' ' -f2 /proc/loadavg) at the end"
		echo
		cat "$folder/answer"
	} >"bench/clusters/$name.txt"
	rm -rf "${folder:?}/$name"
	echo "$name: $((SECONDS - began)) s"
done
