use super::*;

fn read(text: &str) -> AddressMap {
    AddressMap::read("p.maps", text.as_bytes()).unwrap()
}

fn shown(map: &AddressMap, range: Range<u64>) -> Vec<(String, u64)> {
    let parts = map.split(&range);
    parts
        .iter()
        .map(|(key, bytes)| (format!("{key:?}"), *bytes))
        .collect()
}

#[test]
fn stacks_and_the_rest_are_told_and_code_is_left_out() {
    let map = read(
        "00001000-00002000 r-xp 00000000 fe:00 12   /no/such/file
00004000-00006000 rw-p 00000000 00:00 0    [heap]
00006000-00007000 rw-s 00000000 00:00 0    /dev/shm/x
00009000-0000a000 rw-p 00000000 00:00 0    [stack]
",
    );
    assert_eq!(
        shown(&map, 0..0x10000),
        [("Rest".to_string(), 0x2000), ("Stacks".into(), 0x1000)]
    );
    assert_eq!(shown(&map, 0x5000..0x9800)[1], ("Stacks".into(), 0x800));
    assert!(matches!(map.at(0x9000), Some(Key::Stacks)));
    assert!(map.at(0x4000).is_none() && map.at(0).is_none());
    let damo = r#"[{"time": 1.5, "procvmas": [{"pid": 7, "vmas": [
            {"start": 16384, "end": 24576, "name": "[heap]"}, {"start": 36864, "end": 40960, "name": "[stack]"}]}]},
            {"time": 2.5, "procvmas": [{"pid": 7, "vmas": []}]}]"#;
    assert_eq!(shown(&read(damo), 0..0x10000), shown(&map, 0..0x10000));
}

/// Of this very test: its own variables are where its own map says that its file is.
#[test]
fn static_variables_are_found_where_the_file_is() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static TABLE: [AtomicU64; 4096] = [const { AtomicU64::new(7) }; 4096];
    TABLE[1].fetch_add(1, Ordering::Relaxed);
    let at = TABLE.as_ptr() as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let map = read(&maps);
    for at in [at, at + 8 * 4095] {
        match map.at(at) {
            Some(Key::Static { symbol, .. }) => assert!(symbol.contains("TABLE"), "{symbol}"),
            other => panic!("{other:?}"),
        }
    }
    let there: u64 = map
        .split(&(at - 4096..at + 8 * 4096 + 4096))
        .iter()
        .map(|(_, bytes)| bytes)
        .sum();
    assert!((32768..=32768 + 8192).contains(&there), "{there}");
}

#[test]
fn what_is_no_map_is_named_with_its_line() {
    let says = |text: &str| {
        AddressMap::read("p.maps", text.as_bytes())
            .unwrap_err()
            .to_string()
    };
    let good = "00001000-00002000 r-xp 00000000 fe:00 12\n";
    assert_eq!(
        says(&format!("{good}hello\n")),
        "p.maps:2: no mapping as in /proc/PID/maps"
    );
    assert!(says("2000-1000 r-xp 0 fe:00 12").starts_with("p.maps:1: no mapping"));
    assert!(says("[\n{\"procvmas\": 3}]").starts_with("p.maps:2: no record of mappings"));
}

#[test]
fn names_are_of_any_bytes() {
    let mut text = b"00001000-00002000 rw-p 00000000 fe:00 12                                 /no such/\xff \\012x (deleted)\n".to_vec();
    text.extend(b"00002000-00003000 rw-p 00000000 00:00 0 \r\n\n");
    text.extend(b"00003000-00004000 rw-p 00000000 00:00 0                                  [anon:libc_malloc]\n");
    text.extend(
        b"00004000-00005000 rw-p 00000000 00:00 0                                  [stack:812]\n",
    );
    text.extend(b"00005000-00006000 rw-p 00000000 00:00 0                                  [anon: glibc: pthread stack: 813]\n");
    let names: Vec<Vec<u8>> = kernel::read("m", &text)
        .unwrap()
        .into_iter()
        .map(|one| one.name)
        .collect();
    assert_eq!(names[0], b"/no such/\xff \nx (deleted)");
    assert_eq!(
        (names[1].len(), &names[2][..]),
        (0, &b"[anon:libc_malloc]"[..])
    );
    let map = AddressMap::read("m", &text[..]).unwrap();
    let bytes = shown(&map, 0..0x10000);
    let sum = |name: &str| {
        bytes
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, bytes)| bytes)
            .sum::<u64>()
    };
    assert_eq!((sum("Rest"), sum("Stacks")), (0x3000, 0x2000));
    // the last address of all
    assert!(map.at(u64::MAX).is_none());
}
