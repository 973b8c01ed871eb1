"""Reads one run with pandas:  python pandas_read.py runs/ID

Needs pandas and pyarrow. Prints, for each source, its series and samples with their times of day, then the counters that grew most.
"""

import glob
import json
import sys

import pandas as pd

run = sys.argv[1]


def table(stream: str) -> pd.DataFrame:
    parts = [pd.read_parquet(file) for file in sorted(glob.glob(f"{run}/{stream}-*.parquet"))]
    return pd.concat(parts, ignore_index=True)


series = pd.read_parquet(f"{run}/series.parquet")
readings = (
    table("samples")
    .merge(table("collections"), left_on="collection", right_on="id")
    .drop(columns=["id", "source"])
    .merge(series, left_on="series", right_on="id")
)
readings["value"] = readings["value_f64"].fillna(readings["value_i64"])

# Times are of the monotonic clock; the anchors in run.json tie them to the wall's.
with open(f"{run}/run.json") as file:
    anchors = pd.DataFrame(json.load(file)["anchors"]).sort_values("monotonic_ns")
readings = pd.merge_asof(
    readings.sort_values("t_end_ns"), anchors, left_on="t_end_ns", right_on="monotonic_ns", direction="nearest"
)
readings["time"] = pd.to_datetime(readings["t_end_ns"] + readings["wall_ns"] - readings["monotonic_ns"], utc=True)

by_source = readings.groupby("source")
print(
    pd.DataFrame(
        {
            "series": by_source["series"].nunique(),
            "samples": by_source.size(),
            "first": by_source["time"].min(),
            "last": by_source["time"].max(),
        }
    ).to_string()
)

# What each counter grew by; a value that fell is a reset and counts from zero.
counters = readings[readings["kind"] == "counter"].sort_values(["series", "t_end_ns"])
change = counters.groupby("series")["value"].diff()
counters = counters.assign(change=change.where(change >= 0, counters["value"]).where(change.notna()))
increase = counters.groupby(["source", "metric", "instance"])["change"].sum()
print(increase.sort_values(ascending=False).head(10).to_string())
