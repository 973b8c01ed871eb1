//! A closed system: users that wait only for their own transactions, CPUs that they share, and time that no CPU holds.
//!
//! Throughput follows from Little's law (J. D. C. Little, 1961): N users ÷ the time of a cycle. The time at a CPU grows with the
//! users that are found there. An arriving user finds what N − 1 users leave there. This is the arrival theorem, in the approximation
//! of Y. Bard, 1979, and P. J. Schweitzer, 1979. So queues shrink where the demand falls. Without any queue the same law gives the asymptotic bound
//! (P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys 10, 1978).

/// CPUs that are shared evenly by all who are ready to run.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    /// CPU time of one transaction, in ms.
    pub demand_ms: f64,
    pub cpus: f64,
    /// Programs that are always ready to run there, next to the users.
    pub competitors: f64,
}

#[derive(Clone, Debug)]
pub struct ClosedNetwork {
    pub users: f64,
    /// Time of a cycle that no CPU holds: waits, and pauses between transactions.
    pub delay_ms: f64,
    pub stations: Vec<Station>,
}

/// Halvings of the interval that throughput lies in: as exact as the numbers are.
const HALVINGS: usize = 60;

impl Station {
    /// Returns the time of one transaction there, its queue included, at this throughput; infinite where the CPUs can't do as much.
    pub fn residence_ms(&self, users: f64, per_ms: f64) -> f64 {
        let others = ((users - 1.0) / users).max(0.0);
        let room = 1.0 - others * per_ms * self.demand_ms / self.cpus;
        let is_full = per_ms * self.demand_ms > self.cpus * (1.0 + 1e-9);
        if room <= 0.0 || is_full {
            return f64::INFINITY;
        }
        let queued = self.demand_ms * (1.0 + self.competitors) / self.cpus / room;
        queued.max(self.demand_ms)
    }

    /// Returns the number of CPUs at which one transaction takes this time there, its queue included, where nobody competes.
    pub fn cpus_for(demand_ms: f64, residence_ms: f64, users: f64, per_ms: f64) -> f64 {
        demand_ms / residence_ms + ((users - 1.0) / users).max(0.0) * per_ms * demand_ms
    }
}

impl ClosedNetwork {
    /// Transactions per ms; `None` where nothing takes any time.
    pub fn throughput(&self) -> Option<f64> {
        let mut high = self.bound()?;
        let mut low = 0.0;
        for _ in 0..HALVINGS {
            let per_ms = (low + high) / 2.0;
            let residence: f64 =
                self.stations.iter().map(|station| station.residence_ms(self.users, per_ms)).sum();
            if per_ms * (self.delay_ms + residence) > self.users {
                high = per_ms;
            } else {
                low = per_ms;
            }
        }
        Some(low).filter(|per_ms| per_ms.is_finite() && *per_ms > 0.0)
    }

    /// Transactions per ms that no order of events can exceed: nobody queues, and no CPU does more than it can.
    pub fn bound(&self) -> Option<f64> {
        let demand: f64 = self.stations.iter().map(|station| station.demand_ms).sum();
        let by_users = self.users / (self.delay_ms.max(0.0) + demand);
        let by_cpus = self.stations.iter().map(|station| station.cpus / station.demand_ms);
        let bound = by_cpus.filter(|bound| bound.is_finite()).fold(by_users, f64::min);
        (bound.is_finite() && bound > 0.0).then_some(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(users: f64, delay_ms: f64, demand_ms: f64, cpus: f64) -> ClosedNetwork {
        ClosedNetwork { users, delay_ms, stations: vec![Station { demand_ms, cpus, competitors: 0.0 }] }
    }

    fn is_near(value: Option<f64>, expected: f64) -> bool {
        (value.unwrap() / expected - 1.0).abs() < 1e-6
    }

    #[test]
    fn one_user_never_queues() {
        assert!(is_near(closed(1.0, 3.0, 1.0, 2.0).throughput(), 0.25));
    }

    #[test]
    fn many_users_get_what_the_cpus_can_do() {
        let full = closed(1_000.0, 1.0, 1.0, 2.0).throughput().unwrap();
        assert!((1.95..=2.0).contains(&full), "{full}");
        assert!(is_near(closed(1_000.0, 1.0, 1.0, 2.0).bound(), 2.0));
    }

    #[test]
    fn one_cpu_without_delay_is_exact() {
        // Whatever the users, one CPU that is never idle does 1 ÷ demand.
        for users in [1.0, 2.0, 8.0] {
            assert!(is_near(closed(users, 0.0, 0.5, 1.0).throughput(), 2.0), "{users}");
        }
    }

    #[test]
    fn queues_shrink_as_the_demand_falls() {
        let residence = |demand_ms: f64| {
            let system = closed(8.0, 4.0, demand_ms, 1.0);
            8.0 / system.throughput().unwrap() - 4.0
        };
        // Half of the demand takes more than half of the time at the CPU away.
        assert!(residence(0.5) < 0.4 * residence(1.0), "{} {}", residence(0.5), residence(1.0));
    }

    #[test]
    fn competitors_take_their_part() {
        let mut system = closed(1.0, 0.0, 1.0, 1.0);
        system.stations[0].competitors = 1.0;
        assert!(is_near(system.throughput(), 0.5));
    }

    #[test]
    fn the_cpus_for_a_queue_give_that_queue() {
        let (demand_ms, users, per_ms) = (1.0, 8.0, 1.8);
        let cpus = Station::cpus_for(demand_ms, 3.5, users, per_ms);
        let station = Station { demand_ms, cpus, competitors: 0.0 };
        assert!(is_near(Some(station.residence_ms(users, per_ms)), 3.5), "{cpus} CPUs");
        assert!(cpus < 2.0, "what two CPUs have left for others: {cpus}");
    }

    #[test]
    fn what_takes_no_time_has_no_throughput() {
        assert_eq!(closed(1.0, 0.0, 0.0, 1.0).throughput(), None);
    }
}
