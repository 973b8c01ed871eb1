//! What of a variable's value may be shown.

/// Stands for a value that is not shown.
const MASKED: &str = "***";

/// Parts of names whose values are, or may hold, credentials.
const SECRET_PARTS: [&str; 13] = [
    "access_key",
    "api_key",
    "credential",
    "filekey",
    "headers",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "sst_auth",
    "token",
    "role_id",
];

/// SQL or a command of the administrator's, in which a password may stand, and accounts.
const SECRET_NAMES: [&str; 6] =
    ["external_user", "init_connect", "init_replica", "init_slave", "proxy_user", "wsrep_notify_cmd"];
const SECRET_STARTS: [&str; 2] = ["report_", "keyring_vault"];

/// Rules about passwords, and words of the full-text parser: no secrets.
const POLICY_STARTS: [&str; 7] = [
    "caching_sha2_password_",
    "cracklib_password_check_",
    "mysql_native_password_",
    "password_",
    "sha256_password_",
    "simple_password_check_",
    "validate_password",
];
const POLICY_NAMES: [&str; 10] = [
    "default_password_lifetime",
    "disconnect_on_expired_password",
    "ft_max_token_size",
    "generated_random_password_length",
    "innodb_ft_max_token_size",
    "innodb_ft_min_token_size",
    "max_password_errors",
    "ngram_token_size",
    "old_passwords",
    "strict_password_validation",
];

/// Keys inside a value after which a secret comes.
const SECRET_KEYS: [&str; 7] =
    ["passphrase=", "passwd=", "password=", "pwd=", "secret=", "token=", "password:"];

/// The value as it may be recorded. `name` in lower case. An empty value stays empty: that nothing
/// is set is worth knowing and gives nothing away. User and password in a URL are masked whatever
/// the variable is.
///
/// ```
/// assert_eq!(whyso_watch::mask_variable("wsrep_sst_auth", "sst:geheim"), "***");
/// assert_eq!(whyso_watch::mask_variable("max_connections", "151"), "151");
/// ```
pub fn mask_variable(name: &str, value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    if is_secret(name) {
        return MASKED.to_string();
    }
    let lower = value.to_ascii_lowercase();
    // `socket.ssl_password_file=…` of Galera names a file, and is not caught.
    if SECRET_KEYS.iter().any(|key| lower.contains(key)) || lower.contains("identified by") {
        return MASKED.to_string();
    }
    mask_urls(value)
}

fn is_secret(name: &str) -> bool {
    // MySQL's component variables are called "component.variable".
    let own_name = name.rsplit_once('.').map_or(name, |(_, own)| own);
    let policy =
        POLICY_STARTS.iter().any(|start| name.starts_with(start)) || POLICY_NAMES.contains(&own_name);
    if policy {
        return false;
    }
    SECRET_PARTS.iter().any(|part| name.contains(part))
        || SECRET_NAMES.contains(&own_name)
        || SECRET_STARTS.iter().any(|start| own_name.starts_with(start))
}

/// `http://user:word@host` becomes `http://***@host`.
fn mask_urls(value: &str) -> String {
    let mut masked = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("://") {
        masked.push_str(before);
        masked.push_str("://");
        let end = after.find(|letter: char| letter == '/' || letter.is_whitespace()).unwrap_or(after.len());
        let (authority, behind) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                masked.push_str(MASKED);
                masked.push('@');
                masked.push_str(host);
            }
            None => masked.push_str(authority),
        }
        rest = behind;
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_are_masked() {
        for name in [
            "wsrep_sst_auth",
            "init_connect",
            "init_slave",
            "report_password",
            "report_user",
            "report_host",
            "proxy_user",
            "authentication_ldap_simple_bind_root_pwd",
            "s3_access_key",
            "s3_secret_key",
            "file_key_management_filekey",
            "hashicorp_key_management_token",
            "keyring_encrypted_file_password",
            "component_keyring.password",
            "telemetry.otel_exporter_otlp_traces_headers",
            "ssl_passphrase",
        ] {
            assert_eq!(mask_variable(name, "hunter2"), "***", "{name}");
            assert_eq!(mask_variable(name, ""), "", "{name}");
        }
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        for name in [
            "max_connections",
            "validate_password.length",
            "default_password_lifetime",
            "old_passwords",
            "innodb_ft_max_token_size",
            "proxy_protocol_networks",
            "ssl_key",
            "init_file",
        ] {
            assert_eq!(mask_variable(name, "8"), "8", "{name}");
        }
    }

    #[test]
    fn secrets_inside_other_values_are_masked() {
        let url = "https://vault:geheim@keys.example:8200/v1 http://plain/x";
        let masked = mask_variable("some_url", url);
        assert_eq!(masked, "https://***@keys.example:8200/v1 http://plain/x");
        let options = "gcache.size=1G; socket.password=geheim";
        assert_eq!(mask_variable("wsrep_provider_options", options), "***");
        let options = "gcache.size=1G; gcs.fc_limit=16";
        assert_eq!(mask_variable("wsrep_provider_options", options), options);
    }

    proptest! {
        #[test]
        fn no_url_keeps_its_password(user in "[a-z]{1,8}", word in "[A-Z0-9:@]{6,12}") {
            let masked = mask_variable("x", &format!("a http://{user}:{word}@host/p"));
            prop_assert!(!masked.contains(&word));
            prop_assert!(masked.ends_with("@host/p"));
        }
    }
}
