//! Where the server's object of a connection holds what it counts of a command.
//!
//! Every build has its own places. They are found by what the object holds after commands whose counts are known. A place is one that held the
//! expected value after every one of them. Some servers keep copies, too: MySQL 9 of the rows sent, and all of the connection's number. The
//! counts of rows lie together in every build: affected, sent, examined. So where several places fit, it is the one that is next behind.

/// Bytes from the begin of a connection's object; `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub rows_sent: Option<u32>,
    pub rows_examined: Option<u32>,
    pub rows_affected: Option<u32>,
    /// Number of the error; 0 after success.
    pub error: Option<u32>,
    pub connection_id: Option<u32>,
}

/// What is known of how many rows a command examined. How a server counts those of a temporary table differs from version to version. But each
/// version counts twice as many where there are twice as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExaminedRows {
    /// No row of a table: a DO is one row to MySQL from 8.0 on, what is no statement none.
    AtMost(u64),
    /// This many, times a factor and plus a constant that are the same for all commands of a series.
    Scaled { series: u8, rows: u64 },
}

/// A command whose counts are known, and the connection's object as it was when the command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCommand {
    pub object: Vec<u8>,
    pub connection_id: u32,
    pub rows_sent: u64,
    pub rows_examined: ExaminedRows,
    /// -1 where a command has no such count; `None` where that depends on the version.
    pub rows_affected: Option<i64>,
    pub error: u32,
}

/// Counts of rows that are further apart are not of one kind.
const NEIGHBOURS_BYTES: u32 = 64;
/// A row is examined when it is put into a temporary table, when it is read from there, and where that is sorted.
const FACTOR_MAX: u64 = 4;

impl Places {
    /// The places that these commands show, and a sentence on each place that they do not.
    pub fn of(commands: &[KnownCommand]) -> (Places, Vec<String>) {
        let mut missing = Vec::new();
        let mut one_of = |what: &str, places: Vec<u32>, behind: Option<u32>| {
            let is_next = |place: &&u32| {
                behind.is_some_and(|behind| (behind + 1..=behind + NEIGHBOURS_BYTES).contains(place))
            };
            let place = match places[..] {
                [place] => Some(place),
                _ => places.iter().find(is_next).copied(),
            };
            if place.is_none() {
                let held = if places.is_empty() { "no place" } else { "more than one place" };
                missing.push(format!(
                    "{what}: {held} of the server's object of a connection held them after commands that were sent to find it"
                ));
            }
            place
        };
        let longs = |fits: &dyn Fn(&KnownCommand, u64) -> bool| {
            places(commands, |command, place| fits(command, u64_at(&command.object, place)?).then_some(()), 8)
        };
        let ints = |fits: &dyn Fn(&KnownCommand, u32) -> bool| {
            places(commands, |command, place| fits(command, u32_at(&command.object, place)?).then_some(()), 4)
        };
        let sent = longs(&|command, value| value == command.rows_sent);
        let affected = longs(&|command, value| command.rows_affected.is_none_or(|rows| value == rows as u64));
        let error = ints(&|command, value| value == command.error);
        let connection_id = ints(&|command, value| value == command.connection_id);
        let examined = examined(commands);
        let rows_affected = one_of("rows affected", affected, None);
        let rows_sent = one_of("rows sent", sent, rows_affected);
        // MariaDB clears them before its dispatcher returns, and has others near by, of what storage engines were asked for.
        let behind = |place: &u32| rows_sent.is_some_and(|sent| sent + 8 == *place);
        let examined: Vec<u32> = examined.into_iter().filter(behind).collect();
        let rows_examined = one_of("rows examined", examined, rows_sent);
        let error = one_of("errors", error, None);
        // Its copies are of the session's variables and of its socket, which lie before it.
        let connection_id = one_of("connections", connection_id.last().copied().into_iter().collect(), None);
        let places = Places { rows_sent, rows_examined, rows_affected, error, connection_id };
        (places, missing)
    }
}

/// The places that fit every command.
fn places(
    commands: &[KnownCommand],
    fits: impl Fn(&KnownCommand, usize) -> Option<()>,
    step: usize,
) -> Vec<u32> {
    let bytes = commands.iter().map(|command| command.object.len()).min().unwrap_or(0);
    let fitting = (0..bytes)
        .step_by(step)
        .filter(|place| commands.iter().all(|command| fits(command, *place).is_some()));
    fitting.map(|place| place as u32).collect()
}

fn examined(commands: &[KnownCommand]) -> Vec<u32> {
    let fits = |place: &u32| {
        let at = |command: &KnownCommand| u64_at(&command.object, *place as usize);
        let mut series: Vec<(u8, Vec<(u64, u64)>)> = Vec::new();
        for command in commands {
            match (command.rows_examined, at(command)) {
                (ExaminedRows::AtMost(rows), Some(value)) if value <= rows => {}
                (ExaminedRows::Scaled { series: number, rows }, Some(value)) if value >= rows => {
                    match series.iter_mut().find(|(other, _)| *other == number) {
                        Some((_, values)) => values.push((rows, value)),
                        None => series.push((number, vec![(rows, value)])),
                    }
                }
                _ => return false,
            }
        }
        series.iter().all(|(_, values)| is_scaled(values))
    };
    let bytes = commands.iter().map(|command| command.object.len()).min().unwrap_or(0);
    (0..bytes as u32).step_by(8).filter(fits).collect()
}

/// Returns whether values are these rows, times a factor, plus a constant.
fn is_scaled(values: &[(u64, u64)]) -> bool {
    let Some((rows, value)) = values.first() else { return true };
    (1..=FACTOR_MAX).any(|factor| {
        let constant = |rows: u64, value: u64| value.checked_sub(rows.saturating_mul(factor));
        let first = constant(*rows, *value);
        first.is_some() && values.iter().all(|(rows, value)| constant(*rows, *value) == first)
    })
}

fn u64_at(object: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(object.get(place..place + 8)?.try_into().ok()?))
}

fn u32_at(object: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(object.get(place..place + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: usize = 40;
    const EXAMINED: usize = 48;
    const AFFECTED: usize = 24;
    const ERROR: usize = 68;
    const NUMBER: usize = 12;

    /// What a server that examines each row twice, and one more, would hold.
    fn known_command(
        rows: Option<u64>,
        sent: u64,
        affected: i64,
        error: u32,
        connection_id: u32,
    ) -> KnownCommand {
        let mut object = vec![0xaa; 100];
        let examined = rows.map_or(0, |rows| 2 * rows + 1);
        object[SENT..SENT + 8].copy_from_slice(&sent.to_ne_bytes());
        object[EXAMINED..EXAMINED + 8].copy_from_slice(&examined.to_ne_bytes());
        object[AFFECTED..AFFECTED + 8].copy_from_slice(&affected.to_ne_bytes());
        object[ERROR..ERROR + 4].copy_from_slice(&error.to_ne_bytes());
        object[NUMBER..NUMBER + 4].copy_from_slice(&connection_id.to_ne_bytes());
        let rows_examined =
            rows.map_or(ExaminedRows::AtMost(0), |rows| ExaminedRows::Scaled { series: 0, rows });
        let rows_affected = (error == 0).then_some(affected);
        KnownCommand { object, connection_id, rows_sent: sent, rows_examined, rows_affected, error }
    }

    fn all() -> Vec<KnownCommand> {
        vec![
            known_command(Some(53), 1, -1, 0, 7),
            known_command(None, 0, 0, 1064, 7),
            known_command(Some(31), 31, -1, 0, 9),
            known_command(None, 0, 0, 0, 9),
        ]
    }

    #[test]
    fn a_place_is_one_that_held_what_it_should_after_every_command() {
        let (places, missing) = Places::of(&all());
        let expected = Places {
            rows_sent: Some(SENT as u32),
            rows_examined: Some(EXAMINED as u32),
            rows_affected: Some(AFFECTED as u32),
            error: Some(ERROR as u32),
            connection_id: Some(NUMBER as u32),
        };
        assert_eq!((places, missing), (expected, Vec::new()));
    }

    #[test]
    fn of_several_places_it_is_the_one_behind_its_neighbour_and_of_the_number_the_last() {
        let mut copied = all();
        for command in &mut copied {
            command.object.extend([0; 200]);
            command.object.copy_within(SENT..EXAMINED + 8, 80);
            command.object.copy_within(SENT..EXAMINED + 8, 200);
            command.object.copy_within(NUMBER..NUMBER + 4, 260);
        }
        let (places, missing) = Places::of(&copied);
        assert_eq!((places.rows_sent, places.rows_examined), (Some(SENT as u32), Some(EXAMINED as u32)));
        assert_eq!((places.connection_id, missing), (Some(260), Vec::<String>::new()));
    }

    #[test]
    fn a_place_that_none_or_several_without_a_neighbour_held_is_not_known_and_has_its_reason() {
        let mut twice = all();
        for command in &mut twice {
            command.object.copy_within(AFFECTED..AFFECTED + 8, 80);
            command.object[ERROR] ^= 0x10;
        }
        let (places, missing) = Places::of(&twice);
        assert_eq!((places.rows_affected, places.error), (None, None));
        assert_eq!(places.rows_sent, Some(SENT as u32), "a single place needs no neighbour");
        let after =
            "of the server's object of a connection held them after commands that were sent to find it";
        assert_eq!(
            missing,
            [format!("rows affected: more than one place {after}"), format!("errors: no place {after}")]
        );
        assert_eq!(Places::of(&[]).0, Places::default(), "nothing is known of nothing");
    }

    #[test]
    fn examined_rows_grow_as_the_rows_do() {
        assert!(is_scaled(&[(10, 10), (20, 20)]) && is_scaled(&[(10, 25), (20, 45), (1, 7)]));
        assert!(!is_scaled(&[(10, 10), (20, 21)]) && !is_scaled(&[(10, 60), (20, 60)]));
        assert!(!is_scaled(&[(u64::MAX, u64::MAX), (u64::MAX - 1, 5)]));
    }
}
