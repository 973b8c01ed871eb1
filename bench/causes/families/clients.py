"""What the clients do, or don't do."""

from setups import Family, Run, pick


def generator_that_computes(strength, background):
    count = pick(strength, 300, 3_000)
    sql = f"-- \\set i 0\n-- \\while :i < {count}\n-- \\set i :i + 1\n-- \\endwhile\n"
    run = Run(sql="", settings=background.settings)
    return run.but(sql=sql + background.sql), run.but(sql=background.sql)


def users_that_pause(strength, background):
    run = Run(sql=background.sql, users=pick(strength, 4, 2), settings=background.settings)
    return run.but(flags=("--think", pick(strength, "5ms", "20ms"))), run.but(users=8)


FAMILIES = [
    Family("generator-that-computes", "generator", "a script that computes before each transaction", generator_that_computes),
    Family("users-that-pause", "unsaturated", "few users that pause between transactions", users_that_pause),
]
