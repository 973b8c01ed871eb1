//! What the user chose to see, and what keys change of it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use whyso_explain::pfs::{VIEWS, View};
use whyso_record::run::Window;

use super::session_statement::SessionStatement;

const NS_PER_S: i64 = 1_000_000_000;
/// Lengths of the window that tables are of, in seconds.
const LENGTHS_S: [i64; 6] = [1, 5, 10, 30, 60, 300];
/// Longest note or filter, in characters.
const TEXT_MAX: usize = 500;
/// Lines that a page turns.
const PAGE: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Why,
    Waits,
    Statements,
    Locks,
    Connections,
    Views,
    Metrics,
    Events,
    Programs,
}

impl Tab {
    pub(super) const ALL: [Tab; 9] = [
        Tab::Why,
        Tab::Waits,
        Tab::Statements,
        Tab::Locks,
        Tab::Connections,
        Tab::Views,
        Tab::Metrics,
        Tab::Events,
        Tab::Programs,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Tab::Waits => "Waits",
            Tab::Statements => "Statements",
            Tab::Locks => "Locks",
            Tab::Connections => "Connections",
            Tab::Views => "Views",
            Tab::Metrics => "Metrics",
            Tab::Events => "Events",
            Tab::Why => "Why",
            Tab::Programs => "Programs",
        }
    }

    /// The same where there is little room.
    pub(super) fn short_title(self) -> &'static str {
        match self {
            Tab::Statements => "SQL",
            Tab::Connections => "Conns",
            _ => self.title(),
        }
    }
}

/// How a tab's table is looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct TableState {
    /// The column that the user chose; `None`: the table's own.
    pub(super) sort: Option<usize>,
    pub(super) reversed: bool,
    /// Only lines that contain it, in any case.
    pub(super) filter: String,
    pub(super) selected: usize,
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    Filter(String),
    Note(String),
    /// Whether to end the statement.
    Kill(SessionStatement),
}

/// What has to be done outside of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Quit,
    ToggleRecording,
    Note(String),
    /// The server so far on in their order, or back.
    NextServer(isize),
    /// The plan of the selected line's statement.
    Explain,
    /// To be asked whether the selected line's statement is to be ended.
    ConfirmKill,
    Kill(SessionStatement),
}

#[derive(Debug)]
pub(super) struct App {
    tab: usize,
    length: usize,
    /// The time that is looked at, in monotonic nanoseconds; `None`: now.
    at_ns: Option<i64>,
    view: usize,
    shows_observer: bool,
    tables: [TableState; Tab::ALL.len()],
    pub(super) prompt: Option<Prompt>,
    pub(super) help: bool,
    /// The selected line is shown whole.
    pub(super) whole: bool,
}

impl Default for App {
    fn default() -> App {
        App {
            tab: 0,
            length: 1,
            at_ns: None,
            // Waits, statements and digests have a tab of their own.
            view: VIEWS.iter().position(|view| view.name == "files").unwrap_or(0),
            shows_observer: false,
            tables: Default::default(),
            prompt: None,
            help: false,
            whole: false,
        }
    }
}

impl App {
    pub(super) fn tab(&self) -> Tab {
        Tab::ALL[self.tab]
    }

    pub(super) fn view(&self) -> &'static View {
        &VIEWS[self.view]
    }

    pub(super) fn table(&self) -> &TableState {
        &self.tables[self.tab]
    }

    pub(super) fn table_mut(&mut self) -> &mut TableState {
        &mut self.tables[self.tab]
    }

    /// Whether connections and statements of whyso's own are shown, too.
    pub(super) fn shows_observer(&self) -> bool {
        self.shows_observer
    }

    pub(super) fn is_paused(&self) -> bool {
        self.at_ns.is_some()
    }

    pub(super) fn length_ns(&self) -> i64 {
        LENGTHS_S[self.length] * NS_PER_S
    }

    /// The end of what is looked at. `span_ns`: from when and until when anything is known.
    pub(super) fn end_ns(&self, span_ns: (i64, i64)) -> i64 {
        self.at_ns.unwrap_or(span_ns.1)
    }

    pub(super) fn window(&self, span_ns: (i64, i64)) -> Window {
        let end_ns = self.end_ns(span_ns);
        Window { begin_ns: end_ns - self.length_ns(), end_ns }
    }

    /// `columns`: those of the table that is shown, by which it can be sorted.
    pub(super) fn key(&mut self, key: KeyEvent, span_ns: (i64, i64), columns: usize) -> Option<Ask> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Some(Ask::Quit);
        }
        if self.prompt.is_some() {
            return self.typed(key.code);
        }
        if self.help || self.whole {
            self.help = false;
            self.whole = false;
            // The key that closes it does nothing else.
            return None;
        }
        let far = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Char('q') => return Some(Ask::Quit),
            KeyCode::Char('r') => return Some(Ask::ToggleRecording),
            KeyCode::Char('>') => return Some(Ask::NextServer(1)),
            KeyCode::Char('<') => return Some(Ask::NextServer(-1)),
            KeyCode::Char('e') => return Some(Ask::Explain),
            KeyCode::Char('K') => return Some(Ask::ConfirmKill),
            KeyCode::Char('n') => self.prompt = Some(Prompt::Note(String::new())),
            KeyCode::Char('/') => self.prompt = Some(Prompt::Filter(self.table().filter.clone())),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = true,
            KeyCode::Char(digit @ '1'..='9') => self.tab = digit as usize - '1' as usize,
            KeyCode::Tab => self.tab = (self.tab + 1) % Tab::ALL.len(),
            KeyCode::BackTab => self.tab = (self.tab + Tab::ALL.len() - 1) % Tab::ALL.len(),
            KeyCode::Char(' ' | 'p') => self.at_ns = if self.is_paused() { None } else { Some(span_ns.1) },
            KeyCode::Left => self.go(if far { -10 } else { -1 }, span_ns),
            KeyCode::Right => self.go(if far { 10 } else { 1 }, span_ns),
            KeyCode::Char('[') => self.go(-10, span_ns),
            KeyCode::Char(']') => self.go(10, span_ns),
            KeyCode::Char('{') => self.go(-60, span_ns),
            KeyCode::Char('}') => self.go(60, span_ns),
            KeyCode::Home => self.at_ns = Some(span_ns.0 + self.length_ns()),
            KeyCode::End | KeyCode::Char('l') => self.at_ns = None,
            KeyCode::Char('w') => self.length = (self.length + 1) % LENGTHS_S.len(),
            KeyCode::Char('W') => self.length = (self.length + LENGTHS_S.len() - 1) % LENGTHS_S.len(),
            KeyCode::Char('v') => self.next_view(1),
            KeyCode::Char('V') => self.next_view(VIEWS.len() - 1),
            KeyCode::Char('s') => self.sort_by_next(columns, 1),
            KeyCode::Char('S') => self.sort_by_next(columns, columns.saturating_sub(1)),
            KeyCode::Char('o') => self.table_mut().reversed ^= true,
            KeyCode::Char('O') => self.shows_observer ^= true,
            KeyCode::Up | KeyCode::Char('k') => self.select(|line| line.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(|line| line.saturating_add(1)),
            KeyCode::PageUp => self.select(|line| line.saturating_sub(PAGE)),
            KeyCode::PageDown => self.select(|line| line.saturating_add(PAGE)),
            KeyCode::Enter => self.whole = true,
            KeyCode::Esc => self.table_mut().filter.clear(),
            _ => {}
        }
        None
    }

    fn typed(&mut self, code: KeyCode) -> Option<Ask> {
        let mut prompt = self.prompt.take()?;
        let text = match &mut prompt {
            Prompt::Filter(text) | Prompt::Note(text) => text,
            Prompt::Kill(executed) => {
                return matches!(code, KeyCode::Char('y' | 'Y')).then(|| Ask::Kill(executed.clone()));
            }
        };
        match code {
            KeyCode::Esc => {
                // Esc in the prompt clears the filter.
                if matches!(prompt, Prompt::Filter(_)) {
                    self.table_mut().filter.clear();
                }
                return None;
            }
            KeyCode::Enter => {
                return match prompt {
                    Prompt::Note(text) if text.trim().is_empty() => None,
                    Prompt::Note(text) => Some(Ask::Note(text)),
                    Prompt::Filter(_) | Prompt::Kill(_) => None,
                };
            }
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(typed) if text.chars().count() < TEXT_MAX => text.push(typed),
            _ => {}
        }
        if let Prompt::Filter(text) = &prompt {
            let table = &mut self.tables[self.tab];
            table.filter.clone_from(text);
            table.selected = 0;
        }
        self.prompt = Some(prompt);
        None
    }

    fn go(&mut self, seconds: i64, span_ns: (i64, i64)) {
        let to_ns = self.end_ns(span_ns) + seconds * NS_PER_S;
        let earliest_ns = (span_ns.0 + NS_PER_S).min(span_ns.1);
        self.at_ns = (to_ns < span_ns.1).then_some(to_ns.max(earliest_ns));
    }

    fn next_view(&mut self, by: usize) {
        self.view = (self.view + by) % VIEWS.len();
        self.tab = Tab::ALL.iter().position(|tab| *tab == Tab::Views).unwrap_or(0);
        *self.table_mut() = TableState { filter: self.table().filter.clone(), ..TableState::default() };
    }

    fn sort_by_next(&mut self, columns: usize, by: usize) {
        if columns == 0 {
            return;
        }
        let table = self.table_mut();
        table.sort = Some(table.sort.map_or(0, |column| (column + by) % columns));
        table.reversed = false;
    }

    fn select(&mut self, to: impl Fn(usize) -> usize) {
        let table = self.table_mut();
        table.selected = to(table.selected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: (i64, i64) = (0, 100 * NS_PER_S);

    fn press(app: &mut App, code: KeyCode) -> Option<Ask> {
        app.key(KeyEvent::new(code, KeyModifiers::NONE), SPAN, 3)
    }

    fn write(app: &mut App, text: &str) {
        for letter in text.chars() {
            assert_eq!(press(app, KeyCode::Char(letter)), None);
        }
    }

    #[test]
    fn time_stands_still_goes_back_within_what_is_known_and_on_to_now() {
        let mut app = App::default();
        assert_eq!(app.end_ns(SPAN), SPAN.1);
        press(&mut app, KeyCode::Left);
        assert_eq!((app.end_ns(SPAN), app.end_ns((0, 200 * NS_PER_S))), (99 * NS_PER_S, 99 * NS_PER_S));
        for _ in 0..3 {
            press(&mut app, KeyCode::Char('{'));
        }
        assert_eq!(app.end_ns(SPAN), NS_PER_S);
        for _ in 0..3 {
            press(&mut app, KeyCode::Char('}'));
        }
        assert!(!app.is_paused());
        press(&mut app, KeyCode::Char(' '));
        assert!(app.is_paused());
        press(&mut app, KeyCode::End);
        assert!(!app.is_paused());
    }

    #[test]
    fn what_is_typed_into_a_prompt_is_no_command() {
        let mut app = App::default();
        press(&mut app, KeyCode::Char('n'));
        write(&mut app, "quiet");
        assert_eq!(press(&mut app, KeyCode::Enter), Some(Ask::Note("quiet".to_string())));
        press(&mut app, KeyCode::Char('n'));
        assert_eq!(press(&mut app, KeyCode::Enter), None, "an empty note is none");
        press(&mut app, KeyCode::Char('/'));
        write(&mut app, "log");
        assert_eq!(app.table().filter, "log");
        press(&mut app, KeyCode::Enter);
        assert_eq!((app.table().filter.as_str(), &app.prompt), ("log", &None));
        press(&mut app, KeyCode::Esc);
        assert_eq!(app.table().filter, "");
        assert_eq!(press(&mut app, KeyCode::Char('q')), Some(Ask::Quit));
    }

    #[test]
    fn columns_come_in_turn_and_views_all_of_them() {
        let mut app = App::default();
        let sorted: Vec<Option<usize>> = (0..4)
            .map(|_| {
                press(&mut app, KeyCode::Char('s'));
                app.table().sort
            })
            .collect();
        assert_eq!(sorted, [Some(0), Some(1), Some(2), Some(0)]);
        let first = app.view().name;
        for _ in VIEWS {
            press(&mut app, KeyCode::Char('v'));
        }
        assert_eq!((app.view().name, app.tab()), (first, Tab::Views));
    }
}
