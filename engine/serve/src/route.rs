//! Which shard a request is for, and how it gets there.

use crate::flags::base64;
use crate::hash::fnv1a;
use crate::request::Request;
use crate::words::words;
use std::borrow::Cow;

/// The name of [`shard_of`]'s computation, for files that were made with it.
pub const HASH: &str = "fnv1a64-mixed";

/// The one of `shards` shards that a key belongs to. It is the same for ever: region files depend on it.
pub fn shard_of(key: &[u8], shards: usize) -> usize {
    let fnv = fnv1a(key);
    // The last bytes of a key reach the high bits of that too little, and those decide.
    let mixed = (fnv ^ fnv >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((u128::from(mixed ^ mixed >> 33) * shards as u128) >> 64) as usize
}

/// The shard that executes a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// The client's own shard: the request is about no value.
    Here,
    /// The shard that the key belongs to.
    One(usize),
    /// All of them.
    All,
}

impl Route {
    pub fn of(request: &Request<'_>, shards: usize) -> Route {
        if shards == 1 {
            return Route::Here;
        }
        match request {
            Request::FlushAll { .. } | Request::Stats { .. } | Request::MemoryLimit { .. } => {
                Route::All
            }
            Request::ListPart { part } => Route::One(part.shard),
            _ => key(request).map_or(Route::Here, |key| Route::One(shard_of(&key, shards))),
        }
    }
}

/// The key of a request as the store has it; none if the request has none, or one that is refused.
fn key<'a>(request: &Request<'a>) -> Option<Cow<'a, [u8]>> {
    match *request {
        Request::Get { key, .. }
        | Request::Store { key, .. }
        | Request::Delete { key, .. }
        | Request::Count { key, .. }
        | Request::Touch { key, .. }
        | Request::Unread { key, .. } => Some(key.into()),
        Request::Meta { key, flags, .. } => match words(flags).any(|flag| flag[0] == b'b') {
            true => base64(key).map(Cow::Owned),
            false => Some(key.into()),
        },
        _ => None,
    }
}

/// The parts of a request that are bytes of its client: key, flags and value, empty where there are none.
pub(crate) fn parts<'a>(request: &Request<'a>) -> [&'a [u8]; 3] {
    match *request {
        Request::Get { key, .. }
        | Request::Delete { key, .. }
        | Request::Count { key, .. }
        | Request::Touch { key, .. }
        | Request::Unread { key, .. } => [key, &[], &[]],
        Request::Store { key, value, .. } => [key, &[], value],
        Request::Meta {
            key, flags, value, ..
        } => [key, flags, value],
        Request::Stats { what } => [what, &[], &[]],
        _ => [&[]; 3],
    }
}

/// A request with other bytes in the places of [`parts`].
pub(crate) fn with_parts<'a>(
    request: &Request<'_>,
    [key, flags, value]: [&'a [u8]; 3],
) -> Request<'a> {
    match *request {
        Request::Get { how, key: _ } => Request::Get { how, key },
        Request::GetEnd => Request::GetEnd,
        Request::Store {
            mode,
            flags,
            expiry,
            cas,
            quiet,
            ..
        } => Request::Store {
            mode,
            key,
            flags,
            expiry,
            cas,
            value,
            quiet,
        },
        Request::Delete { quiet, .. } => Request::Delete { key, quiet },
        Request::Count {
            up, delta, quiet, ..
        } => Request::Count {
            up,
            key,
            delta,
            quiet,
        },
        Request::Touch { expiry, quiet, .. } => Request::Touch { key, expiry, quiet },
        Request::FlushAll { delay, quiet } => Request::FlushAll { delay, quiet },
        Request::Stats { .. } => Request::Stats { what: key },
        Request::Version => Request::Version,
        Request::Verbosity { quiet } => Request::Verbosity { quiet },
        Request::Quit => Request::Quit,
        Request::Meta { verb, .. } => Request::Meta {
            verb,
            key,
            flags,
            value,
        },
        Request::MetaNoop => Request::MetaNoop,
        Request::Refused { answer } => Request::Refused { answer },
        Request::Unread {
            why, forget, quiet, ..
        } => Request::Unread {
            key,
            why,
            forget,
            quiet,
        },
        Request::MemoryLimit { megabytes, quiet } => Request::MemoryLimit { megabytes, quiet },
        Request::List { listing } => Request::List { listing },
        Request::ListPart { part } => Request::ListPart { part },
        Request::Binary { opcode, opaque } => Request::Binary { opcode, opaque },
        Request::Lost { answer } => Request::Lost { answer },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::{Parsed, Parser};

    #[test]
    fn keys_stay_in_the_shard_that_region_files_have_them_in() {
        let shards: Vec<usize> = ["a", "b", "greeting", "user:1000", ""]
            .iter()
            .map(|key| shard_of(key.as_bytes(), 10))
            .collect();
        assert_eq!(shards, [5, 4, 0, 4, 9]);
    }

    #[test]
    fn numbered_keys_are_dealt_evenly() {
        for shards in [2, 3, 10] {
            let mut counts = vec![0; shards];
            for i in 0..100_000 {
                counts[shard_of(format!("user{i}").as_bytes(), shards)] += 1;
            }
            let even = 100_000 / shards;
            for count in counts {
                assert!(
                    (even * 95 / 100..even * 105 / 100).contains(&count),
                    "{count} of {even}"
                );
            }
        }
    }

    #[test]
    fn a_request_is_the_same_once_its_bytes_are_elsewhere() {
        for text in [
            "get a b\r\n",
            "gat 5 a\r\n",
            "cas a 1 2 3 4 noreply\r\nABC\r\n",
            "delete a noreply\r\n",
            "decr a 5\r\n",
            "touch a 5\r\n",
            "flush_all 5\r\n",
            "stats conns\r\n",
            "ms YWJj 3 b T5\r\nxyz\r\nmg a v\r\n",
            "set a 0 0 5000\r\n",
            "version\r\nverbosity 1\r\nmn\r\nnonsense\r\nquit\r\n",
        ] {
            let (mut parser, mut rest) = (Parser::new(1000), text.as_bytes());
            let mut requests = 0;
            loop {
                let (used, parsed) = parser.next(rest);
                let Parsed::Request(request) = parsed else {
                    break;
                };
                let bytes = parts(&request).map(<[u8]>::to_vec);
                let bare = with_parts(&request, [&[]; 3]);
                let again = with_parts(&bare, [&bytes[0], &bytes[1], &bytes[2]]);
                assert_eq!(again, request);
                requests += 1;
                rest = &rest[used..];
            }
            assert!(requests > 0, "{text:?}");
        }
    }

    #[test]
    fn a_key_in_base_64_goes_where_the_same_key_as_text_goes() {
        let of = |key: &'static [u8], flags: &'static [u8]| {
            let verb = crate::request::Verb::Get;
            let value = &b""[..];
            Route::of(
                &Request::Meta {
                    verb,
                    key,
                    flags,
                    value,
                },
                7,
            )
        };
        assert_eq!(of(b"YWJj", b" v b"), of(b"abc", b" v"));
        // A key that cannot be decoded is refused wherever it is.
        assert_eq!(of(b"YWJ", b" b"), Route::Here);
    }
}
