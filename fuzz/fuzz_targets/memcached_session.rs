#![no_main]
//! Bytes of a client, in pieces: never a panic, the same answers however they are cut, and bytes that are counted as they are kept.

use libfuzzer_sys::fuzz_target;
use varve_serve::{After, Cache, Limits, Next, Pause, Reference, Session, StoreError, answer};

const LIMITS: Limits = Limits {
    value: 2000,
    memory: 20_000,
};

fn converse(pieces: &[&[u8]]) -> (Vec<u8>, Cache<Reference>) {
    let mut cache = Cache::new(Reference::default(), LIMITS, 1_700_000_000).expect("an empty map");
    let mut session = Session::new(LIMITS.value);
    let (mut waiting, mut answers) = (Vec::new(), Vec::new());
    'pieces: for piece in pieces {
        waiting.extend_from_slice(piece);
        loop {
            let mut out = Vec::new();
            let (used, pause) = session
                .converse(&waiting, &mut out, &mut |request, out| {
                    Ok::<_, StoreError>(match answer(&mut cache, request, out)? {
                        After::Close => Next::End,
                        After::Next | After::Stats(_) => Next::Request,
                    })
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
    let (whole, mut cache) = converse(&[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(cut) + 1).collect();
    assert_eq!(converse(&pieces).0, whole);
    assert!(cache.bytes() <= LIMITS.memory);
    let count = cache.count().expect("a map does not fail");
    let mut again = Cache::new(cache.into_store(), LIMITS, 0).expect("a map does not fail");
    assert_eq!(again.count().expect("a map does not fail"), count);
});
