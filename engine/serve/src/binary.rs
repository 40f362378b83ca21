//! The binary protocol, which is not supported: a client that uses it gets an error in that protocol, and no broken connection.
//!
//! ```text
//! request   0x80  opcode  length of the key (2)   extras (1)  0   partition (2)  length of the body (4)  opaque (4)  cas (8)
//! response  0x81  opcode  0 (2)                   0           0   status (2)     length of the body (4)  opaque (4)  0 (8)    text
//! ```

use crate::request::Request;

/// The first byte of a request.
pub(crate) const REQUEST: u8 = 0x80;
/// The first byte of a response.
const RESPONSE: u8 = 0x81;
/// Bytes before a body.
pub(crate) const HEADER: usize = 24;
/// "Unknown command": clients show the text that comes with it.
const UNKNOWN: u16 = 0x0081;
const WHY: &str = "this server does not speak the binary protocol: set the client to the text (ASCII or meta) protocol";

/// The request that begins here, once its header is there.
pub(crate) fn request(rest: &[u8]) -> Option<Request<'static>> {
    let header = rest.first_chunk::<HEADER>()?;
    Some(Request::Binary {
        opcode: header[1],
        opaque: [header[12], header[13], header[14], header[15]],
    })
}

/// Appends the answer to any request.
pub(crate) fn refuse(opcode: u8, opaque: [u8; 4], out: &mut Vec<u8>) {
    out.extend_from_slice(&[RESPONSE, opcode, 0, 0, 0, 0]);
    out.extend_from_slice(&UNKNOWN.to_be_bytes());
    out.extend_from_slice(&(WHY.len() as u32).to_be_bytes());
    out.extend_from_slice(&opaque);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(WHY.as_bytes());
}
