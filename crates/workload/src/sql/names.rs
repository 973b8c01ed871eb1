//! What names in expressions and statements stand for.

use super::build::Builder;
use super::error::{ExpressionError, SqlFileError};
use super::expression::Names;
use super::lexer::name_at;
use crate::dictionary::{Dictionary, DictionarySource, DictionaryValues};
use crate::expr::ValueType;
use crate::suggest::nearest_name;
use crate::workload::Variable;

impl Names for Builder {
    fn variable(&mut self, name: &str) -> Result<u16, ExpressionError> {
        let place = self.workload.variables.iter().position(|variable| variable.name == name);
        if let Some(place) = place.and_then(|place| u16::try_from(place).ok())
            && self.defined.contains(&place)
        {
            return Ok(place);
        }
        // A name that nothing set may be a column of an answer before.
        let from_answer =
            self.captures_of_transaction().rev().find(|&i| name.starts_with(&self.captures[i].prefix));
        if let Some(i) = from_answer {
            let place = self.place_of(name);
            let column = name[self.captures[i].prefix.len()..].to_string();
            self.captures[i].columns.push((column, place));
            self.defined.push(place);
            return Ok(place);
        }
        let variables = &self.workload.variables;
        let defined = self.defined.iter().filter_map(|place| variables.get(usize::from(*place)));
        let nearest = nearest_name(name, defined.map(|variable| variable.name.as_str()));
        Err(ExpressionError::UnknownVariable { name: name.to_string(), nearest: nearest.map(str::to_string) })
    }

    fn dictionary(&mut self, name: &str) -> Result<u16, ExpressionError> {
        let names = || self.workload.dictionaries.iter().map(|dictionary| dictionary.name.as_str());
        match names().position(|existing| existing == name) {
            Some(place) => Ok(u16::try_from(place).unwrap_or(u16::MAX)),
            None => Err(ExpressionError::UnknownDictionary {
                name: name.to_string(),
                nearest: nearest_name(name, names()).map(str::to_string),
            }),
        }
    }
}

impl Builder {
    /// The variable's place; it is added where it is new.
    pub(super) fn place_of(&mut self, name: &str) -> u16 {
        let variables = &mut self.workload.variables;
        let place = variables.iter().position(|variable| variable.name == name).unwrap_or_else(|| {
            variables.push(Variable { name: name.to_string(), value_type: ValueType::Int });
            variables.len() - 1
        });
        u16::try_from(place).unwrap_or(u16::MAX)
    }

    /// `\dictionary`.
    pub(super) fn dictionary_of(&mut self, arguments: &str) -> Result<(), SqlFileError> {
        let name = name_at(arguments);
        let rest = arguments[name.len()..].trim_start();
        let (how, what) = rest.split_once(char::is_whitespace).ok_or(SqlFileError::DICTIONARY)?;
        let source = match (how, what.trim()) {
            (_, "") => return Err(SqlFileError::DICTIONARY),
            ("file", path) => DictionarySource::File(path.to_string()),
            ("query", sql) => DictionarySource::Query(sql.trim_end_matches(';').to_string()),
            _ => return Err(SqlFileError::DICTIONARY),
        };
        let name = name.to_ascii_lowercase();
        if name.is_empty() {
            return Err(SqlFileError::DICTIONARY);
        }
        if self.workload.dictionaries.iter().any(|dictionary| dictionary.name == name) {
            return Err(SqlFileError::DuplicateDictionary { name });
        }
        let values = DictionaryValues::Texts(Vec::new());
        self.workload.dictionaries.push(Dictionary { name, source, values });
        Ok(())
    }
}
