//! Expressions over a transaction's variables, as the SQL files' directives write them.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::distribution::{Distribution, Sampler};
use crate::rng::Rng;
// In a circle with workload.rs: an expression reads variables, and a variable has its value from an expression.
use crate::workload::Variable;

/// A number, a text or a truth value, worked out when a transaction comes to it. NULL in, NULL out; a condition that is
/// NULL does not hold. Truth values are 0 and 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    Null,
    Int(i64),
    Double(f64),
    Text(String),
    /// Place in [`Workload::variables`](crate::Workload::variables).
    Variable(u16),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    IsNull(Box<Expr>),
    Binary {
        operator: Operator,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Call {
        function: Function,
        arguments: Vec<Expr>,
    },
    /// A whole number from `low` to `high`, both included; the distribution's row 1 is `low`.
    Random {
        distribution: Distribution,
        low: Box<Expr>,
        high: Box<Expr>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    /// Of two whole numbers a whole one, cut towards 0; by 0: NULL.
    Divide,
    /// By 0: NULL.
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    Abs,
    Least,
    Greatest,
    /// To a whole number, cut towards 0.
    Int,
    Double,
}

/// What a statement's parameter is sent as. It is the same each time, so that types are sent to the server once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// Signed, of eight bytes.
    Int,
    Double,
    Text,
}

impl ValueType {
    /// The type that holds values of both.
    pub fn join(self, other: ValueType) -> ValueType {
        match (self, other) {
            (ValueType::Text, _) | (_, ValueType::Text) => ValueType::Text,
            (ValueType::Double, _) | (_, ValueType::Double) => ValueType::Double,
            _ => ValueType::Int,
        }
    }
}

/// The value of an expression, or of a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    Null,
    Int(i64),
    Double(f64),
    Text(&'a [u8]),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvalError {
    #[error("a whole number went past 64 bits")]
    Overflow,
    #[error("'{0}' is no number")]
    NotANumber(String),
    #[error("the range from {low} to {high} is empty")]
    EmptyRange { low: i64, high: i64 },
}

/// The variables of a transaction under way.
pub(crate) trait Scope {
    fn variable(&self, place: u16) -> Scalar<'_>;
}

impl Expr {
    /// Works it out; draws from `rng` where it is random.
    pub(crate) fn eval<'a>(&'a self, scope: &'a impl Scope, rng: &mut Rng) -> Result<Scalar<'a>, EvalError> {
        Ok(match self {
            Expr::Null => Scalar::Null,
            Expr::Int(value) => Scalar::Int(*value),
            Expr::Double(value) => Scalar::Double(*value),
            Expr::Text(text) => Scalar::Text(text.as_bytes()),
            Expr::Variable(place) => scope.variable(*place),
            Expr::IsNull(inner) => truth(inner.eval(scope, rng)? == Scalar::Null),
            Expr::Not(inner) => match inner.eval(scope, rng)? {
                Scalar::Null => Scalar::Null,
                value => truth(!value.holds()),
            },
            Expr::Negate(inner) => match inner.eval(scope, rng)?.number()? {
                Scalar::Int(value) => Scalar::Int(value.checked_neg().ok_or(EvalError::Overflow)?),
                Scalar::Double(value) => Scalar::Double(-value),
                other => other,
            },
            Expr::Binary { operator: operator @ (Operator::Or | Operator::And), left, right } => {
                // The side that decides alone spares the other one, its draws included.
                let decisive = *operator == Operator::Or;
                let left = left.eval(scope, rng)?;
                if left != Scalar::Null && left.holds() == decisive {
                    return Ok(truth(decisive));
                }
                let right = right.eval(scope, rng)?;
                match (left, right) {
                    (_, right) if right != Scalar::Null && right.holds() == decisive => truth(decisive),
                    (Scalar::Null, _) | (_, Scalar::Null) => Scalar::Null,
                    _ => truth(!decisive),
                }
            }
            Expr::Binary { operator, left, right } => {
                let (left, right) = (left.eval(scope, rng)?, right.eval(scope, rng)?);
                binary(*operator, left, right)?
            }
            Expr::Call { function, arguments } => {
                let mut values = arguments.iter();
                let Some(first) = values.next() else { return Ok(Scalar::Null) };
                let mut result = first.eval(scope, rng)?.number()?;
                if let Some(converted) = function.of_one(result)? {
                    return Ok(converted);
                }
                for argument in values {
                    let other = argument.eval(scope, rng)?.number()?;
                    let operator =
                        if *function == Function::Least { Operator::Less } else { Operator::Greater };
                    match binary(operator, other, result)? {
                        Scalar::Null => return Ok(Scalar::Null),
                        is_better if is_better.holds() => result = other,
                        _ => {}
                    }
                }
                result
            }
            Expr::Random { distribution, low, high } => {
                let bounds = (low.eval(scope, rng)?.number()?, high.eval(scope, rng)?.number()?);
                let (Some(low), Some(high)) = (bounds.0.whole(), bounds.1.whole()) else {
                    return Ok(Scalar::Null);
                };
                let Some(count) = count_of_range(low, high) else {
                    return Err(EvalError::EmptyRange { low, high });
                };
                let row = Sampler::new(*distribution, count).sample(rng);
                Scalar::Int(low.wrapping_add_unsigned(row - 1))
            }
        })
    }

    /// What its value is sent as, given the types of the variables.
    pub(crate) fn value_type(&self, variables: &[Variable]) -> ValueType {
        match self {
            Expr::Double(_) => ValueType::Double,
            Expr::Text(_) => ValueType::Text,
            Expr::Variable(place) => {
                variables.get(usize::from(*place)).map_or(ValueType::Text, |variable| variable.value_type)
            }
            Expr::Negate(inner) => inner.number_type(variables),
            Expr::Binary {
                operator:
                    Operator::Add
                    | Operator::Subtract
                    | Operator::Multiply
                    | Operator::Divide
                    | Operator::Remainder,
                left,
                right,
            } => left.number_type(variables).join(right.number_type(variables)),
            Expr::Call { function: Function::Double, .. } => ValueType::Double,
            Expr::Call { function: Function::Abs | Function::Least | Function::Greatest, arguments } => {
                arguments
                    .iter()
                    .map(|argument| argument.number_type(variables))
                    .fold(ValueType::Int, ValueType::join)
            }
            _ => ValueType::Int,
        }
    }

    /// As an operand of arithmetic: a text there is read as a number, which may have a fraction.
    fn number_type(&self, variables: &[Variable]) -> ValueType {
        match self.value_type(variables) {
            ValueType::Text => ValueType::Double,
            other => other,
        }
    }

    /// As text for people, with the variables' names.
    pub(crate) fn show(&self, variables: &[Variable]) -> String {
        match self {
            Expr::Null => "null".to_string(),
            Expr::Int(value) => value.to_string(),
            Expr::Double(value) => value.to_string(),
            Expr::Text(text) => format!("'{text}'"),
            Expr::Variable(place) => variables
                .get(usize::from(*place))
                .map_or_else(|| ":?".to_string(), |v| format!(":{}", v.name)),
            Expr::Not(inner) => format!("not {}", inner.show(variables)),
            Expr::Negate(inner) => format!("-{}", inner.show(variables)),
            Expr::IsNull(inner) => format!("{} is null", inner.show(variables)),
            Expr::Binary { operator, left, right } => {
                format!("({} {} {})", left.show(variables), operator.sign(), right.show(variables))
            }
            Expr::Call { function, arguments } => {
                let arguments: Vec<String> =
                    arguments.iter().map(|argument| argument.show(variables)).collect();
                format!("{}({})", function.name(), arguments.join(", "))
            }
            Expr::Random { distribution, low, high } => {
                let mut text = format!("{} to {}", low.show(variables), high.show(variables));
                let _ = write!(text, ", {distribution}");
                text
            }
        }
    }
}

impl Operator {
    fn sign(self) -> &'static str {
        match self {
            Operator::Or => "or",
            Operator::And => "and",
            Operator::Equal => "=",
            Operator::NotEqual => "<>",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
        }
    }
}

impl Function {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Function::Abs => "abs",
            Function::Least => "least",
            Function::Greatest => "greatest",
            Function::Int => "int",
            Function::Double => "double",
        }
    }

    /// The result of a function that takes one value; `None` for those that take several.
    fn of_one(self, value: Scalar<'_>) -> Result<Option<Scalar<'static>>, EvalError> {
        Ok(match (self, value) {
            (Function::Least | Function::Greatest, _) => None,
            (Function::Abs, Scalar::Int(value)) => {
                Some(Scalar::Int(value.checked_abs().ok_or(EvalError::Overflow)?))
            }
            (Function::Abs, Scalar::Double(value)) => Some(Scalar::Double(value.abs())),
            (Function::Int, value) => Some(value.whole().map_or(Scalar::Null, Scalar::Int)),
            (Function::Double, Scalar::Int(value)) => Some(Scalar::Double(value as f64)),
            (Function::Double, Scalar::Double(value)) => Some(Scalar::Double(value)),
            (Function::Abs | Function::Double, _) => Some(Scalar::Null),
        })
    }
}

impl<'a> Scalar<'a> {
    /// Whether it counts as true: a number other than 0, or a text of one.
    pub(crate) fn holds(self) -> bool {
        match self.number() {
            Ok(Scalar::Int(value)) => value != 0,
            Ok(Scalar::Double(value)) => value != 0.0,
            _ => false,
        }
    }

    /// The same as a number; a text is read as one.
    fn number(self) -> Result<Scalar<'a>, EvalError> {
        let Scalar::Text(bytes) = self else { return Ok(self) };
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
        if let Ok(value) = text.parse::<i64>() {
            return Ok(Scalar::Int(value));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Scalar::Double(value)),
            _ => Err(EvalError::NotANumber(String::from_utf8_lossy(bytes).into_owned())),
        }
    }

    /// The whole number that it is, cut towards 0; `None` for NULL and for texts.
    pub(crate) fn whole(self) -> Option<i64> {
        match self {
            Scalar::Int(value) => Some(value),
            Scalar::Double(value) => Some(value as i64),
            Scalar::Null | Scalar::Text(_) => None,
        }
    }

    /// Its value as a double; `None` for NULL and for texts that are no number.
    pub(crate) fn double(self) -> Option<f64> {
        match self.number() {
            Ok(Scalar::Int(value)) => Some(value as f64),
            Ok(Scalar::Double(value)) => Some(value),
            _ => None,
        }
    }
}

/// How many whole numbers there are from `low` to `high`; `None` where there is none.
pub(crate) fn count_of_range(low: i64, high: i64) -> Option<u64> {
    if low > high {
        return None;
    }
    Some(high.abs_diff(low).saturating_add(1))
}

fn truth(holds: bool) -> Scalar<'static> {
    Scalar::Int(i64::from(holds))
}

fn binary<'a>(operator: Operator, left: Scalar<'a>, right: Scalar<'a>) -> Result<Scalar<'a>, EvalError> {
    if let (Scalar::Text(left), Scalar::Text(right)) = (left, right)
        && let Some(holds) = compare(operator, left.cmp(right))
    {
        return Ok(truth(holds));
    }
    let (left, right) = (left.number()?, right.number()?);
    if let (Scalar::Int(left), Scalar::Int(right)) = (left, right) {
        return whole_numbers(operator, left, right);
    }
    let (Some(left), Some(right)) = (left.double(), right.double()) else { return Ok(Scalar::Null) };
    if let Some(holds) = left.partial_cmp(&right).and_then(|order| compare(operator, order)) {
        return Ok(truth(holds));
    }
    Ok(match operator {
        Operator::Add => Scalar::Double(left + right),
        Operator::Subtract => Scalar::Double(left - right),
        Operator::Multiply => Scalar::Double(left * right),
        Operator::Divide if right != 0.0 => Scalar::Double(left / right),
        Operator::Remainder if right != 0.0 => Scalar::Double(left % right),
        _ => Scalar::Null,
    })
}

fn whole_numbers(operator: Operator, left: i64, right: i64) -> Result<Scalar<'static>, EvalError> {
    if let Some(holds) = compare(operator, left.cmp(&right)) {
        return Ok(truth(holds));
    }
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        _ if right == 0 => return Ok(Scalar::Null),
        Operator::Divide => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    result.map(Scalar::Int).ok_or(EvalError::Overflow)
}

/// `None` where the operator compares nothing.
fn compare(operator: Operator, order: std::cmp::Ordering) -> Option<bool> {
    Some(match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        _ => return None,
    })
}
