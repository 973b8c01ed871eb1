//! Lines as the servers write them.

use whyso_access_log::{ConnectionState, FormatError, LineError, LogFormat, Request};

const AT_NS: i64 = 1_795_894_804_000_000_000;

fn parse(format: &str, line: &str) -> Result<Request, LineError> {
    LogFormat::compile(format).unwrap_or_else(|error| panic!("{format}: {error}")).parse(line)
}

fn expected() -> Request {
    Request {
        end_ns: Some(AT_NS),
        method: "GET".to_string(),
        path: "/a?b=1".to_string(),
        status: Some(200),
        bytes: Some(512),
        ..Request::default()
    }
}

#[test]
fn apache_s_formats_are_read() {
    let line = "::1 - - [28/Nov/2026:19:40:04 +0000] \"GET /a?b=1 HTTP/1.1\" 200 512";
    assert_eq!(parse("common", line), Ok(expected()));
    assert_eq!(parse("combined", &format!("{line} \"http://x/\" \"curl \\\"7\\\"\"")), Ok(expected()));
    let with_begin = Request { end_ns: Some(AT_NS + 1_500_000), duration_ns: Some(1_500_000), ..expected() };
    assert_eq!(parse("common-us", &format!("{line} 1500")), Ok(with_begin));

    let format =
        r#""%a %{end:msec}t %{pid}P %{tid}P %X %k %m %U%q %H %>s %O %{ms}T %T %D \"%{Host}i\" %{Foo}o %%""#;
    let line =
        r#"10.0.0.1 1795894804123 42 139872 X 3 POST /a?b=1 HTTP/1.1 503 99 2 0 1999 "shop \"x\"" - %"#;
    let request = Request {
        end_ns: Some(AT_NS + 123_000_000),
        method: "POST".to_string(),
        status: Some(503),
        bytes: Some(99),
        duration_ns: Some(1_999_000),
        pid: Some(42),
        connection: Some(ConnectionState::Aborted),
        ..expected()
    };
    assert_eq!(parse(format, line), Ok(request));

    let format = "[%{%Y-%m-%d %H:%M:%S}t.%{usec_frac}t %{%z}t] %!200,304{X}i %<s %r|%B";
    let line = "[2026-11-28 20:40:04.250000 +0100] - 200 GET /a?b=1 HTTP/1.1|512";
    assert_eq!(parse(format, line), Ok(Request { end_ns: Some(AT_NS + 250_000_000), ..expected() }));
}

#[test]
fn nginx_s_formats_are_read() {
    let format = "'$remote_addr [$time_local] \"$request\" '\n'$status $body_bytes_sent $request_time $upstream_addr '\n'$upstream_response_time $pid $connection';";
    let line = "::1 [28/Nov/2026:19:40:04 +0000] \"GET /a?b=1 HTTP/1.1\" 200 512 0.013 a:1, b:2 0.002, 0.004 : 0.005 77 9";
    let request =
        Request { duration_ns: Some(13_000_000), upstream_ns: Some(11_000_000), pid: Some(77), ..expected() };
    assert_eq!(parse(format, line), Ok(request));
    let format = "$msec $time_iso8601 $scheme://$host$request_uri $request_method $status ${bytes_sent}b \"$upstream_response_time\"";
    let line = "1795894804.250 2026-11-28T19:40:04+00:00 http://x/a?b=1 GET 200 512b \"-\"";
    assert_eq!(parse(format, line), Ok(Request { end_ns: Some(AT_NS + 250_000_000), ..expected() }));
}

#[test]
fn json_is_read_by_well_known_keys_and_by_the_user_s_own() {
    let caddy = r#"{"level":"info","ts":1795894804,"request":{"method":"GET","uri":"/a?b=1"},"duration":0.000929675,"size":512,"status":200}"#;
    assert_eq!(parse("json", caddy), Ok(Request { duration_ns: Some(929_675), ..expected() }));
    let traefik = r#"{"StartUTC":"2026-11-28T19:40:04Z","RequestMethod":"GET","RequestPath":"/a?b=1","DownstreamStatus":200,"DownstreamContentSize":512,"Duration":1500,"OriginDuration":900}"#;
    let timed = Request { duration_ns: Some(1500), upstream_ns: Some(900), ..expected() };
    assert_eq!(parse("json", traefik), Ok(timed));
    let nginx = r#"{"time_local":"28/Nov/2026:19:40:04 +0000","request":"GET /a?b=1 HTTP/1.1","status":"200","body_bytes_sent":"512","request_time":"0.013","pid":"7","upstream_response_time":"-"}"#;
    let timed = Request { duration_ns: Some(13_000_000), pid: Some(7), ..expected() };
    assert_eq!(parse("json", nginx), Ok(timed));
    let own = r#"{"when":1795894804000,"what":"GET /a?b=1 HTTP/1.1","c":200,"size":512,"took":"1.5ms"}"#;
    let timed = Request { duration_ns: Some(1_500_000), ..expected() };
    assert_eq!(parse("json:when=time,what=request,c=status,took=duration_us", own), Ok(timed));
    assert_eq!(parse("json", "[1]"), Err(LineError::NotJson));
    assert_eq!(parse("json", "{\"a\":1}"), Err(LineError::NoRequest));
}

#[test]
fn what_clients_send_instead_of_requests_is_counted_with_its_status() {
    for garbage in ["-", "", "\\x16\\x03\\x01\\x02", "GET", "get me /"] {
        let line = format!("::1 - - [28/Nov/2026:19:40:04 +0000] \"{garbage}\" 400 -");
        let request = parse("common", &line).unwrap();
        assert_eq!(
            (request.path.as_str(), request.status, request.bytes),
            ("", Some(400), None),
            "{garbage}"
        );
    }
    let escaped =
        parse("common", "::1 - - [28/Nov/2026:19:40:04 +0000] \"GET /\\xc3\\xa9\\\"\\\\ HTTP/1.0\" 200 1");
    assert_eq!(escaped.unwrap().path, "/é\"\\");
}

#[test]
fn lines_that_do_not_fit_have_a_reason() {
    let line = "::1 - - [28/Nov/2026:19:40:04 +0000] \"GET / HTTP/1.1\" 200 512";
    assert_eq!(parse("common", &line[..50]), Err(LineError::DoesNotFit));
    assert_eq!(parse("common", &line.replace("Nov", "Nox")), Err(LineError::Time));
    assert_eq!(parse("common", &line.replace("200", "two")), Err(LineError::Number));
    assert_eq!(parse("common", &format!("{line} more")), Err(LineError::Number));
    assert_eq!(parse("common", &"x".repeat(70_000)), Err(LineError::TooLong));
}

#[test]
fn formats_that_can_t_be_read_are_refused() {
    let refused = |format: &str| LogFormat::compile(format).unwrap_err();
    assert_eq!(refused(" "), FormatError::Empty);
    assert_eq!(refused("%s %Y"), FormatError::UnknownDirective("%Y".to_string()));
    assert_eq!(
        refused("%h%s"),
        FormatError::NoSeparator { first: "%h".to_string(), second: "%s".to_string() }
    );
    assert_eq!(refused("%h %t"), FormatError::NoRequest);
    assert_eq!(refused("%{%Q}t %s"), FormatError::TimeFormat("%Q".to_string()));
    assert_eq!(refused("combi"), FormatError::UnknownName("combi".to_string()));
    assert_eq!(refused("json:a"), FormatError::JsonPair("a".to_string()));
    assert_eq!(refused("json:a=b"), FormatError::JsonField("b".to_string()));
    assert!(refused("%s %").to_string().contains('%') && refused("$status $").to_string().contains('$'));
}

#[test]
fn a_format_is_guessed_by_the_first_lines() {
    let line = "::1 - - [28/Nov/2026:19:40:04 +0000] \"GET / HTTP/1.1\" 200 512";
    for (after, expected) in [
        ("", "common"),
        (" 1500", "common-us"),
        (" \"-\" \"curl\"", "combined"),
        (" \"-\" \"curl\" 1500", "combined-us"),
        (" \"-\" \"curl\" \"10.0.0.1, 10.0.0.2\"", "nginx-main"),
        (" \"-\" \"curl\" 0.013", "nginx-time"),
    ] {
        let line = format!("{line}{after}");
        let guessed = LogFormat::guess(&[&line, "broken"]);
        assert_eq!(guessed.as_ref().map(LogFormat::description), Some(expected), "{line}");
    }
    let vhost = format!("shop:80 {line} \"-\" \"curl\"");
    assert_eq!(LogFormat::guess(&[&vhost]).unwrap().description(), "vhost-combined");
    assert_eq!(LogFormat::guess(&["{\"status\":200}"]).unwrap().description(), "json");
    assert_eq!(LogFormat::guess(&["a", "b"]), None);
}
