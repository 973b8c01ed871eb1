//! The sample application, and what `whyso server app start` prints.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{Place, output, text};

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

/// The sample application; it ends with this.
pub(crate) struct App {
    pub(crate) place: Place,
    printed: String,
}

impl App {
    pub(crate) fn start(options: &[&str]) -> App {
        let place = Place::new();
        // Root's programs run as nobody, who has to enter.
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let mut app = App { place, printed: String::new() };
        let started = output(&mut app.whyso(&[&["server", "app", "start"][..], options].concat()));
        assert!(started.status.success(), "{started:?}");
        app.printed = text(&started.stdout).to_string();
        app
    }

    pub(crate) fn whyso(&self, args: &[&str]) -> Command {
        let mut command = self.place.whyso(args);
        command.env("WHYSO_APP_PARENT", self.place.path());
        command
    }

    pub(crate) fn value(&self, begin: &str) -> &str {
        value(&self.printed, begin)
    }

    pub(crate) fn pid(&self, program: &str) -> &str {
        pid(&self.printed, program)
    }

    pub(crate) fn port(&self) -> u16 {
        self.value("http://127.0.0.1:").trim_end_matches('/').parse().unwrap()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.whyso(&["server", "app", "stop"]).output();
    }
}
