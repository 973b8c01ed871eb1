//! Answers that the page of `whyso serve` reads as JSON, declared in TypeScript.

use std::path::Path;

use whyso_testing::typescript::Declarations;

use super::notes::LabelsBody;
use super::read::{EventList, LinesHead};
use super::runs::RunList;
use super::studies::StudyList;

#[test]
fn the_page_has_the_types_of_the_answers() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/serve/generated.ts");
    Declarations::default()
        .with::<RunList>()
        .with::<EventList>()
        .with::<LabelsBody>()
        .with::<StudyList>()
        .with::<LinesHead<'static>>()
        .assert_in(&file);
}
