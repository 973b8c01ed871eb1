//! Where the files of a process's control groups are: `/proc/PID/cgroup` joined with the mounts.

use std::path::{Path, PathBuf};

/// A group's folder and the mount that it lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) folder: PathBuf,
    mount: PathBuf,
}

impl Group {
    /// The smallest limit in `file`, from the group up to the mount.
    pub(super) fn tightest(&self, file: &str, parse: fn(&str) -> Option<f64>) -> Option<f64> {
        self.tightest_of_folder(|folder| {
            let text = std::fs::read_to_string(folder.join(file)).ok()?;
            parse(&text)
        })
    }

    pub(super) fn tightest_of_folder(&self, read: impl Fn(&Path) -> Option<f64>) -> Option<f64> {
        self.folders().filter_map(read).reduce(f64::min)
    }

    /// The group's own, and those of the groups above it, up to the mount.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        let above_mount = self.mount.parent();
        self.folder.ancestors().take_while(move |folder| Some(*folder) != above_mount)
    }
}

/// The groups of one process; `None` where the controller is not mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    /// Version 2.
    pub(super) unified: Option<Group>,
    pub(super) cpu: Option<Group>,
    pub(super) cpuacct: Option<Group>,
    pub(super) cpuset: Option<Group>,
    pub(super) memory: Option<Group>,
    pub(super) pids: Option<Group>,
}

struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    version_2: bool,
    options: &'a str,
}

pub(super) fn find_groups(membership: &str, mountinfo: &str) -> Groups {
    let mounts: Vec<Mount<'_>> = mountinfo.lines().filter_map(parse_mount).collect();
    let mut groups = Groups::default();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            groups.unified = locate(&mounts, path, None);
            continue;
        }
        for controller in controllers.split(',') {
            let slot = match controller {
                "cpu" => &mut groups.cpu,
                "cpuacct" => &mut groups.cpuacct,
                "cpuset" => &mut groups.cpuset,
                "memory" => &mut groups.memory,
                "pids" => &mut groups.pids,
                _ => continue,
            };
            *slot = locate(&mounts, path, Some(controller));
        }
    }
    groups
}

fn locate(mounts: &[Mount<'_>], path: &str, controller: Option<&str>) -> Option<Group> {
    let mount = mounts.iter().find(|mount| match controller {
        None => mount.version_2,
        Some(controller) => !mount.version_2 && mount.options.split(',').any(|option| option == controller),
    })?;
    // In a container the mount shows a part of the hierarchy: paths begin at its root.
    let below = path.strip_prefix(mount.root.trim_end_matches('/'))?;
    let below = below.trim_start_matches('/');
    if below.split('/').any(|part| part == "..") {
        return None;
    }
    let point = PathBuf::from(mount.point);
    let folder = match below {
        "" => point.clone(),
        below => point.join(below),
    };
    Some(Group { folder, mount: point })
}

/// See proc_pid_mountinfo(5): fields up to a lone `-`, then file system, source, its options.
fn parse_mount(line: &str) -> Option<Mount<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split_ascii_whitespace().skip(3);
    let root = before.next()?;
    let point = before.next()?;
    let mut after = after.split_ascii_whitespace();
    let file_system = after.next()?;
    let options = after.nth(1)?;
    let version_2 = file_system == "cgroup2";
    if !version_2 && file_system != "cgroup" {
        return None;
    }
    Some(Mount { root, point, version_2, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_machine_has_both_versions() {
        let mounts = include_str!("../../../tests/data/mountinfo_hybrid");
        let membership = "9:name=systemd:/\n4:memory:/process_api/x\n1:cpu:/\n0::/\n";
        let groups = find_groups(membership, mounts);
        let memory = groups.memory.unwrap();
        assert_eq!(memory.folder, Path::new("/sys/fs/cgroup/memory/process_api/x"));
        assert_eq!(groups.cpu.unwrap().folder, Path::new("/sys/fs/cgroup/cpu"));
        assert_eq!(groups.unified.unwrap().folder, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(groups.cpuset, None);
    }

    #[test]
    fn in_a_container_paths_begin_at_the_mounts_root() {
        let mounts = "30 23 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let groups = find_groups("0::/docker/ab/db\n", mounts);
        assert_eq!(groups.unified.unwrap().folder, Path::new("/sys/fs/cgroup/db"));
        assert_eq!(find_groups("0::/elsewhere\n", mounts).unified, None);
        assert_eq!(find_groups("0::/docker/ab/../x\n", mounts).unified, None);
    }
}
