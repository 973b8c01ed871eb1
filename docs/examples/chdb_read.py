"""Reads every run with ClickHouse inside Python (chdb):  python chdb_read.py runs

Prints, for each run and source, its series and samples with their times of day, then the counters that grew most.
"""

import sys

import chdb

runs = sys.argv[1].rstrip("/")


def query(sql: str) -> None:
    print(chdb.query(sql, "PrettyCompactNoEscapes"))


def table(stream: str) -> str:
    """The files of one stream in every run, with the run's id, which is the name of the folder."""
    return f"(SELECT splitByChar('/', _path)[-2] AS run, * FROM file('{runs}/*/{stream}.parquet', Parquet))"


# Times are of the monotonic clock; the anchors in run.json tie them to the wall's. This takes the first of each run.
anchors = f"""(
    SELECT splitByChar('/', _path)[-2] AS run,
           JSONExtractInt(raw, 'anchors', 1, 'wall_ns') - JSONExtractInt(raw, 'anchors', 1, 'monotonic_ns') AS offset_ns
    FROM file('{runs}/*/run.json', RawBLOB, 'raw String'))"""

readings = f"""
    SELECT samples.run AS run, series.source AS source, series.id AS id, metric, instance, kind, t_end_ns,
           coalesce(value_f64, toFloat64(value_i64)) AS value
    FROM {table("samples-*")} AS samples
    JOIN {table("series")} AS series ON series.run = samples.run AND series.id = samples.series
    JOIN {table("collections-*")} AS collections
      ON collections.run = samples.run AND collections.id = samples.collection"""

query(f"""
    SELECT r.run AS run, source, uniqExact(r.id) AS series, count() AS samples,
           fromUnixTimestamp64Nano(min(t_end_ns + offset_ns), 'UTC') AS first,
           fromUnixTimestamp64Nano(max(t_end_ns + offset_ns), 'UTC') AS last
    FROM ({readings}) AS r JOIN {anchors} AS a ON a.run = r.run
    GROUP BY run, source ORDER BY run, source""")

query(f"""
    SELECT run, source, metric, instance, sum(if(step < 0, value, step)) AS increase
    FROM (
        SELECT *, value - lagInFrame(value, 1, value) OVER (PARTITION BY run, id ORDER BY t_end_ns
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS step
        FROM ({readings}) WHERE kind = 'counter')
    GROUP BY run, source, metric, instance ORDER BY increase DESC LIMIT 10""")
