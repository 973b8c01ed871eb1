//! Connections: how they are opened, what goes over them, and which server they go to.

pub(crate) mod client_error;
pub(crate) mod connect;
pub(crate) mod endpoints;
pub(crate) mod exchange_error;
pub(crate) mod http;
pub(crate) mod layers;
pub(crate) mod login;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod tls;
