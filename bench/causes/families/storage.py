"""Disks, and what InnoDB reads from and writes to them."""

from setups import MARIADB, NO_SYNC, Family, Run, pick

UPDATE = "-- \\set w random(1, 9000)\nUPDATE sbtest1 SET pad = 'x' WHERE id = :w;\n"


def log_is_flushed(strength, background):
    run = Run(sql=UPDATE + background.sql, users=4, settings=background.settings, writes_per_s=pick(strength, 3_000, 500))
    return (
        run.but(settings={"innodb_flush_log_at_trx_commit": "1"}),
        run.but(settings={"innodb_flush_log_at_trx_commit": "0"}),
    )


def binary_log_is_flushed(strength, background):
    run = Run(
        sql=UPDATE + background.sql,
        users=4,
        settings={**background.settings, "innodb_flush_log_at_trx_commit": "2", "log_bin": "binlog", "server_id": "1"},
        writes_per_s=pick(strength, 3_000, 500),
    )
    return run.but(settings={"sync_binlog": "1"}), run.but(settings={"sync_binlog": "0"})


def small_buffer_pool(strength, background):
    ids = "".join(f"-- \\set id{n} random(1, 100000)\n" for n in range(10))
    read = f"SELECT SUM(k) FROM sbtest1 WHERE id IN ({', '.join(f':id{n}' for n in range(10))});\n"
    run = Run(
        sql=ids + read + background.sql,
        users=4,
        rows=100_000,
        settings={**background.settings, "innodb_flush_method": "O_DIRECT"},
        reads_per_s=pick(strength, 20_000, 2_000),
    )
    return run.but(settings={"innodb_buffer_pool_size": "8M"}), run.but(settings={"innodb_buffer_pool_size": "128M"})


def small_redo_log(strength, background):
    sql = "-- \\set w random(1, 99000)\nUPDATE sbtest1 SET k = k + 1, pad = 'x' WHERE id BETWEEN :w AND :w + 4;\n"
    run = Run(
        sql=sql + background.sql,
        users=4,
        rows=100_000,
        settings={**background.settings, **NO_SYNC, "innodb_flush_method": "O_DIRECT"},
        writes_per_s=pick(strength, 1_500, 400),
    )
    return run.but(settings={"innodb_log_file_size": "4M"}), run.but(settings={"innodb_log_file_size": "512M"})


def table_cache(strength, background):
    sql = "-- \\repeat 4\n-- \\set t random(1, 60)\n-- \\set id random(1, 100)\nSELECT c FROM sbtest{t} WHERE id = {id};\n-- \\endrepeat\n"
    run = Run(sql=sql + pick(strength, background.sql.replace("10000", "100").replace("9800", "1"), ""), tables=60, rows=500)
    run = run.but(settings=background.settings)
    return run.but(settings={"table_open_cache": "10"}), run.but(settings={"table_open_cache": "400"})


def temporary_tables_on_disk(strength, background):
    rows = pick(strength, 300, 2_000)
    sql = (
        f"-- \\set a random(1, {9_900 - rows})\n"
        f"SELECT COUNT(*) FROM (SELECT DISTINCT c, pad FROM sbtest1 WHERE id BETWEEN :a AND :a + {rows}) AS d;\n"
    )
    run = Run(sql=sql + background.sql, settings=background.settings)
    small = {"tmp_table_size": "16384", "max_heap_table_size": "16384"}
    return run.but(settings=small), run.but(sql=sql.replace("DISTINCT c, pad", "id") + background.sql)


FAMILIES = [
    Family("log-is-flushed", "redo-flush", "each commit waits for a slow disk", log_is_flushed),
    Family("binary-log-is-flushed", "binlog", "each commit waits until the binary log is on a slow disk", binary_log_is_flushed),
    Family("small-buffer-pool", "buffer-pool-miss", "a buffer pool of 8 MB for 25 MB of rows", small_buffer_pool),
    Family("small-redo-log", "checkpoint", "a redo log of 4 MB", small_redo_log),
    Family("table-cache", "table-cache", "60 tables, of which ten may be open", table_cache),
    Family(
        "temporary-tables-on-disk", "tmp-table-sort", "temporary tables are too large for memory", temporary_tables_on_disk, builds=MARIADB
    ),
]
