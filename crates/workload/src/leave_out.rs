//! A workload without one kind of its statements: what an experiment compares with the whole one.

use crate::error::WorkloadError;
use crate::suggest::nearest_name;
use crate::workload::{Step, Workload};

/// What [`Workload::leave_out`] calls the connections that a transaction makes.
pub const RECONNECTS: &str = "connect";

impl Workload {
    /// Takes out every statement of a kind; of the kind [`RECONNECTS`], every connection that a transaction makes.
    ///
    /// # Errors
    /// There is no such kind, others need its answer, or nothing would be left to send.
    ///
    /// ```
    /// use whyso_workload::{Options, Workload};
    ///
    /// let mut workload = Workload::builtin("oltp-read-only", &Options::default())?;
    /// workload.leave_out("order_range")?;
    /// assert!(!workload.kinds().contains(&"order_range"));
    /// # Ok::<(), whyso_workload::WorkloadError>(())
    /// ```
    pub fn leave_out(&mut self, kind: &str) -> Result<(), WorkloadError> {
        let of_kind = |statement: &&crate::workload::Statement| statement.kind == kind;
        if self.statements().into_iter().filter(of_kind).any(|statement| statement.capture.is_some()) {
            let why = "others use its answer".to_string();
            return Err(WorkloadError::LeftOut { kind: kind.to_string(), why });
        }
        let mut taken = 0;
        for transaction in &mut self.transactions {
            take_out(&mut transaction.steps, kind, &mut taken);
        }
        if taken == 0 {
            let mut kinds = self.kinds();
            kinds.push(RECONNECTS);
            let nearest =
                nearest_name(kind, kinds.iter().copied()).map(|name| format!(": did you mean {name}?"));
            let why = format!(
                "no transaction does that{}",
                nearest.unwrap_or_else(|| format!("; there are {}", kinds.join(", ")))
            );
            return Err(WorkloadError::LeftOut { kind: kind.to_string(), why });
        }
        if self.statements().is_empty() {
            let why = "nothing would be left to send".to_string();
            return Err(WorkloadError::LeftOut { kind: kind.to_string(), why });
        }
        Ok(())
    }
}

fn take_out(steps: &mut Vec<Step>, kind: &str, taken: &mut usize) {
    steps.retain_mut(|step| match step {
        Step::Group(group) => {
            let before = group.statements.len();
            group.statements.retain(|statement| statement.kind != kind);
            *taken += before - group.statements.len();
            !group.statements.is_empty()
        }
        Step::Send(statement) => {
            let stays = statement.kind != kind;
            *taken += usize::from(!stays);
            stays
        }
        Step::Reconnect => {
            let stays = kind != RECONNECTS;
            *taken += usize::from(!stays);
            stays
        }
        Step::If { then, otherwise, .. } => {
            take_out(then, kind, taken);
            take_out(otherwise, kind, taken);
            true
        }
        Step::Repeat { steps, .. } | Step::While { steps, .. } => {
            take_out(steps, kind, taken);
            true
        }
        Step::Set { .. } | Step::Pause { .. } => true,
    });
}

#[cfg(test)]
mod tests {
    use crate::{Options, SqlOptions, Workload};

    fn of_file(text: &str) -> Workload {
        Workload::from_sql_file("own.sql", text, &SqlOptions::default()).unwrap()
    }

    #[test]
    fn every_statement_of_a_kind_goes_and_the_others_stay() {
        let text =
            "-- \\repeat 2\nSELECT 1;\nSELECT 2 FROM dual WHERE 1 = 1;\n-- \\endrepeat\nSELECT 1;\nDO 3;\n";
        let mut workload = of_file(text);
        let kinds: Vec<String> = workload.kinds().iter().map(ToString::to_string).collect();
        assert_eq!(workload.statements().len(), 4);
        let of_first = workload.statements().iter().filter(|statement| statement.kind == kinds[0]).count();
        workload.leave_out(&kinds[0]).unwrap();
        assert_eq!(workload.statements().len(), 4 - of_first);
        assert_eq!(workload.kinds(), &kinds[1..]);
    }

    #[test]
    fn connections_are_kept() {
        let mut workload = of_file("-- \\reconnect\nSELECT 1;\n");
        let kept = of_file("SELECT 1;\n");
        workload.leave_out(super::RECONNECTS).unwrap();
        assert_eq!(workload.transactions[0].steps, kept.transactions[0].steps);
        assert!(workload.leave_out(super::RECONNECTS).is_err());
    }

    #[test]
    fn what_can_not_be_left_out_is_refused() {
        let mut workload = Workload::builtin("oltp-point-select", &Options::default()).unwrap();
        let refused = |workload: &mut Workload, kind: &str| workload.leave_out(kind).unwrap_err().to_string();
        assert!(refused(&mut workload, "point_selekt").contains("did you mean point_select?"));
        assert!(refused(&mut workload, "point_select").contains("nothing would be left"));
        let mut asked = of_file("SELECT 7 AS x; -- \\gset\nSELECT :x + 1 FROM dual;\n");
        let first = asked.kinds()[0].to_string();
        assert!(refused(&mut asked, &first).contains("others use its answer"));
    }
}
