//! What a transaction remembers while it runs.

use crate::expr::{Scalar, Scope};

/// Values of the variables; each keeps its room for a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    values: Vec<Value>,
    texts: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Null,
    Int(i64),
    Double(f64),
    Text,
}

impl Scope for Variables {
    #[inline]
    fn variable(&self, place: u16) -> Scalar<'_> {
        let place = usize::from(place);
        match self.values.get(place) {
            Some(Value::Int(value)) => Scalar::Int(*value),
            Some(Value::Double(value)) => Scalar::Double(*value),
            Some(Value::Text) => Scalar::Text(&self.texts[place]),
            Some(Value::Null) | None => Scalar::Null,
        }
    }
}

impl Variables {
    /// Makes all of them NULL. `count`: their number.
    pub(crate) fn clear(&mut self, count: usize) {
        self.values.clear();
        self.values.resize(count, Value::Null);
        if self.texts.len() < count {
            self.texts.resize(count, Vec::new());
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, place: usize, value: Scalar<'_>) {
        let Some(held) = self.values.get_mut(place) else { return };
        *held = match value {
            Scalar::Null => Value::Null,
            Scalar::Int(value) => Value::Int(value),
            Scalar::Double(value) => Value::Double(value),
            Scalar::Text(text) => {
                self.texts[place].clear();
                self.texts[place].extend_from_slice(text);
                Value::Text
            }
        };
    }
}
