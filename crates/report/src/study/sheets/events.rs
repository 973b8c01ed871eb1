//! What the Performance Schema counted: most of all, and by the instances of a lock.

use whyso_study::Answer;
use whyso_words::{number, percent, users, whole};

use super::{Row, Sheet};
use crate::text::dash;

pub(super) fn evenness(answer: &Answer) -> Sheet {
    let row = |evenness: &whyso_study::Evenness| {
        let even = &evenness.even;
        Row {
            cells: vec![
                whole(u64::from(even.users)),
                even.lock.clone(),
                evenness.name.clone(),
                whole(even.instances as u64),
                number(even.per_s),
                even.ms_per_s.map_or_else(dash, number),
                percent(even.busiest_percent / 100.0),
                number(even.even),
            ],
            muted: false,
        }
    };
    Sheet {
        title: "Instances of locks, means over the starts".to_string(),
        head: [
            "users",
            "lock",
            "cell",
            "instances used",
            "waits/s",
            "ms waited/s",
            "busiest one's part",
            "evenness",
        ]
        .map(str::to_string)
        .to_vec(),
        words: vec![1, 2],
        rows: answer.evenness.iter().map(row).collect(),
        note: "Evenness is 1 where all instances are used alike, and 1/instances where one has everything."
            .to_string(),
    }
}

pub(super) fn most(answer: &Answer, top: &whyso_study::Top) -> Sheet {
    let row = |line: &whyso_study::TopLine| Row {
        cells: vec![
            line.name.clone(),
            number(line.per_s),
            line.per_statement.map_or_else(dash, number),
            line.ms_per_s.map_or_else(dash, number),
        ],
        muted: false,
    };
    let cell = answer.tops.as_ref().map_or("", |tops| tops.name.as_str());
    Sheet {
        title: format!("Most {} by {}: {cell}, {}", top.view, top.by, users(top.users)),
        head: ["event", "count/s", "count/statement", "ms/s"].map(str::to_string).to_vec(),
        words: vec![0],
        rows: top.lines.iter().map(row).collect(),
        note: String::new(),
    }
}
