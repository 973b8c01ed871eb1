"""Locks that transactions and sessions hold."""

from setups import MARIADB, NO_SYNC, Background, Family, Run, pick

# Of both levels together.
SECONDS = 6


def locked(sql: str, free: str, background: Background, **common) -> tuple[Run, Run]:
    """Returns runs of two files that write, and wait for no disk."""
    run = Run(sql="", settings={**NO_SYNC, **background.settings, **common.pop("settings", {})}, **common)
    return run.but(sql=sql), run.but(sql=free)


def hold(strength: str) -> str:
    """Returns what a transaction does while it holds its lock."""
    return f"-- \\repeat {pick(strength, 2, 12)}\nSELECT c FROM sbtest2 WHERE id = 2;\n-- \\endrepeat\n"


def hot_row(strength, background):
    text = "BEGIN;\nUPDATE sbtest1 SET k = k + 1 WHERE id = {};\n" + hold(strength) + "COMMIT;\n" + background.sql
    return locked(text.format("1"), "-- \\set own :client_id + 1\n" + text.format(":own"), background)


def queue_of_jobs(strength, background):
    text = (
        "BEGIN;\nSELECT id FROM sbtest1 WHERE id >= {0} ORDER BY id LIMIT 1 FOR UPDATE;\n"
        + hold(strength)
        + "UPDATE sbtest1 SET pad = 'x' WHERE id = {0};\nCOMMIT;\n"
        + background.sql
    )
    return locked(text.format("1"), "-- \\set own :client_id * 100 + 1\n" + text.format(":own"), background)


def parent_row(strength, background):
    """Children of one parent: each insert shares the parent's lock, and an update of the parent excludes them."""
    setup = (
        "-- \\setup SELECT COUNT(*) = 200 FROM parent\n"
        "CREATE TABLE parent (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB;\n"
        "CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT NOT NULL, KEY (parent), "
        "FOREIGN KEY (parent) REFERENCES parent (id)) ENGINE=InnoDB;\n"
        "INSERT INTO parent SELECT id, 0 FROM sbtest1 WHERE id <= 200;\n"
        "-- \\transaction add\n"
    )
    text = (
        setup + "-- \\set p {}\nBEGIN;\nUPDATE parent SET n = n + 1 WHERE id = :p;\n"
        "INSERT INTO child (parent) VALUES (:p);\n" + hold(strength) + "COMMIT;\n" + background.sql
    )
    return locked(text.format("1"), text.format(":client_id + 1"), background)


def gap(strength, background):
    """A range without rows is locked before a row is inserted into it."""
    text = (
        "-- \\set g {}\nBEGIN;\nDELETE FROM sbtest1 WHERE id BETWEEN :g AND :g + 5;\n"
        + hold(strength)
        + "INSERT INTO sbtest1 (id, k, c, pad) VALUES (:g, 1, 'c', 'p');\nCOMMIT;\n"
        + background.sql
    )
    return locked(text.format("200"), text.format(":client_id * 300 + 200"), background)


def opposite_orders(strength, background):
    text = (
        "-- \\set first 1 + :client_id % 2\n-- \\set second 3 - :first\n{0}BEGIN;\n"
        "UPDATE sbtest1 SET k = k + 1 WHERE id = :first;\n"
        + hold(strength)
        + "UPDATE sbtest1 SET k = k + 1 WHERE id = :second;\nCOMMIT;\n"
        + background.sql
    )
    apart = "-- \\set first :client_id * 10 + 1\n-- \\set second :first + 1\n"
    return locked(text.format(""), text.format(apart), background, users=pick(strength, 2, 4))


def shared_then_exclusive(strength, background):
    text = (
        "-- \\set r {0}\nBEGIN;\nSELECT k FROM sbtest1 WHERE id = :r LOCK IN SHARE MODE;\n"
        + hold(strength)
        + "UPDATE sbtest1 SET k = k + 1 WHERE id = :r;\nCOMMIT;\n"
        + background.sql
    )
    return locked(text.format("1"), text.format(":client_id + 1"), background, users=pick(strength, 2, 4))


def table_of_myisam(strength, background):
    """One writer at a time in a MyISAM table; without the cause each user writes to a table of its own."""
    rows = pick(strength, 100, 1_000)
    setup = "-- \\setup SELECT COUNT(*) = 2000 FROM m8\n" + "".join(
        f"CREATE TABLE m{user} (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=MyISAM;\n"
        f"INSERT INTO m{user} SELECT id, 0 FROM sbtest1 WHERE id <= 2000;\n"
        for user in range(1, 9)
    )
    text = (
        setup + "-- \\transaction change\n-- \\set t {}\n"
        f"SELECT id FROM m{{{{t}}}} WHERE id = 1;\nUPDATE m{{{{t}}}} SET n = n + 1 WHERE id <= {rows};\n" + background.sql
    )
    return locked(text.format("1"), text.format(":client_id + 1"), background, own_cpus=False)


def table_that_is_rebuilt(strength, background):
    sql = "-- \\set id random(1, 1000)\nSELECT c FROM sbtest1 WHERE id = :id;\n" + background.sql
    run = Run(sql=sql, rows=pick(strength, 20_000, 60_000), settings={**NO_SYNC, **background.settings})
    flags = []
    for second in range(SECONDS):
        flags += ["--at", f"{second}.2s", "ALTER TABLE sbtest1 ENGINE=InnoDB, ALGORITHM=COPY, LOCK=EXCLUSIVE"]
    return run.but(flags=tuple(flags)), run


def change_behind_a_reader(strength, background):
    """A change of the table waits for one long transaction, and everyone else queues behind the change."""
    pause = pick(strength, 200, 700)
    held = f"-- \\if :client_id = 0\nBEGIN;\nSELECT c FROM sbtest1 WHERE id = 1;\n-- \\sleep {pause} ms\nCOMMIT;\n-- \\else\n"
    sql = held + "-- \\set id random(1, 1000)\nSELECT c FROM sbtest1 WHERE id = :id;\n" + background.sql + "-- \\endif\n"
    run = Run(sql=sql, settings={**NO_SYNC, **background.settings})
    flags = []
    for second in range(SECONDS):
        flags += ["--at", f"{second}.1s", "ALTER TABLE sbtest1 COMMENT 'x'"]
    return run.but(flags=tuple(flags)), run


def global_read_lock(strength, background):
    seconds = pick(strength, "0.02", "0.1")
    text = (
        "-- \\if :client_id = 0\n-- \\sleep 50 ms\n{}" + f"SELECT SLEEP({seconds});\n" + "{}-- \\else\n"
        "-- \\set own :client_id * 100 + 1\nUPDATE sbtest1 SET pad = 'x' WHERE id = :own;\n" + background.sql + "-- \\endif\n"
    )
    return locked(text.format("FLUSH TABLES WITH READ LOCK;\n", "UNLOCK TABLES;\n"), text.format("", ""), background)


def named_lock(strength, background):
    text = "-- \\set n {}\nSELECT GET_LOCK(CONCAT('l', :n), 10);\n" + hold(strength) + "SELECT RELEASE_LOCK(CONCAT('l', :n));\n"
    return locked(text.format("1") + background.sql, text.format(":client_id") + background.sql, background)


def numbers_of_rows(strength, background):
    rows = pick(strength, 20, 300)
    text = (
        "-- \\session\nCREATE TABLE IF NOT EXISTS numbered (id INT AUTO_INCREMENT PRIMARY KEY, k INT) ENGINE=InnoDB;\n"
        "-- \\transaction number\n-- \\set a random(1, 9000)\n"
        f"INSERT INTO numbered (k) SELECT k FROM sbtest1 WHERE id BETWEEN :a AND :a + {rows};\n" + background.sql
    )
    run = Run(sql=text, settings={**NO_SYNC, **background.settings}, own_cpus=False)
    return run.but(settings={"innodb_autoinc_lock_mode": "0"}), run.but(settings={"innodb_autoinc_lock_mode": "2"})


def statement_that_sleeps(strength, background):
    seconds = pick(strength, "0.002", "0.02")
    return locked(f"SELECT SLEEP({seconds});\n" + background.sql, "SELECT SLEEP(0);\n" + background.sql, background)


def tickets(strength, background):
    """Fewer threads may be inside InnoDB than have work there, and one that is inside waits for the disk."""
    sql = f"-- \\repeat {pick(strength, 1, 4)}\n-- \\set s random(1, 9000)\nSELECT SUM(k) FROM sbtest1 WHERE id BETWEEN :s AND :s + 300;\n-- \\endrepeat\n"
    run = Run(sql=sql + background.sql, users=16, settings=background.settings, own_cpus=False)
    return run.but(settings={"innodb_thread_concurrency": "1"}), run.but(settings={"innodb_thread_concurrency": "0"})


FAMILIES = [
    Family("hot-row", "row-lock", "all update one row", hot_row),
    Family("queue-of-jobs", "row-lock", "all take the first row of a queue", queue_of_jobs),
    Family("parent-row", "row-lock", "children of one parent, which counts them", parent_row),
    Family("gap", "row-lock", "all insert into one gap", gap),
    Family("opposite-orders", "deadlock", "two rows are updated in opposite orders", opposite_orders),
    Family("shared-then-exclusive", "deadlock", "a shared lock becomes an exclusive one", shared_then_exclusive),
    Family("table-of-myisam", "table-lock", "updates of one MyISAM table", table_of_myisam),
    Family("table-that-is-rebuilt", "metadata-lock", "a table is copied each second", table_that_is_rebuilt, builds=(*MARIADB, "mysql-sid")),
    Family("change-behind-a-reader", "metadata-lock", "a change of a table waits for a long transaction", change_behind_a_reader),
    Family("global-read-lock", "metadata-lock", "FLUSH TABLES WITH READ LOCK, again and again", global_read_lock),
    Family("named-lock", "user-lock", "one lock of GET_LOCK", named_lock),
    Family("numbers-of-rows", "auto-increment", "numbers are given to rows under a table's lock", numbers_of_rows),
    Family("statement-that-sleeps", "sleep", "SELECT SLEEP", statement_that_sleeps),
    Family("tickets", "thread-concurrency", "innodb_thread_concurrency = 1", tickets, builds=("mariadb-10.2", "mysql-5.5", "mysql-sid")),
]
