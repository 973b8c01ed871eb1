//! Where a server dispatches its clients' commands: at which places of its file a command begins and ends, and which parameters the dispatcher takes.

use crate::emulated::{begin_of, emulated_from};

/// How the names of the functions that matter begin, as compilers write them: the dispatcher, who calls it, and who calls that.
const DISPATCHER: &str = "_Z16dispatch_command";
const CALLERS: [&str; 2] = ["_Z10do_command", "_Z24do_handle_one_connection"];
/// The dispatcher's parameters, as far as they show how it is called.
const PACKET: &str = "19enum_server_commandP3THDPcj";
const COM_DATA: &str = "P3THDPK8COM_DATA19enum_server_command";

/// The dispatcher's parameters; `bpf/sql.bpf.c` has the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// The command, the connection, and the packet with its length: MariaDB, and MySQL up to 5.6.
    Packet = 1,
    /// The connection, the packet's parsed content, and the command: MySQL from 5.7 on.
    ComData = 2,
}

/// A function of the server's file.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// As the compiler wrote it.
    pub name: &'a str,
    /// As the file states it.
    pub address: u64,
    /// Where in the file it begins.
    pub offset: u64,
    pub code: &'a [u8],
}

/// Where the probes go, as offsets in the server's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatcher {
    pub signature: Signature,
    /// Where the dispatcher is entered.
    pub begin: ProbePlace,
    /// Where it returns to.
    pub ends: Vec<ProbePlace>,
}

/// Where a probe goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbePlace {
    /// In the file.
    pub offset: u64,
    /// Whether the kernel emulates the instruction there, which makes a probe some ten times as cheap.
    pub is_emulated: bool,
}

/// Why a build's dispatcher can't be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatcherError {
    #[error(
        "this build's dispatcher (dispatch_command) takes parameters that are not known here: take a build of \
         MariaDB, MySQL or Percona Server"
    )]
    UnknownParameters,
    #[error(
        "no place was found in this build where its dispatcher (dispatch_command) is called: take one \
         that was not optimised across its files"
    )]
    NoCaller,
}

/// Whether [`Dispatcher::of`] asks for a function of this name.
pub fn is_of_dispatcher(name: &str) -> bool {
    name.starts_with(DISPATCHER) || CALLERS.iter().any(|caller| name.starts_with(caller))
}

impl Dispatcher {
    /// Among the functions of a file for whose names [`is_of_dispatcher`].
    ///
    /// # Errors
    /// A sentence on why a command's begin or end can't be found in this build.
    pub fn of(functions: &[Code<'_>]) -> Result<Dispatcher, DispatcherError> {
        let signature = |name: &str| match name.strip_prefix(DISPATCHER)? {
            parameters if parameters.starts_with(PACKET) => Some(Signature::Packet),
            COM_DATA => Some(Signature::ComData),
            _ => None,
        };
        let found = functions.iter().find_map(|function| Some((function, signature(function.name)?)));
        let (dispatcher, signature) = found.ok_or(DispatcherError::UnknownParameters)?;
        let ends = returns_to(dispatcher.address, functions, &CALLERS);
        if ends.is_empty() {
            return Err(DispatcherError::NoCaller);
        }
        let (begin, is_emulated) = begin_of(dispatcher.code);
        let begin = ProbePlace { offset: dispatcher.offset + begin as u64, is_emulated };
        Ok(Dispatcher { signature, begin, ends })
    }
}

/// Where the function at `target` returns to when it was called by one of the `callers`. If one of them jumps to it as its last act, it
/// returns to where that caller was called, by one of the next ones. Where the kernel does not emulate the instruction there, the place is the
/// first one after it that it emulates.
fn returns_to(target: u64, functions: &[Code<'_>], callers: &[&str]) -> Vec<ProbePlace> {
    let Some((caller, next)) = callers.split_first() else { return Vec::new() };
    let mut places = Vec::new();
    for function in functions.iter().filter(|function| function.name.starts_with(caller)) {
        let mut jumps = false;
        for branch in branches(function.address, function.code) {
            if branch.target == target && branch.is_call {
                let emulated = emulated_from(function.code, branch.after as usize);
                let after = emulated.map_or(branch.after, |place| place as u64);
                places.push(ProbePlace { offset: function.offset + after, is_emulated: emulated.is_some() });
            }
            jumps |= branch.target == target && !branch.is_call;
        }
        if jumps {
            places.extend(returns_to(function.address, functions, next));
        }
    }
    places.sort_unstable();
    places.dedup();
    places
}

struct Branch {
    target: u64,
    is_call: bool,
    /// From the function's begin to what follows the branch.
    after: u64,
}

/// Direct calls and jumps. On x86 instructions begin at any byte. Bytes that only look like an instruction have some target, and only
/// one in 10⁹ has the target that is searched for.
#[cfg(not(target_arch = "aarch64"))]
fn branches(address: u64, code: &[u8]) -> impl Iterator<Item = Branch> {
    const CALL: u8 = 0xe8;
    const JUMP: u8 = 0xe9;
    let branch = move |(place, bytes): (usize, &[u8])| match bytes {
        [CALL | JUMP, distance @ ..] => {
            let distance = i32::from_le_bytes(distance.try_into().ok()?);
            let after = place as u64 + 5;
            let target = address.wrapping_add(after).wrapping_add_signed(distance.into());
            Some(Branch { target, is_call: bytes[0] == CALL, after })
        }
        _ => None,
    };
    code.windows(5).enumerate().filter_map(branch)
}

/// Direct calls and jumps.
#[cfg(target_arch = "aarch64")]
fn branches(address: u64, code: &[u8]) -> impl Iterator<Item = Branch> {
    const KIND: u32 = 0x3f << 26;
    const CALL: u32 = 0x25 << 26;
    const JUMP: u32 = 0x05 << 26;
    let branch = move |(place, bytes): (usize, &[u8])| {
        let word = u32::from_le_bytes(bytes.try_into().ok()?);
        let is_call = word & KIND == CALL;
        if !is_call && word & KIND != JUMP {
            return None;
        }
        // 26 bits with a sign, in words.
        let distance = i64::from((word << 6) as i32 >> 4);
        let at = place as u64 * 4;
        Some(Branch {
            target: address.wrapping_add(at).wrapping_add_signed(distance),
            is_call,
            after: at + 4,
        })
    };
    code.chunks_exact(4).enumerate().filter_map(branch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: &str = "_Z16dispatch_command19enum_server_commandP3THDPcjb";
    const MYSQL: &str = "_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command";
    const MYSQL_55: &str = "_Z16dispatch_command19enum_server_commandP3THDPcj";
    /// Where the dispatcher is in these files; what calls it is 4096 bytes before.
    const DISPATCHER_AT: u64 = 0x2000;

    /// Four bytes of something else, then a branch from `address` on to `target`, then four bytes more.
    fn code(address: u64, target: u64, call: bool) -> Vec<u8> {
        let mut code = vec![0x90; 4];
        if cfg!(target_arch = "aarch64") {
            let words = (target.wrapping_sub(address + 4) as i64 / 4) as u32 & ((1 << 26) - 1);
            code.extend((words | if call { 0x25 << 26 } else { 0x05 << 26 }).to_le_bytes());
        } else {
            let distance = target.wrapping_sub(address + 9) as i32;
            code.push(if call { 0xe8 } else { 0xe9 });
            code.extend(distance.to_le_bytes());
        }
        code.extend([0x90; 4]);
        code
    }

    /// After the branch: on x86 bytes that do nothing follow, which the kernel emulates.
    fn end(function_at: u64) -> ProbePlace {
        let after = if cfg!(target_arch = "aarch64") { 8 } else { 9 };
        ProbePlace { offset: function_at + after, is_emulated: cfg!(target_arch = "x86_64") }
    }

    fn function<'a>(name: &'a str, address: u64, code: &'a [u8]) -> Code<'a> {
        Code { name, address, offset: address - 0x800, code }
    }

    #[test]
    fn a_dispatcher_is_found_with_what_it_is_given_and_where_it_returns_to() {
        let caller = code(0x1000, DISPATCHER_AT, true);
        for (name, signature) in [
            (MARIADB, Signature::Packet),
            (MYSQL_55, Signature::Packet),
            ("_Z16dispatch_command19enum_server_commandP3THDPcjbb", Signature::Packet),
            (MYSQL, Signature::ComData),
        ] {
            let functions =
                [function("_Z10do_commandP3THDb", 0x1000, &caller), function(name, DISPATCHER_AT, &[])];
            let begin = ProbePlace { offset: 0x1800, is_emulated: false };
            let ends = vec![end(0x800)];
            assert_eq!(Dispatcher::of(&functions), Ok(Dispatcher { signature, begin, ends }), "{name}");
        }
    }

    #[test]
    fn where_the_caller_jumps_to_the_dispatcher_it_returns_to_the_caller_s_caller() {
        let caller = code(0x1000, DISPATCHER_AT, false);
        let outer = code(0x3000, 0x1000, true);
        let functions = [
            function("_Z10do_commandP3THD", 0x1000, &caller),
            function(MYSQL_55, DISPATCHER_AT, &[]),
            function("_Z24do_handle_one_connectionP3THD", 0x3000, &outer),
        ];
        let found = Dispatcher::of(&functions).unwrap();
        assert_eq!((found.begin.offset, found.ends), (0x1800, vec![end(0x2800)]));
    }

    #[test]
    fn a_build_that_is_not_known_is_an_error_with_its_reason() {
        let elsewhere = code(0x1000, DISPATCHER_AT + 4, true);
        let functions = [function("_Z10do_commandP3THD", 0x1000, &elsewhere), function(MARIADB, 0x2000, &[])];
        assert!(Dispatcher::of(&functions).unwrap_err().to_string().contains("is called"));
        let other = [function("_Z16dispatch_commandP3THDj", 0x2000, &[])];
        assert!(Dispatcher::of(&other).unwrap_err().to_string().contains("parameters"));
        assert!(Dispatcher::of(&[]).is_err());
        assert!(is_of_dispatcher(MARIADB) && !is_of_dispatcher("_Z15dispatch_comman"));
    }
}
