//! CPU time of the server's machine by program.

use whyso_explain::programs::{Program, Programs};
use whyso_record::run::Window;
use whyso_words::{amount, count, number, percent};

use super::{TabData, over, plain};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};

pub(super) fn listing(shown: &TabData, window: Window) -> Listing {
    let level = shown.history.level(window, |key| Programs::has(&key.source, &key.metric));
    let Some(programs) = Programs::of(&level.counters, &level.gauges, window.seconds()) else {
        return Listing::nothing(
            "programs are read where the server runs on this machine: wait for two readings, or watch it there",
        );
    };
    let of_all = |cpus: f64| programs.cpus.map(|all| cpus / all);
    let line = |program: &Program| Line {
        cells: vec![
            Cell::number(Some(program.cpus), number),
            Cell::number(of_all(program.cpus), percent),
            Cell::number(program.disk_bytes_per_s, |bytes| amount(bytes, "bytes/s")),
            Cell::number(program.resident_bytes, |bytes| amount(bytes, "bytes")),
            Cell::Text(plain(&program.name)),
            Cell::Text(program.kind.words().to_string()),
        ],
        executed: None,
        whole: format!("{}: {}", plain(&program.name), program.kind.words()),
    };
    Listing {
        columns: vec![
            Column { title: "CPUs", width: 8 },
            Column { title: "of all", width: 8 },
            Column { title: "disk", width: 13 },
            Column { title: "memory", width: 10 },
            Column { title: "program", width: 17 },
            Column { title: "what it is", width: REST },
        ],
        lines: programs.each.iter().map(line).collect(),
        sort: Some(0),
        about: match programs.cpus {
            Some(cpus) => format!("CPU time by program, on {}, {}", count(cpus as u64, "CPU"), over(window)),
            None => format!("CPU time by program, {}", over(window)),
        },
        empty: "no program used a CPU at this time".to_string(),
    }
}
