//! What is wrong in a DSN.

/// Why a DSN can't be understood.
#[derive(Debug, thiserror::Error)]
pub(super) enum DsnError {
    #[error("it does not have the form {0}")]
    Shape(&'static str),
    #[error("it names no user: put one before the host, as in mysql://user@localhost/, or into ~/.my.cnf")]
    NoUser,
    #[error(
        "it has an '@' behind its address: write %40 for an '@', and %2F or %3F for a '/' or '?' in a user's name"
    )]
    LateAt,
    #[error("a parameter has no value: write NAME=VALUE")]
    NoValue,
    #[error("parameters are separated by '&', and a '?' or ';' in a value is written %3F or %3B")]
    Separator,
    #[error("the socket is no absolute path")]
    RelativeSocket,
    #[error("tls is disabled, verify or insecure, not '{0}'")]
    Tls(String),
    #[error("connect_timeout is 1 to 3600 seconds, not '{0}'")]
    ConnectTimeout(String),
    #[error("a password is no parameter: set MYSQL_PWD, write it in ~/.my.cnf, or wait for the prompt")]
    PasswordParameter,
    #[error("it has no parameter '{0}': there are socket, container, tls, ssl-ca and connect_timeout")]
    UnknownParameter(String),
    #[error("ssl-ca needs tls=verify, but tls has another value")]
    CaWithoutVerify,
    #[error("give a container or a socket: a container's server is reached by its own socket")]
    ContainerAndSocket,
    #[error("the address has no closing bracket")]
    NoBracket,
    #[error(
        "the port is no number from 1 to 65535 (a ':', '/', '?' or '@' in a password is written %3A, %2F, %3F or %40)"
    )]
    Port,
    #[error("a schema's name has at most 64 characters")]
    LongSchema,
    #[error("'{0}' is no name for a schema")]
    SchemaName(String),
    #[error("a '%' is not followed by two hexadecimal digits; write % itself as %25")]
    Escape,
    #[error("it is not UTF-8 once the %XX are resolved")]
    Encoding,
}
