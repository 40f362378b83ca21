//! Random recordings, written as versions of heaptrack write them: what is read is what was written, and what a slow reader finds that
//! takes one byte after another. Nothing makes a reader panic.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::heaptrack;

/// By function: objects, bytes, most bytes at a time, and objects that were freed.
type Sums = BTreeMap<String, [u64; 4]>;

/// An object: of which function, its bytes, and whether it is freed before the next.
type Object = (usize, u64, bool);

#[derive(Clone, Debug)]
struct Written {
    version: u64,
    is_raw: bool,
    /// Names of functions, or of modules in raw files.
    names: Vec<Vec<u8>>,
    objects: Vec<Object>,
}

fn written() -> impl Strategy<Value = Written> {
    let name = vec(any::<u8>(), 0..12);
    let object = (0usize..4, 1u64..5000, any::<bool>());
    (0u64..4, any::<bool>(), vec(name, 4), vec(object, 1..20)).prop_map(
        |(version, is_raw, names, objects)| {
            let number = |(at, name): (usize, Vec<u8>)| named(at, name, version, is_raw);
            let names = names.into_iter().enumerate().map(number).collect();
            Written {
                version,
                is_raw,
                names,
                objects,
            }
        },
    )
}

/// No two names are alike. Without lengths they have no newlines, and those of modules no blanks.
fn named(at: usize, mut name: Vec<u8>, version: u64, is_raw: bool) -> Vec<u8> {
    // slashes are of paths, whose last part is shown
    name.retain(|byte| *byte != b'/');
    if version < 3 {
        name.retain(|byte| *byte != b'\n' && *byte != b'\r' && !(is_raw && *byte == b' '));
    }
    let mut all = format!("/f{at}").into_bytes();
    all.extend(name);
    all
}

fn string(version: u64, name: &[u8]) -> Vec<u8> {
    let mut text = match version {
        3 => format!("{:x} ", name.len()).into_bytes(),
        _ => Vec::new(),
    };
    text.extend(name);
    text
}

fn bytes(one: &Written) -> Vec<u8> {
    let mut text = match one.version {
        0 => b"v 9999\n".to_vec(),
        1 => b"v 10200\n".to_vec(),
        version => format!("v 10400 {version:x}\n").into_bytes(),
    };
    text.extend(b"X ./p -x\nI 1000 5e298f\n# a comment\n");
    for (at, name) in one.names.iter().enumerate() {
        let at = at as u64;
        text.extend(if one.is_raw { b"m " } else { b"s " });
        text.extend(string(one.version, name));
        match one.is_raw {
            true => text.extend(
                format!(
                    " {:x} 0 1000\nt {:x} 0\n",
                    (at + 1) << 16,
                    ((at + 1) << 16) + 0x10
                )
                .bytes(),
            ),
            false => text.extend(format!("\ni 7f0{at} 0 {:x}\nt {:x} 0\n", at + 1, at + 1).bytes()),
        }
    }
    // What was allocated before the recording.
    if one.is_raw || one.version == 0 {
        text.extend(b"- abc\n");
    }
    for (at, (function, size, is_freed)) in one.objects.iter().enumerate() {
        let trace = function + 1;
        let (new, old) = match one.is_raw || one.version == 0 {
            true => (
                format!("+ {size:x} {trace:x} {:x}\n", 0x1000 + at),
                format!("- {:x}\n", 0x1000 + at),
            ),
            false => (
                format!("a {size:x} {trace:x}\n+ {at:x}\n"),
                format!("- {at:x}\n"),
            ),
        };
        text.extend(new.bytes());
        if *is_freed {
            text.extend(b"c 5\nR 10\n");
            text.extend(old.bytes());
        }
    }
    text
}

fn meant(one: &Written) -> Sums {
    let mut sums = Sums::new();
    let mut alive = [0; 4];
    for (function, size, is_freed) in &one.objects {
        let sum = sums.entry(shown(&one.names[*function])).or_default();
        alive[*function] += size;
        sum[0] += 1;
        sum[1] += size;
        sum[2] = sum[2].max(alive[*function]);
        if *is_freed {
            alive[*function] -= size;
            sum[3] += 1;
        }
    }
    sums
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[1..]).into_owned()
}

fn found(bytes: &[u8]) -> Sums {
    let profile = heaptrack("f", bytes).unwrap().profile;
    let sites = profile.sites.iter().map(|site| {
        let frame = &site.key.stack()[0];
        let name = frame.function.as_ref().map(|name| name[1..].to_string());
        let c = &site.counts;
        let name = name.unwrap_or_else(|| frame.module.clone());
        (name, [c.objects, c.bytes, c.peak_bytes, c.freed])
    });
    sites.collect()
}

/// One byte after another: a letter, a blank, and what is there up to the end of the line, or as long as a length says.
fn slow(bytes: &[u8], one: &Written) -> Sums {
    let mut rest = bytes;
    let take_word = |rest: &mut &[u8]| {
        let mut word = String::new();
        while let Some((byte, after)) = rest.split_first() {
            if matches!(byte, b' ' | b'\n') {
                break;
            }
            word.push(char::from(*byte));
            *rest = after;
        }
        if rest.first() == Some(&b' ') {
            *rest = &rest[1..];
        }
        word
    };
    let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
    let (mut names, mut kinds, mut live, mut sums) =
        (Vec::new(), Vec::new(), BTreeMap::new(), Sums::new());
    let mut alive: BTreeMap<usize, u64> = BTreeMap::new();
    while !rest.is_empty() {
        let what = take_word(&mut rest);
        if what == "s" || what == "m" {
            let length = match one.version {
                3 => hex(&take_word(&mut rest)) as usize,
                _ => rest
                    .iter()
                    .position(|byte| *byte == b'\n' || one.is_raw && *byte == b' ')
                    .unwrap(),
            };
            names.push(rest[..length].to_vec());
            rest = &rest[length..];
        }
        let mut numbers = Vec::new();
        while rest.first().is_some_and(|byte| *byte != b'\n') {
            numbers.push(take_word(&mut rest));
        }
        rest = rest.get(1..).unwrap_or_default();
        let (size, trace, key) = match (&what[..], numbers.len()) {
            ("a", _) => {
                kinds.push((hex(&numbers[0]), hex(&numbers[1]) as usize - 1));
                continue;
            }
            ("+", 3) => (
                hex(&numbers[0]),
                hex(&numbers[1]) as usize - 1,
                hex(&numbers[2]),
            ),
            ("+", _) => {
                let key = hex(&numbers[0]);
                let (size, trace) = kinds[key as usize];
                (size, trace, key)
            }
            ("-", _) => {
                if let Some((size, trace)) = live.remove(&hex(&numbers[0])) {
                    *alive.get_mut(&trace).unwrap() -= size;
                    sums.get_mut(&shown(&names[trace])).unwrap()[3] += 1;
                }
                continue;
            }
            _ => continue,
        };
        live.insert(key, (size, trace));
        let now = alive.entry(trace).or_default();
        *now += size;
        let sum = sums.entry(shown(&names[trace])).or_default();
        sum[0] += 1;
        sum[1] += size;
        sum[2] = sum[2].max(*now);
    }
    sums
}

proptest! {
    #[test]
    fn recordings_are_read_as_they_were_written(one in written()) {
        let bytes = bytes(&one);
        prop_assert_eq!(slow(&bytes, &one), meant(&one));
        prop_assert_eq!(found(&bytes), meant(&one));
    }

    #[test]
    fn no_bytes_make_it_panic(version in 0u8..4, bytes in vec(any::<u8>(), 0..300)) {
        let mut all = format!("v 10400 {version}\n").into_bytes();
        all.extend(&bytes);
        let _ = heaptrack("f", &all[..]);
        let _ = heaptrack("f", &bytes[..]);
    }

    #[test]
    fn no_words_make_it_panic(version in 0u8..4, words in vec(prop::sample::select(WORDS.to_vec()), 0..60)) {
        let all = format!("v 10400 {version}\n{}", words.concat());
        let _ = heaptrack("f", all.as_bytes());
    }
}

const WORDS: [&str; 26] = [
    "\n",
    "\n",
    "\n",
    " ",
    " ",
    "+ ",
    "- ",
    "a ",
    "t 1 0",
    "t 10 0",
    "i 1 0 1",
    "s 1 x",
    "x ",
    "m ",
    "m 1 - ",
    "m 1 x ",
    "1 ",
    "0 ",
    "10 ",
    "ffffffffffffffff",
    "ffffffffffffffff ",
    "7fffffffffffffff ",
    "é",
    "\r",
    "X ",
    "v ",
];
