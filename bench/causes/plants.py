"""The causes that are planted: one set-up each, small enough for a minute.

A `Plant` is what is given to `whyso run` so that one known cause keeps the server from going faster. `users` are the
levels; the cause is looked for at the last one. Without `cpus` server and generator share all CPUs; with it the server has
CPU 0 alone and the generator CPU 1.
"""

from dataclasses import dataclass, field


@dataclass
class Plant:
    cause: str
    how: str
    workload: str = "oltp-point-select"
    """A workload of whyso's, or SQL (it has a space in it), which is written to a file."""
    users: str = "1,4"
    cpus: bool = False
    rows: int = 10_000
    tables: int = 1
    settings: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    writes_per_second: int = 0
    """How many writes the disk takes, by a cgroup's limit; 0: as many as it can."""
    stacks: bool = False
    """Only the stacks of waits show it: without them it is possible, and has no share."""
    only_possible: bool = False
    """Nothing measures its time yet: it must be listed as possible, and no wrong cause may come first."""
    beside: str = ""
    """A program that runs on the server's CPU meanwhile, of Python's."""


NO_SYNC = ["innodb_flush_log_at_trx_commit=0"]

PLANTS = [
    Plant(
        "cpu",
        "sums over 1,000 rows, 16 users, the server on one CPU",
        "oltp-sum-ranges",
        users="2,16",
        cpus=True,
        flags=["--range-size", "1000"],
    ),
    Plant("wakeup-latency", "one user's point selects", users="1"),
    Plant("unsaturated", "2 users that pause for 20 ms", users="1,2", flags=["--think", "20ms"]),
    Plant(
        "generator",
        "a script that counts to 3,000 in the generator before each statement, 8 users, the generator on one CPU",
        "-- \\set i 0\n-- \\while :i < 3000\n-- \\set i :i + 1\n-- \\endwhile\nSELECT 1;\n",
        users="1,8",
        cpus=True,
    ),
    Plant(
        "redo-flush",
        "updates by primary key, innodb_flush_log_at_trx_commit = 1, no binary log, on a disk of 500 writes a second",
        "oltp-update-non-index",
        settings=["innodb_flush_log_at_trx_commit=1"],
        writes_per_second=500,
        stacks=True,
    ),
    Plant(
        "binlog",
        "updates by primary key, the binary log with sync_binlog = 1, innodb_flush_log_at_trx_commit = 2",
        "oltp-update-non-index",
        settings=["log_bin=binlog", "server_id=1", "sync_binlog=1", "innodb_flush_log_at_trx_commit=2"],
        stacks=True,
    ),
    Plant(
        "row-lock",
        "all update one row, and read ten others before they commit",
        "BEGIN;\nUPDATE sbtest1 SET k = k + 1 WHERE id = 1;\n-- \\repeat 10\n"
        "SELECT c FROM sbtest1 WHERE id = 2;\n-- \\endrepeat\nCOMMIT;\n",
        users="1,8",
        settings=NO_SYNC,
    ),
    Plant(
        "deadlock",
        "two users update two rows in opposite orders, and read ten others in between",
        "-- \\set first 1 + :client_id % 2\n-- \\set second 3 - :first\nBEGIN;\n"
        "UPDATE sbtest1 SET k = k + 1 WHERE id = :first;\n-- \\repeat 10\n"
        "SELECT c FROM sbtest1 WHERE id = 9;\n-- \\endrepeat\n"
        "UPDATE sbtest1 SET k = k + 1 WHERE id = :second;\nCOMMIT;\n",
        users="1,2",
        settings=NO_SYNC,
    ),
    Plant(
        "buffer-pool-miss",
        "20 rows from anywhere in 200,000 (45 MB) a statement, with a buffer pool of 8 MB and O_DIRECT",
        "".join(f"-- \\set id{n} random(1, 200000)\n" for n in range(20))
        + f"SELECT SUM(k) FROM sbtest1 WHERE id IN ({', '.join(f':id{n}' for n in range(20))});\n",
        users="1,2",
        rows=200_000,
        settings=["innodb_buffer_pool_size=8M", "innodb_flush_method=O_DIRECT"],
    ),
    Plant(
        "full-scan",
        "a column without an index is looked for in 10,000 rows",
        "-- \\set k random(1, 1000000)\nSELECT id FROM sbtest1 WHERE pad = :k;\n",
        users="1,4",
        cpus=True,
    ),
    Plant(
        "tmp-table-sort",
        "5,000 rows sorted by a column without an index, of which 10 are sent",
        "-- \\set a random(1, 5000)\n"
        "SELECT c FROM sbtest1 WHERE id BETWEEN :a AND :a + 4999 ORDER BY c LIMIT 4900, 10;\n",
        users="1,4",
        cpus=True,
    ),
    Plant(
        "table-cache",
        "point selects in 40 tables with a table cache of 10",
        tables=40,
        rows=100,
        users="1,4",
        settings=["table_open_cache=10"],
        stacks=True,
    ),
    Plant(
        "query-cache",
        "the query cache on, filled by point selects and emptied by updates of the same table",
        "-- \\set id random(1, 10000)\n-- \\set once random(1, 100)\nSELECT c FROM sbtest1 WHERE id = {id};\n"
        "-- \\if :once = 1\nUPDATE sbtest1 SET k = k + 1 WHERE id = {id};\n-- \\endif\n",
        users="1,8",
        settings=["query_cache_type=1", "query_cache_size=64M", *NO_SYNC],
        stacks=True,
    ),
    Plant("connection-churn", "a connection for each statement", "connect", users="1,4", only_possible=True),
    Plant(
        "metadata-lock",
        "a table of 200,000 rows made anew each second by ALTER TABLE … FORCE, beside point selects in it",
        users="1,4",
        flags=[
            part
            for second in range(6)
            for part in ("--at", f"{second}.2s", "ALTER TABLE sbtest1 FORCE, ALGORITHM=COPY, LOCK=EXCLUSIVE")
        ],
        rows=200_000,
        stacks=True,
    ),
    Plant(
        "table-lock",
        "updates of one MyISAM table",
        "-- \\session\nCREATE TABLE IF NOT EXISTS m (id INT PRIMARY KEY, k INT, n INT) ENGINE=MyISAM;\n"
        "INSERT IGNORE INTO m SELECT id, k, 0 FROM sbtest1;\n"
        "-- \\transaction change\nUPDATE m SET n = n + 1 WHERE k < 100;\n",
        users="1,8",
        stacks=True,
    ),
    Plant(
        "auto-increment",
        "INSERT … SELECT of rows that get numbers, innodb_autoinc_lock_mode = 0",
        "-- \\session\nCREATE TABLE IF NOT EXISTS numbered (id INT AUTO_INCREMENT PRIMARY KEY, k INT);\n"
        "-- \\transaction number\n-- \\set a random(1, 9000)\n"
        "INSERT INTO numbered (k) SELECT k FROM sbtest1 WHERE id BETWEEN :a AND :a + 200;\n",
        users="1,8",
        settings=["innodb_autoinc_lock_mode=0", "transaction_isolation=READ-COMMITTED", *NO_SYNC],
        stacks=True,
    ),
    Plant(
        "user-lock",
        "eight users for one lock of GET_LOCK, which is held for 5 ms",
        "SELECT GET_LOCK('one', 10);\nSELECT SLEEP(0.005);\nSELECT RELEASE_LOCK('one');\n-- \\sleep 2 ms\n",
        users="1,8",
    ),
    Plant("sleep", "a statement that sleeps for 10 ms", "SELECT SLEEP(0.01);\n", users="1,8"),
    Plant(
        "noisy-neighbour",
        "another program keeps the server's one CPU busy",
        "oltp-sum-ranges",
        users="1,2",
        cpus=True,
        beside="while True: pass",
    ),
    Plant(
        "checkpoint",
        "updates of an indexed column in 200,000 rows with a redo log of 4 MB, on a disk of 500 writes a second",
        "oltp-update-index",
        rows=200_000,
        users="1,4",
        settings=["innodb_log_file_size=4M", "innodb_flush_method=O_DIRECT", *NO_SYNC],
        flags=["--rand-type", "uniform"],
        writes_per_second=500,
        stacks=True,
        only_possible=True,
    ),
]
