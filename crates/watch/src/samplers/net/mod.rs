//! Network interfaces, from `/proc/net/dev`, and TCP of the whole machine, from `/proc/net/snmp`
//! and `/proc/net/netstat` under the kernel's own names.
//!
//! All three are of the network namespace that whyso runs in. Interfaces that never carried a
//! packet are left out. A Unix socket appears nowhere here.

use crate::metric::{Metric, counter, gauge};
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
use crate::sink::Batch;
use crate::text::{KernelFile, number};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["net"],
    counts: "interfaces and TCP",
    origin: "`/proc/net`",
    metrics: &[&INTERFACE, &TCP],
    start: |_| vec![ScheduledSampler::of_machine(Net::new())],
};

pub(crate) const INTERFACE: [Metric; 8] = [
    counter("received_bytes", "bytes", "received by the interface"),
    counter("received_packets", "1", "packets received"),
    counter("receive_errors", "1", "packets received with an error"),
    counter("receive_dropped", "1", "packets received and dropped"),
    counter("sent_bytes", "bytes", "sent by the interface"),
    counter("sent_packets", "1", "packets sent"),
    counter("send_errors", "1", "packets that failed to be sent"),
    counter("send_dropped", "1", "packets dropped instead of being sent"),
];
/// Columns of `/proc/net/dev` that [`INTERFACE`] takes.
const COLUMNS: [usize; 8] = [0, 1, 2, 3, 8, 9, 10, 11];

pub(crate) const TCP: [Metric; 26] = [
    counter("ActiveOpens", "1", "connections opened from here"),
    counter("PassiveOpens", "1", "connections accepted here"),
    counter("AttemptFails", "1", "connections that failed to open"),
    counter("EstabResets", "1", "connections that were reset"),
    gauge("CurrEstab", "1", "connections that are open"),
    counter("InSegs", "1", "segments received"),
    counter("OutSegs", "1", "segments sent"),
    counter("RetransSegs", "1", "segments sent again"),
    counter("InErrs", "1", "segments received with an error"),
    counter("OutRsts", "1", "resets sent"),
    counter("ListenOverflows", "1", "connections refused since the accept queue was full"),
    counter("ListenDrops", "1", "connections dropped on their way into the accept queue"),
    counter("TCPTimeouts", "1", "times that an answer did not come in time"),
    counter("TCPSynRetrans", "1", "openings of connections sent again"),
    counter("TCPFastRetrans", "1", "segments sent again at once"),
    counter("TCPSlowStartRetrans", "1", "segments sent again in slow start"),
    counter("TCPLostRetransmit", "1", "segments sent again that were lost again"),
    counter("TCPBacklogDrop", "1", "segments dropped since the socket's backlog was full"),
    counter("TCPReqQFullDrop", "1", "openings dropped since the queue of requests was full"),
    counter("TCPRcvCollapsed", "1", "segments merged since a receive buffer was full"),
    counter("PruneCalled", "1", "times that a receive buffer was too full"),
    counter("TCPAbortOnMemory", "1", "connections ended for want of memory"),
    counter("TCPMemoryPressures", "1", "times that TCP ran short of memory"),
    counter("TCPZeroWindowDrop", "1", "segments dropped since the receive window was zero"),
    counter("DelayedACKs", "1", "acknowledgements sent late on purpose"),
    counter("TCPAutoCorking", "1", "small segments held back to be joined"),
];

pub(crate) struct Net {
    dev: KernelFile,
    snmp: KernelFile,
    netstat: KernelFile,
}

impl Net {
    pub(crate) fn new() -> Net {
        Net {
            dev: KernelFile::new("/proc/net/dev"),
            snmp: KernelFile::new("/proc/net/snmp"),
            netstat: KernelFile::new("/proc/net/netstat"),
        }
    }
}

impl Sampler for Net {
    fn source(&self) -> &'static str {
        "net"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        match self.dev.read() {
            Ok(text) => parse_dev(&text, batch),
            Err(error) => return Err(Failure::quick(self.dev.failure(&error))),
        }
        for file in [&mut self.snmp, &mut self.netstat] {
            match file.read() {
                Ok(text) => parse_tables(&text, batch),
                Err(error) => {
                    let why = file.failure(&error);
                    batch.absent(why);
                }
            }
        }
        Ok(())
    }
}

fn parse_dev(text: &str, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let Some((interface, rest)) = line.split_once(':') else {
            continue;
        };
        let interface = interface.trim();
        let mut columns = [0_u64; 16];
        for (column, word) in columns.iter_mut().zip(rest.split_ascii_whitespace()) {
            *column = number(word).unwrap_or(0);
        }
        let never_used = columns.iter().all(|value| *value == 0);
        if never_used {
            continue;
        }
        for (metric, column) in INTERFACE.iter().zip(COLUMNS) {
            batch.put(metric, interface, columns[column]);
        }
    }
}

/// Pairs of lines: names, then numbers, both opened by the same word.
fn parse_tables(text: &str, batch: &mut Batch<'_>) {
    let mut lines = text.lines();
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let (Some((table, names)), Some((same_table, numbers))) =
            (names.split_once(':'), numbers.split_once(':'))
        else {
            return;
        };
        if table != same_table {
            return;
        }
        if table != "Tcp" && table != "TcpExt" {
            continue;
        }
        let pairs = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
        for (name, value) in pairs {
            let Some(metric) = TCP.iter().find(|metric| metric.name == name) else {
                continue;
            };
            if let Some(value) = number(value) {
                batch.put(metric, "", value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    #[test]
    fn interfaces_in_use_are_counted() {
        let text = include_str!("../../../tests/data/net_dev");
        let values = collect(|batch| parse_dev(text, batch));
        assert_eq!(values["received_bytes eth0"], 294_738_713.0);
        assert_eq!(values["sent_packets eth0"], 12_159.0);
        assert_eq!(values["sent_bytes lo"], 3_193.0);
        assert_eq!(values.len(), 16);
    }

    #[test]
    fn tcp_is_counted_from_both_files() {
        let snmp = include_str!("../../../tests/data/net_snmp");
        let netstat = include_str!("../../../tests/data/net_netstat");
        let values = collect(|batch| {
            parse_tables(snmp, batch);
            parse_tables(netstat, batch);
        });
        assert_eq!(values["RetransSegs"], 2.0);
        assert_eq!(values["CurrEstab"], 1.0);
        assert_eq!(values["DelayedACKs"], 94.0);
        assert_eq!(values.len(), TCP.len());
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(Tcp: InSegs\nTcp: )?.{0,200}\n?.{0,80}") {
            collect(|batch| {
                parse_dev(&text, batch);
                parse_tables(&text, batch);
            });
        }
    }
}
