//! Numbers that a study compares and shows, by name: those of servers, and those of a web application.

use whyso_model::measures::{self, Better, Measure};

/// Of a web application, in addition to those of the load.
pub(crate) const OF_APPS: [Measure; 8] = [
    Measure { name: "latency_p90_ms", words: "p90 response, ms", better: Better::Lower },
    Measure { name: "web_workers_busy", words: "web workers busy", better: Better::Neither },
    Measure {
        name: "web_workers_kept",
        words: "web workers kept for a next request",
        better: Better::Neither,
    },
    Measure { name: "connections_held", words: "connections held by Apache", better: Better::Neither },
    Measure {
        name: "connections_waiting",
        words: "connections that wait for a worker",
        better: Better::Lower,
    },
    Measure { name: "time_wait_ports", words: "ports in TIME_WAIT", better: Better::Lower },
    Measure {
        name: "after_answer_ms",
        words: "files and their locks after the answer, ms/request",
        better: Better::Lower,
    },
    Measure { name: "kernel_lock_ms", words: "locks inside the kernel, ms/request", better: Better::Lower },
];
/// Measures that each page of a web application has, too.
const OF_PAGES: [&str; 3] = ["transactions_per_s", "latency_mean_ms", "latency_p90_ms"];

/// Returns a measure's name, and the page that it is of, as in "latency_p90_ms:event".
pub(crate) fn of_page(name: &str) -> (&str, Option<&str>) {
    name.split_once(':').map_or((name, None), |(measure, page)| (measure, Some(page)))
}

/// Returns the measure of this name, also where it is that of one page.
pub fn find_measure(name: &str) -> Option<&'static Measure> {
    let (name, page) = of_page(name);
    let has_pages = page.is_none_or(|page| !page.is_empty() && OF_PAGES.contains(&name));
    let found = OF_APPS.iter().find(|measure| measure.name == name).or_else(|| measures::find(name));
    found.filter(|_| has_pages)
}

/// Returns what a table's head has for a measure; its name where there is no such measure.
pub fn measure_words(name: &str) -> String {
    let words = find_measure(name).map_or(name, |measure| measure.words);
    match of_page(name) {
        (_, Some(page)) => format!("{page}: {words}"),
        _ => words.to_string(),
    }
}

/// All names of measures, without those of single pages.
pub(crate) fn measure_names() -> Vec<&'static str> {
    measures::names().into_iter().chain(OF_APPS.iter().map(|measure| measure.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_some_of_them() {
        assert_eq!(find_measure("latency_p90_ms:event").map(|measure| measure.name), Some("latency_p90_ms"));
        assert_eq!((find_measure("time_wait_ports:event"), find_measure("latency_p90_ms:")), (None, None));
        assert!(OF_PAGES.iter().all(|name| find_measure(name).is_some()));
        assert_eq!(measure_words("latency_mean_ms:event"), "event: mean response, ms");
    }

    #[test]
    fn each_has_a_name_of_its_own() {
        let mut names = measure_names();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
