//! Reads the expressions of directives, as pgbench writes them.

use super::bounds::{DEPTH_MAX, FUNCTIONS};
use super::error::ExpressionError;
use super::lexer::name_at;
use crate::dictionary::Order;
use crate::distribution::{Distribution, NORMAL_PARAMETER_MIN};
use crate::expr::{Expr, Function, Operator};
use crate::suggest::nearest_name;
use crate::workload::Source;

/// What names stand for.
pub(super) trait Names {
    fn variable(&mut self, name: &str) -> Result<u16, ExpressionError>;
    fn dictionary(&mut self, name: &str) -> Result<u16, ExpressionError>;
}

/// The whole text as a value for a variable.
pub(super) fn source(text: &str, names: &mut impl Names) -> Result<Source, ExpressionError> {
    let mut sources = sources(text, names)?;
    match sources.len() {
        1 => Ok(sources.remove(0)),
        _ => Err(ExpressionError::SeveralValues { text: text.to_string() }),
    }
}

/// Values with commas between them.
pub(super) fn sources(text: &str, names: &mut impl Names) -> Result<Vec<Source>, ExpressionError> {
    let mut parser = Parser::new(text, names)?;
    let mut sources = vec![parser.source()?];
    while parser.take(&Token::Sign(",")) {
        sources.push(parser.source()?);
    }
    parser.end()?;
    Ok(sources)
}

/// The whole text as a number or a condition.
pub(super) fn expression(text: &str, names: &mut impl Names) -> Result<Expr, ExpressionError> {
    let mut parser = Parser::new(text, names)?;
    let expr = parser.expr(0)?;
    parser.end()?;
    Ok(expr)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Int(i64),
    Double(f64),
    Text(String),
    Variable(String),
    /// In small letters.
    Word(String),
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 17] =
    ["<>", "!=", "<=", ">=", "==", "(", ")", ",", "+", "-", "*", "/", "%", "=", "<", ">", "!"];

fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() || first == '.' {
            let (token, length) = number(rest)?;
            tokens.push(token);
            length
        } else if first == '\'' {
            let (text, length) = quoted(rest)?;
            tokens.push(Token::Text(text));
            length
        } else if first == ':' {
            let name = name_at(&rest[1..]);
            if name.is_empty() {
                return Err(ExpressionError::NoVariableName);
            }
            tokens.push(Token::Variable(name.to_string()));
            1 + name.len()
        } else if !name_at(rest).is_empty() {
            let word = name_at(rest);
            tokens.push(Token::Word(word.to_ascii_lowercase()));
            word.len()
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            sign.len()
        } else {
            return Err(ExpressionError::UnknownCharacter { character: first, text: text.to_string() });
        };
        rest = rest[length..].trim_start();
    }
    tokens.push(Token::End);
    Ok(tokens)
}

/// The text that a literal stands for, in which a doubled quote is one, and the literal's length.
fn quoted(text: &str) -> Result<(String, usize), ExpressionError> {
    let mut content = String::new();
    let mut length = 1;
    while let Some(end) = text[length..].find('\'') {
        content.push_str(&text[length..length + end]);
        length += end + 1;
        if !text[length..].starts_with('\'') {
            return Ok((content, length));
        }
        content.push('\'');
        length += 1;
    }
    Err(ExpressionError::UnclosedText)
}

fn number(text: &str) -> Result<(Token, usize), ExpressionError> {
    let mut length = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let exponent = &text[length..];
    if exponent.starts_with(['e', 'E']) {
        let sign = usize::from(exponent[1..].starts_with(['+', '-']));
        let digits = &exponent[1 + sign..];
        length += 1 + sign + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    }
    let written = &text[..length];
    if let Ok(value) = written.parse::<i64>() {
        return Ok((Token::Int(value), length));
    }
    match written.parse::<f64>() {
        Ok(value) if value.is_finite() && written.contains(['.', 'e', 'E']) => {
            Ok((Token::Double(value), length))
        }
        _ => Err(ExpressionError::NumberTooLarge { text: written.to_string() }),
    }
}

struct Parser<'n, N> {
    tokens: Vec<Token>,
    next: usize,
    depth: u32,
    names: &'n mut N,
}

impl<'n, N: Names> Parser<'n, N> {
    fn new(text: &str, names: &'n mut N) -> Result<Parser<'n, N>, ExpressionError> {
        Ok(Parser { tokens: tokens(text)?, next: 0, depth: 0, names })
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.next).unwrap_or(&Token::End)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_there = self.peek() == token;
        self.next += usize::from(is_there);
        is_there
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.take(&Token::Word(word.to_string()))
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), ExpressionError> {
        if self.take(&Token::Sign(sign)) {
            return Ok(());
        }
        Err(self.unexpected(&format!("'{sign}'")))
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        ExpressionError::Unexpected { expected: expected.to_string(), found: show(self.peek()) }
    }

    fn end(&self) -> Result<(), ExpressionError> {
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.unexpected("the end of the line")),
        }
    }

    /// A text or a dictionary's value, which stand alone, or an expression.
    fn source(&mut self) -> Result<Source, ExpressionError> {
        let Token::Word(word) = self.peek().clone() else { return self.expr(0).map(Source::Expr) };
        let order = match word.as_str() {
            "random_string" => None,
            "random_from" => Some(Order::Random),
            "next_from" => Some(Order::Sequential),
            "unique_from" => Some(Order::Unique),
            _ => return self.expr(0).map(Source::Expr),
        };
        self.next += 1;
        self.expect("(")?;
        let token = self.peek().clone();
        self.next += 1;
        let source = match (order, token) {
            (None, Token::Text(template)) => Source::Template(template),
            (None, _) => {
                return Err(ExpressionError::NoTemplate);
            }
            (Some(order), Token::Word(name)) => {
                Source::Dictionary { dictionary: self.names.dictionary(&name)?, order }
            }
            (Some(_), _) => return Err(ExpressionError::NoDictionaryName { function: word }),
        };
        self.expect(")")?;
        Ok(source)
    }

    /// Operators that bind at least as strongly as `least`: or 1, and 2, comparisons 4, + and - 5, others 6.
    fn expr(&mut self, least: u8) -> Result<Expr, ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ExpressionError::TooDeep);
        }
        let mut left = self.operand()?;
        loop {
            if least <= 4 && self.take_word("is") {
                let negated = self.take_word("not");
                if !self.take_word("null") {
                    return Err(self.unexpected("null after is"));
                }
                left = Expr::IsNull(Box::new(left));
                if negated {
                    left = Expr::Not(Box::new(left));
                }
                continue;
            }
            let Some((operator, strength)) = operator(self.peek()) else { break };
            if strength < least {
                break;
            }
            self.next += 1;
            let right = self.expr(strength + 1)?;
            left = Expr::Binary { operator, left: Box::new(left), right: Box::new(right) };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expr, ExpressionError> {
        let token = self.peek().clone();
        self.next += 1;
        match token {
            Token::Int(value) => Ok(Expr::Int(value)),
            Token::Double(value) => Ok(Expr::Double(value)),
            Token::Text(text) => Ok(Expr::Text(text)),
            Token::Variable(name) => self.names.variable(&name).map(Expr::Variable),
            Token::Sign("-") => match self.expr(7)? {
                Expr::Int(value) => Ok(Expr::Int(-value)),
                Expr::Double(value) => Ok(Expr::Double(-value)),
                other => Ok(Expr::Negate(Box::new(other))),
            },
            Token::Sign("!") => Ok(Expr::Not(Box::new(self.expr(7)?))),
            Token::Sign("(") => {
                let inner = self.expr(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(word) => match word.as_str() {
                "not" => Ok(Expr::Not(Box::new(self.expr(3)?))),
                "null" => Ok(Expr::Null),
                "true" => Ok(Expr::Int(1)),
                "false" => Ok(Expr::Int(0)),
                _ => self.call(&word),
            },
            other => {
                Err(ExpressionError::Unexpected { expected: "a value".to_string(), found: show(&other) })
            }
        }
    }

    fn call(&mut self, name: &str) -> Result<Expr, ExpressionError> {
        if !FUNCTIONS.contains(&name) {
            let is_call = *self.peek() == Token::Sign("(");
            return Err(if is_call {
                let nearest = nearest_name(name, FUNCTIONS);
                ExpressionError::UnknownFunction { name: name.to_string(), nearest }
            } else {
                ExpressionError::BareWord { word: name.to_string() }
            });
        }
        let mut arguments = Vec::new();
        self.expect("(")?;
        if !self.take(&Token::Sign(")")) {
            arguments.push(self.expr(0)?);
            while self.take(&Token::Sign(",")) {
                arguments.push(self.expr(0)?);
            }
            self.expect(")")?;
        }
        let (function, counts) = match name {
            "abs" => (Function::Abs, 1..=1),
            "int" => (Function::Int, 1..=1),
            "double" => (Function::Double, 1..=1),
            "least" => (Function::Least, 1..=usize::MAX),
            "greatest" => (Function::Greatest, 1..=usize::MAX),
            _ => return random(name, arguments),
        };
        if !counts.contains(&arguments.len()) {
            return Err(ExpressionError::ArgumentCount {
                function: name.to_string(),
                count: arguments.len(),
            });
        }
        Ok(Expr::Call { function, arguments })
    }
}

/// `name(low, high)` or `name(low, high, parameter)`.
fn random(name: &str, arguments: Vec<Expr>) -> Result<Expr, ExpressionError> {
    let (what, lowest, highest, example) = match name {
        "random" => ("", 0.0, 0.0, "random(1, 1000)"),
        "random_zipfian" => ("exponent", 0.0, 1000.0, "random_zipfian(1, 1000, 0.8)"),
        "random_gaussian" => ("parameter", NORMAL_PARAMETER_MIN, 1000.0, "random_gaussian(1, 1000, 2.5)"),
        "random_exponential" => ("parameter", 0.001, 1000.0, "random_exponential(1, 1000, 5)"),
        "random_pareto" => ("h", 0.001, 0.999, "random_pareto(1, 1000, 0.2)"),
        _ => return Err(ExpressionError::NotInExpression { function: name.to_string() }),
    };
    let function = || name.to_string();
    let wrong_form = || ExpressionError::RandomForm { function: function(), example };
    let mut arguments = arguments.into_iter();
    let (Some(low), Some(high), last, None) =
        (arguments.next(), arguments.next(), arguments.next(), arguments.next())
    else {
        return Err(wrong_form());
    };
    if let (Expr::Int(low), Expr::Int(high)) = (&low, &high)
        && low > high
    {
        return Err(ExpressionError::EmptyRange { low: *low, high: *high });
    }
    let parameter = match (what, last) {
        ("", None) => 0.0,
        ("", Some(_)) | (_, None) => return Err(wrong_form()),
        (_, Some(Expr::Int(value))) => value as f64,
        (_, Some(Expr::Double(value))) => value,
        (_, Some(_)) => {
            return Err(ExpressionError::ParameterNotLiteral {
                parameter: what,
                function: function(),
                example,
            });
        }
    };
    if !what.is_empty() && !(lowest..=highest).contains(&parameter) {
        return Err(ExpressionError::ParameterRange {
            parameter: what,
            function: function(),
            lowest,
            highest,
            value: parameter,
        });
    }
    let distribution = match name {
        "random_zipfian" => Distribution::Zipfian { exponent: parameter },
        "random_gaussian" => Distribution::Normal { parameter },
        "random_exponential" => Distribution::Exponential { parameter },
        "random_pareto" => Distribution::Pareto { h: parameter },
        _ => Distribution::Uniform,
    };
    Ok(Expr::Random { distribution, low: Box::new(low), high: Box::new(high) })
}

fn operator(token: &Token) -> Option<(Operator, u8)> {
    Some(match token {
        Token::Word(word) if word == "or" => (Operator::Or, 1),
        Token::Word(word) if word == "and" => (Operator::And, 2),
        Token::Sign("=" | "==") => (Operator::Equal, 4),
        Token::Sign("<>" | "!=") => (Operator::NotEqual, 4),
        Token::Sign("<") => (Operator::Less, 4),
        Token::Sign("<=") => (Operator::LessOrEqual, 4),
        Token::Sign(">") => (Operator::Greater, 4),
        Token::Sign(">=") => (Operator::GreaterOrEqual, 4),
        Token::Sign("+") => (Operator::Add, 5),
        Token::Sign("-") => (Operator::Subtract, 5),
        Token::Sign("*") => (Operator::Multiply, 6),
        Token::Sign("/") => (Operator::Divide, 6),
        Token::Sign("%") => (Operator::Remainder, 6),
        _ => return None,
    })
}

fn show(token: &Token) -> String {
    match token {
        Token::Int(value) => format!("'{value}'"),
        Token::Double(value) => format!("'{value}'"),
        Token::Text(text) => format!("the text '{text}'"),
        Token::Variable(name) => format!("':{name}'"),
        Token::Word(word) => format!("'{word}'"),
        Token::Sign(sign) => format!("'{sign}'"),
        Token::End => "the end of the line".to_string(),
    }
}
