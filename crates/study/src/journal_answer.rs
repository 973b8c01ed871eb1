//! The answer of a study as far as it was carried out.

use crate::answer::{Answer, answer};
use crate::{Error, Journal};

/// Returns what a study has found, with the study that tests a limit that it suggests.
///
/// # Errors
/// The study that tests a suggested limit can't be read.
pub fn journal_answer(journal: &Journal) -> Result<Answer, Error> {
    let suggested = journal.suggested()?;
    let mut answer = answer_of(journal);
    let is_done = journal.todo(journal.spec().blocks_least()).is_empty();
    if let (Some(Err(why)), None, true) =
        (journal.stored().suggested(journal.finished_starts()), &suggested, is_done)
    {
        answer.notes.push(format!("No limit of concurrency is suggested: {why}."));
    }
    answer.suggested = suggested.as_ref().map(|journal| Box::new(answer_of(journal)));
    Ok(answer)
}

fn answer_of(journal: &Journal) -> Answer {
    answer(journal.spec(), journal.finished_starts(), journal.notes())
}
