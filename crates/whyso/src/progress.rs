//! The run's news on standard error: bars with an ETA on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use whyso_control::{BusyFunctions, Listener, News, Running};
use whyso_record::run::{Purpose, RunEnd};

pub(crate) struct Bars {
    bar: ProgressBar,
    on_terminal: bool,
    /// Phase of the loading that was last printed, where there is no terminal.
    last_phase: Mutex<String>,
    functions: Mutex<Functions>,
}

/// The functions that were busiest in the last seconds.
#[derive(Default)]
struct Functions {
    /// As a second line beneath the bar; empty until there are some.
    line: String,
    /// When they were last printed, where there is no terminal.
    printed_at: Option<Instant>,
}

/// Between two lines with the busiest functions, where there is no terminal.
const PRINT_EVERY: Duration = Duration::from_secs(60);
/// Most characters of a function's name.
const NAME_MAX: usize = 32;

impl Bars {
    pub(crate) fn new() -> Bars {
        let on_terminal = std::io::stderr().is_terminal();
        let target =
            if on_terminal { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Bars { bar, on_terminal, last_phase: Mutex::default(), functions: Mutex::default() }
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn style(&self, template: &str) {
        let functions = self.functions.lock().map(|functions| functions.line.clone()).unwrap_or_default();
        let template = &format!("{template}{functions}");
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("━╸ "));
        }
    }

    fn print_once(&self, text: &str) {
        let Ok(mut last) = self.last_phase.lock() else { return };
        if *last != text {
            print_stderr!("whyso: {text}");
            *last = text.to_string();
        }
    }

    fn show_functions(&self, busy: &BusyFunctions) {
        let text = describe_functions(busy);
        let Ok(mut functions) = self.functions.lock() else { return };
        if self.on_terminal {
            // The bar's own fields stand between braces.
            functions.line = format!("\n  {}", text.replace('{', "{{").replace('}', "}}"));
        } else if functions.printed_at.is_none_or(|printed_at| printed_at.elapsed() >= PRINT_EVERY) {
            functions.printed_at = Some(Instant::now());
            print_stderr!("whyso: {text}");
        }
    }

    fn show_level(&self, level: Running) {
        let phase = if level.measuring { "measuring" } else { "warming up" };
        let again = if level.purpose == Purpose::Repeat { " again" } else { "" };
        self.style("  {msg:36} {bar:30} {prefix}");
        self.bar.set_length(level.bound.as_millis().max(1) as u64);
        self.bar.set_position(level.elapsed.min(level.bound).as_millis() as u64);
        self.bar.set_message(format!("{}{again}: {phase}", whyso_words::users(level.users)));
        self.bar.set_prefix(format!(
            "{:>9} transactions/s   at most {} left",
            whyso_words::number(level.transactions_per_s),
            whyso_words::rough_time(level.rest.as_secs_f64())
        ));
    }
}

impl Listener for Bars {
    fn hear(&self, news: News<'_>) {
        match news {
            News::Step(text) => {
                if let Ok(mut functions) = self.functions.lock() {
                    functions.line.clear();
                }
                if self.on_terminal {
                    self.style("  {spinner} {msg}");
                    self.bar.set_message(whyso_words::terminal::escape(text));
                    self.bar.enable_steady_tick(Duration::from_millis(120));
                } else {
                    print_stderr!("whyso: {text}");
                }
            }
            News::Loading { phase, rows, rows_total } => {
                if !self.on_terminal {
                    self.print_once(phase);
                    return;
                }
                self.style("  {msg:36} {bar:30} {human_pos} of {human_len} rows, {prefix}, {eta} left");
                self.bar.set_length(rows_total);
                self.bar.set_position(rows);
                self.bar.set_prefix(whyso_words::amount(self.bar.per_sec().floor(), "rows/s"));
                self.bar.set_message(whyso_words::terminal::escape(phase));
            }
            News::Level(level) => {
                if self.on_terminal {
                    self.show_level(level);
                }
            }
            News::Functions(busy) => {
                self.show_functions(busy);
                if self.on_terminal && self.bar.length().is_none() {
                    self.style("  {spinner} {msg}");
                }
            }
            News::Pair { ratio, left } => {
                if self.on_terminal {
                    let so_far = ratio.map_or("not known yet".to_string(), |ratio| {
                        let number = whyso_words::number;
                        format!("×{} ({} to {})", number(ratio.value), number(ratio.low), number(ratio.high))
                    });
                    self.style("  {spinner} {msg}");
                    let left = whyso_words::rough_time(left.as_secs_f64());
                    self.bar.set_message(format!("so far {so_far}   at most {left} left"));
                }
            }
            // A recorded run draws its intervals in the report.
            News::Interval(_) => {}
            News::LevelDone(level) => {
                let again = if level.purpose == Purpose::Repeat { " again" } else { "" };
                let cut = if matches!(level.ended, RunEnd::CutShort { .. }) { ", cut short" } else { "" };
                let line = format!(
                    "whyso: {}{again}: {} transactions/s{cut}",
                    whyso_words::users(level.users),
                    whyso_words::number(level.result.transactions_per_s)
                );
                if self.on_terminal {
                    self.bar.suspend(|| print_stderr!("{line}"));
                } else {
                    print_stderr!("{line}");
                }
            }
            News::Warning(text) => self.bar.suspend(|| print_stderr!("whyso: warning: {text}")),
        }
    }
}

/// Such as `on CPUs in the last 10 s: page_cur_search_with_match 12 %, memcpy 8 %, send 6 %, others 74 % (1.8 CPUs)`.
fn describe_functions(busy: &BusyFunctions) -> String {
    let named = busy.functions.iter().map(|(name, share)| {
        // Without its parameters; `(anonymous namespace)::f` begins with a bracket.
        let bare = name.get(1..).and_then(|rest| rest.find('(')).map_or(name.as_str(), |at| &name[..at + 1]);
        let name: String = bare.chars().filter(|letter| !letter.is_control()).collect();
        let is_long = name.chars().count() > NAME_MAX;
        let cut: String = name.chars().take(if is_long { NAME_MAX - 1 } else { NAME_MAX }).collect();
        format!("{cut}{} {}", if is_long { "…" } else { "" }, whyso_words::percent(*share))
    });
    let others = 1.0 - busy.functions.iter().map(|(_, share)| share).sum::<f64>();
    let others = (others > 0.005).then(|| format!("others {}", whyso_words::percent(others)));
    let list: Vec<String> = named.chain(others).collect();
    format!(
        "on CPUs in the last {}: {} ({})",
        whyso_words::seconds(busy.seconds.round()),
        list.join(", "),
        whyso_words::amount(busy.cpus, "CPUs")
    )
}
