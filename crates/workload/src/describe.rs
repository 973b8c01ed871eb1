//! A workload as text for people.

use std::fmt::Write;

use crate::expr::Expr;
use crate::workload::{Param, Protocol, Source, Statement, Step, TABLE_NUMBER, Workload};

impl Workload {
    /// The whole workload, several lines.
    pub fn describe(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.summary);
        let data = match (self.tables, &self.setup) {
            (0, Some(setup)) => format!("its own, made by {} statements", setup.statements.len()),
            (0, None) => "what is in the schema".to_string(),
            (1, _) => format!("table sbtest1, {} rows each", self.rows),
            (tables, _) => format!("tables sbtest1 to sbtest{tables}, {} rows each", self.rows),
        };
        let _ = writeln!(text, "  data          {data}");
        if self.draws_rows() {
            let of = if self.tables == 0 { format!(" over {} rows", self.rows) } else { String::new() };
            let _ = writeln!(text, "  row numbers   {}{of}", self.distribution);
        }
        for dictionary in &self.dictionaries {
            let _ = writeln!(text, "  dictionary    {}: {}", dictionary.name, dictionary.source);
        }
        for sql in &self.session {
            let _ = writeln!(text, "  connection    {sql}");
        }
        let _ = writeln!(text, "  begun again   after the errors {:?}", self.retry_errors);
        let weights: u64 = self.transactions.iter().map(|transaction| u64::from(transaction.weight)).sum();
        for transaction in &self.transactions {
            if self.transactions.len() > 1 {
                let share = f64::from(transaction.weight) * 100.0 / weights.max(1) as f64;
                let _ = writeln!(text, "  transaction   {}, {share:.1} % of all", transaction.name);
            } else {
                let statements = match self.statements_per_transaction() {
                    Some(1) => "1 statement".to_string(),
                    Some(count) => format!("{count} statements"),
                    None => "as many statements as its branches and loops give".to_string(),
                };
                let _ = writeln!(text, "  transaction   {statements}");
            }
            self.describe_steps(&transaction.steps, 0, &mut text);
        }
        text
    }

    fn draws_rows(&self) -> bool {
        let is_drawn = |param: &Param| matches!(param, Param::Drawn { .. });
        self.statements().iter().any(|statement| statement.params.iter().any(is_drawn))
    }

    fn describe_steps(&self, steps: &[Step], depth: usize, text: &mut String) {
        let inset = "  ".repeat(depth);
        let show = |expr: &Expr| expr.show(&self.variables);
        for step in steps {
            match step {
                Step::Group(group) => {
                    let repeat =
                        if group.repeat == 1 { String::new() } else { format!("{} ×", group.repeat) };
                    for statement in &group.statements {
                        self.describe_statement(&repeat, &inset, statement, text);
                    }
                }
                Step::Send(statement) => self.describe_statement("", &inset, statement, text),
                Step::Set { variable, source } => {
                    let name = show(&Expr::Variable(*variable));
                    let _ = writeln!(text, "          {inset}{name} = {}", self.show_source(source));
                }
                Step::Pause { seconds } => {
                    let _ = writeln!(text, "          {inset}pause of {} s", show(seconds));
                }
                Step::Reconnect => {
                    let _ = writeln!(text, "          {inset}a new connection");
                }
                Step::If { condition, then, otherwise } => {
                    let _ = writeln!(text, "          {inset}if {}", show(condition));
                    self.describe_steps(then, depth + 1, text);
                    if !otherwise.is_empty() {
                        let _ = writeln!(text, "          {inset}else");
                        self.describe_steps(otherwise, depth + 1, text);
                    }
                }
                Step::Repeat { times, steps } => {
                    let _ = writeln!(text, "          {inset}{} times", show(times));
                    self.describe_steps(steps, depth + 1, text);
                }
                Step::While { condition, steps } => {
                    let _ = writeln!(text, "          {inset}while {}", show(condition));
                    self.describe_steps(steps, depth + 1, text);
                }
            }
        }
    }

    fn describe_statement(&self, repeat: &str, inset: &str, statement: &Statement, text: &mut String) {
        let sql = statement.sql.replace(TABLE_NUMBER, "N");
        let _ = write!(text, "  {repeat:>7} {inset}{:<17} {sql}", statement.kind);
        if !statement.params.is_empty() {
            let params: Vec<String> = statement.params.iter().map(|param| self.show_param(*param)).collect();
            let _ = write!(text, "   ({})", params.join(", "));
        }
        if statement.protocol == Protocol::Text {
            text.push_str("   as text");
        }
        if let Some(local) = &statement.local_rows {
            let fields: Vec<String> = local.fields.iter().map(|field| self.show_source(field)).collect();
            let _ = write!(text, "   {} rows of ({})", local.rows, fields.join("; "));
        }
        if let Some(capture) = &statement.capture {
            let names: Vec<String> = capture
                .columns
                .iter()
                .map(|(_, variable)| self.show_param(Param::Variable(*variable)))
                .collect();
            let _ = write!(text, "   gives {}", names.join(", "));
        }
        text.push('\n');
    }

    fn show_param(&self, param: Param) -> String {
        match param {
            Param::Drawn { slot, plus: 0 } => format!("row{}", slot + 1),
            Param::Drawn { slot, plus } => format!("row{} + {plus}", slot + 1),
            Param::Digits { groups } => format!("{groups} × 11 digits"),
            Param::Int(value) => value.to_string(),
            Param::Variable(place) | Param::Inline(place) => Expr::Variable(place).show(&self.variables),
        }
    }

    fn show_source(&self, source: &Source) -> String {
        match source {
            Source::Expr(expr) => expr.show(&self.variables),
            Source::Template(template) => format!("'{template}' with random digits and letters"),
            Source::Dictionary { dictionary, order } => {
                let name = self.dictionaries.get(usize::from(*dictionary)).map_or("?", |d| d.name.as_str());
                format!("{}({name})", order.function())
            }
        }
    }
}
