//! Where the time of the made run's transactions went: locks grow with users, and a little remains.

use whyso_explain::model::{Budget, Part, PartTime, SeriesName};
use whyso_record::run::{Level, Purpose};

pub(crate) fn budgets(levels: &[Level]) -> Vec<Budget> {
    levels.iter().filter(|level| level.users > 0).map(budget).collect()
}

fn budget(level: &Level) -> Budget {
    let response_ms = level.result.latency_ms.mean;
    let n = f64::from(level.users);
    let busy = 1.0 - (-n / 2.2).exp();
    let locks = 0.55 * (1.0 - (-n / 20.0).exp());
    let wakeup = 0.4 * (-n / 1.5).exp();
    // At 4 users the parts hold more than the response time.
    let unaccounted = if level.users == 4 { -0.03 } else { 0.03 };
    let rest = 1.0 - locks - wakeup - unaccounted;
    let shares = [
        (Part::ClientQueue, 0.0),
        (Part::ClientCpu, 0.03 * rest),
        (Part::ClientDelay, 0.05 * rest),
        (Part::TransitIn, 0.07 * rest),
        (Part::Wakeup, wakeup),
        (Part::Runqueue, 0.35 * busy * rest),
        (Part::Cpu, (0.7 - 0.35 * busy) * rest),
        (Part::Lock, locks),
        (Part::FileSync, 0.15 * rest),
    ];
    let parts: Vec<PartTime> = shares
        .iter()
        .map(|(part, share)| PartTime {
            part: *part,
            ms: share * response_ms,
            series: vec![SeriesName {
                host: "server".to_string(),
                source: "trace".to_string(),
                metric: format!("request_{}_ns", part.name()),
                instance: String::new(),
            }],
        })
        .collect();
    let unaccounted_ms = response_ms - parts.iter().map(|one| one.ms).sum::<f64>();
    Budget {
        level: level.index,
        users: level.users,
        repeat: level.purpose == Purpose::Repeat,
        response_ms,
        parts,
        unaccounted_ms,
        ..Budget::default()
    }
}
