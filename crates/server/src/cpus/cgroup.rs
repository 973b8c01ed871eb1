//! Cgroups of one process, where they can be created: the CPUs that it may run on, the memory that it may use.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use super::CpuSet;

/// Why a cgroup can't be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CgroupError {
    #[error("no cgroup file system is mounted")]
    NotMounted,
    #[error("the {0} controller is not delegated to us")]
    NotDelegated(&'static str),
    #[error("the memory controller is not delegated to us: {0}")]
    MemoryLimit(std::io::Error),
    #[error("cannot make a cgroup: {0}")]
    Create(std::io::Error),
    #[error("cannot set up a cgroup: {0}")]
    Configure(std::io::Error),
    #[error("no quota of CPU time bounds this process, or its cgroup is not to be seen")]
    NoQuota,
    #[error("{0}")]
    Read(#[from] std::io::Error),
}

/// A cgroup that is created before its process. The process joins it between fork and exec, and it is removed at the
/// end.
pub(crate) struct Cgroup {
    pub(crate) version: u8,
    pub(crate) path: PathBuf,
    procs: File,
}

impl Cgroup {
    /// Makes a cgroup of CPUs below the one that this process is in.
    ///
    /// # Errors
    /// Why it can't be created here.
    pub(crate) fn create(name: &str, cpus: &CpuSet) -> Result<Cgroup, CgroupError> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        if let Some(parent) = v1_parent("cpuset", &own, &mounts) {
            return Cgroup::create_v1(&parent, name, cpus);
        }
        let parent = v2_parent(&own, &mounts).ok_or(CgroupError::NotMounted)?;
        Cgroup::create_v2(&parent, name, cpus)
    }

    fn create_v1(parent: &Path, name: &str, cpus: &CpuSet) -> Result<Cgroup, CgroupError> {
        // "mems" must be filled before a process may join
        let memory_nodes = std::fs::read_to_string(parent.join("cpuset.effective_mems"))
            .or_else(|_| std::fs::read_to_string(parent.join("cpuset.mems")))?;
        Cgroup::fill(
            1,
            parent.join(name),
            &[("cpuset.mems", memory_nodes.trim()), ("cpuset.cpus", &cpus.list())],
        )
    }

    fn create_v2(parent: &Path, name: &str, cpus: &CpuSet) -> Result<Cgroup, CgroupError> {
        let folder = delegating_folder("cpuset", parent)?;
        Cgroup::fill(2, folder.join(name), &[("cpuset.cpus", &cpus.list())])
    }

    /// Bounds the memory of a process, with the page cache of its files. `of_cpus` is the process's cgroup of CPUs: in version 2 it is the same one.
    ///
    /// # Errors
    /// Why memory can't be bounded here.
    pub(crate) fn bound_memory(
        name: &str,
        bytes: u64,
        of_cpus: Option<&Cgroup>,
    ) -> Result<Option<Cgroup>, CgroupError> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let bound = bytes.to_string();
        if let Some(parent) = v1_parent("memory", &own, &mounts) {
            return Cgroup::fill(1, parent.join(name), &[("memory.limit_in_bytes", &bound)]).map(Some);
        }
        if let Some(of_cpus) = of_cpus.filter(|of_cpus| of_cpus.version == 2) {
            return std::fs::write(of_cpus.path.join("memory.max"), &bound)
                .map(|()| None)
                .map_err(CgroupError::MemoryLimit);
        }
        let parent = v2_parent(&own, &mounts).ok_or(CgroupError::NotMounted)?;
        let folder = delegating_folder("memory", &parent)?;
        Cgroup::fill(2, folder.join(name), &[("memory.max", &bound)]).map(Some)
    }

    /// Makes a cgroup that no quota of CPU time bounds: as far up as a quota is, and one further.
    ///
    /// # Errors
    /// Why it can't be created here.
    pub(crate) fn without_quota(name: &str) -> Result<Cgroup, CgroupError> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let (version, parent) = match v1_parent("cpu", &own, &mounts) {
            Some(parent) => (1, parent),
            None => (2, v2_parent(&own, &mounts).ok_or(CgroupError::NotMounted)?),
        };
        Cgroup::fill(version, above_quota(&parent).ok_or(CgroupError::NoQuota)?.join(name), &[])
    }

    fn fill(version: u8, path: PathBuf, settings: &[(&str, &str)]) -> Result<Cgroup, CgroupError> {
        std::fs::create_dir(&path).map_err(CgroupError::Create)?;
        let filled = settings
            .iter()
            .try_for_each(|(file, value)| std::fs::write(path.join(file), value))
            .and_then(|()| OpenOptions::new().write(true).open(path.join("cgroup.procs")));
        match filled {
            Ok(procs) => Ok(Cgroup { version, path, procs }),
            Err(error) => {
                let _ = std::fs::remove_dir(&path);
                Err(CgroupError::Configure(error))
            }
        }
    }

    /// Where a process writes "0" to join.
    pub(crate) fn procs(&self) -> &File {
        &self.procs
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// The first folder above every quota of CPU time. `None` where there is none, or no folder above it.
fn above_quota(own: &Path) -> Option<PathBuf> {
    let has_quota = |folder: &&Path| {
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        let (v1, v2) = (read("cpu.cfs_quota_us"), read("cpu.max"));
        v1.trim().parse().is_ok_and(|quota_us: i64| quota_us > 0)
            || v2.starts_with(|first: char| first.is_ascii_digit())
    };
    let highest = own.ancestors().filter(has_quota).last()?;
    highest.parent().filter(|above| above.join("cgroup.procs").exists()).map(Path::to_path_buf)
}

/// The folder below which a cgroup can be created in version 2. A folder that holds processes hands out no controllers,
/// so the one above must do.
fn delegating_folder(controller: &'static str, parent: &Path) -> Result<PathBuf, CgroupError> {
    let hands_out = |folder: &&Path| {
        let handed_out = std::fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        handed_out.split_whitespace().any(|name| name == controller)
    };
    let found = parent.ancestors().take(3).find(hands_out);
    found.map(Path::to_path_buf).ok_or(CgroupError::NotDelegated(controller))
}

/// Our folder in the v1 hierarchy of a controller.
fn v1_parent(controller: &str, own: &str, mounts: &str) -> Option<PathBuf> {
    let line = own.lines().find(|line| {
        line.split(':').nth(1).is_some_and(|list| list.split(',').any(|name| name == controller))
    })?;
    let path = line.splitn(3, ':').nth(2)?;
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_its =
            after.starts_with("cgroup ") && after.split([' ', ',']).any(|option| option == controller);
        is_its.then(|| below_mount(before, path))?
    })?;
    Some(mount)
}

/// Our folder in the v2 hierarchy.
fn v2_parent(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        after.starts_with("cgroup2 ").then(|| below_mount(before, path))?
    })
}

/// Path of a cgroup below a mount, which may show only a part of the hierarchy.
fn below_mount(mount_fields: &str, cgroup: &str) -> Option<PathBuf> {
    let mut fields = mount_fields.split(' ').skip(3);
    let (root, mount_point) = (fields.next()?, fields.next()?);
    let below = cgroup.strip_prefix(root.trim_end_matches('/')).unwrap_or(cgroup);
    Some(Path::new(mount_point).join(below.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_quota_lies_above_the_highest_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("box/inner");
        std::fs::create_dir_all(&folder).unwrap();
        for group in ["", "box", "box/inner"] {
            std::fs::write(root.path().join(group).join("cgroup.procs"), "").unwrap();
        }
        assert_eq!(above_quota(&folder), None, "there is no quota");
        std::fs::write(folder.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        std::fs::write(root.path().join("box/cpu.cfs_quota_us"), "50000\n").unwrap();
        assert_eq!(above_quota(&folder).as_deref(), Some(root.path()));
        std::fs::write(folder.join("cpu.max"), "max 100000\n").unwrap();
        std::fs::remove_file(root.path().join("box/cpu.cfs_quota_us")).unwrap();
        assert_eq!(above_quota(&folder), None);
        std::fs::write(folder.join("cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(above_quota(&folder), Some(root.path().join("box")));
    }

    #[test]
    fn the_cpuset_folder_is_found_in_both_versions() {
        let v1 = "9:name=systemd:/\n3:cpuset:/box\n2:cpuacct,cpu:/\n0::/\n";
        let mounts = "30 20 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            31 20 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
            32 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(v1_parent("cpuset", v1, mounts).unwrap(), Path::new("/sys/fs/cgroup/cpuset/box"));
        let v2 = "0::/user.slice/session-1.scope\n";
        let mounts = "32 20 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(v1_parent("cpuset", v2, mounts), None);
        assert_eq!(v2_parent(v2, mounts).unwrap(), Path::new("/sys/fs/cgroup/user.slice/session-1.scope"));
        // a container that sees only its own part
        let mounts = "32 20 0:28 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(v2_parent("0::/docker/1/x", mounts).unwrap(), Path::new("/sys/fs/cgroup/x"));
    }
}
