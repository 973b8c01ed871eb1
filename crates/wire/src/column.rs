//! Column definitions.

use crate::error::ProtocolError;
use crate::frame::Fields;

/// Flag of a column: its numbers have no sign.
pub const UNSIGNED: u16 = 32;
/// Flag of a column: its numbers are filled with zeros up to their width.
pub const ZEROFILL: u16 = 64;

/// What a column's definition has about its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// `MYSQL_TYPE_…`, as the protocol numbers them.
    pub code: u8,
    pub flags: u16,
    /// Number of the collation; 63 for bytes.
    pub collation: u16,
    /// Greatest width, in bytes.
    pub width: u32,
    /// Digits after the point; 31 where that is up to the value.
    pub decimals: u8,
}

/// Definitions of columns, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    types: Vec<ColumnType>,
    names: Vec<u8>,
    /// Where each name ends in `names`.
    name_ends: Vec<usize>,
}

impl Definitions {
    /// Number of columns.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    pub fn types(&self) -> &[ColumnType] {
        &self.types
    }

    /// Name of the column at this place, as the server sent it; empty where there is none.
    pub fn name(&self, place: usize) -> &[u8] {
        let begin = match place {
            0 => 0,
            after => self.name_ends.get(after - 1).copied().unwrap_or(0),
        };
        let end = self.name_ends.get(place).copied().unwrap_or(begin);
        self.names.get(begin..end).unwrap_or(&[])
    }

    pub(crate) fn clear(&mut self) {
        self.types.clear();
        self.names.clear();
        self.name_ends.clear();
    }

    /// Takes one definition's packet.
    pub(crate) fn push(&mut self, packet: &[u8]) -> Result<(), ProtocolError> {
        let mut fields = Fields::new(packet);
        for field in ["catalog", "schema", "table", "original table"] {
            fields.bytes(field)?;
        }
        let name = fields.bytes("column's name")?;
        fields.bytes("column's original name")?;
        fields.lenenc("length of a definition's rest")?;
        let collation = fields.u16("column's collation")?;
        let width = fields.u32("column's width")?;
        let code = fields.u8("column's type")?;
        let flags = fields.u16("column's flags")?;
        let decimals = fields.u8("column's decimals")?;
        self.types.push(ColumnType { code, flags, collation, width, decimals });
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len());
        Ok(())
    }
}
