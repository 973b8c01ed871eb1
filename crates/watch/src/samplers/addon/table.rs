//! From what a program or a statement prints to numbers with names.

use std::collections::BTreeMap;

use whyso_record::data::{Kind, Value};

use super::error::AddOnError;
use crate::samplers::addon::spec::AddOn;
use crate::samplers::status::parse_number;
use crate::sink::Batch;

/// Instances of one sample, at most: the later ones are left out.
const INSTANCES_MAX: usize = 10_000;
const COLUMNS_MAX: usize = 1_000;
/// Longer words stand in messages cut.
const SHOWN_CHARS_MAX: usize = 40;

/// What has been printed, as the latest line of each instance.
pub(super) struct Table {
    addon: AddOn,
    lines_to_skip: u64,
    /// Names of the columns; empty until the header has come.
    names: Vec<String>,
    header_line: Option<String>,
    rows: BTreeMap<String, Vec<Option<Value>>>,
    /// Values that are no numbers.
    pub(super) not_numbers: u64,
    /// The first of them, as text.
    pub(super) first_not_number: Option<String>,
}

impl Table {
    pub(super) fn new(addon: &AddOn) -> Table {
        let mut table = Table {
            addon: addon.clone(),
            lines_to_skip: 0,
            names: Vec::new(),
            header_line: None,
            rows: BTreeMap::new(),
            not_numbers: 0,
            first_not_number: None,
        };
        table.begin();
        table
    }

    /// The program begins to print: its header comes again.
    pub(super) fn begin(&mut self) {
        self.lines_to_skip = self.addon.skip_lines;
        self.header_line = None;
        self.rows.clear();
        self.names = match self.addon.header {
            true => Vec::new(),
            false => self.addon.columns.iter().map(|column| column.name.clone()).collect(),
        };
    }

    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim();
        if self.lines_to_skip > 0 {
            self.lines_to_skip -= 1;
            return;
        }
        if line.is_empty() || self.header_line.as_deref() == Some(line) {
            return;
        }
        let separator = self.addon.separator.clone();
        let fields: Vec<Option<&str>> = match &separator {
            None => line.split_whitespace().take(COLUMNS_MAX).map(Some).collect(),
            Some(separator) => {
                line.split(separator.as_str()).take(COLUMNS_MAX).map(|field| Some(field.trim())).collect()
            }
        };
        if self.names.is_empty() {
            self.header_line = Some(line.to_string());
            self.names = fields.into_iter().flatten().map(str::to_string).collect();
            return;
        }
        self.row(&fields);
    }

    /// The names that the server gives.
    pub(super) fn header(&mut self, names: Vec<String>) {
        self.names = names;
    }

    /// `None` is a NULL: left out, and nothing to complain of.
    pub(super) fn row(&mut self, fields: &[Option<&str>]) {
        let mut instance = String::new();
        let mut values = Vec::with_capacity(self.names.len());
        for (column, name) in self.names.iter().enumerate() {
            let field = fields.get(column).copied();
            if self.addon.instance.as_deref() == Some(name.as_str()) {
                instance = field.flatten().unwrap_or_default().to_string();
                values.push(None);
                continue;
            }
            if self.skips(name) {
                values.push(None);
                continue;
            }
            let value = match field {
                Some(None) => None,
                Some(Some(text)) => {
                    let number = parse_number(text);
                    if number.is_none() {
                        self.not_numbers += 1;
                        self.first_not_number.get_or_insert_with(|| no_number(name, text));
                    }
                    number
                }
                None => {
                    self.not_numbers += 1;
                    self.first_not_number
                        .get_or_insert_with(|| format!("a line ended before its column {name}"));
                    None
                }
            };
            values.push(value);
        }
        let is_one_more = !self.rows.contains_key(&instance);
        if values.iter().any(Option::is_some) && !(is_one_more && self.rows.len() >= INSTANCES_MAX) {
            self.rows.insert(instance, values);
        }
    }

    fn skips(&self, name: &str) -> bool {
        self.addon.columns.iter().any(|column| column.name == name && column.skip)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the header and the instance's column are as the file has them.
    ///
    /// # Errors
    /// What the file names and the header lacks.
    pub(super) fn check(&self) -> Result<(), AddOnError> {
        if self.names.is_empty() {
            return Ok(());
        }
        let declared = self.addon.columns.iter().map(|column| &column.name).chain(&self.addon.instance);
        for name in declared {
            if !self.names.contains(name) {
                let header = self.names.clone();
                return Err(AddOnError::MissingColumn { name: name.clone(), header });
            }
        }
        Ok(())
    }

    /// Records what was printed, and forgets it.
    pub(super) fn put(&mut self, batch: &mut Batch<'_>) {
        for (instance, values) in std::mem::take(&mut self.rows) {
            for (name, value) in self.names.iter().zip(values) {
                let Some(value) = value else { continue };
                batch.put_named(name, &instance, value, || {
                    let column = self.addon.columns.iter().find(|column| column.name == *name);
                    column.map_or((Kind::Gauge, "1"), |column| (column.kind, column.unit.as_str()))
                });
            }
        }
    }
}

fn no_number(name: &str, text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{shown:?} in column {name}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    fn table(text: &str) -> Table {
        Table::new(&AddOn::parse(&format!("name = \"a\"\ncommand = [\"x\"]\n{text}"), None).unwrap())
    }

    #[test]
    fn a_header_names_the_columns_and_may_come_again() {
        let mut table = table("skip_lines = 1\nheader = true");
        for line in ["title", "r b", "1 2", "r b", "3 x"] {
            table.line(line);
        }
        assert_eq!(table.not_numbers, 1);
        assert_eq!(table.first_not_number.as_deref(), Some("\"x\" in column b"));
        let values = collect(|batch| table.put(batch));
        assert_eq!(values["r"], 3.0);
        assert_eq!(values.len(), 1);
        assert!(table.is_empty());
    }

    #[test]
    fn each_instance_keeps_its_latest_line() {
        let mut table = table(
            "separator = \",\"\ninstance = \"disk\"\n[[column]]\nname = \"disk\"\n[[column]]\nname = \"busy\"\n[[column]]\nname = \"note\"\nskip = true",
        );
        for line in ["sda, 1, ok", "sdb, 2, ok", "sda, 3, bad"] {
            table.line(line);
        }
        let values = collect(|batch| table.put(batch));
        assert_eq!(values["busy sda"], 3.0);
        assert_eq!(values["busy sdb"], 2.0);
        assert_eq!((values.len(), table.not_numbers), (2, 0));
    }

    #[test]
    fn a_column_that_the_header_lacks_is_named() {
        let mut table = table("header = true\n[[column]]\nname = \"gone\"");
        table.line("r b");
        assert_eq!(table.check().unwrap_err().to_string(), "there is no column gone: the header has r, b");
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic_and_what_it_holds_is_bounded(lines in proptest::collection::vec("\\PC{0,40}", 0..40)) {
            let mut table = table("header = true\ninstance = \"a\"");
            for line in &lines {
                table.line(line);
            }
            prop_assert!(table.rows.len() <= lines.len());
        }

        #[test]
        fn what_is_printed_is_what_is_recorded(numbers in proptest::collection::vec(any::<i64>(), 1..8)) {
            let names: Vec<String> = (0..numbers.len()).map(|at| format!("c{at}")).collect();
            let mut table = table("header = true");
            table.line(&names.join(" "));
            let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
            table.line(&words.join(" "));
            let recorded: Vec<Value> = table.rows[""].iter().map(|value| value.unwrap()).collect();
            let printed: Vec<Value> = numbers.iter().map(|number| Value::Int(*number)).collect();
            prop_assert_eq!(recorded, printed);
        }
    }
}
