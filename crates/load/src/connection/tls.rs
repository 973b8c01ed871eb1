//! TLS by rustls: verified, or, where it was asked for, not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::LoadError;
use crate::target::Tls;

const MACHINE_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A TLS session that is ready to be put on a socket.
pub(crate) fn session(tls: &Tls, address: &str) -> Result<Option<ClientConnection>, LoadError> {
    config(tls, address)?.map(|config| session_with(config, tls, address)).transpose()
}

/// How TLS is done; `None` where it is not.
pub(crate) fn config(tls: &Tls, address: &str) -> Result<Option<Arc<ClientConfig>>, LoadError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| LoadError::Tls { address: address.to_string(), why: error.to_string() })?;
    let config = match tls {
        Tls::Off => return Ok(None),
        Tls::Verify { ca, .. } => {
            let path = ca.clone().unwrap_or_else(|| PathBuf::from(MACHINE_AUTHORITIES));
            builder.with_root_certificates(authorities(&path)?).with_no_client_auth()
        }
        Tls::Insecure => {
            let verifier = Arc::new(AnyCertificate { provider });
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    Ok(Some(Arc::new(config)))
}

/// A TLS session by a configuration that was made before.
pub(crate) fn session_with(
    config: Arc<ClientConfig>,
    tls: &Tls,
    address: &str,
) -> Result<ClientConnection, LoadError> {
    let failed = |why: String| LoadError::Tls { address: address.to_string(), why };
    let host = match tls {
        Tls::Verify { host, .. } => host.as_str(),
        // The name is only sent, so that a site of several names knows which one is meant. Nothing is checked against it.
        Tls::Off | Tls::Insecure => host_of(address),
    };
    let name = ServerName::try_from(host.to_string())
        .map_err(|_| failed(format!("'{host}' is neither a host name nor an address")))?;
    ClientConnection::new(config, name).map_err(|error| failed(error.to_string()))
}

/// The host of "host:port" or "[address]:port"; "localhost" of a socket's path.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.contains('/') { "localhost" } else { host }
}

fn authorities(path: &Path) -> Result<RootCertStore, LoadError> {
    let failed = |why: String| LoadError::Certificates { path: path.to_path_buf(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))? {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        // Bundles hold certificates of old forms too; those that rustls can't use are left out.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(failed("it holds no certificate that can be used; name a PEM file".to_string()));
    }
    Ok(roots)
}

/// Takes any certificate, and checks only that the server holds its key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
