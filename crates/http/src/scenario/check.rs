//! From a scenario's file to a [`Scenario`].

use std::collections::BTreeMap;
use std::time::Duration;

use super::file::{File, PageText, ValueText};
use super::template::{Template, is_name};
use super::{Body, Expect, Page, Part, Scenario, ScenarioError, Take, Think, USER, ValueSource};
use crate::request::{Method, write_headers};

const FILE_BYTES_MAX: usize = 1024 * 1024;
const PAGES_MAX: usize = 256;
const VALUES_MAX: usize = 256;
const LIST_MAX: usize = 10_000;
const FIELDS_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 64 * 1024;
const TAKE_BYTES_MAX: usize = 4096;
const NAME_MAX: usize = 64;
const REDIRECTS: u32 = 5;
const REDIRECTS_MAX: u32 = 20;
const WEIGHT_MAX: f64 = 1e6;
const GOAL_MS_MAX: f64 = 3.6e6;
const TIME_MAX: Duration = Duration::from_secs(3600);
/// How far probabilities may be from 1 together: they are written with few digits.
const SUM_OFF_MAX: f64 = 0.001;

/// Headers that the load writes itself.
const OWN_HEADERS: [&str; 7] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "cookie",
    "accept-encoding",
];

pub(super) fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(ScenarioError::TooLong { bytes_max: FILE_BYTES_MAX });
    }
    let file: File = toml::from_str(text)
        .map_err(|error| ScenarioError::Toml { message: error.to_string().trim_end().to_string() })?;
    if file.page.is_empty() {
        return Err(ScenarioError::NoPage);
    }
    bound("the file", "pages", file.page.len(), PAGES_MAX)?;
    let names = page_names(&file.page)?;
    let (value_names, value_sources) = values(&file)?;
    let begin = match &file.begin {
        Some(begin) => Some(page_place(&names, "begin", begin)?),
        None => None,
    };
    let redirects_max = file.redirects.unwrap_or(REDIRECTS);
    if redirects_max > REDIRECTS_MAX {
        return Err(ScenarioError::Redirects { count: redirects_max });
    }
    let mut headers = own_headers(file.compressed.unwrap_or(true));
    headers.extend_from_slice(&header_lines("headers", &file.headers)?);
    let mut pages = Vec::new();
    for text in &file.page {
        pages.push(page(text, &file, &names, &value_names)?);
    }
    let is_drawn = begin.is_none() || pages.iter().any(|page| page.next.is_empty());
    if is_drawn && pages.iter().all(|page| page.weight == 0.0) {
        return Err(ScenarioError::NoWeight);
    }
    let name = name.to_string();
    Ok(Scenario { name, pages, begin, redirects_max, headers, value_names, value_sources })
}

pub(super) fn of_path(name: &str, path: &str) -> Scenario {
    let page = Page {
        name: "page".to_string(),
        method: Method::Get,
        path: Template { parts: vec![Part::Text(path.as_bytes().to_vec())] },
        headers: Vec::new(),
        body: None,
        weight: 1.0,
        next: Vec::new(),
        think: None,
        cycle: None,
        goal_ms: None,
        expect: Expect::Good,
        takes: Vec::new(),
    };
    Scenario {
        name: name.to_string(),
        pages: vec![page],
        begin: None,
        redirects_max: REDIRECTS,
        headers: own_headers(true),
        value_names: Vec::new(),
        value_sources: Vec::new(),
    }
}

fn own_headers(accepts_compressed: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    write_headers(&mut lines, [("User-Agent", "whyso"), ("Accept", "*/*")]);
    if accepts_compressed {
        write_headers(&mut lines, [("Accept-Encoding", "gzip, deflate")]);
    }
    lines
}

fn bound(place: &str, what: &'static str, count: usize, most: usize) -> Result<(), ScenarioError> {
    if count > most {
        return Err(ScenarioError::TooMany { place: place.to_string(), what, most });
    }
    Ok(())
}

fn page_names(pages: &[PageText]) -> Result<Vec<String>, ScenarioError> {
    let mut names: Vec<String> = Vec::new();
    for page in pages {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let name = &page.name;
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_letter) {
            return Err(ScenarioError::Name { place: "a page".to_string(), name: name.clone() });
        }
        if names.contains(name) {
            return Err(ScenarioError::SamePage { name: name.clone() });
        }
        names.push(name.clone());
    }
    Ok(names)
}

fn page_place(names: &[String], place: &str, name: &str) -> Result<usize, ScenarioError> {
    let found = names.iter().position(|known| known == name);
    found.ok_or_else(|| ScenarioError::UnknownPage { place: place.to_string(), name: name.to_string() })
}

/// Names and sources of values: the user's number, those of the file, and those that pages take.
fn values(file: &File) -> Result<(Vec<String>, Vec<ValueSource>), ScenarioError> {
    let (mut names, mut sources) = (vec![USER.to_string()], vec![ValueSource::User]);
    for (name, value) in &file.values {
        check_value_name("[values]", name)?;
        if names.contains(name) {
            return Err(ScenarioError::SameValue { name: name.clone() });
        }
        let source = match value {
            ValueText::List(list) => {
                bound(name, "texts", list.len(), LIST_MAX)?;
                ValueSource::List(list.clone())
            }
            ValueText::Range(range) => ValueSource::Range { from: range.from, to: range.to },
        };
        let is_empty = match &source {
            ValueSource::List(list) => list.is_empty(),
            ValueSource::Range { from, to } => from > to,
            _ => false,
        };
        if is_empty {
            return Err(ScenarioError::EmptyValue { name: name.clone() });
        }
        names.push(name.clone());
        sources.push(source);
    }
    for take in file.page.iter().flat_map(|page| &page.take) {
        check_value_name("take", &take.name)?;
        let is_other = |place: usize| sources[place] != ValueSource::Answer;
        match names.iter().position(|known| *known == take.name) {
            Some(place) if is_other(place) => {
                return Err(ScenarioError::SameValue { name: take.name.clone() });
            }
            Some(_) => {}
            None => {
                names.push(take.name.clone());
                sources.push(ValueSource::Answer);
            }
        }
    }
    bound("the file", "values", names.len(), VALUES_MAX)?;
    Ok((names, sources))
}

fn check_value_name(place: &str, name: &str) -> Result<(), ScenarioError> {
    if is_name(name) && name.len() <= NAME_MAX {
        return Ok(());
    }
    Err(ScenarioError::Name { place: place.to_string(), name: name.to_string() })
}

fn page(
    text: &PageText,
    file: &File,
    names: &[String],
    value_names: &[String],
) -> Result<Page, ScenarioError> {
    let place = format!("page '{}'", text.name);
    let template = |text: &str| {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ScenarioError::TooLong { bytes_max: TEXT_BYTES_MAX });
        }
        Template::parse(text, &place, value_names)
    };
    if !text.path.starts_with('/') || text.path.bytes().any(|byte| byte <= b' ' || byte >= 0x7f) {
        return Err(ScenarioError::Path { place, text: text.path.clone() });
    }
    let path = template(&text.path)?;
    let body = body(text, &place, &template)?;
    let method = match &text.method {
        Some(name) => {
            name.parse().map_err(|()| ScenarioError::Method { place: place.clone(), text: name.clone() })?
        }
        None if body.is_some() => Method::Post,
        None => Method::Get,
    };
    if body.is_some() && method.is_safe() {
        let problem = "GET and HEAD send no body: give another method, or leave out form and body";
        return Err(ScenarioError::Body { place, problem });
    }
    let weight = text.weight.unwrap_or(1.0);
    if !(0.0..=WEIGHT_MAX).contains(&weight) {
        return Err(ScenarioError::Weight { place, weight: weight.to_string() });
    }
    if let Some(goal) = text.goal_ms.filter(|goal| !(*goal > 0.0 && *goal <= GOAL_MS_MAX)) {
        return Err(ScenarioError::Goal { place, goal: goal.to_string() });
    }
    let expect = match text.expect {
        None => Expect::Good,
        Some(status @ 200..=599) => Expect::Status(status),
        Some(status) => return Err(ScenarioError::Expect { place, status }),
    };
    let cycle = text.cycle.as_ref().or(file.cycle.as_ref());
    Ok(Page {
        name: text.name.clone(),
        method,
        path,
        headers: header_lines(&place, &text.headers)?,
        body,
        weight,
        next: next(text, &place, names)?,
        think: text
            .think
            .as_ref()
            .or(file.think.as_ref())
            .map(|think| parse_think(think, &place))
            .transpose()?,
        cycle: cycle.map(|text| parse_time(text, &place)).transpose()?,
        goal_ms: text.goal_ms,
        expect,
        takes: takes(text, &place, method, value_names)?,
    })
}

fn body(
    text: &PageText,
    place: &str,
    template: &dyn Fn(&str) -> Result<Template, ScenarioError>,
) -> Result<Option<Body>, ScenarioError> {
    let wrong = |problem| Err(ScenarioError::Body { place: place.to_string(), problem });
    match (&text.form, &text.body, &text.content_type) {
        (Some(_), Some(_), _) => wrong("form and body are two bodies: give one of them"),
        (_, None, Some(_)) => wrong("content_type is for a body: give body too, or leave it out"),
        (Some(form), None, None) => {
            bound(place, "fields of a form", form.len(), FIELDS_MAX)?;
            let mut fields = Vec::new();
            for (name, value) in form {
                fields.push((name.clone(), template(value)?));
            }
            Ok(Some(Body::Form(fields)))
        }
        (None, Some(body), content_type) => {
            let content_type = content_type.as_deref().unwrap_or("text/plain");
            if !content_type.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
                return wrong("content_type has a character that no header may have");
            }
            Ok(Some(Body::Text { content_type: content_type.to_string(), text: template(body)? }))
        }
        (None, None, None) => Ok(None),
    }
}

fn next(text: &PageText, place: &str, names: &[String]) -> Result<Vec<(usize, f64)>, ScenarioError> {
    let Some(next) = &text.next else { return Ok(Vec::new()) };
    let mut places = Vec::new();
    for (name, probability) in next {
        places.push((page_place(names, place, name)?, *probability));
    }
    let sum: f64 = next.values().sum();
    let is_fine = next.values().all(|probability| (0.0..=1.0).contains(probability));
    if !is_fine || (sum - 1.0).abs() > SUM_OFF_MAX {
        return Err(ScenarioError::Next { place: place.to_string(), sum: sum.to_string() });
    }
    Ok(places)
}

fn takes(
    text: &PageText,
    place: &str,
    method: Method,
    value_names: &[String],
) -> Result<Vec<Take>, ScenarioError> {
    bound(place, "values to take", text.take.len(), FIELDS_MAX)?;
    let mut takes = Vec::new();
    for take in &text.take {
        let is_long = take.after.len().max(take.before.len()) > TAKE_BYTES_MAX;
        if take.after.is_empty() || is_long || method == Method::Head {
            return Err(ScenarioError::Take { place: place.to_string() });
        }
        let value = value_names.iter().position(|name| *name == take.name).unwrap_or_default();
        let (after, before) = (take.after.clone().into_bytes(), take.before.clone().into_bytes());
        takes.push(Take { value, after, before });
    }
    Ok(takes)
}

fn header_lines(place: &str, headers: &BTreeMap<String, String>) -> Result<Vec<u8>, ScenarioError> {
    bound(place, "headers", headers.len(), FIELDS_MAX)?;
    for (name, value) in headers {
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let problem = if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_name_byte) {
            "has a name of other than letters, digits, - and _, or of more than 64"
        } else if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            "is one that the load writes itself: leave it out"
        } else if !value.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || value.len() > TAKE_BYTES_MAX {
            "has a value with a character that no header may have, or of more than 4096 bytes"
        } else {
            continue;
        };
        return Err(ScenarioError::Header { place: place.to_string(), name: name.clone(), problem });
    }
    let mut lines = Vec::new();
    write_headers(&mut lines, headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    Ok(lines)
}

/// As `--think` has it: the same pause each time, or `exp:` and the mean of pauses that vary.
fn parse_think(text: &str, place: &str) -> Result<Think, ScenarioError> {
    match text.trim().strip_prefix("exp:") {
        Some(mean) => Ok(Think::Exponential(parse_time(mean, place)?)),
        None => Ok(Think::Fixed(parse_time(text, place)?)),
    }
}

/// A number with `ms`, `s` or `m`; a bare one is seconds.
fn parse_time(text: &str, place: &str) -> Result<Duration, ScenarioError> {
    let trimmed = text.trim();
    let (number, unit_s) = match trimmed {
        _ if trimmed.ends_with("ms") => (&trimmed[..trimmed.len() - 2], 0.001),
        _ if trimmed.ends_with('s') => (&trimmed[..trimmed.len() - 1], 1.0),
        _ if trimmed.ends_with('m') => (&trimmed[..trimmed.len() - 1], 60.0),
        _ => (trimmed, 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * unit_s);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || ScenarioError::Time { place: place.to_string(), text: text.to_string() };
    time.filter(|time| *time <= TIME_MAX).ok_or_else(wrong)
}
