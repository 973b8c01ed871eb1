//! Reads the expressions of directives, as pgbench writes them.

use super::lexer::name_at;
use crate::dictionary::Order;
use crate::distribution::{Distribution, NORMAL_PARAMETER_MIN};
use crate::expr::{Expr, Function, Operator};
use crate::suggest::nearest_name;
use crate::workload::Source;

/// What names stand for. Errors are one sentence without file and line.
pub(super) trait Names {
    fn variable(&mut self, name: &str) -> Result<u16, String>;
    fn dictionary(&mut self, name: &str) -> Result<u16, String>;
}

const FUNCTIONS: [&str; 14] = [
    "random",
    "random_zipfian",
    "random_gaussian",
    "random_exponential",
    "random_pareto",
    "random_string",
    "random_from",
    "next_from",
    "unique_from",
    "abs",
    "least",
    "greatest",
    "int",
    "double",
];

/// Deepest nesting of parentheses and signs.
const DEPTH_MAX: u32 = 100;

/// The whole text as a value for a variable.
pub(super) fn source(text: &str, names: &mut impl Names) -> Result<Source, String> {
    let mut sources = sources(text, names)?;
    match sources.len() {
        1 => Ok(sources.remove(0)),
        _ => Err(format!("'{text}' is more than one value: give one")),
    }
}

/// Values with commas between them.
pub(super) fn sources(text: &str, names: &mut impl Names) -> Result<Vec<Source>, String> {
    let mut parser = Parser::new(text, names)?;
    let mut sources = vec![parser.source()?];
    while parser.take(&Token::Sign(",")) {
        sources.push(parser.source()?);
    }
    parser.end()?;
    Ok(sources)
}

/// The whole text as a number or a condition.
pub(super) fn expression(text: &str, names: &mut impl Names) -> Result<Expr, String> {
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

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken = if first.is_ascii_digit() || first == '.' {
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
                return Err("':' must be followed by a variable's name, such as :id".to_string());
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
            return Err(format!("'{first}' is not understood in '{text}'"));
        };
        rest = rest[taken..].trim_start();
    }
    tokens.push(Token::End);
    Ok(tokens)
}

/// The text that a literal stands for, in which a doubled quote is one, and the literal's length.
fn quoted(text: &str) -> Result<(String, usize), String> {
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
    Err("a text has no end: close it with another '".to_string())
}

fn number(text: &str) -> Result<(Token, usize), String> {
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
        _ => Err(format!("'{written}' is no number of 64 bits")),
    }
}

struct Parser<'n, N> {
    tokens: Vec<Token>,
    next: usize,
    depth: u32,
    names: &'n mut N,
}

impl<'n, N: Names> Parser<'n, N> {
    fn new(text: &str, names: &'n mut N) -> Result<Parser<'n, N>, String> {
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

    fn expect(&mut self, sign: &'static str) -> Result<(), String> {
        if self.take(&Token::Sign(sign)) {
            return Ok(());
        }
        Err(format!("expected '{sign}' and found {}", show(self.peek())))
    }

    fn end(&self) -> Result<(), String> {
        match self.peek() {
            Token::End => Ok(()),
            token => Err(format!("expected the end of the line and found {}", show(token))),
        }
    }

    /// A text or a dictionary's value, which stand alone, or an expression.
    fn source(&mut self) -> Result<Source, String> {
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
                return Err(
                    "random_string takes a text with a # for each digit and an @ for each letter, such as \
                            random_string('###-@@@')"
                        .to_string(),
                );
            }
            (Some(order), Token::Word(name)) => {
                Source::Dictionary { dictionary: self.names.dictionary(&name)?, order }
            }
            (Some(_), _) => return Err(format!("{word} takes a dictionary's name, such as {word}(names)")),
        };
        self.expect(")")?;
        Ok(source)
    }

    /// Operators that bind at least as strongly as `least`: or 1, and 2, comparisons 4, + and - 5, others 6.
    fn expr(&mut self, least: u8) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} levels of parentheses"));
        }
        let mut left = self.operand()?;
        loop {
            if least <= 4 && self.take_word("is") {
                let negated = self.take_word("not");
                if !self.take_word("null") {
                    return Err(format!("expected null after is and found {}", show(self.peek())));
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

    fn operand(&mut self) -> Result<Expr, String> {
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
            other => Err(format!("expected a value and found {}", show(&other))),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expr, String> {
        let nearest = match nearest_name(name, FUNCTIONS) {
            Some(nearest) => format!(" (did you mean {nearest}?)"),
            None => String::new(),
        };
        if !FUNCTIONS.contains(&name) {
            let is_call = *self.peek() == Token::Sign("(");
            return Err(if is_call {
                format!("there is no function '{name}'{nearest}: the functions are {}", FUNCTIONS.join(", "))
            } else {
                format!("'{name}' is no value: a variable is written :{name}, a text '{name}'")
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
            return Err(format!("{name} takes one value and got {}", arguments.len()));
        }
        Ok(Expr::Call { function, arguments })
    }
}

/// `name(low, high)` or `name(low, high, parameter)`.
fn random(name: &str, arguments: Vec<Expr>) -> Result<Expr, String> {
    let (what, lowest, highest, example) = match name {
        "random" => ("", 0.0, 0.0, "random(1, 1000)"),
        "random_zipfian" => ("exponent", 0.0, 1000.0, "random_zipfian(1, 1000, 0.8)"),
        "random_gaussian" => ("parameter", NORMAL_PARAMETER_MIN, 1000.0, "random_gaussian(1, 1000, 2.5)"),
        "random_exponential" => ("parameter", 0.001, 1000.0, "random_exponential(1, 1000, 5)"),
        "random_pareto" => ("h", 0.001, 0.999, "random_pareto(1, 1000, 0.2)"),
        _ => return Err(format!("{name} stands alone in a \\set or \\rows, not inside an expression")),
    };
    let wrong = || format!("{name} is written {example}");
    let mut arguments = arguments.into_iter();
    let (Some(low), Some(high), last, None) =
        (arguments.next(), arguments.next(), arguments.next(), arguments.next())
    else {
        return Err(wrong());
    };
    if let (Expr::Int(low), Expr::Int(high)) = (&low, &high)
        && low > high
    {
        return Err(format!("the range from {low} to {high} is empty: give the lower number first"));
    }
    let parameter = match (what, last) {
        ("", None) => 0.0,
        ("", Some(_)) | (_, None) => return Err(wrong()),
        (_, Some(Expr::Int(value))) => value as f64,
        (_, Some(Expr::Double(value))) => value,
        (_, Some(_)) => {
            return Err(format!("the {what} of {name} must be a number that is written out: {example}"));
        }
    };
    if !what.is_empty() && !(lowest..=highest).contains(&parameter) {
        return Err(format!("the {what} of {name} must be from {lowest} to {highest}, and is {parameter}"));
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
