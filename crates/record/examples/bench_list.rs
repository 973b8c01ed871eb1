//! Lists a folder of runs once, for `/usr/bin/time`: `bench_list FOLDER [load]`. With `load` it reads every `run.json`, as a list without a
//! catalogue does.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use whyso_record::{list_runs, load_runs};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first().map(Path::new) else {
        eprintln!("give a folder of runs");
        return ExitCode::from(2);
    };
    let begin = Instant::now();
    let listed = match arguments.get(1).map(String::as_str) {
        Some("load") => load_runs(folder).map(|runs| runs.len()),
        _ => list_runs(folder).map(|runs| runs.len()),
    };
    match listed {
        Ok(count) => {
            println!("{count} runs in {:.3} s", begin.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
