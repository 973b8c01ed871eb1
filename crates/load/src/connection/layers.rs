//! What lies between the protocol's packets and the socket's bytes: compression, TLS, or both.

use std::io::{self, Read, Write};

use rustls::ClientConnection;
use whyso_wire::{Compressor, Decompressor};

use crate::connection::exchange_error::ExchangeError;

pub(crate) struct Layers {
    compression: Option<Compression>,
    tls: Option<ClientConnection>,
    /// What goes over the wire.
    out: Vec<u8>,
    /// Received bytes without TLS, where there are both.
    unwrapped: Vec<u8>,
}

struct Compression {
    compressor: Compressor,
    decompressor: Decompressor,
    packed: Vec<u8>,
}

impl Layers {
    /// `None` where there is neither.
    pub(crate) fn new(tls: Option<ClientConnection>, is_compressed: bool) -> Option<Box<Layers>> {
        if tls.is_none() && !is_compressed {
            return None;
        }
        let compression = is_compressed.then(|| Compression {
            compressor: Compressor::new(),
            decompressor: Decompressor::new(),
            packed: Vec::new(),
        });
        Some(Box::new(Layers { compression, tls, out: Vec::new(), unwrapped: Vec::new() }))
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// What a command, or the continuation of one, becomes on the wire: see [`out`](Layers::out).
    pub(crate) fn wrap(&mut self, plain: &[u8], is_command: bool) -> io::Result<()> {
        self.out.clear();
        let mut plain = plain;
        if let Some(Compression { compressor, decompressor, packed }) = &mut self.compression {
            let first = if is_command { 0 } else { decompressor.sequence_next() };
            packed.clear();
            let next = compressor.pack(plain, first, packed);
            decompressor.begin(next);
            plain = packed;
        }
        match &mut self.tls {
            None => self.out.extend_from_slice(plain),
            Some(tls) => {
                while !plain.is_empty() {
                    // The session takes what its buffer has room for.
                    let byte_count = tls.writer().write(plain)?;
                    plain = &plain[byte_count..];
                    while tls.wants_write() {
                        tls.write_tls(&mut self.out)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn out(&self) -> &[u8] {
        &self.out
    }

    /// Appends to `plain` what received bytes hold, as far as it is whole.
    pub(crate) fn unwrap(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), ExchangeError> {
        let Some(tls) = &mut self.tls else {
            return self.unpack(bytes, plain);
        };
        let mut unwrapped = std::mem::take(&mut self.unwrapped);
        unwrapped.clear();
        while !bytes.is_empty() {
            if tls.read_tls(&mut bytes)? == 0 {
                // The server has ended the session: what follows is no part of it.
                break;
            }
            let state = tls.process_new_packets();
            let state = state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let begin = unwrapped.len();
            unwrapped.resize(begin + state.plaintext_bytes_to_read(), 0);
            tls.reader().read_exact(&mut unwrapped[begin..])?;
        }
        let result = self.unpack(&unwrapped, plain);
        self.unwrapped = unwrapped;
        result
    }

    fn unpack(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), ExchangeError> {
        match &mut self.compression {
            None => plain.extend_from_slice(bytes),
            Some(compression) => compression.decompressor.unpack(bytes, plain)?,
        }
        Ok(())
    }
}
