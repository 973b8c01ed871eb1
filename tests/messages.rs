//! Messages name what the user gave, say what is missing, and say it once.

mod common;

use common::{OwnServer, Place, output, text};

/// What a failed command says, by its last line.
fn said(place: &Place, args: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = place.whyso(args);
    let done = output(command.envs(environment.iter().copied()));
    assert!(!done.status.success(), "{args:?}");
    let said = text(&done.stderr);
    let last = said.lines().last().unwrap().to_string();
    let parts: Vec<&str> = last.split(": ").collect();
    for (place, part) in parts.iter().enumerate() {
        assert!(part.len() < 12 || !parts[place + 1..].contains(part), "'{part}' twice: {last}");
    }
    assert!(!said.contains("whyso-relay"), "{said}");
    last
}

#[test]
fn messages_name_the_server_and_the_privilege_and_say_it_once() {
    let place = Place::new();
    let server = OwnServer::start();
    server.sql("CREATE USER bench@127.0.0.1 IDENTIFIED BY 'geheim'; GRANT ALL ON whyso.* TO bench@127.0.0.1");
    let dsn = format!("mysql://bench@127.0.0.1:{}/", server.port);
    let password = ("MYSQL_PWD", "geheim");
    let load =
        ["load", "oltp-point-select", "--tables", "1", "--rows", "100", "--seconds", "1", "--dsn", &dsn];

    let message = said(&place, &[&load[..], &["--set", "innodb_io_capacity=300"]].concat(), &[password]);
    assert!(message.contains("grant") && message.contains("innodb_io_capacity"), "{message}");
    assert!(!message.contains("does not take the value"), "{message}");

    let message = said(&place, &load, &[password, ("TMPDIR", "/no/such/folder")]);
    assert!(message.contains("TMPDIR") && message.contains(&server.port.to_string()), "{message}");

    let message = said(&place, &load, &[("MYSQL_PWD", "wrong")]);
    assert!(message.contains("denied access to user 'bench'"), "{message}");

    let message = said(&place, &["load", "oltp-point-select", "--dsn", "mysql://u:p@127.0.0.1:1/"], &[]);
    assert!(message.contains("127.0.0.1:1") && message.contains("nothing listens"), "{message}");

    let elsewhere = format!("mysql://bench@127.0.0.1:{}/mysql", server.port);
    said(&place, &["load", "oltp-point-select", "--dsn", &elsewhere], &[password]);
    said(&place, &["locks", "--dsn", &dsn, "--at", "1"], &[password]);
}
