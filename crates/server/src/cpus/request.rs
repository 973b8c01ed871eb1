//! "1 socket", "4 cores no HT", "0-3,8": from what was asked to CPUs.

use super::topology::parse_list;
use super::{Cpu, CpuSet, Topology};
use crate::error::{Error, Result};

/// Resolves a list of CPUs or words on a topology.
///
/// The words, joined in any order, with or without commas:
///
/// - `all`.
/// - `N sockets`.
/// - `N cores` in all: shared out evenly over the sockets where both are named, else socket by socket.
/// - `N threads`: logical CPUs.
/// - `no HT`: one thread of each core.
///
/// # Errors
///
/// [`Error::Cpus`] where it can't be understood, or asks for more than there is.
pub fn resolve(asked: &str, topology: &Topology) -> Result<CpuSet> {
    let chosen = if asked.trim().starts_with(|first: char| first.is_ascii_digit())
        && !asked.contains(char::is_alphabetic)
    {
        from_list(asked, topology)?
    } else {
        from_wish(&Wish::parse(asked)?, asked, topology)?
    };
    let mut cpus: Vec<u32> = chosen.iter().map(|cpu| cpu.id).collect();
    cpus.sort_unstable();
    let mut cores: Vec<(u32, u32)> = chosen.iter().map(|cpu| (cpu.socket, cpu.core)).collect();
    cores.sort_unstable();
    cores.dedup();
    let cores_chosen = cores.len();
    cores.dedup_by_key(|(socket, _)| *socket);
    Ok(CpuSet { cpus, asked: asked.trim().to_string(), sockets: cores.len(), cores: cores_chosen })
}

fn from_list(asked: &str, topology: &Topology) -> Result<Vec<Cpu>> {
    let wanted = parse_list(asked).ok_or_else(|| {
        Error::Cpus(format!(
            "'{asked}' is no list of CPUs: write it as 0-3,8, or in words such as '4 cores no HT'"
        ))
    })?;
    let mut chosen = Vec::with_capacity(wanted.len());
    for id in wanted {
        let cpu = topology.cpus().iter().find(|cpu| cpu.id == id).ok_or_else(|| {
            Error::Cpus(format!("there is no CPU {id} here that we may use: {}", what_there_is(topology)))
        })?;
        chosen.push(*cpu);
    }
    Ok(chosen)
}

#[derive(Default)]
struct Wish {
    sockets: Option<usize>,
    cores: Option<usize>,
    threads: Option<usize>,
    one_thread_a_core: bool,
}

impl Wish {
    fn parse(asked: &str) -> Result<Wish> {
        let not_understood = || {
            Error::Cpus(format!(
                "cannot understand the CPUs '{asked}': give a list such as 0-3,8, or words such as '1 socket', '4 cores', '8 threads', 'no HT', 'all'"
            ))
        };
        let lower = asked.to_lowercase().replace([',', '-', '_'], " ");
        let mut words = lower.split_whitespace();
        let mut wish = Wish::default();
        let mut understood_any = false;
        while let Some(word) = words.next() {
            understood_any = true;
            match word {
                "all" => continue,
                "noht" | "nosmt" => wish.one_thread_a_core = true,
                "no" => match words.next() {
                    Some("ht" | "smt" | "hyperthreading" | "hyperthreads") => wish.one_thread_a_core = true,
                    _ => return Err(not_understood()),
                },
                _ => {
                    // "4 cores" and "4cores"
                    let digits =
                        word.len() - word.trim_start_matches(|first: char| first.is_ascii_digit()).len();
                    let count: usize = word[..digits].parse().map_err(|_| not_understood())?;
                    if count == 0 {
                        return Err(Error::Cpus(format!("'{asked}' asks for none: ask for one at least")));
                    }
                    let unit = if word.len() > digits { &word[digits..] } else { words.next().unwrap_or("") };
                    let place = match unit {
                        "socket" | "sockets" | "s" => &mut wish.sockets,
                        "core" | "cores" => &mut wish.cores,
                        "thread" | "threads" | "cpu" | "cpus" => &mut wish.threads,
                        _ => return Err(not_understood()),
                    };
                    if place.replace(count).is_some() {
                        return Err(not_understood());
                    }
                }
            }
        }
        if understood_any { Ok(wish) } else { Err(not_understood()) }
    }
}

fn from_wish(wish: &Wish, asked: &str, topology: &Topology) -> Result<Vec<Cpu>> {
    let too_much = || Error::Cpus(format!("'{asked}' is more than there is: {}", what_there_is(topology)));
    let mut sockets = topology.sockets();
    if let Some(wanted) = wish.sockets {
        if wanted > sockets.len() {
            return Err(too_much());
        }
        sockets.truncate(wanted);
    }
    let mut cores_by_socket: Vec<Vec<Vec<Cpu>>> =
        sockets.iter().map(|socket| topology.cores_of(*socket)).collect();
    if let Some(wanted) = wish.cores {
        match wish.sockets {
            Some(socket_count) => {
                if wanted % socket_count != 0 {
                    return Err(Error::Cpus(format!(
                        "'{asked}' cannot be shared out evenly: {wanted} cores over {socket_count} sockets"
                    )));
                }
                let share = wanted / socket_count;
                for cores in &mut cores_by_socket {
                    if share > cores.len() {
                        return Err(too_much());
                    }
                    cores.truncate(share);
                }
            }
            None => {
                let mut missing = wanted;
                for cores in &mut cores_by_socket {
                    cores.truncate(missing);
                    missing -= cores.len();
                }
                if missing > 0 {
                    return Err(too_much());
                }
            }
        }
    }
    let mut chosen: Vec<Cpu> = Vec::new();
    for core in cores_by_socket.iter().flatten() {
        let threads = if wish.one_thread_a_core { 1 } else { core.len() };
        chosen.extend(&core[..threads]);
    }
    if let Some(wanted) = wish.threads {
        if wanted > chosen.len() {
            return Err(too_much());
        }
        chosen.truncate(wanted);
    }
    if chosen.is_empty() { Err(too_much()) } else { Ok(chosen) }
}

/// "this machine has 1 socket, 2 cores, 2 threads (CPUs 0-1) for us".
fn what_there_is(topology: &Topology) -> String {
    if topology.cpus().is_empty() {
        return "this machine has no CPU that we may use".to_string();
    }
    match resolve("all", topology) {
        Ok(all) => format!("this machine has {all} for us"),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of four cores with two threads each, numbered as Linux does: first threads first.
    fn two_sockets() -> Topology {
        let cpus = (0..16).map(|id| Cpu { id, socket: id / 4 % 2, core: id % 4 }).collect();
        Topology::new(cpus)
    }

    /// One socket, two cores, no second threads.
    fn small() -> Topology {
        Topology::new(vec![Cpu { id: 0, socket: 0, core: 0 }, Cpu { id: 1, socket: 0, core: 1 }])
    }

    fn description_of(asked: &str, topology: &Topology) -> String {
        match resolve(asked, topology) {
            Ok(set) => set.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn words_come_to_cpus() {
        let machine = two_sockets();
        assert_eq!(description_of("1 socket", &machine), "CPUs 0-3,8-11 (1 socket, 4 cores, 8 threads)");
        assert_eq!(description_of("2 sockets", &machine), "CPUs 0-15 (2 sockets, 8 cores, 16 threads)");
        assert_eq!(description_of("no HT", &machine), "CPUs 0-7 (2 sockets, 8 cores, 8 threads)");
        assert_eq!(description_of("1 socket no HT", &machine), "CPUs 0-3 (1 socket, 4 cores, 4 threads)");
        assert_eq!(description_of("no-HT, 1 socket", &machine), "CPUs 0-3 (1 socket, 4 cores, 4 threads)");
        assert_eq!(description_of("4 cores", &machine), "CPUs 0-3,8-11 (1 socket, 4 cores, 8 threads)");
        assert_eq!(description_of("6cores noht", &machine), "CPUs 0-5 (2 sockets, 6 cores, 6 threads)");
        assert_eq!(
            description_of("2 sockets 4 cores", &machine),
            "CPUs 0-1,4-5,8-9,12-13 (2 sockets, 4 cores, 8 threads)"
        );
        assert_eq!(description_of("3 threads", &machine), "CPUs 0-1,8 (1 socket, 2 cores, 3 threads)");
        assert_eq!(description_of("1 cpu", &machine), "CPU 0 (1 socket, 1 core, 1 thread)");
        assert_eq!(description_of("all", &small()), "CPUs 0-1 (1 socket, 2 cores, 2 threads)");
        assert_eq!(description_of(" 8,0-2,1 ", &machine), "CPUs 0-2,8 (1 socket, 3 cores, 4 threads)");
    }

    #[test]
    fn cpus_that_do_not_exist_are_refused_with_those_that_do() {
        let machine = small();
        let there_is = "this machine has CPUs 0-1 (1 socket, 2 cores, 2 threads) for us";
        assert_eq!(
            description_of("2 sockets", &machine),
            format!("'2 sockets' is more than there is: {there_is}")
        );
        assert_eq!(
            description_of("3 cores", &machine),
            format!("'3 cores' is more than there is: {there_is}")
        );
        assert_eq!(
            description_of("9 threads", &machine),
            format!("'9 threads' is more than there is: {there_is}")
        );
        assert_eq!(
            description_of("0,2", &machine),
            format!("there is no CPU 2 here that we may use: {there_is}")
        );
        assert!(description_of("3-1", &machine).contains("is no list of CPUs"));
        assert!(description_of("0 cores", &machine).contains("asks for none"));
        assert!(description_of("2 sockets 3 cores", &two_sockets()).contains("shared out evenly"));
        assert!(description_of("all", &Topology::new(Vec::new())).contains("no CPU that we may use"));
        for nonsense in
            ["", "some", "4", "4 sheep", "no", "no way", "2 cores 3 cores", "-1", "0-99999999", "one socket"]
        {
            assert!(resolve(nonsense, &machine).is_err() || nonsense == "4", "{nonsense}");
        }
    }

    #[test]
    fn cores_are_found_whatever_their_numbers() {
        // socket 1 holds the lower CPUs, core numbers have gaps
        let cpus = vec![
            Cpu { id: 5, socket: 0, core: 9 },
            Cpu { id: 4, socket: 0, core: 3 },
            Cpu { id: 1, socket: 1, core: 8 },
            Cpu { id: 0, socket: 1, core: 0 },
        ];
        let machine = Topology::new(cpus);
        assert_eq!(description_of("1 socket", &machine), "CPUs 0-1 (1 socket, 2 cores, 2 threads)");
        assert_eq!(description_of("3 cores", &machine), "CPUs 0-1,4 (2 sockets, 3 cores, 3 threads)");
    }

    #[test]
    fn this_machine_has_a_topology() {
        let all = CpuSet::resolve("all").unwrap();
        assert!(!all.cpus().is_empty());
        assert_eq!(CpuSet::resolve(&all.list()).unwrap().cpus(), all.cpus());
    }

    proptest::proptest! {
        #[test]
        fn any_words_give_a_set_or_an_error(text in "[0-9a-z ,-]{0,24}") {
            if let Ok(set) = resolve(&text, &two_sockets()) {
                assert!(!set.cpus().is_empty());
                assert!(set.cpus().windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
