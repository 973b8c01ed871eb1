//! What the page gets as JSON, declared in TypeScript.

use std::path::{Path, PathBuf};

use whyso_testing::typescript::Declarations;

use crate::flame::SourceTexts;
use crate::payload::{Head, NowHead};
use crate::pfs::PfsLines;
use crate::study::StudyHead;

fn page(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src").join(file)
}

#[test]
fn the_page_has_the_types_of_its_head_and_blocks() {
    Declarations::default()
        .with::<Head<'static>>()
        .with::<NowHead<'static>>()
        .with::<SourceTexts>()
        .with::<PfsLines>()
        .assert_in(&page("data/generated.ts"));
}

#[test]
fn the_page_of_a_study_has_the_types_of_its_head() {
    Declarations::default().with::<StudyHead<'static>>().assert_in(&page("study/generated.ts"));
}
