//! Makes a recording for benches: `make_recording DIR [HOURS] [SERIES]`.

mod recording_maker;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let hours = arguments.get(1).map_or(Ok(1.0), |hours| hours.parse::<f64>());
    let series = arguments.get(2).map_or(Ok(3000), |series| series.parse::<usize>());
    let (Some(dir), Ok(hours), Ok(series)) = (arguments.first(), hours, series) else {
        eprintln!("give a folder, the hours (1) and the number of series (3000)");
        return ExitCode::from(2);
    };
    match recording_maker::record(&PathBuf::from(dir), hours, series) {
        Ok(summary) => {
            println!("{} samples, {} bytes", summary.samples, summary.bytes);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
