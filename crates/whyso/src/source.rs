//! `whyso source`: a function's source, line by line, with the time of each.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_profile::{FunctionName, SourceFilter, SourceTimes, functions, source_times};
use whyso_query::SourcePath;
use whyso_report::{AnnotatedSource, SourceText};

use crate::profile::{function_called, print_object, print_text};
use crate::profile_args::SourceArgs;
use crate::profile_data::{METRICS, sample};

pub(crate) fn show_source(args: &SourceArgs) -> Result<ExitCode> {
    let sampled = sample(&args.run, &args.profile, METRICS)?;
    let profile = &sampled.recorded.profile;
    let function = function_called(&functions(profile), &args.function)?;
    let places = sampled.recorded.source_places();
    let of_function = source_times(profile, &places, SourceFilter::Function(&function));
    let files: BTreeSet<&str> = of_function.lines.keys().map(|place| place.file.as_str()).collect();
    if files.is_empty() {
        bail!(without_lines(&function, sampled.about().is_light));
    }
    let texts = texts(&files, &args.source_path)?;
    let sources: Vec<(&str, SourceTimes)> = if args.whole {
        files.iter().map(|file| (*file, source_times(profile, &places, SourceFilter::File(file)))).collect()
    } else {
        vec![(function.name.as_str(), of_function.clone())]
    };
    if args.json {
        let to_json = |(name, times): &(&str, SourceTimes)| {
            let of = AnnotatedSource { name, times, texts: &texts, whole: args.whole };
            whyso_report::annotated_json(sampled.about(), profile, of)
        };
        return print_object(
            "source",
            &serde_json::json!({"sources": sources.iter().map(to_json).collect::<Vec<_>>()}),
        );
    }
    let mut out = String::new();
    for (name, times) in &sources {
        let of = AnnotatedSource { name, times, texts: &texts, whole: args.whole };
        out.push_str(&whyso_report::annotated(sampled.about(), profile, of));
    }
    let missing: Vec<&str> = files.into_iter().filter(|file| !texts.contains_key(*file)).collect();
    if !missing.is_empty() {
        out.push_str("\nsay with --source-path OLD=NEW, or --source-path DIR, where the sources are\n");
    }
    print_text(&out)
}

fn texts(files: &BTreeSet<&str>, paths: &[SourcePath]) -> Result<BTreeMap<String, SourceText>> {
    let mut texts = BTreeMap::new();
    for file in files {
        if let Some(found) = whyso_query::source_file(file, paths)? {
            let text = SourceText { path: found.path.display().to_string(), lines: found.lines };
            texts.insert(file.to_string(), text);
        }
    }
    Ok(texts)
}

fn without_lines(function: &FunctionName, is_light: bool) -> Error {
    let FunctionName { name, module } = function;
    if is_light {
        return Error::Failed(format!(
            "the lines of '{name}' are not known: light sampling names functions by symbols only; record the run with --stacks"
        ));
    }
    let module = if module.is_empty() { "what it is of" } else { module };
    Error::Failed(format!(
        "the lines of '{name}' are not known: {module} has no line tables; install its debug symbols (Debian: the package's -dbgsym), or \
         build it with -g, and record it again"
    ))
}
