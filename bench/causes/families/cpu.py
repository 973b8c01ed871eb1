"""Statements that use more CPU time than their results need."""

from setups import BUILDS, MARIADB, NO_SYNC, Background, Family, Run, pick


def instead(expensive: str, cheap: str, background: Background, **common) -> tuple[Run, Run]:
    """Returns runs that differ in one statement."""
    settings = {**background.settings, **common.pop("settings", {})}
    run = Run(sql="", settings=settings, **common)
    return run.but(sql=expensive + background.sql), run.but(sql=cheap + background.sql)


def scan_without_index(strength, background):
    rows = pick(strength, 1_000, 10_000)
    sets = "-- \\set k random(1, 1000)\n"
    return instead(
        sets + f"SELECT id FROM sbtest1 WHERE pad = :k AND id <= {rows};\n",
        sets + "SELECT id FROM sbtest1 WHERE id = :k;\n",
        background,
    )


def scan_for_text(strength, background):
    tables = pick(strength, 500, 5_000)
    sets = "-- \\set k random(1, 5000)\n"
    return instead(
        sets + f"SELECT COUNT(*) FROM sbtest1 WHERE id BETWEEN :k AND :k + {tables} AND c LIKE '%777-77%';\n",
        sets + "SELECT COUNT(*) FROM sbtest1 WHERE id = :k AND c LIKE '%777-77%';\n",
        background,
    )


def join_without_index(strength, background):
    outer = pick(strength, 2, 10)
    sets = "-- \\set k random(1, 9000)\n"
    return instead(
        sets + f"SELECT COUNT(*) FROM sbtest1 a STRAIGHT_JOIN sbtest2 b ON b.pad = a.c WHERE a.id BETWEEN :k AND :k + {outer} AND b.id < 1000;\n",
        sets + f"SELECT COUNT(*) FROM sbtest1 a STRAIGHT_JOIN sbtest2 b ON b.id = a.k WHERE a.id BETWEEN :k AND :k + {outer} AND b.id < 1000;\n",
        background,
    )


def sort_rows(strength, background):
    rows = pick(strength, 200, 3_000)
    sets = f"-- \\set a random(1, {9_900 - rows})\n"
    text = f"SELECT c FROM sbtest1 WHERE id BETWEEN :a AND :a + {rows} ORDER BY {{}} LIMIT {rows - 10}, 10;\n"
    return instead(
        sets + text.format("c"),
        sets + f"SELECT c FROM sbtest1 WHERE id BETWEEN :a + {rows - 9} AND :a + {rows} ORDER BY id;\n",
        background,
    )


def group_in_temporary_table(strength, background):
    rows = pick(strength, 150, 2_000)
    sets = f"-- \\set a random(1, {9_900 - rows})\n"
    text = f"SELECT c, COUNT(*) FROM sbtest1 WHERE id BETWEEN :a AND :a + {{}} GROUP BY c ORDER BY 2 DESC LIMIT 3;\n"
    return instead(sets + text.format(rows), sets + text.format(2), background)


def distinct_rows(strength, background):
    rows = pick(strength, 150, 2_000)
    sets = f"-- \\set a random(1, {9_900 - rows})\n"
    text = "SELECT COUNT(*) FROM (SELECT DISTINCT pad, c FROM sbtest1 WHERE id BETWEEN :a AND :a + {}) AS d;\n"
    return instead(sets + text.format(rows), sets + text.format(2), background)


def reconnect(strength, background):
    sets = "-- \\set k random(1, 9000)\n"
    select = "SELECT c FROM sbtest1 WHERE id = :k;\n"
    more = pick(strength, background.sql, "")
    run = Run(sql="", settings=background.settings)
    return run.but(sql=sets + "-- \\reconnect\n" + select + more), run.but(sql=sets + select + more)


def query_cache(strength, background):
    """Every statement takes the cache's lock, and updates empty it. The background's SELECTs are asked for again and again."""
    often = pick(strength, 20, 4)
    sql = (
        f"-- \\set id random(1, 200)\n-- \\set once random(1, {often})\n"
        "-- \\repeat 3\nSELECT c FROM sbtest1 WHERE id BETWEEN {id} AND {id} + 20;\n-- \\endrepeat\n"
        "-- \\if :once = 1\nUPDATE sbtest1 SET pad = 'x' WHERE id = {id};\n-- \\endif\n"
    )
    run = Run(sql=sql + background.sql, users=16, settings={**NO_SYNC, **background.settings})
    on = {"query_cache_type": "1", "query_cache_size": "64M"}
    return run.but(settings=on), run.but(settings={"query_cache_type": "0", "query_cache_size": "0"})


def old_versions(strength, background):
    """Half of the users read rows that the others change, in one long transaction each: every read walks back their versions."""
    hot = 20
    change = f"-- \\set h random(1, {hot})\nUPDATE sbtest1 SET pad = 'x' WHERE id = :h;\n" + background.sql
    read = f"SELECT SUM(LENGTH(pad)) FROM sbtest1 WHERE id BETWEEN 1 AND {hot};\n"
    reads = f"-- \\repeat {pick(strength, 200, 1_000)}\n" + read + "-- \\endrepeat\n"
    text = "-- \\if :client_id < 4\n{}" + reads + "{}-- \\else\n" + change + "-- \\endif\n"
    run = Run(sql="", settings={**NO_SYNC, **background.settings})
    held = text.format("START TRANSACTION WITH CONSISTENT SNAPSHOT;\n", "COMMIT;\n")
    return run.but(sql=held), run.but(sql=text.format("", ""))


FAMILIES = [
    Family("scan-without-index", "full-scan", "a column without an index is looked for", scan_without_index),
    Family("scan-for-text", "full-scan", "a text is looked for within rows", scan_for_text),
    Family("join-without-index", "full-scan", "a join whose second table has no index to be found by", join_without_index),
    Family("sort-rows", "tmp-table-sort", "rows are sorted of which ten are sent", sort_rows),
    Family("group-in-temporary-table", "tmp-table-sort", "rows are grouped by a column without an index", group_in_temporary_table),
    Family("distinct-rows", "tmp-table-sort", "doubles are taken out of rows in a temporary table", distinct_rows),
    Family("reconnect", "connection-churn", "a connection for each transaction", reconnect),
    Family("query-cache", "query-cache", "the query cache, filled and emptied", query_cache, builds=(*MARIADB, "mysql-5.5")),
    Family("old-versions", "purge-lag", "an old snapshot reads rows that others change", old_versions, builds=BUILDS),
]
