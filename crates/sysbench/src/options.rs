//! Options: what there is, and what was typed.

use crate::error::OptionsError;
use crate::facts::OptionValue;

/// The folder of recordings, where it is not named.
const RUNS: &str = "runs";

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int,
    /// A number of bytes: K, M, G and T may follow.
    Size,
    Double,
    Text,
    List,
    File,
    /// A folder that has a name where none is typed.
    Folder,
}

/// An option that may be typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OptionSpec {
    /// As it is typed, without its dashes.
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) default: OptionValue,
    pub(crate) description: String,
}

/// An option as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionArgument {
    pub(crate) name: String,
    /// What stood after the equals sign.
    pub(crate) value: Option<String>,
}

/// What becomes of options that nobody has declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    AreRefused,
    /// Of a script that declares none: it may read what was typed.
    AreText,
}

impl OptionArgument {
    /// That there is no such option, as sysbench says it.
    pub(crate) fn refused(&self) -> OptionsError {
        OptionsError::Invalid { name: self.name.clone(), value: self.value.clone() }
    }
}

impl OptionSpec {
    /// What scripts see where the option is not typed: for most types sysbench has no value that means none.
    fn value_by_default(&self) -> OptionValue {
        match (&self.default, self.kind) {
            (OptionValue::Null, Type::Bool) => OptionValue::Bool(true),
            (OptionValue::Null, Type::Int | Type::Double | Type::Size) => OptionValue::Number(0.0),
            (OptionValue::Null, Type::Text) => OptionValue::Text(String::new()),
            (OptionValue::Null, Type::List) => OptionValue::List(Vec::new()),
            (default, _) => default.clone(),
        }
    }
}

/// A heading of `--help`, and what stands under it: name, type, default, description.
pub(crate) type Group = (&'static str, &'static [(&'static str, Type, &'static str, &'static str)]);

/// The options that are there whatever the script.
pub(crate) const GROUPS: [Group; 5] = [
    (
        "General options",
        &[
            ("threads", Type::Int, "1", "users, each with a connection of its own"),
            ("events", Type::Int, "0", "end after so many events; 0: no limit"),
            ("time", Type::Int, "10", "end after so many seconds; 0: no limit"),
            ("warmup-time", Type::Int, "0", "run so many seconds before the measured time begins"),
            (
                "forced-shutdown",
                Type::Text,
                "off",
                "seconds to wait for events after the time is up, a share of it such as 10%, or off",
            ),
            ("thread-stack-size", Type::Size, "64K", "accepted and not used: users are coroutines here"),
            ("thread-init-timeout", Type::Int, "30", "seconds that connecting and thread_init() may take"),
            (
                "rate",
                Type::Double,
                "0",
                "events a second on average, as independent arrivals; 0: as many as go",
            ),
            ("report-interval", Type::Int, "0", "report every so many seconds; 0: never"),
            (
                "report-checkpoints",
                Type::List,
                "",
                "seconds at which a full report is printed and counting restarts",
            ),
            ("debug", Type::Bool, "off", "accepted and not used"),
            ("validate", Type::Bool, "off", "for scripts that read it"),
            ("help", Type::Bool, "off", "print this and end"),
            ("version", Type::Bool, "off", "print the version and end"),
            ("config-file", Type::File, "", "file with one name=value a line"),
            ("luajit-cmd", Type::Text, "", "a command for LuaJIT's compiler: off"),
            (
                "turn-timeout",
                Type::Int,
                "30",
                "seconds that a script may keep other users from working (whyso's own)",
            ),
            ("json", Type::File, "", "also write the results as JSON, - for standard output (whyso's own)"),
            (
                "record",
                Type::Folder,
                "",
                "also record the run, the server and this machine, in runs (whyso's own)",
            ),
            (
                "hosts",
                Type::File,
                "",
                "file that names hosts whose agents record, too; needs --record (whyso's own)",
            ),
            ("engine", Type::Text, "auto", "auto, threads, epoll or io-uring (whyso's own)"),
            ("tx-rate", Type::Double, "0", "old name of --rate"),
            ("max-requests", Type::Int, "0", "old name of --events"),
            ("max-time", Type::Int, "0", "old name of --time"),
            ("num-threads", Type::Int, "1", "old name of --threads"),
        ],
    ),
    (
        "Options of random numbers",
        &[
            (
                "rand-type",
                Type::Text,
                "special",
                "distribution: uniform, gaussian, special, pareto or zipfian",
            ),
            ("rand-spec-iter", Type::Int, "12", "draws that are averaged, for gaussian and special"),
            ("rand-spec-pct", Type::Int, "1", "per cent of the values that are special"),
            ("rand-spec-res", Type::Int, "75", "per cent of the draws that fall on them"),
            ("rand-seed", Type::Int, "0", "seed; 0: taken from the time"),
            ("rand-pareto-h", Type::Double, "0.2", "parameter of the pareto distribution, between 0 and 1"),
            ("rand-zipfian-exp", Type::Double, "0.8", "exponent of the zipfian distribution"),
        ],
    ),
    (
        "Options of the output",
        &[
            ("verbosity", Type::Int, "3", "5: everything, 3: notices, 0: only what is fatal"),
            ("percentile", Type::Int, "95", "percentile of the latency, 1 to 100; 0: none"),
            ("histogram", Type::Bool, "off", "print a histogram of the latency"),
        ],
    ),
    (
        "General database options",
        &[
            ("db-driver", Type::Text, "mysql", "mysql is the only one"),
            ("db-ps-mode", Type::Text, "auto", "disable: send prepared statements as text"),
            ("db-debug", Type::Bool, "off", "accepted and not used"),
        ],
    ),
    (
        "mysql options",
        &[
            ("mysql-host", Type::List, "localhost", "servers' hosts, used in turn"),
            ("mysql-port", Type::List, "3306", "servers' ports, used in turn"),
            ("mysql-socket", Type::List, "", "servers' Unix sockets, used in turn"),
            ("mysql-user", Type::Text, "sbtest", "account"),
            ("mysql-password", Type::Text, "", "its password; MYSQL_PWD is safer"),
            ("mysql-db", Type::Text, "sbtest", "database; the script may write there"),
            ("mysql-ssl", Type::Bool, "off", "encrypt connections"),
            ("mysql-ssl-key", Type::File, "", "not served: an account's own certificate"),
            ("mysql-ssl-ca", Type::File, "", "certificates that the server's must be signed by"),
            ("mysql-ssl-cert", Type::File, "", "not served: an account's own certificate"),
            ("mysql-ssl-cipher", Type::Text, "", "accepted and not used"),
            ("mysql-compression", Type::Bool, "off", "compress what is sent"),
            ("mysql-debug", Type::Bool, "off", "accepted and not used"),
            (
                "mysql-ignore-errors",
                Type::List,
                "1213,1020,1205",
                "errors after which an event is begun again, or all",
            ),
            ("mysql-dry-run", Type::Bool, "off", "connect to no server and send nothing"),
        ],
    ),
];

/// Old names, and today's.
pub(crate) const OLD_NAMES: [(&str, &str); 4] =
    [("num-threads", "threads"), ("max-requests", "events"), ("max-time", "time"), ("tx-rate", "rate")];

/// The general options as declarations.
pub(crate) fn general() -> Vec<OptionSpec> {
    let mut declared = Vec::new();
    for (_, options) in GROUPS {
        for (name, kind, default, description) in options {
            let default = match default {
                &"" if *kind == Type::Text => OptionValue::Text(String::new()),
                // A default that stands in the table above can be read.
                default => parse_value(name, *kind, Some(default)).unwrap_or(OptionValue::Null),
            };
            let description = (*description).to_string();
            declared.push(OptionSpec { name: (*name).to_string(), kind: *kind, default, description });
        }
    }
    declared
}

/// The value of an option from its text.
///
/// # Errors
/// What is wrong with it, as sysbench says it.
pub(crate) fn parse_value(name: &str, kind: Type, text: Option<&str>) -> Result<OptionValue, OptionsError> {
    let invalid = || OptionsError::Value { name: name.to_string(), text: text.unwrap_or("").to_string() };
    Ok(match kind {
        Type::Bool => match text {
            None | Some("on" | "true" | "1") => OptionValue::Bool(true),
            Some("off" | "false" | "0") => OptionValue::Bool(false),
            Some(_) => return Err(invalid()),
        },
        Type::Int => {
            let value: i64 = text.and_then(|text| text.trim().parse().ok()).ok_or_else(invalid)?;
            OptionValue::Number(value as f64)
        }
        Type::Double => {
            let value: f64 = text.and_then(|text| text.trim().parse().ok()).ok_or_else(invalid)?;
            if !value.is_finite() {
                return Err(invalid());
            }
            OptionValue::Number(value)
        }
        Type::Size => {
            let text = text.ok_or_else(invalid)?;
            let (digits, factor) = match text.char_indices().next_back() {
                Some((at, unit)) if unit.is_ascii_alphabetic() => {
                    let power = match unit.to_ascii_uppercase() {
                        'K' => 1,
                        'M' => 2,
                        'G' => 3,
                        'T' => 4,
                        _ => return Err(invalid()),
                    };
                    (&text[..at], 1024f64.powi(power))
                }
                _ => (text, 1.0),
            };
            let value: u64 = digits.parse().map_err(|_| invalid())?;
            OptionValue::Number(value as f64 * factor)
        }
        Type::Text | Type::File => match text {
            Some("") if kind == Type::File => OptionValue::Null,
            Some(text) => OptionValue::Text(text.to_string()),
            None => OptionValue::Null,
        },
        Type::Folder => match text {
            Some("") => OptionValue::Null,
            text => OptionValue::Text(text.unwrap_or(RUNS).to_string()),
        },
        Type::List => {
            let items = text.unwrap_or("").split(',').map(str::trim).filter(|item| !item.is_empty());
            OptionValue::List(items.map(str::to_string).collect())
        }
    })
}

/// Resolves the typed options into the values of those declared; of equal names the last counts.
///
/// # Errors
/// The first that is unknown, or whose value can't be read.
pub(crate) fn resolve(
    declared: &[OptionSpec],
    arguments: &[OptionArgument],
    others: Others,
) -> Result<Vec<(String, OptionValue)>, OptionsError> {
    let mut values: Vec<(String, OptionValue)> =
        declared.iter().map(|option| (option.name.clone(), option.value_by_default())).collect();
    for argument in arguments {
        let wanted = argument.name.replace('_', "-");
        let place = declared.iter().rposition(|option| option.name.replace('_', "-") == wanted);
        let Some(place) = place else {
            if others == Others::AreText {
                values.push((
                    argument.name.clone(),
                    OptionValue::Text(argument.value.clone().unwrap_or_default()),
                ));
                continue;
            }
            return Err(argument.refused());
        };
        let kind = declared[place].kind;
        // sysbench checks the values of these only.
        let is_checked_by_name = kind == Type::Bool && argument.value.is_some();
        let value = parse_value(&argument.name, kind, argument.value.as_deref());
        values[place].1 =
            value.map_err(|problem| if is_checked_by_name { argument.refused() } else { problem })?;
    }
    Ok(values)
}

/// The options of a test, as its help lists them.
pub(crate) fn help_of_test(declared: &[OptionSpec]) -> String {
    let mut lines: Vec<(String, String)> = declared
        .iter()
        .map(|option| {
            let left = format!("--{}{}", option.name, placeholder(option.kind));
            let default = match &option.default {
                OptionValue::Null => String::new(),
                value => format!(" [{value}]"),
            };
            (left, format!("{}{default}", option.description))
        })
        .collect();
    lines.sort();
    let width = lines.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (left, right) in lines {
        text.push_str(&format!("  {left:width$} {right}\n"));
    }
    text.push('\n');
    text
}

/// `--help`.
pub(crate) fn help() -> String {
    let mut text =
        "Usage:\n  whyso sysbench [options]... [testname] [command]\n\nCommands implemented by most tests: \
                    prepare run cleanup help\n\n"
            .to_string();
    for (heading, options) in GROUPS {
        text.push_str(&format!("{heading}:\n"));
        let left = |name: &str, kind: Type| format!("--{name}{}", placeholder(kind));
        let width = options.iter().map(|(name, kind, ..)| left(name, *kind).len()).max().unwrap_or(0);
        for (name, kind, default, description) in options {
            text.push_str(&format!("  {:width$} {description} [{default}]\n", left(name, *kind)));
        }
        text.push('\n');
    }
    text.push_str("See 'whyso sysbench <testname> help' for the options of a test.\n\n");
    text
}

fn placeholder(kind: Type) -> &'static str {
    match kind {
        Type::Bool => "[=on|off]",
        Type::Int | Type::Double => "=N",
        Type::Size => "=SIZE",
        Type::Text => "=STRING",
        Type::List => "=[LIST,...]",
        Type::File => "=FILENAME",
        Type::Folder => "[=FOLDER]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(name: &str, value: Option<&str>) -> OptionArgument {
        OptionArgument { name: name.to_string(), value: value.map(str::to_string) }
    }

    #[test]
    fn values_are_read_by_their_type() {
        for (kind, text, value) in [
            (Type::Bool, None, OptionValue::Bool(true)),
            (Type::Bool, Some("off"), OptionValue::Bool(false)),
            (Type::Size, Some("64K"), OptionValue::Number(65536.0)),
            (Type::Double, Some("1.5"), OptionValue::Number(1.5)),
            (Type::List, Some("a, b"), OptionValue::List(vec!["a".to_string(), "b".to_string()])),
            (Type::Folder, None, OptionValue::Text("runs".to_string())),
            (Type::Folder, Some("x"), OptionValue::Text("x".to_string())),
            (Type::Folder, Some(""), OptionValue::Null),
        ] {
            assert_eq!(parse_value("x", kind, text).unwrap(), value);
        }
        let refused = parse_value("threads", Type::Int, Some("x"));
        assert_eq!(refused.unwrap_err().to_string(), "Invalid value for the 'threads' option: 'x'");
        assert!(parse_value("x", Type::Size, Some("1X")).is_err());
        assert!(parse_value("x", Type::Size, Some("é")).is_err());
    }

    #[test]
    fn dashes_and_underscores_are_the_same_and_the_last_value_counts() {
        let declared = general();
        let values = resolve(
            &declared,
            &[argument("rand_seed", Some("1")), argument("rand-seed", Some("2"))],
            Others::AreRefused,
        )
        .unwrap();
        assert!(values.contains(&("rand-seed".to_string(), OptionValue::Number(2.0))));
        let refused = resolve(&declared, &[argument("bogus", Some("1"))], Others::AreRefused);
        assert_eq!(refused.unwrap_err().to_string(), "invalid option: --bogus=1");
        let refused = resolve(&declared, &[argument("histogram", Some("maybe"))], Others::AreRefused);
        assert_eq!(refused.unwrap_err().to_string(), "invalid option: --histogram=maybe");
        let values = resolve(&declared, &[argument("bogus", Some("1"))], Others::AreText).unwrap();
        assert!(values.contains(&("bogus".to_string(), OptionValue::Text("1".to_string()))));
    }
}
