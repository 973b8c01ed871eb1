//! `run.json`, changed where its structure is, under all that is made of it.

use serde_json::Value;

use super::change::{damage, fit_manifest};
use super::{folders, json, read};
use crate::choices::Choices;
use crate::corpus::{RUN, WHOLE};

const CHANGES_MAX: usize = 8;

/// Whatever its `run.json` contains, a run is explained and drawn, or refused.
pub fn run_json(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut files = WHOLE.clone();
    let Some(run) = files.iter_mut().find(|(name, _)| name == RUN) else { return };
    let as_text = choices.once_in(16);
    let mut value: Value = serde_json::from_slice(&run.1).expect("the kept run.json");
    for _ in 0..=choices.below(CHANGES_MAX) {
        json::change(&mut choices, &mut value);
    }
    run.1 = serde_json::to_vec(&value).expect("JSON");
    if as_text {
        damage(&mut choices, &mut run.1);
    }
    fit_manifest(&mut files);
    let folder = folders::temporary();
    read::everything(&folders::write(folder.path(), "run", &files));
}
