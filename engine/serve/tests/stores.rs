//! The managed stores do what a map does, step by step.

mod common;

use common::{NOW, input, one, reference};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use varve_durable::Inspection;
use varve_runtime::{Config, DurableFile, Medium};
use varve_serve::{Cache, Cursor, Kind, Limits, Managed, Meta, Reference, Store};

fn managed(kind: Kind) -> Managed {
    let config = Config {
        heap_max: 512 << 20,
        ..Config::default()
    };
    Managed::new(kind, config).expect("the engine starts")
}

/// The same on a region file.
fn durable(kind: Kind, folder: &Path, gc_stress: bool) -> Managed {
    let config = Config {
        heap_max: 512 << 20,
        durable: Some(DurableFile::new(
            folder.join(format!("{kind}.region")),
            Medium::Memory,
        )),
        gc_stress,
        ..Config::default()
    };
    Managed::new(kind, config).expect("the engine starts")
}

/// Each allocation collects durable garbage and reuses its room: live values stay, and are found when the file is opened again.
#[test]
fn durable_garbage_goes_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        let mut map = Reference::default();
        let mut runner = TestRunner::deterministic();
        for _ in 0..2 {
            let mut store = durable(kind, folder.path(), true);
            assert_eq!(all(&mut store), all(&mut map), "{kind}");
            let totals = store.measure().unwrap();
            assert_eq!(totals, map.measure().unwrap(), "{kind}");
            for _ in 0..2 {
                let steps = steps().new_tree(&mut runner).unwrap().current();
                for step in steps.into_iter().take(40) {
                    take(&mut store, &mut map, step).unwrap_or_else(|e| panic!("{kind}: {e}"));
                }
            }
        }
    }
}

/// Values that are written over and over take the room of those that were there.
#[test]
fn a_region_file_does_not_grow_with_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        let mut store = durable(kind, folder.path(), false);
        let value = |i: usize| vec![i as u8; 1000];
        // 100 MB in all, 100 KB at a time.
        for i in 0..100_000 {
            let key = format!("key {}", i % 100);
            store
                .put(key.as_bytes(), Meta::default(), &value(i))
                .unwrap();
        }
        for i in 99_900..100_000 {
            let key = format!("key {}", i % 100);
            let found = store.get(key.as_bytes()).unwrap();
            assert_eq!(found, Some((Meta::default(), &value(i)[..])), "{kind}");
        }
        drop(store);
        let file = folder.path().join(format!("{kind}.region"));
        let bytes = file.metadata().unwrap().len();
        assert!(bytes < 64 << 20, "{kind}: {bytes} bytes");
    }
}

/// The file of a store that is served takes little more than its live values, and frees the room of removed ones.
#[test]
fn a_file_stays_near_what_lives_while_it_is_served() {
    const VALUES: u64 = 50_000;
    let folder = tempfile::tempdir().unwrap();
    for kind in [Kind::FhMap, Kind::PbTree, Kind::HbTree] {
        let file = folder.path().join(format!("{kind}.region"));
        let blocks = || file.metadata().unwrap().blocks() * 512;
        let mut store = durable(kind, folder.path(), false);
        let put = |store: &mut Managed, i: u64| {
            let key = format!("key {i}");
            let put = store.put(key.as_bytes(), Meta::default(), &[i as u8; 1000]);
            put.unwrap();
        };
        (0..VALUES).for_each(|i| put(&mut store, i));
        let mut random = 1u64;
        for _ in 0..2 * VALUES {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            put(&mut store, (random >> 33) % VALUES);
        }
        let taken = blocks();
        for i in (0..VALUES).filter(|i| i % 100 > 0) {
            store.remove(format!("key {i}").as_bytes()).unwrap();
        }
        // Until garbage was collected.
        for i in 0..2 * VALUES {
            put(&mut store, i / 100 * 100 % VALUES);
        }
        let (few, length) = (blocks(), file.metadata().unwrap().len());
        drop(store);
        let live = Inspection::of_file(&file).unwrap().walk.bytes;
        assert!(
            taken <= 100 * live * 14 / 10,
            "{kind}: {taken} for a hundred times {live}"
        );
        if few == length {
            varve_skip::skip!("the file system makes no holes");
            continue;
        }
        // The slack: garbage below the threshold of a collection.
        assert!(
            few <= live * 14 / 10 + (24 << 20),
            "{kind}: {few} for {live}"
        );
    }
}

/// Long values are in pieces.
#[test]
fn values_of_any_length_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        for mut store in [managed(kind), durable(kind, folder.path(), false)] {
            let lengths = [
                4095,
                4096,
                8184,
                8185,
                8192,
                8193,
                12_288,
                12_289,
                300_000,
                1 << 20,
            ];
            let value = |n: usize| -> Vec<u8> { (0..n).map(|i| (i * 7 + i / 251) as u8).collect() };
            for n in lengths {
                let key = n.to_string();
                store
                    .put(key.as_bytes(), Meta::default(), &value(n))
                    .unwrap();
            }
            for n in lengths {
                let (key, meta) = (
                    n.to_string(),
                    Meta {
                        flags: 3,
                        ..Meta::default()
                    },
                );
                store.mark(key.as_bytes(), meta).unwrap();
                assert_eq!(store.find(key.as_bytes()).unwrap(), Some((meta, n)));
                let found = store.get(key.as_bytes()).unwrap();
                assert!(found == Some((meta, &value(n)[..])), "{kind}: {n}");
            }
        }
    }
}

#[test]
fn conversations_are_the_same_on_all_stores() {
    for kind in Kind::ALL {
        let cache = RefCell::new(Cache::new(managed(kind), common::LIMITS, NOW).unwrap());
        let plain = RefCell::new(reference());
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 300,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        runner
            .run(&input(), |input| {
                let (cache, plain) = (&mut *cache.borrow_mut(), &mut *plain.borrow_mut());
                // Each case begins with nothing, so that one that fails alone fails again.
                one(plain, b"flush_all\r\n");
                one(cache, b"flush_all\r\n");
                let expected = one(plain, &input);
                prop_assert_eq!(one(cache, &input), expected);
                prop_assert_eq!(cache.bytes(), plain.bytes());
                prop_assert_eq!(cache.count().unwrap(), plain.count().unwrap());
                Ok(())
            })
            .unwrap_or_else(|e| panic!("{kind}: {e}"));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Meta, Vec<u8>),
    Get(Vec<u8>),
    Mark(Vec<u8>, Meta),
    Remove(Vec<u8>),
    Scan,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..=3),
            proptest::collection::vec(0u8..2, 1..=20),
            proptest::collection::vec(any::<u8>(), 1..=250),
        ]
    };
    let meta = || {
        let seconds = -(1i64 << 40)..1 << 40;
        let parts = (
            any::<u32>(),
            seconds,
            any::<u64>(),
            any::<bool>(),
            any::<bool>(),
        );
        parts.prop_map(|(flags, expiry, cas, stale, claimed)| Meta {
            flags,
            expiry,
            cas,
            stale,
            claimed,
        })
    };
    let value = prop_oneof![
        20 => proptest::collection::vec(any::<u8>(), 0..100),
        1 => (any::<u8>(), 0usize..300_000).prop_map(|(b, n)| vec![b; n]),
    ];
    let step = prop_oneof![
        6 => (key(), meta(), value).prop_map(|(k, m, v)| Step::Put(k, m, v)),
        2 => key().prop_map(Step::Get),
        1 => (key(), meta()).prop_map(|(k, m)| Step::Mark(k, m)),
        3 => key().prop_map(Step::Remove),
        1 => Just(Step::Scan),
    ];
    proptest::collection::vec(step, 1..200)
}

#[test]
fn what_is_kept_is_what_was_given_to_the_last_bit() {
    for kind in Kind::ALL {
        let both = RefCell::new((managed(kind), Reference::default()));
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 60,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        runner
            .run(&steps(), |steps| {
                let (store, map) = &mut *both.borrow_mut();
                store.clear().unwrap();
                map.clear().unwrap();
                for step in steps {
                    take(store, map, step)?;
                }
                Ok(())
            })
            .unwrap_or_else(|e| panic!("{kind}: {e}"));
    }
}

fn take(store: &mut Managed, map: &mut Reference, step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Put(key, meta, value) => {
            let before = map.put(&key, meta, &value).unwrap();
            prop_assert_eq!(store.put(&key, meta, &value).unwrap(), before);
            prop_assert_eq!(store.get(&key).unwrap(), Some((meta, &value[..])));
        }
        Step::Get(key) => {
            prop_assert_eq!(store.find(&key).unwrap(), map.find(&key).unwrap());
            prop_assert_eq!(store.get(&key).unwrap(), map.get(&key).unwrap());
        }
        Step::Mark(key, meta) => {
            map.mark(&key, meta).unwrap();
            store.mark(&key, meta).unwrap();
            prop_assert_eq!(store.get(&key).unwrap(), map.get(&key).unwrap());
        }
        Step::Remove(key) => {
            prop_assert_eq!(store.remove(&key).unwrap(), map.remove(&key).unwrap());
        }
        Step::Scan => prop_assert_eq!(all(store), all(map)),
    }
    prop_assert_eq!(store.count().unwrap(), map.count().unwrap());
    Ok(())
}

fn all(store: &mut impl Store) -> Vec<(Vec<u8>, Meta, usize)> {
    let (mut found, mut key) = (Vec::new(), Vec::new());
    store.scan(Cursor::Sweep).unwrap();
    while let Some((meta, length)) = store.next(Cursor::Sweep, &mut key).unwrap() {
        found.push((key.clone(), meta, length));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn two_cursors_go_over_all_values_beside_each_other_and_a_promise_is_kept() {
    for kind in Kind::ALL {
        let mut store = Managed::new(kind, Config::default()).unwrap();
        for i in 0..200 {
            let key = format!("key{i}");
            store.put(key.as_bytes(), Meta::default(), b"v").unwrap();
        }
        let (mut found, mut key) = ([0; 2], Vec::new());
        let cursors = [Cursor::Sweep, Cursor::List];
        for cursor in cursors {
            store.scan(cursor).unwrap();
        }
        for round in 0..400 {
            for (cursor, found) in cursors.into_iter().zip(&mut found) {
                // One is ahead.
                let turns = if round == 0 {
                    1 + cursor as usize * 50
                } else {
                    1
                };
                for _ in 0..turns {
                    *found += i32::from(store.next(cursor, &mut key).unwrap().is_some());
                }
            }
        }
        assert_eq!(found, [200, 200], "{kind}");
        assert_eq!(store.flush_at().unwrap(), 0, "{kind}");
        store.set_flush_at(NOW).unwrap();
        assert_eq!(store.flush_at().unwrap(), NOW, "{kind}");
    }
}

#[test]
fn a_heap_that_is_full_refuses_a_value_and_keeps_the_others() {
    for kind in Kind::ALL {
        let config = Config {
            heap_max: 24 << 20,
            ..Config::default()
        };
        let store = Managed::new(kind, config).unwrap();
        let limits = Limits {
            value: 1 << 20,
            memory: 1 << 30,
        };
        let mut cache = Cache::new(store, limits, NOW).unwrap();
        let value = "v".repeat(10_000);
        let set = |i: usize| format!("set k{i} 0 0 {}\r\n{value}\r\n", value.len());
        let stored = (0..10_000)
            .take_while(|&i| one(&mut cache, set(i).as_bytes()) == b"STORED\r\n")
            .count();
        assert!(
            (100..9_999).contains(&stored),
            "{kind}: {stored} values of 10 kB in 24 MB"
        );
        let refused = one(&mut cache, set(stored).as_bytes());
        assert_eq!(
            refused, b"SERVER_ERROR out of memory storing object\r\n",
            "{kind}"
        );
        assert_eq!(cache.count().unwrap(), stored, "{kind}");
        for i in 0..stored {
            let answer = one(&mut cache, format!("mg k{i} s\r\n").as_bytes());
            assert_eq!(answer, b"HD s10000\r\n", "{kind}: k{i}");
        }
        one(&mut cache, b"flush_all\r\n");
        assert_eq!(one(&mut cache, set(0).as_bytes()), b"STORED\r\n", "{kind}");
    }
}
