//! What a user's driver hears of what it asked for.

use whyso_wire::{Captured, ColumnType, Prepared};

use crate::connection::session::Sum;
use crate::driver::{Fine, Reply};
use crate::outcome::ErrorCode;

/// What became of the thing asked for before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    Nothing,
    Fine(Sum),
    Error(ErrorCode),
    Prepared(Prepared),
    Connected { lost: Option<ErrorCode> },
    Lost(ErrorCode),
}

impl Heard {
    #[inline]
    pub(crate) fn as_reply<'s>(
        self,
        message: &'s str,
        captured: &'s Captured,
        prepared_columns: &'s [ColumnType],
    ) -> Reply<'s> {
        match self {
            Heard::Nothing => Reply::Nothing,
            Heard::Fine(sum) => Reply::Fine(Fine {
                result_sets: sum.result_sets,
                rows: sum.rows,
                affected_rows: sum.affected_rows,
                captured,
            }),
            Heard::Error(code) => Reply::Error { code, message, captured },
            Heard::Prepared(prepared) => Reply::Prepared {
                statement_id: prepared.statement_id,
                params: prepared.params,
                columns: prepared_columns,
            },
            Heard::Connected { lost } => Reply::Connected { lost },
            Heard::Lost(code) => Reply::Lost { code, message },
        }
    }
}
