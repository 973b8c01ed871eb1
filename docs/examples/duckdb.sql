-- The transactions per second and the server's busiest counters of every run below runs/, from the files alone.
-- Run it in the folder that holds runs/:   duckdb < duckdb.sql
-- (whyso sql opens DuckDB with views over all of this ready made.)

CREATE OR REPLACE VIEW series AS
  SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename)
  FROM read_parquet('runs/*/series.parquet', filename = true);

CREATE OR REPLACE VIEW collections AS
  SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename)
  FROM read_parquet('runs/*/collections-*.parquet', filename = true);

CREATE OR REPLACE VIEW samples AS
  SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename)
  FROM read_parquet('runs/*/samples-*.parquet', filename = true);

-- One row per reading, with its time of day: the last anchor before it ties the monotonic clock to the wall's.
CREATE OR REPLACE VIEW anchors AS
  SELECT parse_path(filename)[-2] AS run, anchor.monotonic_ns, anchor.wall_ns
  FROM (SELECT filename, unnest(anchors) AS anchor
        FROM read_json('runs/*/run.json', filename = true,
                       columns = {anchors: 'STRUCT(monotonic_ns BIGINT, wall_ns BIGINT, boot_id VARCHAR)[]'}));

CREATE OR REPLACE VIEW readings AS
  SELECT series.run, host, series.source, metric, instance, kind, unit, t_end_ns,
         coalesce(value_f64, value_i64::DOUBLE) AS value
  FROM samples
  JOIN series ON series.run = samples.run AND series.id = samples.series
  JOIN collections ON collections.run = samples.run AND collections.id = samples.collection;

-- How many values each source gave, and from when to when.
SELECT readings.run, source, count(DISTINCT metric || instance) AS series, count(*) AS samples,
       make_timestamp_ns(min(t_end_ns + wall_ns - monotonic_ns)) AS first_utc,
       make_timestamp_ns(max(t_end_ns + wall_ns - monotonic_ns)) AS last_utc
FROM readings ASOF LEFT JOIN anchors ON anchors.run = readings.run AND anchors.monotonic_ns <= readings.t_end_ns
GROUP BY ALL ORDER BY ALL;

-- The ten counters that grew most, a reset counting from zero.
WITH step AS (
  SELECT run, source, metric, instance, value,
         value - lag(value) OVER (PARTITION BY run, host, source, metric, instance ORDER BY t_end_ns) AS change
  FROM readings WHERE kind = 'counter')
SELECT run, source, metric, instance, sum(CASE WHEN change < 0 THEN value ELSE change END) AS increase
FROM step GROUP BY ALL ORDER BY increase DESC NULLS LAST, run, source, metric, instance LIMIT 10;
