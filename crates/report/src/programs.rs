//! The programs of a machine: their CPU time, and the functions that they were found in.

use serde_json::{Value, json};
use whyso_explain::program_functions::{ProgramFunction, ProgramLine};
use whyso_words::{count, number, percent, seconds};

use crate::text::layout::aligned_with_words;
use crate::text::{clean, shortened};

/// Longest name of a function in the terminal, in characters.
const FUNCTION_MAX: usize = 70;

/// What a table of programs is of.
#[derive(Clone, Copy, Debug)]
pub struct ProgramsOf<'a> {
    /// Such as "the level of 16 users".
    pub window: &'a str,
    /// Length of the window.
    pub seconds: f64,
    /// CPUs of the machine; `None` where that is not known.
    pub cpus: Option<f64>,
    /// Whether programs other than the server were sampled.
    pub is_sampled: bool,
    /// Length of the part of the window that has samples of programs.
    pub sampled_s: f64,
    /// Samples of programs that were lost.
    pub lost: u64,
}

/// Returns the program with the most CPU time first, `limit` of them at most, each above its functions.
pub fn programs(of: ProgramsOf<'_>, lines: &[ProgramLine], limit: usize) -> String {
    let on = of.cpus.map(|cpus| format!(", {}", count(cpus as u64, "CPU"))).unwrap_or_default();
    let mut out = format!("{}, {}{on}: CPU time by program\n", of.window, seconds(of.seconds));
    if !of.is_sampled {
        out.push_str(
            "functions were not sampled: --stacks-of all when recording takes stacks of all programs\n",
        );
    }
    if of.is_sampled && of.sampled_s < 0.99 * of.seconds {
        out.push_str(&format!(
            "samples are of the last {}: those of before were removed to keep the recording small\n",
            seconds(of.sampled_s)
        ));
    }
    if of.lost > 0 {
        out.push_str(&format!(
            "{} were lost, so that programs took more than is shown as sampled\n",
            count(of.lost, "sample")
        ));
    }
    let mut rows = vec![["CPUs", "of all", "sampled", "program", "what it is"].map(str::to_string).to_vec()];
    for line in lines.iter().take(limit) {
        let counted = line.counted.as_ref().map(|counted| counted.cpus);
        let sampled = line.sampled.as_ref();
        rows.push(vec![
            counted.map(number).unwrap_or_default(),
            of.cpus.map(|all| percent(line.cpus() / all)).unwrap_or_default(),
            sampled.map(|sampled| number(sampled.cpus)).unwrap_or_default(),
            clean(&line.name),
            line.words().to_string(),
        ]);
        for function in sampled.iter().flat_map(|sampled| &sampled.functions) {
            let empty = String::new;
            rows.push(vec![
                empty(),
                empty(),
                percent(function.share),
                format!("  {}", named(function)),
                empty(),
            ]);
        }
    }
    out.push('\n');
    out.push_str(&aligned_with_words(&rows, &[3, 4]));
    let left = lines.len().saturating_sub(limit);
    if left > 0 {
        out.push_str(&format!("and {left} more: --limit N shows N\n"));
    }
    out
}

/// A function of the kernel's is marked as such.
fn named(function: &ProgramFunction) -> String {
    let name = shortened(&clean(&function.name), FUNCTION_MAX);
    if function.module == "[kernel]" { format!("{name} [kernel]") } else { name }
}

/// Returns the same as one object.
pub fn programs_json(of: ProgramsOf<'_>, lines: &[ProgramLine], limit: usize) -> Value {
    let function = |function: &ProgramFunction| json!({"name": function.name, "module": function.module, "share": function.share});
    let line = |line: &ProgramLine| {
        let counted = line.counted.as_ref();
        let sampled = line.sampled.as_ref();
        json!({
            "name": line.name,
            "what": line.words(),
            "cpus": counted.map(|counted| counted.cpus),
            "disk_bytes_per_s": counted.and_then(|counted| counted.disk_bytes_per_s),
            "resident_bytes": counted.and_then(|counted| counted.resident_bytes),
            "sampled_cpus": sampled.map(|sampled| sampled.cpus),
            "samples": sampled.and_then(|sampled| sampled.samples),
            "functions": sampled.map(|sampled| sampled.functions.iter().map(function).collect::<Vec<_>>()),
        })
    };
    json!({
        "window": of.window,
        "seconds": of.seconds,
        "cpus": of.cpus,
        "is_sampled": of.is_sampled,
        "sampled_seconds": of.sampled_s,
        "lost_samples": of.lost,
        "programs": lines.iter().take(limit).map(line).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_explain::program_functions::{SampledOrigin, SampledProgram, join};
    use whyso_explain::programs::{Program, ProgramKind};

    fn lines() -> Vec<ProgramLine> {
        let counted = |kind, name: &str, cpus| Program {
            kind,
            name: name.to_string(),
            cpus,
            disk_bytes_per_s: Some(5.0),
            resident_bytes: None,
        };
        let function = |name: &str, module: &str, share| ProgramFunction {
            name: name.to_string(),
            module: module.to_string(),
            share,
        };
        let sampled = SampledProgram {
            name: "python3".to_string(),
            origin: SampledOrigin::Process,
            cpus: 0.49,
            samples: Some(245),
            functions: vec![
                function("_PyEval_EvalFrameDefault", "python3.13", 0.75),
                function("clear\u{1b}_page", "[kernel]", 0.25),
            ],
        };
        join(
            vec![counted(ProgramKind::Other, "python3", 0.5), counted(ProgramKind::Rest, "the rest", 0.1)],
            vec![sampled],
        )
    }

    fn of(is_sampled: bool) -> ProgramsOf<'static> {
        ProgramsOf {
            window: "the recording",
            seconds: 10.0,
            cpus: Some(2.0),
            is_sampled,
            sampled_s: 10.0,
            lost: 0,
        }
    }

    #[test]
    fn each_program_stands_above_its_functions() {
        let text = programs(of(true), &lines(), 9);
        let expected = "\
the recording, 10 s, 2 CPUs: CPU time by program

CPUs  of all  sampled  program                     what it is
 0.5    25 %     0.49  python3                     another program
                 75 %    _PyEval_EvalFrameDefault
                 25 %    clear?_page [kernel]
 0.1     5 %           the rest                    the kernel's threads, other PID namespaces, and processes that are too short or use too little
";
        assert_eq!(text, expected);
        let one = programs(of(false), &lines(), 1);
        assert!(one.contains("--stacks-of all") && one.ends_with("and 1 more: --limit N shows N\n"), "{one}");
    }

    #[test]
    fn programs_without_samples_have_no_functions_in_the_object() {
        let object = programs_json(of(true), &lines(), 9);
        assert_eq!(object["programs"][0]["functions"][0]["name"], "_PyEval_EvalFrameDefault");
        assert_eq!(object["programs"][0]["samples"], 245);
        let rest = &object["programs"][1];
        assert!(rest["functions"].is_null() && rest["sampled_cpus"].is_null(), "{rest}");
    }
}
