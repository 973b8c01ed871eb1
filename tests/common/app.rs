//! What `whyso server app start` prints.

use std::path::Path;

/// Whether this machine has what the sample application needs.
pub(crate) fn can_be_app() -> bool {
    let missing =
        ["/usr/sbin/apache2", "/usr/sbin/php-fpm8.2"].into_iter().find(|path| !Path::new(path).exists());
    if let Some(missing) = missing {
        whyso_testing::not_tested(format!("there is no {missing}: no time of web requests"));
    }
    missing.is_none()
}

/// The rest of the line that begins so.
pub(crate) fn value<'a>(printed: &'a str, begin: &str) -> &'a str {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(begin));
    line.unwrap_or_else(|| panic!("no {begin} in {printed}")).trim()
}

/// The number of a program's first process.
pub(crate) fn pid<'a>(printed: &'a str, program: &str) -> &'a str {
    let mut programs = value(printed, "processes").split(", ");
    programs.find_map(|one| one.strip_prefix(program)).unwrap_or_else(|| panic!("{printed}")).trim()
}
