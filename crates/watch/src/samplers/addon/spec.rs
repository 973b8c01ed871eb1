//! The file that describes an add-on: `docs/reference/add-on-file.md` has every key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::{Table, Value};
use whyso_record::data::Kind;

use super::error::AddOnError;
use super::files::SHIPPED;
use super::read_only;

const KEYS: [&str; 14] = [
    "name",
    "title",
    "command",
    "sql",
    "stream",
    "header",
    "skip_lines",
    "separator",
    "instance",
    "interval_ms",
    "timeout_ms",
    "password",
    "column",
    "env",
];
const COLUMN_KEYS: [&str; 4] = ["name", "unit", "kind", "skip"];
const TIMEOUT_MS: u64 = 5_000;
const TIMEOUT_MS_MIN: u64 = 100;
const TIMEOUT_MS_MAX: u64 = 60_000;
const INTERVAL_MS_MIN: u64 = 100;
const INTERVAL_MS_MAX: u64 = 3_600_000;
const SKIP_LINES_MAX: u64 = 1_000;
const NAME_LENGTH_MAX: usize = 32;
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A source that a TOML file describes: a program that prints numbers, or a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct AddOn {
    /// Its source in a recording is `addon.` and this.
    pub name: String,
    pub title: String,
    pub(crate) from: Origin,
    /// The first line names the columns; of a statement, the server does.
    pub(crate) header: bool,
    pub(crate) skip_lines: u64,
    /// Between two columns; `None`: white space.
    pub(crate) separator: Option<String>,
    /// The column that names what a line is about, of several; `None`: one line is a sample.
    pub(crate) instance: Option<String>,
    /// Between two readings; `None`: as the other sources.
    pub(crate) interval: Option<Duration>,
    /// Bound on a run of the program or of the statement; of a program that is read as a stream, on its silence.
    pub(crate) timeout: Duration,
    /// Hand the server's password to the program.
    pub(crate) password: bool,
    pub(crate) columns: Vec<Column>,
    /// Variables of the program's environment, (name, value).
    pub(crate) env: Vec<(String, String)>,
    /// The program's working folder.
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Program {
        argv: Vec<String>,
        /// It keeps running, and is not started again for each reading.
        stream: bool,
    },
    Sql(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) kind: Kind,
    pub(crate) skip: bool,
}

impl AddOn {
    /// Reads a file, or one that ships where `name` is a bare name.
    ///
    /// # Errors
    /// What is wrong with the name or the file.
    pub fn find(name: &str) -> Result<AddOn, AddOnError> {
        let path = Path::new(name);
        let is_bare = !name.contains('/') && path.extension().is_none();
        if is_bare && !path.is_file() {
            let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) else {
                let nearest = nearest(name, SHIPPED.iter().map(|(shipped, _)| *shipped));
                return Err(AddOnError::NotShipped {
                    name: name.to_string(),
                    nearest: nearest.map(str::to_string),
                });
            };
            return AddOn::parse(text, None).map_err(|error| error.of(name));
        }
        AddOn::read(path).map_err(|error| error.of(name))
    }

    fn read(path: &Path) -> Result<AddOn, AddOnError> {
        if std::fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(AddOnError::TooLong);
        }
        let text = std::fs::read_to_string(path)?;
        let folder = std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_path_buf));
        AddOn::parse(&text, folder)
    }

    /// Parses a file's text. `folder`: the file's, in which its program runs.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str, folder: Option<PathBuf>) -> Result<AddOn, AddOnError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            AddOnError::Toml(error.to_string().trim().replace('\n', " "))
        })?;
        check_keys(&table, &KEYS, "")?;
        let name = required_text(&table, "name")?;
        if !is_name(&name) {
            return Err(AddOnError::SourceName { name, length_max: NAME_LENGTH_MAX });
        }
        let stream = flag(&table, "stream", false)?;
        let from = match (table.get("command"), text_of(&table, "sql")?) {
            (Some(argv), None) => Origin::Program { argv: argv_of(argv)?, stream },
            (None, Some(sql)) => Origin::Sql(read_only::parse_read_only(&sql)?),
            _ => return Err(AddOnError::CommandOrSql),
        };
        let columns = columns(&table)?;
        let of_sql = matches!(from, Origin::Sql(_));
        if of_sql {
            for key in ["stream", "header", "skip_lines", "separator", "password", "env"] {
                if table.contains_key(key) {
                    return Err(AddOnError::ForPrograms(key));
                }
            }
        }
        let header = of_sql || flag(&table, "header", columns.is_empty())?;
        if !header && columns.is_empty() {
            return Err(AddOnError::NoColumns);
        }
        let instance = text_of(&table, "instance")?;
        if let Some(instance) = &instance
            && !header
            && !columns.iter().any(|column| column.name == *instance)
        {
            return Err(AddOnError::Instance(instance.clone()));
        }
        let separator = text_of(&table, "separator")?;
        if separator.as_deref() == Some("") {
            return Err(AddOnError::EmptySeparator);
        }
        Ok(AddOn {
            title: text_of(&table, "title")?.unwrap_or_else(|| name.clone()),
            name,
            from,
            header,
            skip_lines: number(&table, "skip_lines", 0, SKIP_LINES_MAX)?.unwrap_or(0),
            separator,
            instance,
            interval: number(&table, "interval_ms", INTERVAL_MS_MIN, INTERVAL_MS_MAX)?
                .map(Duration::from_millis),
            timeout: Duration::from_millis(
                number(&table, "timeout_ms", TIMEOUT_MS_MIN, TIMEOUT_MS_MAX)?.unwrap_or(TIMEOUT_MS),
            ),
            password: flag(&table, "password", false)?,
            columns,
            env: env(&table)?,
            folder,
        })
    }

    /// How it is called in a recording.
    pub fn source(&self) -> String {
        format!("addon.{}", self.name)
    }

    /// Whether it asks the server by itself.
    pub fn is_sql(&self) -> bool {
        matches!(self.from, Origin::Sql(_))
    }
}

fn is_name(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    name.len() <= NAME_LENGTH_MAX
        && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && name.bytes().all(allowed)
}

fn argv_of(value: &Value) -> Result<Vec<String>, AddOnError> {
    let words = value.as_array().ok_or(AddOnError::Command)?;
    let argv: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_string)).collect();
    let argv = argv.ok_or(AddOnError::Command)?;
    match argv.first().map(String::as_str) {
        None | Some("") => Err(AddOnError::Command),
        Some(_) if argv.iter().any(|word| word.contains('\0')) => Err(AddOnError::NulInCommand),
        Some(_) => Ok(argv),
    }
}

fn columns(table: &Table) -> Result<Vec<Column>, AddOnError> {
    let Some(value) = table.get("column") else { return Ok(Vec::new()) };
    let entries = value.as_array().ok_or(AddOnError::ColumnForm)?;
    let mut columns: Vec<Column> = Vec::new();
    for entry in entries {
        let entry = entry.as_table().ok_or(AddOnError::ColumnForm)?;
        check_keys(entry, &COLUMN_KEYS, " of a [[column]]")?;
        let name = required_text(entry, "name").map_err(|error| AddOnError::Column(Box::new(error)))?;
        if columns.iter().any(|column| column.name == name) {
            return Err(AddOnError::SameColumn(name));
        }
        let kind = match text_of(entry, "kind")?.as_deref() {
            None | Some("gauge") => Kind::Gauge,
            Some("counter") => Kind::Counter,
            Some(other) => {
                return Err(AddOnError::Kind { column: name, kind: other.to_string() });
            }
        };
        let unit = text_of(entry, "unit")?.unwrap_or_else(|| "1".to_string());
        columns.push(Column { name, unit, kind, skip: flag(entry, "skip", false)? });
    }
    Ok(columns)
}

fn env(table: &Table) -> Result<Vec<(String, String)>, AddOnError> {
    let Some(value) = table.get("env") else { return Ok(Vec::new()) };
    let mut variables = Vec::new();
    for (name, value) in value.as_table().ok_or(AddOnError::Env)? {
        let value = value.as_str().ok_or(AddOnError::Env)?;
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(AddOnError::EnvName(name.clone()));
        }
        variables.push((name.clone(), value.to_string()));
    }
    Ok(variables)
}

fn check_keys(table: &Table, known_keys: &[&str], of: &'static str) -> Result<(), AddOnError> {
    for key in table.keys() {
        if !known_keys.contains(&key.as_str()) {
            return Err(AddOnError::UnknownKey {
                key: key.clone(),
                of,
                nearest: nearest(key, known_keys.iter().copied()).map(str::to_string),
                keys: known_keys.iter().map(|key| key.to_string()).collect(),
            });
        }
    }
    Ok(())
}

fn text_of(table: &Table, key: &'static str) -> Result<Option<String>, AddOnError> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(AddOnError::NoText { key, found: other.type_str() }),
    }
}

fn required_text(table: &Table, key: &'static str) -> Result<String, AddOnError> {
    match text_of(table, key)? {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(AddOnError::Missing(key)),
    }
}

fn flag(table: &Table, key: &'static str, default: bool) -> Result<bool, AddOnError> {
    match table.get(key) {
        None => Ok(default),
        Some(Value::Boolean(value)) => Ok(*value),
        Some(other) => Err(AddOnError::NoFlag { key, found: other.type_str() }),
    }
}

fn number(table: &Table, key: &'static str, min: u64, max: u64) -> Result<Option<u64>, AddOnError> {
    let Some(value) = table.get(key) else { return Ok(None) };
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
    match number {
        Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
        _ => Err(AddOnError::NoNumber {
            key,
            min,
            max,
            found: value.as_integer().map_or_else(|| value.type_str().to_string(), |it| it.to_string()),
        }),
    }
}

/// The one of `names` that `asked` was most likely meant to be, if any is near.
fn nearest<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LENGTH_MAX: usize = 64;
    if asked.len() > LENGTH_MAX {
        return None;
    }
    let near = names.map(|name| (edits(asked, name), name)).min()?;
    (near.0 <= 1 + near.1.len() / 3).then_some(near.1)
}

/// Levenshtein's distance, in characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrong(text: &str) -> String {
        AddOn::parse(text, None).unwrap_err().to_string()
    }

    #[test]
    fn a_small_file_is_enough() {
        let addon = AddOn::parse(
            "name = \"load\"\ncommand = [\"cat\", \"/proc/loadavg\"]\n[[column]]\nname = \"load1\"",
            None,
        );
        let addon = addon.unwrap();
        assert_eq!(addon.source(), "addon.load");
        assert!(!addon.header && addon.interval.is_none());
        assert_eq!(addon.timeout, Duration::from_secs(5));
        assert_eq!(addon.columns[0].kind, Kind::Gauge);
    }

    #[test]
    fn a_wrong_key_is_answered_with_the_nearest_one() {
        let why = wrong("name = \"a\"\ncomand = [\"x\"]");
        assert!(why.contains("`comand`") && why.contains("did you mean `command`?"), "{why}");
        let why = wrong("name = \"a\"\ncommand = [\"x\"]\n[[column]]\nname = \"b\"\nunits = \"ns\"");
        assert!(why.contains("did you mean `unit`?"), "{why}");
        assert!(wrong("zzzzzzzzzzzz = 1").contains("the keys are name, title"));
    }

    #[test]
    fn what_is_wrong_is_reported_in_one_line() {
        for (text, part) in [
            ("name = ", "is no TOML"),
            ("command = [\"x\"]", "`name` is missing"),
            ("name = \"A b\"\ncommand = [\"x\"]", "small letters"),
            ("name = \"a\"", "either `command`"),
            ("name = \"a\"\ncommand = \"x\"", "list of words"),
            ("name = \"a\"\ncommand = []", "list of words"),
            ("name = \"a\"\ncommand = [\"x\"]\nsql = \"SELECT 1\"", "either `command`"),
            ("name = \"a\"\ncommand = [\"x\"]\nheader = false", "nothing names the columns"),
            ("name = \"a\"\ncommand = [\"x\"]\ninterval_ms = 5", "from 100 to 3600000"),
            ("name = \"a\"\ncommand = [\"x\"]\ntimeout_ms = -1", "from 100 to 60000"),
            ("name = \"a\"\ncommand = [\"x\"]\nheader = 1", "true or false"),
            ("name = \"a\"\nsql = \"SELECT 1\"\nstream = true", "`stream` is for programs"),
            ("name = \"a\"\nsql = \"DELETE FROM t\"", "reads nothing"),
        ] {
            let why = wrong(text);
            assert!(why.contains(part), "{text}: {why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn an_add_on_that_does_not_ship_is_named_with_the_nearest() {
        let why = AddOn::find("vmstatt").unwrap_err().to_string();
        assert!(why.contains("did you mean vmstat?"), "{why}");
        assert!(AddOn::find("/nowhere/x.toml").unwrap_err().to_string().contains("can't be read"));
    }

    #[test]
    fn every_one_that_ships_is_right() {
        for (name, _) in SHIPPED {
            assert_eq!(AddOn::find(name).unwrap().name, *name);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(name|command|sql|column|header| |=|\\[|\\]|\"|[a-z0-9\n]){0,60}") {
            let _ = AddOn::parse(&text, None);
        }

        #[test]
        fn edits_are_symmetric_and_bounded_by_the_longer(a in "[a-e]{0,12}", b in "[a-e]{0,12}") {
            prop_assert_eq!(edits(&a, &b), edits(&b, &a));
            prop_assert!(edits(&a, &b) <= a.len().max(b.len()));
            prop_assert_eq!(edits(&a, &b) == 0, a == b);
        }
    }
}
