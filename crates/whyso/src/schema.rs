//! `whyso schema`: what the objects that `--json` prints hold, as JSON schemas.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::Error;

macro_rules! schemas {
    ($($name:literal: $about:literal),* $(,)?) => {
        /// Name, what prints it, text.
        const SCHEMAS: &[(&str, &str, &str)] =
            &[$(($name, $about, include_str!(concat!("../schemas/", $name, ".json")))),*];
    };
}

schemas! {
    "run": "whyso run, whyso record, whyso report --format json",
    "load": "whyso load",
    "ab": "whyso ab",
    "bisect": "whyso bisect",
    "prove": "whyso prove",
    "prove-plan": "whyso prove --dry-run",
    "why": "whyso why",
    "locks": "whyso locks",
    "locks-now": "whyso locks --dsn",
    "statements": "whyso statements",
    "commands": "whyso statements --log",
    "threads": "whyso threads",
    "programs": "whyso programs",
    "access-log": "whyso access-log",
    "timeline": "whyso timeline",
    "stacks": "whyso stacks",
    "functions": "whyso functions",
    "function-differences": "whyso functions --against",
    "relatives": "whyso callers, whyso callees",
    "classes": "whyso classes",
    "wakers": "whyso wakers",
    "source": "whyso source",
    "pfs": "whyso pfs",
    "pfs-differences": "whyso pfs --against",
    "pfs-evenness": "whyso pfs RUN lock-instances",
    "pfs-timers": "whyso pfs RUN timers",
    "compare": "whyso compare",
    "history": "whyso history",
    "study": "whyso study show --json",
    "runs": "whyso runs",
    "runs-remove": "whyso runs rm",
    "runs-prune": "whyso runs prune",
    "runs-label": "whyso runs label",
    "runs-notes": "whyso runs notes",
    "runs-check": "whyso runs check",
    "runs-backup": "whyso runs backup",
    "runs-import": "whyso runs import",
    "runs-push": "whyso runs push",
    "runs-pull": "whyso runs pull",
    "runs-catalogue": "whyso runs catalogue",
    "builds": "whyso server list",
    "build": "whyso server show",
    "clusters": "whyso server cluster list",
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The schema: the value of the key "schema" of an object that was printed [default: list them]
    name: Option<String>,
}

pub(crate) fn schema(args: &SchemaArgs) -> Result<ExitCode> {
    let mut out = crate::out::stdout();
    let Some(name) = &args.name else {
        for (name, about, _) in SCHEMAS {
            writeln!(out, "{name:22} {about}")?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some((_, _, text)) = SCHEMAS.iter().find(|(known, ..)| known == name) else {
        bail!(Error::Plan(format!("there is no schema {name}: `whyso schema` lists them")));
    };
    write!(out, "{text}")?;
    Ok(ExitCode::SUCCESS)
}
