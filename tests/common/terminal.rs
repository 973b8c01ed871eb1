//! A real terminal in which `whyso watch` runs: keys are sent by tmux, and the screen is read as it is shown.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Place, SOON, text, wait_until};

/// A terminal of its own, in which the program runs.
pub(crate) struct Terminal<'a> {
    place: &'a Place,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    pub(crate) fn start(place: &'a Place, arguments: &[&str]) -> Terminal<'a> {
        Terminal::start_by(place, "", arguments)
    }

    /// `begin`: what the program is started by, such as "ip netns exec NAME".
    pub(crate) fn start_by(place: &'a Place, begin: &str, arguments: &[&str]) -> Terminal<'a> {
        let script = place.path().join("watch.sh");
        let quoted: Vec<String> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
        let folder = place.path().display();
        let text = format!(
            "cd '{folder}'\nexport HOME='{folder}' XDG_CACHE_HOME='{folder}/cache' XDG_STATE_HOME='{folder}/state'\n\
             {begin} '{}' watch {} 2>messages\necho \"ended with $?\"\nsleep 300\n",
            env!("CARGO_BIN_EXE_whyso"),
            quoted.join(" ")
        );
        fs::write(&script, text).unwrap();
        let terminal = Terminal { place, socket: place.path().join("tmux") };
        let script = script.to_str().unwrap();
        let size = ["-x", "160", "-y", "50"];
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "w",
            size[0],
            size[1],
            size[2],
            size[3],
            "sh",
            script,
        ]);
        terminal
    }

    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket).args(arguments).env("LANG", "C.UTF-8").env_remove("TMUX");
        let mut start = || tmux.stdin(Stdio::null()).output().expect("tmux is needed: apt-get install tmux");
        let mut done = start();
        // On a busy machine tmux itself may give up before anything of ours was begun.
        if arguments.contains(&"new-session") && text(&done.stderr).contains("server exited unexpectedly") {
            done = start();
        }
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "w"], keys].concat());
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "w"])
    }

    /// Waits until the screen is as is asked for, and gives it.
    pub(crate) fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let mut screen = String::new();
        let found = wait_until(SOON, || {
            screen = self.screen();
            is_there(&screen)
        });
        let messages = fs::read_to_string(self.place.path().join("messages")).unwrap_or_default();
        assert!(found, "not seen: {what}\n{screen}\n{messages}");
        screen
    }

    pub(crate) fn wait_for_words(&self, words: &str) -> String {
        self.wait_for(words, |screen| screen.contains(words))
    }

    /// Ends the program by a key, and waits until nothing of it is left on the screen.
    pub(crate) fn quit(&self) -> String {
        self.press(&["q"]);
        self.wait_for_words("ended with 0")
    }

    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let Ok(runs) = fs::read_dir(self.place.runs()) else { return Vec::new() };
        runs.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut tmux = Command::new("tmux");
        let _ = tmux.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}
