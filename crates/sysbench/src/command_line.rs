//! The command line, and the older one of sysbench 0.4.

use crate::error::CommandLineError;
use crate::options::{OLD_NAMES, OptionArgument};

/// What was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) options: Vec<OptionArgument>,
    pub(crate) test: Option<String>,
    pub(crate) command: Option<String>,
    /// Warnings about it, printed to standard error before anything else.
    pub(crate) warnings: Vec<String>,
    /// Old names of options, and today's: these warnings go where the log goes.
    pub(crate) old_names: Vec<(&'static str, &'static str)>,
}

/// Events after which sysbench 0.4 ends by default.
const EVENTS_OF_0_4: &str = "10000";

impl CommandLine {
    /// Takes the arguments apart.
    ///
    /// # Errors
    /// More words than a test and a command.
    pub(crate) fn parse(arguments: &[String]) -> Result<CommandLine, CommandLineError> {
        let mut line = CommandLine::default();
        for argument in arguments {
            match argument.strip_prefix("--") {
                Some(option) => line.take_option(option),
                None if line.test.is_none() => line.test = Some(argument.clone()),
                None if line.command.is_none() => line.command = Some(argument.clone()),
                None => return Err(CommandLineError::UnknownArgument { argument: argument.clone() }),
            }
        }
        Ok(line)
    }

    fn take_option(&mut self, option: &str) {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_string())),
            None => (option, None),
        };
        if name == "test" {
            let warning = "the --test option is deprecated. You can pass a script name or path on the command line \
                           without any options.";
            self.warnings.push(format!("WARNING: {warning}"));
            // The first word, if any, was the command then.
            self.command = self.test.take().or(self.command.take());
            self.test = value;
            return;
        }
        let today = OLD_NAMES.into_iter().find(|(old, _)| *old == name.replace('_', "-"));
        self.old_names.extend(today);
        let name = today.map_or(name, |(_, new)| new).to_string();
        self.options.push(OptionArgument { name, value });
    }

    /// Whether it is one of sysbench 0.4's OLTP test.
    pub(crate) fn is_of_0_4(&self) -> bool {
        self.test.as_deref() == Some("oltp")
    }

    /// Today's command line that does the same, and how to type it.
    ///
    /// # Errors
    /// What there is no exact translation for.
    pub(crate) fn translated(&self) -> Result<(CommandLine, String), CommandLineError> {
        let mut options: Vec<OptionArgument> = Vec::new();
        let mut test = "oltp_read_write";
        let mut has = (false, false);
        for option in &self.options {
            let value = option.value.clone();
            let name = option.name.replace('_', "-");
            let name = match name.as_str() {
                "oltp-table-size" => "table_size",
                "oltp-dist-type" => "rand-type",
                "oltp-dist-iter" => "rand-spec-iter",
                "oltp-dist-pct" => "rand-spec-pct",
                "oltp-dist-res" => "rand-spec-res",
                "oltp-range-size" => "range_size",
                "oltp-point-selects" => "point_selects",
                "oltp-simple-ranges" => "simple_ranges",
                "oltp-sum-ranges" => "sum_ranges",
                "oltp-order-ranges" => "order_ranges",
                "oltp-distinct-ranges" => "distinct_ranges",
                "oltp-index-updates" => "index_updates",
                "oltp-non-index-updates" => "non_index_updates",
                "oltp-skip-trx" => "skip_trx",
                "oltp-auto-inc" => "auto_inc",
                "mysql-table-engine" => "mysql_storage_engine",
                "oltp-table-name" => {
                    if value.as_deref() != Some("sbtest") {
                        return Err(CommandLineError::TableName { name: value.unwrap_or_default() });
                    }
                    continue;
                }
                "oltp-read-only" => {
                    if matches!(value.as_deref(), None | Some("on" | "true" | "1")) {
                        test = "oltp_read_only";
                    }
                    continue;
                }
                "oltp-test-mode" => {
                    test = match value.as_deref() {
                        Some("complex") => test,
                        Some("simple") => "oltp_point_select",
                        other => {
                            return Err(CommandLineError::TestMode { mode: other.unwrap_or("").to_string() });
                        }
                    };
                    continue;
                }
                // Random numbers are always seeded; --rand-seed says with what.
                "init-rng" => continue,
                "events" => {
                    has.0 = true;
                    "events"
                }
                "time" => {
                    has.1 = true;
                    "time"
                }
                name if name.starts_with("oltp-") => {
                    return Err(CommandLineError::Untranslated { option: name.to_string(), test });
                }
                _ => option.name.as_str(),
            };
            options.push(OptionArgument { name: name.to_string(), value });
        }
        if !has.0 {
            options
                .push(OptionArgument { name: "events".to_string(), value: Some(EVENTS_OF_0_4.to_string()) });
        }
        if !has.1 {
            options.push(OptionArgument { name: "time".to_string(), value: Some("0".to_string()) });
        }
        let line = CommandLine {
            options,
            test: Some(test.to_string()),
            command: self.command.clone(),
            warnings: Vec::new(),
            old_names: Vec::new(),
        };
        let typed = line.typed();
        Ok((line, typed))
    }

    /// How it is typed; without the password.
    fn typed(&self) -> String {
        let mut words = vec!["sysbench".to_string()];
        words.extend(self.test.clone());
        for option in &self.options {
            words.push(match &option.value {
                Some(_) if option.name == "mysql-password" => "--mysql-password=…".to_string(),
                Some(value) => format!("--{}={value}", option.name),
                None => format!("--{}", option.name),
            });
        }
        words.extend(self.command.clone());
        words.join(" ")
    }
}

/// The lines of a `--config-file`: `name=value`, comments after `#`.
pub(crate) fn parse_config(text: &str) -> Vec<OptionArgument> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim().to_string())),
                None => (line, None),
            };
            OptionArgument { name: name.trim_start_matches('-').to_string(), value }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> CommandLine {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        CommandLine::parse(&words).unwrap()
    }

    #[test]
    fn options_stand_anywhere_and_old_names_are_warned_of() {
        let line = parsed("--threads=4 oltp_read_write --range_selects=off --histogram run --max-time=5");
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("oltp_read_write"), Some("run")));
        assert_eq!(line.options.len(), 4);
        assert_eq!(line.options[3].name, "time");
        assert_eq!(line.old_names, [("max-time", "time")]);
        let line = parsed("--test=x.lua run");
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("x.lua"), Some("run")));
    }

    #[test]
    fn the_command_line_of_0_4_is_translated() {
        let line = parsed(
            "--test=oltp --oltp-table-size=1000000 --oltp-dist-type=uniform --oltp-table-name=sbtest \
             --mysql-table-engine=innodb --num-threads=16 --max-time=60 --max-requests=0 run",
        );
        assert!(line.is_of_0_4());
        assert_eq!(
            line.translated().unwrap().1,
            "sysbench oltp_read_write --table_size=1000000 --rand-type=uniform --mysql_storage_engine=innodb \
             --threads=16 --time=60 --events=0 run"
        );
        let line = parsed("--test=oltp --oltp-read-only=on run");
        assert_eq!(line.translated().unwrap().1, "sysbench oltp_read_only --events=10000 --time=0 run");
        assert!(
            parsed("--test=oltp --oltp-table-name=t run")
                .translated()
                .unwrap_err()
                .to_string()
                .contains("sbtest1")
        );
    }

    #[test]
    fn a_config_file_has_an_option_a_line() {
        let options = parse_config("threads = 4 # users\n\n--histogram\n");
        assert_eq!(options[0], OptionArgument { name: "threads".to_string(), value: Some("4".to_string()) });
        assert_eq!(options[1], OptionArgument { name: "histogram".to_string(), value: None });
    }
}
