//! The run's news on standard error: bars with an ETA on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use whyso_lab::{Listener, News, Running};
use whyso_record::run::{Ended, Purpose};

pub(crate) struct Bars {
    bar: ProgressBar,
    on_terminal: bool,
    /// Phase of the loading that was last said, where there is no terminal.
    last_said: Mutex<String>,
}

impl Bars {
    pub(crate) fn new() -> Bars {
        let on_terminal = std::io::stderr().is_terminal();
        let target =
            if on_terminal { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Bars { bar, on_terminal, last_said: Mutex::new(String::new()) }
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("━╸ "));
        }
    }

    fn say_once(&self, text: &str) {
        let Ok(mut last) = self.last_said.lock() else { return };
        if *last != text {
            eprintln!("whyso: {text}");
            *last = text.to_string();
        }
    }

    fn show_level(&self, level: Running) {
        let phase = if level.measuring { "measuring" } else { "warming up" };
        let again = if level.purpose == Purpose::Repeat { " again" } else { "" };
        self.style("  {msg:36} {bar:30} {prefix}");
        self.bar.set_length(level.bound.as_millis().max(1) as u64);
        self.bar.set_position(level.elapsed.min(level.bound).as_millis() as u64);
        self.bar.set_message(format!("{}{again}: {phase}", users(level.users)));
        self.bar.set_prefix(format!(
            "{:>9} transactions/s   at most {} left",
            whyso_report::number::grouped(level.transactions_per_s),
            minutes(level.rest)
        ));
    }
}

impl Listener for Bars {
    fn hear(&self, news: News<'_>) {
        match news {
            News::Step(text) => {
                if self.on_terminal {
                    self.style("  {spinner} {msg}");
                    self.bar.set_message(text.to_string());
                    self.bar.enable_steady_tick(Duration::from_millis(120));
                } else {
                    eprintln!("whyso: {text}");
                }
            }
            News::Loading { phase, rows, rows_total } => {
                if !self.on_terminal {
                    self.say_once(phase);
                    return;
                }
                self.style("  {msg:36} {bar:30} {human_pos} of {human_len} rows, {prefix}, {eta} left");
                self.bar.set_length(rows_total);
                self.bar.set_position(rows);
                self.bar
                    .set_prefix(format!("{} rows/s", whyso_report::number::whole(self.bar.per_sec() as u64)));
                self.bar.set_message(phase.to_string());
            }
            News::Level(level) => {
                if self.on_terminal {
                    self.show_level(level);
                }
            }
            // A recorded run draws its intervals in the report.
            News::Interval(_) => {}
            News::LevelDone(level) => {
                let again = if level.purpose == Purpose::Repeat { " again" } else { "" };
                let cut = if matches!(level.ended, Ended::CutShort { .. }) { ", cut short" } else { "" };
                let line = format!(
                    "whyso: {}{again}: {} transactions/s{cut}",
                    users(level.users),
                    whyso_report::number::grouped(level.result.transactions_per_s)
                );
                if self.on_terminal {
                    self.bar.suspend(|| eprintln!("{line}"));
                } else {
                    eprintln!("{line}");
                }
            }
            News::Warning(text) => self.bar.suspend(|| eprintln!("whyso: warning: {text}")),
        }
    }
}

fn users(number: u32) -> String {
    if number == 1 { "1 user".to_string() } else { format!("{number} users") }
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 { format!("{} min {:02} s", seconds / 60, seconds % 60) } else { format!("{seconds} s") }
}
