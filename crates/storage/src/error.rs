use std::error::Error as StdError;

pub type Result<T> = std::result::Result<T, Error>;

/// Characters of a cause that a message has. What a server answers may be a whole page.
const CAUSE_MAX: usize = 200;

/// Why runs could not be sent to storage, listed there or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0:?} names no place in storage: give s3://BUCKET or s3://BUCKET/FOLDER")]
    Place(String),
    #[error(
        "the environment has no keys for {0}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and try again"
    )]
    NoKeys(String),
    #[error(
        "{0} is http and another machine: keys and runs would cross the network in the clear; give an https endpoint, or set \
         AWS_ALLOW_HTTP=true if that is what you want"
    )]
    Http(String),
    #[error("AWS_ENDPOINT_URL is {0:?}, which is no endpoint: give one such as https://s3.example.com")]
    Endpoint(String),
    #[error("the settings for {place} can't be used: {cause}; correct the AWS_ variables of the environment")]
    Settings { place: String, cause: String },
    #[error("{place} did not answer: {cause}; check AWS_ENDPOINT_URL and the network, and try again")]
    NoAnswer { place: String, cause: String },
    #[error(
        "{0} refuses these keys: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may do there"
    )]
    Refused(String),
    #[error("there is no bucket for {0}: create it, or correct its name")]
    NoBucket(String),
    #[error("there is no run {id} in {place}: `whyso runs --runs {place}` lists them")]
    NoRun { id: String, place: String },
    #[error("{0} can't be read as a run in storage: push it again")]
    Broken(String),
    #[error(
        "{what} would take {bytes} bytes here, and {bytes_max} are allowed: choose fewer runs, or pull them into a folder of your own"
    )]
    TooLarge { what: String, bytes: u64, bytes_max: u64 },
    #[error("{0} changed while it was sent: wait until nothing writes to it, and push it again")]
    Changed(String),
    #[error("there is no folder for copies of runs: set HOME or XDG_CACHE_HOME")]
    NoCache,
    #[error("{0}")]
    Io(String),
    #[error(transparent)]
    Record(#[from] whyso_record::Error),
}

impl Error {
    /// Returns whether the command line or the environment was wrong, rather than the storage.
    pub fn is_wrong_use(&self) -> bool {
        matches!(
            self,
            Error::Place(_)
                | Error::NoKeys(_)
                | Error::Http(_)
                | Error::Endpoint(_)
                | Error::Settings { .. }
                | Error::NoRun { .. }
        )
    }

    pub(crate) fn io(path: &std::path::Path, cause: std::io::Error) -> Error {
        Error::Io(format!("{}: {cause}", path.display()))
    }

    /// What a request to `place` ended with. The answer's own text is left out where it may quote keys.
    pub(crate) fn of_request(place: &str, error: &object_store::Error) -> Error {
        use object_store::Error as Of;
        match error {
            Of::PermissionDenied { .. } | Of::Unauthenticated { .. } => Error::Refused(place.to_string()),
            Of::NotFound { .. } => Error::NoBucket(place.to_string()),
            other => {
                let cause = last_cause(other);
                // Of some requests the status is only in the text.
                let has_status = |status: &str| cause.contains(&format!("status code: {status}"));
                match () {
                    () if has_status("401") || has_status("403") => Error::Refused(place.to_string()),
                    () if has_status("404") => Error::NoBucket(place.to_string()),
                    () => Error::NoAnswer { place: place.to_string(), cause },
                }
            }
        }
    }
}

/// The innermost cause: the ones around it repeat the address and the number of attempts.
fn last_cause(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    // The body of an answer may quote keys.
    let before_body = text.split(": <").next().unwrap_or_default();
    before_body.chars().filter(|letter| !letter.is_control()).take(CAUSE_MAX).collect()
}
