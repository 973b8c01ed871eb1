//! The screen: what is drawn, and how often.

mod app;
mod budget;
mod charts;
mod clock;
mod explained;
mod help;
mod keys;
mod listing;
mod panels;
mod session_statement;

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::{DefaultTerminal, Frame};
use whyso_clock::monotonic_ns;
use whyso_model::Missing;

use crate::history::History;
use crate::{About, AskError, Control, Server};
use app::{App, Ask, Prompt, Tab};
use explained::LatestExplanation;
use keys::Keys;
use listing::Listing;
use panels::TabData;
use session_statement::SessionStatement;

/// Between two drawings where no key is pressed.
const REDRAW: Duration = Duration::from_millis(500);
/// How long a message stays.
const MESSAGE_TIME: Duration = Duration::from_secs(4);
/// A source that can't be read is reported from this on: one reading may fail by chance.
const FAILED_NS: i64 = 1_500_000_000;
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 18;
/// From this width on there is room for the version, and for blanks between tabs.
const WIDE: u16 = 100;
/// A terminal this high has room for charts next to a table.
const CHARTS_HEIGHT_MIN: u16 = 20;

/// Draws one of the servers that are watched, until the user has seen enough, or [`Control::is_over`] of one. The terminal is as it was afterwards, also after a panic.
///
/// # Errors
/// The terminal can't be drawn on, or no key can be read.
pub fn show(servers: &[Server<'_>]) -> io::Result<()> {
    let Some(first) = servers.first() else { return Ok(()) };
    let mut terminal = ratatui::try_init()?;
    let shown =
        Screen { servers, ..Screen::new(first.history, first.about, first.control) }.run(&mut terminal);
    ratatui::restore();
    shown
}

struct Screen<'a> {
    /// All that are watched; the one that is shown is the place `at`.
    servers: &'a [Server<'a>],
    at: usize,
    history: &'a History,
    about: &'a About,
    control: &'a dyn Control,
    app: App,
    explained: LatestExplanation,
    message: Option<(String, Instant)>,
    color: bool,
    /// An answer of the server that is waited for.
    asked: Option<Receiver<Result<String, AskError>>>,
    /// What the server answered; any key closes it.
    answer: Option<String>,
    /// Characters of a line, when it was drawn last.
    width: u16,
}

impl<'a> Screen<'a> {
    fn new(history: &'a History, about: &'a About, control: &'a dyn Control) -> Screen<'a> {
        Screen {
            servers: &[],
            at: 0,
            history,
            about,
            control,
            app: App::default(),
            explained: LatestExplanation::default(),
            message: None,
            // https://no-color.org
            asked: None,
            answer: None,
            color: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            width: 80,
        }
    }

    fn run(&mut self, terminal: &mut DefaultTerminal) -> io::Result<()> {
        let keys = Keys::listen()?;
        let mut drawn: Option<Instant> = None;
        loop {
            if self.control.is_over() || self.servers.iter().any(|server| server.control.is_over()) {
                return Ok(());
            }
            if self.receive_answer() {
                drawn = None;
            }
            if drawn.is_none_or(|at| at.elapsed() >= REDRAW) {
                terminal.draw(|frame| self.draw(frame))?;
                drawn = Some(Instant::now());
            }
            match keys.next() {
                Ok(None) => continue,
                Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release && self.answer.is_some() => {
                    self.answer = None;
                }
                Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    let columns = self.listing().map_or(0, |listing| listing.columns.len());
                    match self.app.key(key, self.span_ns(), columns) {
                        Some(Ask::Quit) => return Ok(()),
                        Some(asked) => self.do_it(asked),
                        None => {}
                    }
                }
                Ok(Some(Event::Resize(..))) => {}
                Ok(Some(_)) => continue,
                // There is nobody left to see it.
                Err(_) => return Ok(()),
            }
            drawn = None;
        }
    }

    fn do_it(&mut self, asked: Ask) {
        let message = match asked {
            Ask::Quit => return,
            Ask::NextServer(by) => {
                self.show_next(by);
                return;
            }
            Ask::ToggleRecording => {
                let ends = self.control.recording_since_ns().is_some();
                self.control.toggle_recording();
                match ends {
                    _ if self.control.keeps_all() => {
                        format!("all that was watched stays in {}; q ends it", self.about.recording)
                    }
                    true => format!("the window ends; the recording stays in {}", self.about.recording),
                    false => format!("recording to {}; r ends it", self.about.recording),
                }
            }
            Ask::Note(text) => match self.control.note(&text) {
                Ok(()) => "noted".to_string(),
                Err(error) => error.to_string(),
            },
            Ask::Explain => match self.executed() {
                Some(executed) => {
                    self.asked = Some(self.control.explain(&executed.statement));
                    "asking the server for the plan".to_string()
                }
                None => "no statement is selected: tabs 3, 4 and 5 have some".to_string(),
            },
            Ask::ConfirmKill if !self.control.may_kill() => {
                "statements are only ended where whyso watch was started with --allow-kill".to_string()
            }
            Ask::ConfirmKill => match self.executed().filter(|executed| executed.connection.is_some()) {
                Some(executed) => {
                    self.app.prompt = Some(Prompt::Kill(executed));
                    return;
                }
                None => "no connection's statement is selected: tabs 4 and 5 have some".to_string(),
            },
            Ask::Kill(SessionStatement { connection: Some(connection), statement }) => {
                self.asked = Some(self.control.kill(connection, &statement));
                "asking the server to end the statement".to_string()
            }
            Ask::Kill(_) => return,
        };
        self.message = Some((message, Instant::now()));
    }

    /// Shows another of the servers. The time that is looked at stays.
    fn show_next(&mut self, by: isize) {
        let Some(at) = (self.at as isize + by).checked_rem_euclid(self.servers.len() as isize) else {
            return;
        };
        self.at = at as usize;
        let Server { history, about, control } = self.servers[self.at];
        (self.history, self.about, self.control) = (history, about, control);
        self.explained = LatestExplanation::default();
        self.app.table_mut().selected = 0;
    }

    /// What the selected line says is executed.
    fn executed(&mut self) -> Option<SessionStatement> {
        let selected = self.app.table().selected;
        self.listing()?.lines.get(selected)?.executed.clone()
    }

    /// Takes the server's answer if it came.
    fn receive_answer(&mut self) -> bool {
        let Some(asked) = &self.asked else { return false };
        let answer = match asked.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => Err(AskError("the server was not asked".to_string())),
        };
        self.asked = None;
        self.message = None;
        self.answer = Some(answer.unwrap_or_else(|error| error.to_string()));
        true
    }

    fn span_ns(&self) -> (i64, i64) {
        let now_ns = monotonic_ns();
        self.history.span_ns().unwrap_or((now_ns, now_ns))
    }

    /// What the tab shows; `None` until something was read.
    fn listing(&mut self) -> Option<Listing> {
        self.history.span_ns()?;
        let not_measured = self.control.not_measured();
        let span_ns = self.span_ns();
        let shown = TabData {
            history: self.history,
            explanation: self.explained.at(self.history, self.about, &self.app, span_ns),
            not_measured: &not_measured,
            span_ns,
            width: self.width,
        };
        Some(panels::listing(&shown, &self.app).arranged(self.app.table()))
    }

    fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        self.width = area.width;
        if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
            let words = format!("make this terminal larger: at least {WIDTH_MIN} × {HEIGHT_MIN}; q ends");
            frame.render_widget(Line::from(words), area);
            return;
        }
        let trouble = self.trouble();
        let charts = if area.height >= CHARTS_HEIGHT_MIN { charts::HEIGHT } else { 0 };
        let [head, notice, charts, _, budget, tabs, about, table, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::from(trouble.is_some())),
            Constraint::Length(charts),
            Constraint::Length(1),
            Constraint::Length(budget::HEIGHT),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_head(frame, head);
        if let Some(trouble) = trouble {
            let style = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
            frame.render_widget(Line::styled(trouble, self.colored(style, Color::Red)), notice);
        }
        let span_ns = self.span_ns();
        if charts.height > 0 {
            charts::draw(frame, charts, self.history, self.app.end_ns(span_ns), self.color);
        }
        let listing = self.listing();
        let explanation = self.explained.latest();
        let time_budget = explanation.and_then(|explanation| explanation.budgets.first());
        let not_measured = self.control.not_measured();
        let missing_threads = not_measured
            .iter()
            .find(|missing| missing.source == Missing::ServerThreads)
            .map(ToString::to_string);
        let why = missing_threads.as_deref().unwrap_or("no request was answered in this window");
        budget::draw(frame, budget, time_budget.ok_or(why), self.color);
        self.draw_tabs(frame, tabs);
        match &listing {
            Some(listing) => {
                let dim = Style::new().add_modifier(Modifier::DIM);
                frame.render_widget(Line::styled(format!(" {}", listing.about), dim), about);
                let state = self.app.table_mut();
                state.selected = state.selected.min(listing.lines.len().saturating_sub(1));
                listing.draw(frame, table, state.selected, state.reversed);
            }
            None => frame.render_widget(Line::from(" reading the server for the first time"), table),
        }
        self.draw_foot(frame, foot);
        if let Some(answer) = &self.answer {
            help::draw_answer(frame, area, answer);
        } else if self.app.help {
            help::draw(frame, area);
        } else if self.app.whole
            && let Some(line) = listing.as_ref().and_then(|all| all.lines.get(self.app.table().selected))
        {
            help::draw_whole(frame, area, &line.whole);
        }
    }

    fn colored(&self, style: Style, color: Color) -> Style {
        if self.color { style.fg(color) } else { style }
    }

    /// What the user must know before believing the rest.
    fn trouble(&self) -> Option<String> {
        if let Some(why) = self.control.trouble() {
            return Some(format!(" recording ended: {why}; what is watched is still shown"));
        }
        let now_ns = monotonic_ns();
        let failed: Vec<(String, i64)> =
            self.history.failed().into_iter().filter(|(_, since_ns)| now_ns - since_ns > FAILED_NS).collect();
        let since_ns = failed.iter().map(|(_, since_ns)| *since_ns).min()?;
        let why = self.history.events(now_ns).into_iter().find(|event| event.kind == "gap");
        let why = why.map_or(String::new(), |event| format!(": {}", event.text));
        Some(format!(
            " {} of the server's sources can't be read since {}{why}",
            failed.len(),
            clock::time_of_day(since_ns)
        ))
    }

    fn draw_head(&self, frame: &mut Frame, area: Rect) {
        let span_ns = self.span_ns();
        let end_ns = self.app.end_ns(span_ns);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let time = match self.app.is_paused() {
            false => Span::styled("live", self.colored(bold, Color::Green)),
            true => {
                let back = clock::length(span_ns.1 - end_ns);
                let style = bold.add_modifier(Modifier::REVERSED);
                Span::styled(format!(" at −{back}, End: live "), self.colored(style, Color::Yellow))
            }
        };
        let recording = match self.control.recording_since_ns() {
            Some(since_ns) => {
                let since = clock::length(monotonic_ns() - since_ns);
                Span::styled(format!("● recording {since}"), self.colored(bold, Color::Red))
            }
            None => Span::raw("not recorded"),
        };
        let which = match self.servers.len() {
            0 | 1 => String::new(),
            many => format!("{}/{many} < > ", self.at + 1),
        };
        let line = Line::from(vec![
            Span::styled("whyso ", bold),
            Span::styled(which, bold),
            Span::raw(match area.width < WIDE {
                true => format!("{}  ", self.about.endpoint),
                false => format!("{}  {}  ", self.about.endpoint, self.about.server),
            }),
            Span::raw(format!("{} UTC  ", clock::time_of_day(end_ns))),
            time,
            Span::raw("  "),
            recording,
        ]);
        frame.render_widget(line, area);
    }

    fn draw_tabs(&self, frame: &mut Frame, area: Rect) {
        let mut spans = Vec::new();
        for (at, tab) in Tab::ALL.into_iter().enumerate() {
            let style = match tab == self.app.tab() {
                true => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
                false => Style::new(),
            };
            let (margin, title) = match area.width < WIDE {
                true => ("", tab.short_title()),
                false => (" ", tab.title()),
            };
            spans.push(Span::styled(format!("{margin}{} {title} ", at + 1), style));
        }
        let filter = &self.app.table().filter;
        if !filter.is_empty() {
            let style = Style::new().add_modifier(Modifier::BOLD);
            spans.push(Span::styled(
                format!("  only {filter:?}, Esc: all"),
                self.colored(style, Color::Yellow),
            ));
        }
        frame.render_widget(Line::from(spans), area);
    }

    fn draw_foot(&self, frame: &mut Frame, area: Rect) {
        let line = match (&self.app.prompt, &self.message) {
            (Some(Prompt::Filter(text)), _) => {
                format!(" only lines with: {text}▏  Enter keeps it, Esc shows all")
            }
            (Some(Prompt::Kill(executed)), _) => format!(
                " end the statement of connection {}? y ends it, any other key does not",
                executed.connection.unwrap_or(0)
            ),
            (Some(Prompt::Note(text)), _) => format!(" note: {text}▏  Enter adds it, Esc drops it"),
            (None, Some((message, at))) if at.elapsed() < MESSAGE_TIME => format!(" {message}"),
            _ if area.width < WIDE => format!(
                " ? keys  ←→ back  space stops  w {}s  / filters  e plan  r records  q ends",
                self.app.length_ns() / 1_000_000_000
            ),
            _ => format!(
                " ? keys  ←→ back in time  space stops  w {}s  s sorts  / filters  n note  r records  q ends{}",
                self.app.length_ns() / 1_000_000_000,
                self.own_cost()
            ),
        };
        frame.render_widget(Line::styled(line, Style::new().add_modifier(Modifier::DIM)), area);
    }

    /// CPU time that this program itself takes.
    fn own_cost(&self) -> String {
        let end_ns = self.app.end_ns(self.span_ns());
        let own = self.history.aligned("generator_process", 10_000_000_000, end_ns).map(|window| {
            let series = self
                .history
                .every_series(window, |key| key.source == "generator_process" && key.metric == "run_ns");
            series.iter().map(|series| series.value).fold(0.0, f64::max)
        });
        own.map_or(String::new(), |ns| format!("  whyso takes {} of a CPU", whyso_words::percent(ns / 1e9)))
    }
}

#[cfg(test)]
mod tests;
