#![no_main]
//! Bytes of a client, in pieces: never a panic, the same answers however they are cut, and bytes that are counted as they are kept.

use libfuzzer_sys::fuzz_target;
use varve_serve::{Cache, Limits, Lists, Pause, Reference, Session, answer_alone};

const LIMITS: Limits = Limits {
    value: 2000,
    memory: 20_000,
};

fn converse(pieces: &[&[u8]], evicts: bool) -> (Vec<u8>, Cache<Reference>) {
    let cache = Cache::new(Reference::default(), LIMITS, 1_700_000_000).expect("an empty map");
    let mut cache = cache.up_to(LIMITS.memory);
    if evicts {
        cache = cache.evict();
    }
    let mut session = Session::new(LIMITS.value);
    let (mut waiting, mut answers, mut lists) = (Vec::new(), Vec::new(), Lists::default());
    'pieces: for piece in pieces {
        waiting.extend_from_slice(piece);
        loop {
            let mut out = Vec::new();
            let (used, pause) = session
                .converse(&waiting, &mut out, &mut |request, out| {
                    answer_alone(&mut cache, &mut lists, request, out)
                })
                .expect("a map does not fail");
            waiting.drain(..used);
            answers.extend(out);
            match pause {
                Pause::Output => {}
                // What waits is a line or a value, and no more.
                Pause::Input(_) => {
                    assert!(waiting.len() <= LIMITS.value + varve_serve::MOST_LINE);
                    break;
                }
                Pause::End => break 'pieces,
            }
        }
    }
    (answers, cache)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let evicts = cut & 1 == 1;
    let (whole, mut cache) = converse(&[bytes], evicts);
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(cut) + 1).collect();
    assert_eq!(converse(&pieces, evicts).0, whole);
    assert!(cache.bytes() <= LIMITS.memory);
    let count = cache.count().expect("a map does not fail");
    let mut again = Cache::new(cache.into_store(), LIMITS, 0).expect("a map does not fail");
    assert_eq!(again.count().expect("a map does not fail"), count);
});
