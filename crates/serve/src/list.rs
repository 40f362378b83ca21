//! All keys for a client that asks for them, a part at a time: the list is never there as a whole.

use crate::cache::{Cache, OVERHEAD};
use crate::request::Listing;
use crate::session::ENOUGH;
use crate::store::{Cursor, Result, Store};
use std::sync::Arc;

/// Most values that are looked at before others have their turn.
const PART: usize = 1000;

/// A list that is under way. There is one at a time; it is over when this is dropped.
#[derive(Debug)]
pub struct List {
    listing: Listing,
    _ticket: Arc<()>,
}

impl<S: Store> Cache<S> {
    /// Begins to list all keys; none if a list is under way.
    ///
    /// # Errors
    /// What the store says.
    pub fn begin_list(&mut self, listing: Listing) -> Result<Option<List>> {
        if self.list.strong_count() > 0 {
            return Ok(None);
        }
        let ticket = Arc::new(());
        self.list = Arc::downgrade(&ticket);
        self.store.scan(Cursor::List)?;
        Ok(Some(List {
            listing,
            _ticket: ticket,
        }))
    }

    /// Appends some of the keys; whether these were the last ones.
    ///
    /// # Errors
    /// What the store says.
    pub fn list_some(&mut self, list: &List, out: &mut Vec<u8>) -> Result<bool> {
        let mut key = Vec::new();
        for _ in 0..PART {
            if out.len() >= ENOUGH {
                return Ok(false);
            }
            let Some((meta, value)) = self.store.next(Cursor::List, &mut key)? else {
                out.extend_from_slice(match list.listing {
                    Listing::Described => b"END\r\n",
                    Listing::Commands => b"EN\r\n",
                });
                return Ok(true);
            };
            if meta.expired(self.now()) {
                continue;
            }
            match list.listing {
                Listing::Commands => put_command(out, &key),
                Listing::Described => {
                    let seen = self.seen(&key);
                    let size = key.len() as u64 + value as u64 + OVERHEAD;
                    let expiry = if meta.expiry == 0 { -1 } else { meta.expiry };
                    let fetched = if seen.fetched { "yes" } else { "no" };
                    out.extend_from_slice(b"key=");
                    put_encoded(out, &key);
                    out.extend_from_slice(
                        format!(
                            " exp={expiry} la={} cas={} fetch={fetched} cls=1 size={size}\n",
                            seen.last, meta.cas
                        )
                        .as_bytes(),
                    );
                }
            }
        }
        Ok(false)
    }
}

/// A key as in addresses of the web, so that it has no blanks.
fn put_encoded(out: &mut Vec<u8>, key: &[u8]) {
    for &byte in key {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

/// The command that gets a key: in base 64 if it could not be sent as it is.
fn put_command(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"mg ");
    match key.iter().all(|byte| byte.is_ascii_graphic()) {
        true => out.extend_from_slice(key),
        false => {
            put_base64(out, key);
            out.extend_from_slice(b" b");
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - three.len()));
        for i in 0..4 {
            out.push(match i <= three.len() {
                true => DIGITS[(bits >> (18 - 6 * i)) as usize & 63],
                false => b'=',
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::base64;

    #[test]
    fn a_key_in_base_64_is_the_key_again() {
        for key in [&b"a"[..], b"ab", b"abc", b"\0\xff \n", b"four"] {
            let mut out = Vec::new();
            put_base64(&mut out, key);
            assert_eq!(base64(&out).as_deref(), Some(key));
        }
    }
}
