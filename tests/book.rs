//! The book: every page is in the contents, every link leads somewhere, and every path that a page names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn book() -> PathBuf {
    root().join("docs")
}

fn pages_in(folder: &Path) -> BTreeSet<PathBuf> {
    files_in(folder, "md")
}

fn files_in(folder: &Path, extension: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_in(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.insert(path);
        }
    }
    found
}

/// The lines of a page that are no code.
fn text_lines(page: &str) -> Vec<(usize, &str)> {
    let mut is_block = false;
    let mut lines = Vec::new();
    for (at, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// A line without its code spans, which may hold what looks like a link.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The addresses of the links and pictures of a page, with their lines.
fn links(page: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in text_lines(page) {
        let line = without_code(line);
        for part in line.split("](").skip(1) {
            links.push((number, part.split(')').next().unwrap().to_string()));
        }
    }
    links
}

/// The anchors of a page, as GitHub and mdBook make them of its headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in text_lines(page) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let mut anchor = String::new();
        for letter in without_addresses(heading.trim()).to_lowercase().chars() {
            match letter {
                ' ' => anchor.push('-'),
                '-' | '_' => anchor.push(letter),
                letter if letter.is_alphanumeric() => anchor.push(letter),
                _ => {}
            }
        }
        let count = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

fn without_addresses(heading: &str) -> String {
    let mut parts = heading.split("](");
    let mut text = parts.next().unwrap().to_string();
    for part in parts {
        text.push_str(part.split_once(')').map_or("", |(_, after)| after));
    }
    text
}

/// Where a relative link of a page leads, without `..` in it.
fn target(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap().to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// What is wrong with a link of a page; `None`: nothing. Links of the book stay in the book, since mdBook publishes nothing else.
fn wrong(page: &Path, text: &str, link: &str, is_in_book: bool) -> Option<String> {
    if link.starts_with("http://") || link.starts_with("https://") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_path_buf() } else { target(page, path) };
    if is_in_book && !target.starts_with(book()) {
        return Some("leads out of the book: name the path as code instead".to_string());
    }
    if is_in_book && target.ends_with("SUMMARY.md") {
        return Some("leads to the contents, of which mdBook makes no page".to_string());
    }
    if !path.is_empty() && !target.exists() {
        return Some("leads nowhere".to_string());
    }
    let other =
        if path.is_empty() { text.to_string() } else { fs::read_to_string(&target).unwrap_or_default() };
    let is_found = anchor.is_empty() || anchors(&other).contains(anchor);
    (!is_found).then(|| format!("has no heading #{anchor}"))
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = pages_in(&book());
    let top = ["README.md", "ARCHITECTURE.md", "PRINCIPLES.md", "CONTRIBUTING.md"];
    pages.extend(top.iter().map(|page| root().join(page)));
    let mut found = String::new();
    let mut count = 0;
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for (line, link) in links(&text) {
            count += 1;
            if let Some(why) = wrong(page, &text, &link, page.starts_with(book())) {
                writeln!(found, "{}:{line}: {link} {why}", page.display()).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "{found}");
    assert!(count > 200, "there are only {count} links: are they found?");
}

#[test]
fn every_page_is_in_the_contents_once() {
    let contents = fs::read_to_string(book().join("SUMMARY.md")).unwrap();
    let listed: Vec<PathBuf> = links(&contents).into_iter().map(|(_, link)| book().join(link)).collect();
    let once: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "a page is in SUMMARY.md twice");
    let mut pages = pages_in(&book());
    pages.remove(&book().join("SUMMARY.md"));
    let missing: Vec<_> = pages.difference(&once).collect();
    assert!(missing.is_empty(), "add to docs/SUMMARY.md: {missing:?}");
}

/// The first heading of a page is its title in the contents, so that a reader finds what was promised.
#[test]
fn titles_in_the_contents_are_those_of_the_pages() {
    let contents = fs::read_to_string(book().join("SUMMARY.md")).unwrap();
    let mut found = String::new();
    for line in contents.lines().filter(|line| line.contains("](")) {
        let title = line.split_once('[').unwrap().1.split("](").next().unwrap();
        let path = line.split("](").nth(1).unwrap().trim_end_matches(')');
        let page = fs::read_to_string(book().join(path)).unwrap();
        let heading = page.lines().next().unwrap().trim_start_matches("# ");
        // Pages of studies have a short name in the contents, and those of the journal keep their words.
        if heading != title
            && !heading.starts_with(&format!("{title}: "))
            && !path.starts_with("journal/")
            && title != "One knob each"
        {
            writeln!(found, "{path}: {heading:?} is {title:?} in SUMMARY.md").unwrap();
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// A page may name a test or a measurement of the repository as code.
#[test]
fn every_path_that_a_page_names_exists() {
    let mut found = String::new();
    for page in pages_in(&book()) {
        if page.starts_with(book().join("journal")) {
            continue;
        }
        for (number, line) in text_lines(&fs::read_to_string(&page).unwrap()) {
            for span in line.split('`').skip(1).step_by(2) {
                let begins = ["crates/", "tests/", "bench/", "scripts/", "studies/", "charts/", "docs/"];
                let is_path = begins.iter().any(|begin| span.starts_with(begin))
                    && !span.contains(['*', ' ', '<', '…']);
                if is_path && !root().join(span).exists() {
                    writeln!(found, "{}:{number}: there is no {span}", page.display()).unwrap();
                }
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// Paths of pages in a text, such as "docs/how-to/run.md".
fn named_pages(text: &str) -> Vec<&str> {
    let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "/-_.".contains(letter);
    let begins = text.match_indices("docs/").map(|(at, _)| &text[at..]);
    let paths =
        begins.map(|rest| rest.split(|letter| !is_of_path(letter)).next().unwrap().trim_end_matches('.'));
    paths.filter(|path| path.ends_with(".md")).collect()
}

/// Help texts, messages and comments name pages. One that has moved misleads a reader.
#[test]
fn every_page_that_the_code_names_exists() {
    let mut files: Vec<PathBuf> =
        ["ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|page| root().join(page)).collect();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        files.extend(files_in(&entry.unwrap().path().join("src"), "rs"));
    }
    let (mut found, mut count) = (String::new(), 0);
    for file in files {
        for path in named_pages(&fs::read_to_string(&file).unwrap()) {
            count += 1;
            if !root().join(path).exists() {
                writeln!(found, "{}: there is no {path}", file.display()).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "{found}");
    assert!(count > 20, "only {count} pages are named: are they found?");
}

#[test]
fn the_changelog_and_the_names_of_packages_have_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let newest = changelog.lines().find(|line| line.starts_with("## [") && *line != "## [Unreleased]");
    let newest = newest.expect("a section with a version");
    assert!(
        newest.starts_with(&format!("## [{version}] - 20")),
        "CHANGELOG.md has {newest}, Cargo.toml {version}"
    );

    let page = fs::read_to_string(book().join("how-to/install.md")).unwrap();
    for name in ["whyso_", "whyso-", "whyso:"] {
        for (at, _) in page.match_indices(name) {
            let rest = &page[at + name.len()..];
            let is_package = rest.starts_with(|letter: char| letter.is_ascii_digit());
            assert!(!is_package || rest.starts_with(version), "install.md: {}", rest.lines().next().unwrap());
        }
    }
    assert!(page.contains(&format!("whyso_{version}_amd64.deb")), "install.md does not name the .deb");
}

#[test]
fn what_is_wrong_in_a_made_page_is_found() {
    let page = book().join("how-to/made.md");
    let text = "# One two\n\n## A `b` [c](d.md), e\n\n```\n## No heading\n[no](link.md)\n```\n[x](run.md#nowhere) `[y](z.md)` [z](#one-two)\n";
    assert_eq!(anchors(text), BTreeSet::from(["one-two".to_string(), "a-b-c-e".to_string()]));
    let found: Vec<String> = links(text).into_iter().map(|(_, link)| link).collect();
    assert_eq!(found, ["d.md", "run.md#nowhere", "#one-two"]);
    assert!(wrong(&page, text, "d.md", true).unwrap().contains("nowhere"));
    assert!(wrong(&page, text, "run.md#nowhere", true).unwrap().contains("no heading"));
    assert!(wrong(&page, text, "../../README.md", true).unwrap().contains("out of the book"));
    assert!(wrong(&page, text, "../SUMMARY.md", true).unwrap().contains("no page"));
    assert_eq!(wrong(&page, text, "#one-two", true), None);
    assert_eq!(wrong(&page, text, "run.md", true), None);
    assert_eq!(named_pages("see docs/a/b.md. Or (docs/c.md), docs/studies/"), ["docs/a/b.md", "docs/c.md"]);
}
