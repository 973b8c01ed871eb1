//! No files of a crate use each other in a circle: what a file needs can be read before the file itself.
//!
//! A module and the modules in it are one thing: a `mod.rs` may call its parts, and they may use what it defines. A file that is one thing with
//! another has a line that begins with `// In a circle with FILE: `, where FILE is a path within the crate's `src`, and gives the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

const CONSENT: &str = "// In a circle with ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A module's place in its crate: the names from the crate's root down to it.
type Place = Vec<String>;

/// A module that has a file of its own.
#[derive(Default)]
struct Module {
    /// Its file, below `src`.
    file: String,
    /// Names of items that it defines.
    defined: BTreeSet<String>,
    /// What names stand for that `use` brings in, by name; `*` is not among them.
    imported: BTreeMap<String, Place>,
    /// Modules whose names `use` brings in by `*`.
    globs: Vec<Place>,
    /// Paths in its code, as written.
    paths: BTreeSet<Place>,
    /// Files that it may be in a circle with.
    consents: BTreeSet<String>,
}

struct Crate {
    modules: BTreeMap<Place, Module>,
}

impl Crate {
    fn read(source: &Path) -> Crate {
        let mut whole = Crate { modules: BTreeMap::new() };
        for entry in ["lib.rs", "main.rs"] {
            if source.join(entry).exists() {
                whole.add(source, Path::new(entry), Vec::new());
                break;
            }
        }
        whole
    }

    /// Reads a module's file and those of the modules in it.
    fn add(&mut self, source: &Path, file: &Path, place: Place) {
        let text = fs::read_to_string(source.join(file)).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let consents = text
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix(CONSENT))
            .filter_map(|rest| rest.split_once(": "))
            .map(|(other, _)| other.to_string())
            .collect();
        let mut module = Module { file: file.display().to_string(), consents, ..Module::default() };
        let mut children = Vec::new();
        for item in &parsed.items {
            if is_for_tests(attributes(item)) {
                continue;
            }
            if let Item::Mod(inner) = item
                && inner.content.is_none()
            {
                children.push((inner.ident.to_string(), path_attribute(&inner.attrs)));
            }
            module.add(item);
        }
        self.modules.insert(place.clone(), module);
        for (name, at) in children {
            let folder = match file.file_name().and_then(|name| name.to_str()) {
                Some("lib.rs" | "main.rs" | "mod.rs") => file.parent().unwrap().to_path_buf(),
                _ => file.with_extension(""),
            };
            let child = match at {
                Some(at) => file.parent().unwrap().join(at),
                None => {
                    let own = folder.join(format!("{name}.rs"));
                    if source.join(&own).exists() { own } else { folder.join(&name).join("mod.rs") }
                }
            };
            // What a build script writes is no file of ours.
            if source.join(&child).exists() {
                self.add(source, &child, [place.clone(), vec![name]].concat());
            }
        }
    }

    /// The file in which what a path stands for is defined, where it is of this crate. `within` is the module that the path is written in.
    fn file_of(&self, within: &Place, path: &[String], steps: usize) -> Option<&str> {
        if steps == 0 {
            return None;
        }
        let (mut at, mut rest) = match path.first().map(String::as_str) {
            Some("crate") => (Vec::new(), &path[1..]),
            Some("self") => (within.clone(), &path[1..]),
            Some("super") => (within[..within.len().checked_sub(1)?].to_vec(), &path[1..]),
            _ => (within.clone(), path),
        };
        while rest.first().is_some_and(|name| name == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        loop {
            let module = self.modules.get(&at)?;
            let Some(name) = rest.first() else { return Some(&module.file) };
            let below = [at.clone(), vec![name.clone()]].concat();
            if self.modules.contains_key(&below) {
                at = below;
                rest = &rest[1..];
                continue;
            }
            if module.defined.contains(name) {
                return Some(&module.file);
            }
            if let Some(real) = module.imported.get(name) {
                return self.file_of(&at, &[real, &rest[1..]].concat(), steps - 1);
            }
            return module
                .globs
                .iter()
                .find_map(|glob| self.file_of(&at, &[&glob[..], rest].concat(), steps - 1));
        }
    }

    /// Whether a file is a module's own, or one of a module that it lies in: a module and its parts are one thing.
    fn is_above(&self, file: &str, place: &Place) -> bool {
        (0..=place.len())
            .any(|depth| self.modules.get(&place[..depth]).is_some_and(|module| module.file == file))
    }

    /// Which files each file uses.
    fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (place, module) in &self.modules {
            let uses = arrows.entry(&module.file).or_default();
            for path in &module.paths {
                if let Some(file) = self.file_of(place, path, 20)
                    && !module.consents.contains(file)
                    && !self.is_above(file, place)
                {
                    uses.insert(file);
                }
            }
        }
        arrows
    }
}

impl Module {
    fn add(&mut self, item: &Item) {
        if let Some(name) = name_of(item) {
            self.defined.insert(name);
        }
        if let Item::Use(import) = item {
            let is_public = !matches!(import.vis, Visibility::Inherited);
            self.import(&import.tree, Vec::new(), is_public);
        }
        let mut paths = Paths { module: self };
        paths.visit_item(item);
    }

    /// Notes what `use` brings in. A name that is only handed on (`pub use`) is no use of it.
    fn import(&mut self, tree: &UseTree, before: Place, is_public: bool) {
        match tree {
            UseTree::Path(path) => {
                self.import(&path.tree, [before, vec![path.ident.to_string()]].concat(), is_public);
            }
            UseTree::Group(group) => {
                for part in &group.items {
                    self.import(part, before.clone(), is_public);
                }
            }
            UseTree::Glob(_) => self.globs.push(before),
            UseTree::Name(name) => self.import_name(before, &name.ident.to_string(), None, is_public),
            UseTree::Rename(name) => {
                self.import_name(before, &name.ident.to_string(), Some(name.rename.to_string()), is_public);
            }
        }
    }

    fn import_name(&mut self, mut before: Place, name: &str, renamed: Option<String>, is_public: bool) {
        let own = match (&renamed, name) {
            (Some(renamed), _) => renamed.clone(),
            (None, "self") => before.last().cloned().unwrap_or_default(),
            (None, name) => name.to_string(),
        };
        if name != "self" {
            before.push(name.to_string());
        }
        // A module is used where its items are.
        if !is_public && name.starts_with(char::is_uppercase) {
            self.paths.insert(before.clone());
        }
        self.imported.insert(own, before);
    }
}

/// Notes the paths in an item's code.
struct Paths<'a> {
    module: &'a mut Module,
}

impl Visit<'_> for Paths<'_> {
    fn visit_path(&mut self, path: &syn::Path) {
        if path.leading_colon.is_none() {
            self.module.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, inner: &syn::ItemMod) {
        if !is_for_tests(&inner.attrs) {
            visit::visit_item_mod(self, inner);
        }
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().starts_with("test"))
    })
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| {
        let syn::Expr::Lit(literal) = &attribute.meta.require_name_value().ok()?.value else { return None };
        let syn::Lit::Str(text) = &literal.lit else { return None };
        Some(text.value())
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        Item::Mod(item) if item.content.is_some() => item.ident.to_string(),
        _ => return None,
    })
}

/// Files that are reached from `from`.
fn reached<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in arrows.get(file).into_iter().flatten() {
            if found.insert(*next) {
                open.push(next);
            }
        }
    }
    found
}

/// The circles of a crate: the files of each, and the arrows between them.
fn circles(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> BTreeMap<String, String> {
    let mut circles = BTreeMap::new();
    for file in arrows.keys() {
        let ahead = reached(arrows, file);
        if !ahead.contains(file) {
            continue;
        }
        let members: BTreeSet<&str> =
            ahead.iter().copied().filter(|next| reached(arrows, next).contains(file)).collect();
        let ties: Vec<String> = members
            .iter()
            .flat_map(|from| {
                arrows[from].intersection(&members).map(move |to| format!("    {from} uses {to}"))
            })
            .collect();
        circles.insert(members.into_iter().collect::<Vec<_>>().join(" "), ties.join("\n"));
    }
    circles
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().display().to_string();
        for (members, ties) in circles(&Crate::read(&folder.join("src")).arrows()) {
            found.insert(format!("{name}: {members}"), ties);
        }
    }
    let found: Vec<String> = found.iter().map(|(circle, ties)| format!("{circle}\n{ties}")).collect();
    assert!(
        found.is_empty(),
        "files in circles; move what they share to a file below them:\n{}",
        found.join("\n")
    );
}

/// The check itself: two files that use each other are a circle, a module and its part are none.
#[test]
fn a_circle_is_found_and_a_module_with_its_parts_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\npub struct Shared;\npub fn all() { a::first() }");
    write("a.rs", "use crate::{Shared, b::second};\npub fn first() { second(Shared) }");
    write("b.rs", "pub fn second(_: crate::Shared) {}");
    assert_eq!(circles(&Crate::read(folder.path()).arrows()), BTreeMap::new());
    write("b.rs", "pub fn second(_: crate::Shared) { super::a::first() }");
    let whole = Crate::read(folder.path());
    assert_eq!(circles(&whole.arrows()).into_keys().collect::<Vec<_>>(), ["a.rs b.rs"]);
    write(
        "b.rs",
        "// In a circle with a.rs: they call each other.\npub fn second(_: crate::Shared) { super::a::first() }",
    );
    assert_eq!(circles(&Crate::read(folder.path()).arrows()), BTreeMap::new());
}
