//! Shared code of several tests: conversations without a network, and commands at random.
#![allow(dead_code)]

pub mod running;

use proptest::prelude::*;
use varve_serve::{Cache, Limits, Lists, Pause, Reference, Session, Store, answer_alone};

/// The time at which conversations without a network take place, seconds since 1970.
pub const NOW: i64 = 1_700_000_000;

/// Limits that commands at random run into.
pub const LIMITS: Limits = Limits {
    value: 3000,
    memory: 1 << 20,
};

pub fn reference() -> Cache<Reference> {
    Cache::new(Reference::default(), LIMITS, NOW).expect("the reference does not fail")
}

/// The answers to input that comes in pieces; and whether the conversation has ended.
pub fn converse<S: Store>(cache: &mut Cache<S>, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let mut session = Session::new(cache.limits().value);
    let (mut waiting, mut answers, mut lists) = (Vec::new(), Vec::new(), Lists::default());
    for piece in pieces {
        waiting.extend_from_slice(piece);
        loop {
            // As the server does: answers are sent before more of them are made.
            let mut out = Vec::new();
            let (used, pause) = session
                .converse(&waiting, &mut out, &mut |request, out| {
                    answer_alone(cache, &mut lists, request, out)
                })
                .expect("the store does not fail");
            waiting.drain(..used);
            answers.extend(out);
            match pause {
                Pause::Output => {}
                Pause::Input(more) => {
                    assert!(more > 0);
                    break;
                }
                Pause::End => return (answers, true),
            }
        }
    }
    (answers, false)
}

pub fn one<S: Store>(cache: &mut Cache<S>, input: &[u8]) -> Vec<u8> {
    converse(cache, &[input]).0
}

/// Few keys, so that commands meet each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        20 => (0u8..6).prop_map(|n| vec![b'k', b'0' + n]),
        1 => proptest::collection::vec(b'!'..=b'~', 1..=250),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0u64..1 << 40).prop_map(|n| n.to_string().into_bytes()),
        // Memcached reads on after a value of blanks alone to find a number.
        4 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(|mut v| {
            v.iter_mut().take(1).for_each(|b| *b |= 0x40);
            v
        }),
        1 => proptest::collection::vec(any::<u8>(), 2900..3000),
        1 => Just(b"9000000000000000000".to_vec()),
        1 => Just(b"99".to_vec()),
    ]
}

fn quiet() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just(" noreply")]
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

/// A command that a client may well send. None is about time, or tells numbers that servers choose.
pub fn command() -> impl Strategy<Value = Vec<u8>> {
    const STORES: &[&str] = &["set", "set", "add", "replace", "append", "prepend"];
    let storing = (word(STORES), key(), 0u32..70_000, value(), quiet());
    let storing = storing.prop_map(|(verb, key, flags, value, quiet)| {
        let line = format!(" {flags} 0 {}{quiet}\r\n", value.len());
        [
            verb.as_bytes(),
            b" ",
            &key,
            line.as_bytes(),
            &value,
            b"\r\n",
        ]
        .concat()
    });
    let keys = (
        word(&["get", "gat 0", "gat 100"]),
        proptest::collection::vec(key(), 1..6),
    );
    let keys = keys.prop_map(|(verb, keys)| {
        let keys = keys.join(&b' ');
        [verb.as_bytes(), b" ", &keys, b"\r\n"].concat()
    });
    let counting = (word(&["incr", "decr"]), key(), 0u64..200, quiet());
    let counting = counting.prop_map(|(verb, key, delta, quiet)| {
        let line = format!(" {delta}{quiet}\r\n");
        [verb.as_bytes(), b" ", &key, line.as_bytes()].concat()
    });
    let others = (word(&["delete ", "touch "]), key(), quiet());
    let others = others.prop_map(|(verb, key, quiet)| {
        let more = if verb == "touch " { " 0" } else { "" };
        [
            verb.as_bytes(),
            &key,
            more.as_bytes(),
            quiet.as_bytes(),
            b"\r\n",
        ]
        .concat()
    });
    prop_oneof![
        6 => storing,
        6 => keys,
        3 => counting,
        3 => others,
        4 => meta(),
        3 => refused(),
        1 => Just(b"mn\r\n".to_vec()),
    ]
}

/// Commands that are refused, with and without answers. Where memcached takes the value for a command, it is one that says and does nothing.
fn refused() -> impl Strategy<Value = Vec<u8>> {
    const VALUE: &str = "verbosity 1 noreply";
    const STORES: &[&str] = &["set", "add", "replace", "append", "prepend"];
    const WORDS: &[&str] = &[
        "x 0 19",
        "0 x 19",
        "-1 0 19",
        "0 0 19 x x",
        "0 0 19 noreply x",
    ];
    let wrong = (word(STORES), key(), word(WORDS), quiet());
    let wrong = wrong.prop_map(|(verb, key, words, quiet)| {
        let line = format!(" {words}{quiet}\r\n{VALUE}\r\n");
        [verb.as_bytes(), b" ", &key, line.as_bytes()].concat()
    });
    let long = (word(STORES), 251usize..300, quiet()).prop_map(|(verb, length, quiet)| {
        let key = "k".repeat(length);
        format!("{verb} {key} 0 0 19{quiet}\r\n{VALUE}\r\n").into_bytes()
    });
    let large = (word(STORES), key(), quiet()).prop_map(|(verb, key, quiet)| {
        let line = format!(" 0 0 1048577{quiet}\r\n");
        let value = vec![b'v'; 1_048_577];
        [
            verb.as_bytes(),
            b" ",
            &key,
            line.as_bytes(),
            &value,
            b"\r\n",
        ]
        .concat()
    });
    let compared = (key(), word(&["x", "-1", "18446744073709551616"]), quiet());
    let compared = compared.prop_map(|(key, number, quiet)| {
        let line = format!(" 0 0 19 {number}{quiet}\r\n{VALUE}\r\n");
        [b"cas ", &key[..], line.as_bytes()].concat()
    });
    let missing = (key(), 1u64..3).prop_map(|(key, number)| {
        // Numbers that no value has: each server begins with others.
        let line = format!(" 0 0 1 {}\r\nC\r\n", u64::MAX - number);
        [b"cas ", &key[..], line.as_bytes()].concat()
    });
    // Memcached takes note that what was there before the long key was asked for.
    let several = (key(), word(&["get", "gat 0", "gets"])).prop_map(|(key, verb)| {
        let long = [b'l'; 251];
        [verb.as_bytes(), b" never ", &long, b" ", &key, b"\r\n"].concat()
    });
    let short = (
        word(&[
            "incr",
            "decr",
            "touch",
            "delete",
            "flush_all",
            "verbosity",
            "cache_memlimit",
        ]),
        word(&["", " x", " k1 x", " k1 -1x", " 5x", " k1 1 2", " k1 1 2 3"]),
        quiet(),
    );
    let short =
        short.prop_map(|(verb, words, quiet)| format!("{verb}{words}{quiet}\r\n").into_bytes());
    prop_oneof![4 => wrong, 2 => long, 1 => large, 2 => compared, 1 => missing, 2 => several, 6 => short]
}

fn meta() -> impl Strategy<Value = Vec<u8>> {
    let get = (
        key(),
        proptest::sample::subsequence(
            vec![
                "f", "h", "k", "q", "s", "t", "u", "v", "Oab", "T0", "N0", "R30",
            ],
            0..8,
        ),
    );
    let get = get.prop_map(|(key, flags)| {
        [b"mg ", &key[..], b" ", flags.join(" ").as_bytes(), b"\r\n"].concat()
    });
    let set = (
        key(),
        value(),
        proptest::sample::subsequence(vec!["F9", "k", "q", "T0", "O1"], 0..4),
        word(&["", " MS", " ME", " MA", " MP", " MR"]),
    );
    let set = set.prop_map(|(key, value, flags, mode)| {
        let line = format!(" {} {}{mode}\r\n", value.len(), flags.join(" "));
        [b"ms ", &key[..], line.as_bytes(), &value, b"\r\n"].concat()
    });
    let delete = (
        key(),
        proptest::sample::subsequence(vec!["k", "q", "O7"], 0..3),
    );
    let delete = delete.prop_map(|(key, flags)| {
        [b"md ", &key[..], b" ", flags.join(" ").as_bytes(), b"\r\n"].concat()
    });
    let count = (
        key(),
        proptest::sample::subsequence(vec!["v", "q", "D7", "J13", "N0", "t", "k", "O2"], 0..6),
        word(&["", " MI", " MD"]),
    );
    let count = count.prop_map(|(key, flags, mode)| {
        [
            b"ma ",
            &key[..],
            b" ",
            flags.join(" ").as_bytes(),
            mode.as_bytes(),
            b"\r\n",
        ]
        .concat()
    });
    prop_oneof![get, set, delete, count]
}

/// Commands, and bytes that are none.
pub fn input() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        Just(b"\r\n".to_vec()),
        Just(b"get".to_vec()),
        Just(b"set k1 0 0 10\r\n".to_vec()),
        Just(b"set k1 0 0 5000\r\n".to_vec()),
        Just(vec![b'x'; 300]),
        Just([b"get ", &[b'y'; 400][..]].concat()),
        Just([b"gat ", &[b'0'; 400][..]].concat()),
        Just(vec![b'z'; 3000]),
    ];
    proptest::collection::vec(prop_oneof![12 => command(), 1 => noise], 1..30)
        .prop_map(|parts| parts.concat())
}
