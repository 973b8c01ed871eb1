//! How storage is reached: by the usual AWS variables of the environment, and by nothing else. No key is ever an argument.

use std::net::IpAddr;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::error::{Error, Result};
use crate::place::Place;

/// Variables that name the endpoint, the most particular first.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
/// Variables by which keys come, of which one must be there.
const KEYS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];
/// Until a connection is made.
const CONNECT: Duration = Duration::from_secs(5);
/// After a request failed, until no other attempt is made.
const RETRY: Duration = Duration::from_secs(20);
const RETRIES_MAX: usize = 2;

/// Connects to the bucket of a place. `request`: how long one request may take, with its answer. `variable`: reads the environment.
///
/// # Errors
/// The environment has no keys, or names an endpoint that can't be used.
pub(crate) fn connect(
    place: &Place,
    request: Duration,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<AmazonS3> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    if !KEYS.iter().any(|name| variable(name).is_some()) {
        return Err(Error::NoKeys(place.to_string()));
    }
    let endpoint = ENDPOINTS.iter().find_map(|name| variable(name));
    let says_http = variable("AWS_ALLOW_HTTP").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let allows_http = match &endpoint {
        Some(endpoint) => check_endpoint(endpoint, says_http)?,
        None => false,
    };
    // A program has one provider; one that is there already does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = ClientOptions::new().with_timeout(request).with_connect_timeout(CONNECT);
    let retry =
        RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES_MAX, retry_timeout: RETRY };
    let mut builder = AmazonS3Builder::from_env()
        .with_client_options(client)
        .with_retry(retry)
        .with_bucket_name(&place.bucket)
        .with_allow_http(allows_http);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    builder.build().map_err(|error| Error::Settings { place: place.to_string(), cause: error.to_string() })
}

/// Returns whether http is allowed: to this machine, or where the user says so.
fn check_endpoint(endpoint: &str, says_http: bool) -> Result<bool> {
    if endpoint.starts_with("https://") {
        return Ok(false);
    }
    let Some(rest) = endpoint.strip_prefix("http://") else {
        return Err(Error::Endpoint(endpoint.to_string()));
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') || authority.is_empty() {
        return Err(Error::Endpoint("http://…".to_string()));
    }
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match is_here || says_http {
        true => Ok(true),
        false => Err(Error::Http(format!("http://{authority}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_for_this_machine_or_by_the_users_word() {
        for here in ["http://localhost:9000", "http://127.0.0.1:9000/", "http://[::1]:9000"] {
            assert!(check_endpoint(here, false).unwrap(), "{here}");
        }
        assert!(!check_endpoint("https://s3.example.com", false).unwrap());
        for other in ["http://10.0.0.1:9000", "http://localhost.example.com", "http://127.0.0.1.example.com"]
        {
            assert!(matches!(check_endpoint(other, false), Err(Error::Http(_))), "{other}");
            assert!(check_endpoint(other, true).unwrap(), "{other}");
        }
        for wrong in ["localhost:9000", "ftp://a", "http://", "http://key:secret@localhost"] {
            let error = check_endpoint(wrong, true).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn keys_come_from_the_environment_only() {
        let place = Place::parse("s3://lab").unwrap();
        let error = connect(&place, Duration::from_secs(1), |_| None).unwrap_err();
        assert!(matches!(error, Error::NoKeys(_)), "{error}");
    }
}
