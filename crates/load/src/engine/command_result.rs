//! What a user's driver hears of what it asked for.

use whyso_wire::{ColumnType, PreparedStatement, ResultRows};

use crate::connection::session::Sum;
use crate::driver::{Fine, Reply};
use crate::outcome::ErrorCode;

/// What became of the thing asked for before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommandResult {
    Nothing,
    Fine(Sum),
    Error(ErrorCode),
    Prepared(PreparedStatement),
    Connected { lost: Option<ErrorCode> },
    Lost(ErrorCode),
}

impl CommandResult {
    #[inline]
    pub(crate) fn as_reply<'s>(
        self,
        message: &'s str,
        captured: &'s ResultRows,
        prepared_columns: &'s [ColumnType],
    ) -> Reply<'s> {
        match self {
            CommandResult::Nothing => Reply::Nothing,
            CommandResult::Fine(sum) => Reply::Fine(Fine {
                result_sets: sum.result_sets,
                rows: sum.rows,
                affected_rows: sum.affected_rows,
                captured,
            }),
            CommandResult::Error(code) => Reply::Error { code, message, captured },
            CommandResult::Prepared(prepared) => Reply::Prepared {
                statement_id: prepared.statement_id,
                params: prepared.params,
                columns: prepared_columns,
            },
            CommandResult::Connected { lost } => Reply::Connected { lost },
            CommandResult::Lost(code) => Reply::Lost { code, message },
        }
    }
}
