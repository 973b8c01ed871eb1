"""What lies around the server: other programs, limits, the CPUs."""

from setups import Family, Run, pick


def busy_neighbour(strength, background):
    run = Run(sql=background.sql, users=pick(strength, 4, 2), settings=background.settings)
    return run.but(neighbours=pick(strength, 1, 4)), run


def quota(strength, background):
    run = Run(sql=background.sql, users=8, settings=background.settings)
    return run.but(quota_cpus=pick(strength, 0.6, 0.2)), run


FAMILIES = [
    Family("busy-neighbour", "noisy-neighbour", "other programs use the server's CPU", busy_neighbour),
    Family("quota", "cpu-quota", "a cgroup's quota of CPU time", quota),
]
