//! All keys for a client that lists them, a part at a time: the list is never in memory as a whole.

use crate::cache::{Cache, OVERHEAD};
use crate::request::{Listing, Part};
use crate::store::{Cursor, Result, Store};
use std::sync::{Arc, Weak};

/// Bytes of answers after which no further request is answered until some are sent.
pub const ENOUGH: usize = 64 << 10;

/// Most values that are scanned before other connections have their turn.
const PART: usize = 1000;

/// A list that is under way, of all shards in turn. The server makes one at a time; it is over when this is dropped.
#[derive(Debug)]
pub struct List {
    part: Part,
    _ticket: Arc<()>,
}

/// The result of a part of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listed {
    /// The shard has more keys.
    More,
    /// These were the shard's last keys.
    Shard,
    /// This was the end.
    All,
}

/// The state of a server's lists.
#[derive(Debug, Default)]
pub struct Lists {
    last: u64,
    under_way: Weak<()>,
}

impl Lists {
    /// Begins to list all keys, or says that another list is under way.
    pub fn begin(&mut self, listing: Listing, out: &mut Vec<u8>) -> Option<List> {
        let list = self.next(listing);
        if list.is_none() {
            out.extend_from_slice(b"BUSY currently processing crawler request\r\n");
        }
        list
    }

    fn next(&mut self, listing: Listing) -> Option<List> {
        if self.under_way.strong_count() > 0 {
            return None;
        }
        let ticket = Arc::new(());
        self.under_way = Arc::downgrade(&ticket);
        self.last += 1;
        Some(List {
            part: Part {
                listing,
                list: self.last,
                shard: 0,
                first: true,
            },
            _ticket: ticket,
        })
    }
}

impl List {
    /// The next part.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Goes on, with the shard or with the next one.
    pub fn go_on(&mut self, next_shard: bool) {
        self.part.shard += usize::from(next_shard);
        self.part.first = next_shard;
    }
}

impl Part {
    /// The step after this part, with `shards` shards; appends the terminator at the end of the list. `last`: these were the shard's last keys.
    pub fn over(self, last: bool, shards: usize, out: &mut Vec<u8>) -> Listed {
        match (last, self.shard + 1 == shards) {
            (false, _) => Listed::More,
            (true, false) => Listed::Shard,
            (true, true) => {
                out.extend_from_slice(match self.listing {
                    Listing::Described => b"END\r\n",
                    Listing::Commands => b"EN\r\n",
                });
                Listed::All
            }
        }
    }
}

impl<S: Store> Cache<S> {
    /// Appends some of the keys; whether these were the last ones.
    ///
    /// # Errors
    /// The store's error.
    pub fn list_some(&mut self, part: Part, out: &mut Vec<u8>) -> Result<bool> {
        if part.first {
            self.list = part.list;
            self.store.scan(Cursor::List)?;
        }
        if self.list != part.list {
            // The client that requested it is gone, or the list was of an earlier instance of the program, which has failed.
            return Ok(true);
        }
        let mut key = Vec::new();
        for _ in 0..PART {
            if out.len() >= ENOUGH {
                return Ok(false);
            }
            let Some((meta, value)) = self.store.next(Cursor::List, &mut key)? else {
                return Ok(true);
            };
            if meta.expired(self.now()) {
                continue;
            }
            match part.listing {
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
