//! Random maps, written as the kernel writes them: what is read is what was written, and what a slow reader finds that knows the
//! columns. Nothing makes a reader panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{AddressMap, Mapping, kernel};

fn mapping() -> impl Strategy<Value = Mapping> {
    let name = prop_oneof![
        Just(Vec::new()),
        vec(any::<u8>(), 0..20).prop_map(|bytes| [&b"/no such/"[..], &bytes[..]].concat()),
        prop::sample::select(vec![
            "[heap]",
            "[stack]",
            "[stack:812]",
            "[anon:a name]",
            "/memfd:x (deleted)",
            "socket:[12]"
        ])
        .prop_map(|name| name.as_bytes().to_vec()),
    ];
    let range = (0u64..1 << 42, 1u64..1 << 40);
    let rights = prop::sample::select(vec!["rw-p", "r-xp", "---p", "rw-s"]);
    (range, rights, any::<u32>(), name).prop_map(|((start, pages), rights, offset, mut name)| {
        // The kernel writes these as they are, and a carriage return at the end is that of another system's lines.
        name.retain(|byte| *byte != b'\\');
        while name.last() == Some(&b'\r') {
            name.pop();
        }
        Mapping {
            range: start..start + pages,
            rights: rights.into(),
            offset: Some(u64::from(offset)),
            name,
        }
    })
}

/// By address, without overlaps.
fn mappings() -> impl Strategy<Value = Vec<Mapping>> {
    vec(mapping(), 0..12).prop_map(|mut all| {
        let mut end = 0;
        for one in &mut all {
            one.range = end + one.range.start..end + one.range.end;
            end = one.range.end;
        }
        all
    })
}

/// The name begins in column 73, or after the inode and a blank.
fn line(one: &Mapping) -> Vec<u8> {
    let (start, end, offset) = (one.range.start, one.range.end, one.offset.unwrap());
    let mut line = format!(
        "{start:08x}-{end:08x} {} {offset:08x} fe:01 1234 ",
        one.rights
    )
    .into_bytes();
    if !one.name.is_empty() {
        line.resize(line.len().max(73), b' ');
    }
    for byte in &one.name {
        match byte {
            b'\n' => line.extend(b"\\012"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

fn slow(text: &[u8]) -> Vec<Mapping> {
    let mut found = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = &line[..line.len() - 1];
        let at = |from: usize, byte: u8| {
            from + line[from..].iter().position(|one| *one == byte).unwrap()
        };
        let hex = |from, to| {
            u64::from_str_radix(std::str::from_utf8(&line[from..to]).unwrap(), 16).unwrap()
        };
        let (dash, range) = (at(0, b'-'), at(0, b' '));
        let offset = at(range + 6, b' ');
        let inode = at(at(offset + 1, b' ') + 1, b' ');
        let name = &line[(inode + 1).max(73).min(line.len())..];
        let name: Vec<u8> = name.to_vec();
        let parts: Vec<Vec<u8>> = split(&name, b"\\012");
        found.push(Mapping {
            range: hex(0, dash)..hex(dash + 1, range),
            rights: String::from_utf8(line[range + 1..range + 5].to_vec()).unwrap(),
            offset: Some(hex(range + 6, offset)),
            name: parts.join(&b'\n'),
        });
    }
    found
}

fn split(name: &[u8], by: &[u8]) -> Vec<Vec<u8>> {
    match name.windows(by.len()).position(|window| window == by) {
        None => vec![name.to_vec()],
        Some(at) => {
            let mut parts = vec![name[..at].to_vec()];
            parts.extend(split(&name[at + by.len()..], by));
            parts
        }
    }
}

proptest! {
    #[test]
    fn maps_are_read_as_they_were_written(all in mappings()) {
        let text: Vec<u8> = all.iter().flat_map(line).collect();
        prop_assert_eq!(&slow(&text), &all);
        prop_assert_eq!(&kernel::read("m", &text).unwrap(), &all);
        let map = AddressMap::read("m", &text[..]).unwrap();
        for one in &all {
            let bytes: u64 = map.split(&one.range).iter().map(|(_, bytes)| bytes).sum();
            let due = match &one.rights[..] {
                "rw-p" => one.range.end - one.range.start,
                _ => 0,
            };
            prop_assert_eq!(bytes, due);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..300), at in any::<u64>()) {
        if let Ok(map) = AddressMap::read("m", &bytes[..]) {
            map.at(at);
        }
    }

    #[test]
    fn no_words_make_it_panic(words in vec(prop::sample::select(WORDS.to_vec()), 0..40), at in any::<u64>()) {
        if let Ok(map) = AddressMap::read("m", words.concat().as_bytes()) {
            map.at(at);
            map.split(&(at..u64::MAX));
        }
    }
}

const WORDS: [&str; 16] = [
    "0-ffffffffffffffff rw-p ",
    "1000-2000 rw-p ",
    "fffffffffffff000-ffffffffffffffff r-xp ",
    "ffffffffffffffff ",
    "0 ",
    "fe:01 ",
    "0 12 ",
    "[stack]",
    "[heap]",
    "/bin/sh",
    "\n",
    "\n",
    " ",
    "\\012",
    "é",
    "[",
];
