//! Messages name what the user gave, say what is missing, and say it once.

mod common;

use common::{OwnServer, Place, output, text};

/// What a failed command says, by its last line.
fn message_of(place: &Place, args: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = place.whyso(args);
    let done = output(command.envs(environment.iter().copied()));
    assert!(!done.status.success(), "{args:?}");
    let printed = text(&done.stderr);
    let last = printed.lines().last().unwrap().to_string();
    let parts: Vec<&str> = last.split(": ").collect();
    for (place, part) in parts.iter().enumerate() {
        assert!(part.len() < 12 || !parts[place + 1..].contains(part), "'{part}' twice: {last}");
    }
    assert!(!printed.contains("whyso-relay"), "{printed}");
    last
}

#[test]
fn messages_name_the_server_and_the_privilege_once() {
    let place = Place::new();
    let server = OwnServer::start();
    server.sql("CREATE USER bench@127.0.0.1 IDENTIFIED BY 'geheim'; GRANT ALL ON whyso.* TO bench@127.0.0.1");
    let dsn = format!("mysql://bench@127.0.0.1:{}/", server.port);
    let password = ("MYSQL_PWD", "geheim");
    let load =
        ["load", "oltp-point-select", "--tables", "1", "--rows", "100", "--seconds", "1", "--dsn", &dsn];

    let message =
        message_of(&place, &[&load[..], &["--set", "innodb_io_capacity=300"]].concat(), &[password]);
    assert!(message.contains("grant") && message.contains("innodb_io_capacity"), "{message}");
    assert!(!message.contains("does not take the value"), "{message}");

    let message = message_of(&place, &load, &[password, ("TMPDIR", "/no/such/folder")]);
    assert!(message.contains("TMPDIR") && message.contains(&server.port.to_string()), "{message}");

    let message = message_of(&place, &load, &[("MYSQL_PWD", "wrong")]);
    assert!(message.contains("denied access to user 'bench'"), "{message}");

    let message =
        message_of(&place, &["load", "oltp-point-select", "--dsn", "mysql://u:p@127.0.0.1:1/"], &[]);
    assert!(message.contains("127.0.0.1:1") && message.contains("nothing listens"), "{message}");

    let elsewhere = format!("mysql://bench@127.0.0.1:{}/mysql", server.port);
    message_of(&place, &["load", "oltp-point-select", "--dsn", &elsewhere], &[password]);
    message_of(&place, &["locks", "--dsn", &dsn, "--at", "1"], &[password]);
}
