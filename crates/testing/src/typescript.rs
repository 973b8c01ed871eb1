//! TypeScript declarations of Rust types that the page reads as JSON, in one file that is committed.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use ts_rs::{Config, TS, TypeVisitor};

/// Longest object that is written in one line, in characters.
const LINE_MAX: usize = 100;
/// Longest array of a fixed length whose length is declared.
const TUPLE_MAX: usize = 4;

/// Declarations of types, and of all types that they use.
pub struct Declarations {
    config: Config,
    types: HashSet<TypeId>,
    /// By name.
    texts: BTreeMap<String, String>,
}

impl Default for Declarations {
    /// Returns no declarations. Integers of 64 bits become numbers: the page's JSON has no others. Long arrays of a fixed length
    /// become lists.
    fn default() -> Declarations {
        let config = Config::new().with_large_int("number").with_array_tuple_limit(TUPLE_MAX);
        Declarations { config, types: HashSet::new(), texts: BTreeMap::new() }
    }
}

impl Declarations {
    /// Adds a type and all types that it uses.
    ///
    /// # Panics
    /// Two types have the same name.
    #[must_use]
    pub fn with<T: TS + ?Sized + 'static>(mut self) -> Declarations {
        self.visit::<T>();
        self
    }

    /// Asserts that the file at `path` has these declarations. With `UPDATE_EXPECT=1`, writes them first.
    ///
    /// # Panics
    /// The file is missing, can't be written, or has other declarations.
    pub fn assert_in(&self, path: &Path) {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, self.to_string())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        self.assert_found_in(path);
    }

    fn assert_found_in(&self, path: &Path) {
        let expected = self.to_string();
        let found = std::fs::read_to_string(path).unwrap_or_default();
        let lines = |text: &str| text.lines().map(str::to_string).collect::<BTreeSet<String>>();
        let differing: Vec<String> = lines(&expected).symmetric_difference(&lines(&found)).cloned().collect();
        assert!(
            found == expected,
            "{} is not what the Rust types give: run this test with UPDATE_EXPECT=1, and follow the difference in the page. Lines that differ:\n{}",
            path.display(),
            differing.join("\n")
        );
    }
}

impl std::fmt::Display for Declarations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("// Generated from Rust types: a test of the crate that has them writes this file with UPDATE_EXPECT=1.\n")?;
        self.texts.values().try_for_each(|text| write!(f, "\n{text}"))
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if T::output_path().is_none() || !self.types.insert(TypeId::of::<T>()) {
            return;
        }
        let name = T::ident(&self.config);
        let doc = T::docs().map(|doc| format!("{}\n", doc_in_one_line(&doc))).unwrap_or_default();
        let declaration = T::decl(&self.config);
        let text = format!("{doc}export {}\n", in_lines(&declaration, 0));
        let other = self.texts.insert(name.clone(), text);
        assert!(
            other.is_none(),
            "two types are called {name}: give one of them another name by #[ts(rename)]"
        );
        T::visit_dependencies(self);
        T::visit_generics(self);
    }
}

/// Returns a comment without its line breaks.
fn doc_in_one_line(doc: &str) -> String {
    let lines = doc.lines().map(|line| line.trim().trim_start_matches("/**").trim_end_matches("*/"));
    let words: Vec<&str> =
        lines.map(|line| line.trim_start_matches('*').trim()).filter(|line| !line.is_empty()).collect();
    format!("/** {} */", words.join(" "))
}

/// Returns a declaration with one field per line, where an object has comments or is long.
fn in_lines(text: &str, depth: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        let end = begin + object_end(&rest[begin..]);
        out.push_str(&rest[..begin]);
        out.push_str(&object(&rest[begin + 1..end], depth));
        rest = &rest[end + 1..];
    }
    out + rest
}

/// Returns where the object ends that `text` begins with. Braces in comments do not count.
fn object_end(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => at += text[at..].find("*/").unwrap_or(0),
            [b'{', ..] => depth += 1,
            [b'}', ..] if depth == 1 => return at,
            [b'}', ..] => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    panic!("an object has no end: {text}");
}

/// Returns an object in braces. `fields` is what lies between them.
fn object(fields: &str, depth: usize) -> String {
    let fields = fields.trim().trim_end_matches(',');
    if !fields.contains("/*") && fields.len() <= LINE_MAX {
        return format!("{{ {fields} }}");
    }
    let indent = "  ".repeat(depth + 1);
    let mut out = String::from("{\n");
    for field in split_fields(fields) {
        let field = match field.rfind("*/").filter(|_| field.starts_with("/*")) {
            None => in_lines(field, depth + 1),
            Some(_) => {
                let (doc, code) = field.split_once("*/").expect("it has one");
                let doc = doc_in_one_line(&format!("{doc}*/"));
                format!("{doc}\n{indent}{}", in_lines(code.trim(), depth + 1))
            }
        };
        out.push_str(&format!("{indent}{field};\n"));
    }
    out + &"  ".repeat(depth) + "}"
}

/// Returns the fields of an object, each with its comment. Commas in comments, types and nested objects do not separate fields.
fn split_fields(fields: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut begin, mut at, mut depth) = (0, 0, 0);
    while at < fields.len() {
        match &fields.as_bytes()[at..] {
            [b'/', b'*', ..] => at += fields[at..].find("*/").unwrap_or(0),
            [b'{' | b'[' | b'<' | b'(', ..] => depth += 1,
            [b'}' | b']' | b'>' | b')', ..] => depth -= 1,
            [b',', ..] if depth == 0 => {
                found.push(fields[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found.push(fields[begin..].trim());
    found.retain(|field| !field.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(TS)]
    #[expect(dead_code, reason = "only its declaration is read")]
    struct Inner {
        count: u64,
    }

    /// Two lines, one
    /// thing.
    #[derive(TS)]
    #[expect(dead_code, reason = "only its declaration is read")]
    struct Outer {
        /// Braces, {and} commas.
        inner: Option<Inner>,
        pairs: Vec<(String, i64)>,
        by_name: BTreeMap<String, f64>,
    }

    #[test]
    fn a_type_is_declared_with_the_types_that_it_uses() {
        let text = Declarations::default().with::<Outer>().to_string();
        let (_, declarations) = text.split_once("\n\n").unwrap();
        assert_eq!(
            declarations,
            "export type Inner = { count: number };\n\n\
             /** Two lines, one thing. */\n\
             export type Outer = {\n  \
             /** Braces, {and} commas. */\n  \
             inner: Inner | null;\n  \
             pairs: Array<[string, number]>;\n  \
             by_name: { [key in string]: number };\n\
             };\n"
        );
    }

    #[test]
    #[should_panic(expected = "two types are called Inner")]
    fn two_types_of_one_name_are_refused() {
        #[derive(TS)]
        #[ts(rename = "Inner")]
        struct Another;
        let _ = Declarations::default().with::<Inner>().with::<Another>();
    }

    #[test]
    #[should_panic(expected = "run this test with UPDATE_EXPECT=1")]
    fn a_file_that_lacks_a_field_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("generated.ts");
        std::fs::write(&path, "export type Inner = {};\n").unwrap();
        Declarations::default().with::<Inner>().assert_found_in(&path);
    }
}
