//! CPU time of the server's machine by program.

use whyso_explain::program_functions::{self, ProgramLine, sampled_in};
use whyso_explain::programs::Programs;
use whyso_record::run::Window;
use whyso_words::{amount, count, number, percent};

use super::{TabData, over, plain};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};

/// Functions of a program that are shown.
const FUNCTIONS_MAX: usize = 3;
/// Longest name of a function, in characters: several are to fit.
const NAME_MAX: usize = 40;

pub(super) fn listing(shown: &TabData, window: Window) -> Listing {
    let level = shown
        .history
        .level(window, |key| Programs::has(&key.source, &key.metric) || program_functions::has(&key.source));
    let Some(programs) = Programs::of(&level.counters, &level.gauges, window.seconds()) else {
        return Listing::nothing(
            "programs are read where the server runs on this machine: wait for two readings, or watch it there",
        );
    };
    let cpus = programs.cpus;
    let sampled = sampled_in(&level.counters, window.seconds(), FUNCTIONS_MAX);
    let is_sampled = !sampled.is_empty();
    let lines = programs.with_functions(sampled);
    let of_all = |busy: f64| cpus.map(|all| busy / all);
    let line = |program: &ProgramLine| {
        let counted = program.counted.as_ref();
        let (name, functions) = (plain(&program.name), functions(program));
        let about = if functions.is_empty() { program.words().to_string() } else { functions };
        Line {
            cells: vec![
                Cell::number(Some(program.cpus()), number),
                Cell::number(of_all(program.cpus()), percent),
                Cell::number(counted.and_then(|counted| counted.disk_bytes_per_s), |bytes| {
                    amount(bytes, "bytes/s")
                }),
                Cell::number(counted.and_then(|counted| counted.resident_bytes), |bytes| {
                    amount(bytes, "bytes")
                }),
                Cell::Text(name.clone()),
                Cell::Text(about.clone()),
            ],
            executed: None,
            whole: match about == program.words() {
                true => format!("{name}: {about}"),
                false => format!("{name}: {}, in {about}", program.words()),
            },
        }
    };
    Listing {
        columns: vec![
            Column { title: "CPUs", width: 8 },
            Column { title: "of all", width: 8 },
            Column { title: "disk", width: 13 },
            Column { title: "memory", width: 10 },
            Column { title: "program", width: 17 },
            Column { title: if is_sampled { "functions, or what it is" } else { "what it is" }, width: REST },
        ],
        lines: lines.iter().map(line).collect(),
        sort: Some(0),
        about: match cpus {
            Some(cpus) => format!("CPU time by program, on {}, {}", count(cpus as u64, "CPU"), over(window)),
            None => format!("CPU time by program, {}", over(window)),
        },
        empty: "no program used a CPU at this time".to_string(),
    }
}

/// "main 75 %, read 20 %"; empty where no function is known.
fn functions(program: &ProgramLine) -> String {
    let functions = program.sampled.iter().flat_map(|sampled| &sampled.functions);
    let words = functions.map(|function| {
        let mut name = plain(&function.name);
        if name.chars().count() > NAME_MAX {
            name = name.chars().take(NAME_MAX - 1).chain(['…']).collect();
        }
        format!("{name} {}", percent(function.share))
    });
    words.collect::<Vec<_>>().join(", ")
}
