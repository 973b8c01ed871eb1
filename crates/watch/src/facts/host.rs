//! The machine that whyso runs on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use whyso_model::HostFacts;

use crate::text::first_number;

/// Files whose content is a fact worth a line of its own in a report.
const OTHER_FILES: [(&str, &str); 11] = [
    ("cpu_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("transparent_huge_pages_defrag", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ("swappiness", "/proc/sys/vm/swappiness"),
    ("dirty_ratio", "/proc/sys/vm/dirty_ratio"),
    ("dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
    ("overcommit_memory", "/proc/sys/vm/overcommit_memory"),
    ("numa_balancing", "/proc/sys/kernel/numa_balancing"),
    ("numa_nodes", "/sys/devices/system/node/online"),
    ("intel_no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
];

/// Returns the facts of this machine; what can't be read stays empty. `data_dir` is the
/// server's data directory, where that lies on this machine.
pub fn host_facts(data_dir: Option<&Path>) -> HostFacts {
    let cpuinfo = read("/proc/cpuinfo");
    let cpus = parse_cpuinfo(&cpuinfo);
    let clocksource = line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let vendor = line("/sys/class/dmi/id/sys_vendor");
    let product = line("/sys/class/dmi/id/product_name");
    let virtualization = guess_virtualization(cpus.hypervisor_flag, &vendor, &product, &clocksource);
    let mut other = BTreeMap::new();
    for (name, path) in OTHER_FILES {
        add(&mut other, name, line(path));
    }
    add(&mut other, "machine", format!("{vendor} {product}").trim().to_string());
    let mount = data_dir.and_then(data_mount);
    if let Some(mount) = &mount {
        add_device_facts(&mut other, mount);
    }
    HostFacts {
        hostname: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        os: parse_os_release(&read("/etc/os-release")),
        cpu_model: cpus.model,
        sockets: cpus.sockets,
        cores: cpus.cores,
        logical_cpus: cpus.logical,
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        clocksource,
        virtualization,
        addresses: addresses(&read("/proc/net/fib_trie"), &read("/proc/net/if_inet6")),
        data_filesystem: mount.map(|mount| mount.describe()).unwrap_or_default(),
        other,
    }
}

/// Most addresses of a machine that are kept.
const ADDRESSES_MAX: usize = 64;

/// Addresses that are this machine's, without those of loopback and of one link only. `trie`: `/proc/net/fib_trie`, where a line with an address
/// is followed by what it is. `inet6`: `/proc/net/if_inet6`.
fn addresses(trie: &str, inet6: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut last: Option<Ipv4Addr> = None;
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if let (true, Some(address)) = (line.starts_with("/32 host LOCAL"), last)
            && !address.is_loopback()
        {
            found.insert(IpAddr::V4(address));
        }
    }
    for digits in inet6.lines().filter_map(|line| line.split_whitespace().next()) {
        let Ok(bits) = u128::from_str_radix(digits, 16) else { continue };
        let address = Ipv6Addr::from(bits);
        if !address.is_loopback() && !address.is_unicast_link_local() {
            found.insert(IpAddr::V6(address));
        }
    }
    found.iter().take(ADDRESSES_MAX).map(IpAddr::to_string).collect()
}

fn read(path: &str) -> String {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

fn line(path: &str) -> String {
    read(path).trim().to_string()
}

fn add(facts: &mut BTreeMap<String, String>, name: &str, value: String) {
    if !value.is_empty() {
        facts.insert(name.to_string(), value);
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Cpus {
    model: String,
    sockets: u32,
    cores: u32,
    logical: u32,
    hypervisor_flag: bool,
}

/// A machine that lists no sockets (many that are not x86) counts as one socket, and each CPU as a core.
fn parse_cpuinfo(text: &str) -> Cpus {
    let mut cpus = Cpus::default();
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    let mut socket = 0;
    for line in text.lines() {
        let Some((word, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match word.trim() {
            "processor" => cpus.logical += 1,
            "model name" if cpus.model.is_empty() => cpus.model = value.to_string(),
            "physical id" => {
                socket = first_number(value).unwrap_or(0);
                sockets.insert(socket);
            }
            "core id" => {
                cores.insert((socket, first_number(value).unwrap_or(0)));
            }
            "flags" => {
                cpus.hypervisor_flag |= value.split(' ').any(|flag| flag == "hypervisor");
            }
            _ => {}
        }
    }
    cpus.sockets = (sockets.len() as u32).max(u32::from(cpus.logical > 0));
    cpus.cores = match cores.len() as u32 {
        0 => cpus.logical,
        count => count,
    };
    cpus
}

fn parse_os_release(text: &str) -> String {
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("PRETTY_NAME=") {
            return name.trim().trim_matches(['"', '\'']).to_string();
        }
    }
    String::new()
}

fn memory_bytes(meminfo: &str) -> u64 {
    for line in meminfo.lines() {
        if let Some(size) = line.strip_prefix("MemTotal:") {
            return first_number(size).unwrap_or(0).saturating_mul(1024);
        }
    }
    0
}

/// By firmware and clock; the CPU's flag shows only that there is a hypervisor.
fn guess_virtualization(hypervisor_flag: bool, vendor: &str, product: &str, clocksource: &str) -> String {
    const MAKERS: [(&str, &str); 8] = [
        ("VMware", "vmware"),
        ("Microsoft", "hyper-v"),
        ("innotek", "virtualbox"),
        ("Xen", "xen"),
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("Google", "kvm"),
        ("Amazon EC2", "kvm"),
    ];
    if !hypervisor_flag {
        return "none".to_string();
    }
    for (word, name) in MAKERS {
        if vendor.contains(word) || product.contains(word) {
            return name.to_string();
        }
    }
    match clocksource {
        "kvm-clock" => "kvm".to_string(),
        "xen" => "xen".to_string(),
        "hyperv_clocksource_tsc_page" => "hyper-v".to_string(),
        _ => "a virtual machine".to_string(),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    file_system: String,
    device: String,
    options: String,
    /// "major:minor".
    number: String,
}

impl Mount {
    fn describe(&self) -> String {
        format!(
            "{} on {} ({}), mounted at {}",
            self.file_system,
            self.device,
            self.options,
            self.point.display()
        )
    }
}

fn data_mount(data_dir: &Path) -> Option<Mount> {
    let data_dir = std::fs::canonicalize(data_dir).ok()?;
    find_mount(&read("/proc/self/mountinfo"), &data_dir)
}

/// The mount that a path lies in: the longest one, and of equals the last, which covers the others.
fn find_mount(mountinfo: &str, path: &Path) -> Option<Mount> {
    let mut found: Option<Mount> = None;
    for line in mountinfo.lines() {
        let Some(mount) = parse_mount(line) else {
            continue;
        };
        let depth = |mount: &Mount| mount.point.components().count();
        let deeper = found.as_ref().is_none_or(|deepest| depth(&mount) >= depth(deepest));
        if path.starts_with(&mount.point) && deeper {
            found = Some(mount);
        }
    }
    found
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split_ascii_whitespace().skip(2);
    let number = before.next()?.to_string();
    let point = before.nth(1)?.replace("\\040", " ");
    let options = before.next()?.to_string();
    let mut after = after.split_ascii_whitespace();
    Some(Mount {
        point: PathBuf::from(point),
        file_system: after.next()?.to_string(),
        device: after.next()?.to_string(),
        options,
        number,
    })
}

/// Scheduler and kind of the device below the data, from sysfs; of a partition, its disk's.
fn add_device_facts(other: &mut BTreeMap<String, String>, mount: &Mount) {
    let device = Path::new("/sys/dev/block").join(&mount.number);
    let Ok(device) = std::fs::canonicalize(device) else {
        return;
    };
    let disk = match device.join("queue").exists() {
        true => device.as_path(),
        false => device.parent().unwrap_or(&device),
    };
    let queue = |file: &str| line(&disk.join("queue").join(file).to_string_lossy());
    add(other, "data_device_scheduler", queue("scheduler"));
    add(other, "data_device_rotational", queue("rotational"));
    add(other, "data_device_write_cache", queue("write_cache"));
    add(other, "data_device_read_ahead_kb", queue("read_ahead_kb"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_those_that_others_reach() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.9.0.0\n        /24 link UNICAST\n     |-- 10.9.0.2\n        /32 host LOCAL\n\
                    Local:\n     |-- 10.9.0.2\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.9.0.255\n        /32 link BROADCAST\n";
        let inet6 = "00000000000000000000000000000001 01 80 10 80 lo\nfe800000000000000000000000000001 02 40 20 80 eth0\n\
                     20010db8000000000000000000000007 02 40 00 80 eth0\nnonsense\n";
        assert_eq!(addresses(trie, inet6), ["10.9.0.2", "2001:db8::7"]);
        assert!(addresses("", "").is_empty());
    }

    #[test]
    fn sockets_cores_and_threads_are_counted() {
        let mut text = String::new();
        for cpu in 0..8 {
            let (socket, core) = (cpu / 4, cpu % 2);
            text.push_str(&format!(
                "processor\t: {cpu}\nmodel name\t: Fast CPU\nphysical id\t: {socket}\n\
                 core id\t\t: {core}\nflags\t\t: fpu hypervisor\n\n"
            ));
        }
        let cpus = parse_cpuinfo(&text);
        assert_eq!((cpus.sockets, cpus.cores, cpus.logical), (2, 4, 8));
        assert_eq!(cpus.model, "Fast CPU");
        assert!(cpus.hypervisor_flag);
        let plain = parse_cpuinfo("processor : 0\nprocessor : 1\n");
        assert_eq!((plain.sockets, plain.cores, plain.logical), (1, 2, 2));
    }

    #[test]
    fn the_deepest_mount_holds_the_data() {
        let mounts = include_str!("../../tests/data/mountinfo_hybrid");
        let root = find_mount(mounts, Path::new("/var/lib/mysql")).unwrap();
        assert_eq!((root.file_system.as_str(), root.device.as_str()), ("ext4", "/dev/vda"));
        let memory = find_mount(mounts, Path::new("/dev/shm/data")).unwrap();
        assert_eq!(memory.file_system, "tmpfs");
    }

    #[test]
    fn the_hypervisor_is_named_where_it_can_be() {
        assert_eq!(guess_virtualization(false, "QEMU", "", "tsc"), "none");
        assert_eq!(guess_virtualization(true, "QEMU", "", "tsc"), "kvm");
        assert_eq!(guess_virtualization(true, "", "", "kvm-clock"), "kvm");
        assert_eq!(guess_virtualization(true, "", "", "tsc"), "a virtual machine");
    }

    #[test]
    fn this_machine_has_its_facts() {
        let folder = tempfile::tempdir().unwrap();
        let facts = host_facts(Some(folder.path()));
        assert!(!facts.kernel.is_empty());
        assert!(facts.logical_cpus >= 1 && facts.memory_bytes > 1 << 20);
        assert!(facts.data_filesystem.contains(" on "), "{facts:?}");
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(flags:|1 2 3:4 / /x rw - )?.{0,200}") {
            parse_cpuinfo(&text);
            parse_os_release(&text);
            memory_bytes(&text);
            find_mount(&text, Path::new("/x/y"));
        }
    }
}
