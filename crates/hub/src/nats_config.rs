//! The configuration of nats-server, from the hub's settings and its members.

use std::fmt::Write;
use std::path::Path;

use crate::frame::FRAME_BYTES_MAX;
use crate::member::{HubSettings, Member};
use crate::packing::MESSAGE_BYTES_MAX;
use crate::subject::rights;

/// Connections at a time: one a member, and some while they come back.
const CONNECTIONS_MAX: usize = 4096;
/// Room in a message for its subject and headers.
pub(crate) const HEADERS_BYTES_MAX: usize = 4 << 10;

pub(crate) fn text(settings: &HubSettings, folder: &Path, members: &[Member]) -> String {
    let in_folder = |name: &str| quoted(&folder.join(name).to_string_lossy());
    let payload_bytes_max = FRAME_BYTES_MAX.max(MESSAGE_BYTES_MAX) + HEADERS_BYTES_MAX;
    let mut config = String::new();
    // Writing to a string never fails.
    let _ = write!(
        config,
        "# Written by whyso hub. Changes are lost at the next invitation.
server_name: \"whyso-hub\"
listen: {listen}
max_payload: {payload_bytes_max}
max_connections: {CONNECTIONS_MAX}
write_deadline: \"10s\"
ping_interval: \"20s\"
ping_max: 2
jetstream {{
  store_dir: {store}
  max_memory_store: 67108864
  max_file_store: {bytes_max}
}}
tls {{
  cert_file: {certificate}
  key_file: {key}
  timeout: 5
}}
authorization {{
  timeout: 5
  users: [
",
        listen = quoted(&settings.listen),
        store = in_folder("jetstream"),
        bytes_max = settings.bytes_max,
        certificate = in_folder("certificate.pem"),
        key = in_folder("key.pem"),
    );
    for member in members {
        let rights = rights(&member.name, member.kind);
        let answers = if rights.answers { ", allow_responses: { max: 1, expires: \"30s\" }" } else { "" };
        let _ = writeln!(
            config,
            "    {{ nkey: {}, permissions: {{ publish: {{ allow: [{}] }}, subscribe: {{ allow: [{}] }}{answers} }} }} # {}",
            member.public_key,
            list(&rights.publish),
            list(&rights.subscribe),
            member.name,
        );
    }
    config.push_str("  ]\n}\n");
    config
}

fn list(subjects: &[String]) -> String {
    subjects.iter().map(|subject| quoted(subject)).collect::<Vec<_>>().join(", ")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
