//! Every number that is read, found by typing.

use whyso_record::data::Kind;
use whyso_record::run::Window;
use whyso_words::amount;

use super::{TabData, over, plain};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};

pub(super) fn listing(shown: &TabData, window: Window) -> Listing {
    let series = shown.history.every_series(window, |key| !key.source.starts_with("pfs_"));
    let lines = series.into_iter().map(|series| {
        let key = &series.key;
        let per = if key.kind == Kind::Counter { "/s" } else { "" };
        Line {
            cells: vec![
                Cell::number(Some(series.value), |value| format!("{}{per}", amount(value, &key.unit))),
                Cell::Text(key.source.clone()),
                Cell::Text(plain(&key.metric)),
                Cell::Text(plain(&key.instance)),
            ],
            executed: None,
            whole: format!("{} {} {} of {}", key.source, key.metric, key.instance, key.host),
        }
    });
    Listing {
        columns: vec![
            Column { title: "value", width: 16 },
            Column { title: "source", width: 18 },
            Column { title: "metric", width: 44 },
            Column { title: "instance", width: REST },
        ],
        lines: lines.collect(),
        sort: Some(2),
        about: format!("counters per second, levels as means, {}; / finds one", over(window)),
        empty: "nothing was read in this window".to_string(),
    }
}
