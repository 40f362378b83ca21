use super::*;
use varve_sites::native::names::name;

const RAW: &str = "v 10400 3
x 7 /none/p
X ./p -x
I 1000 5e298f
m 1 -
m 1 x 1000 0 9b0 1000 5c1
t 2133 0
t 2294 1
t 2299 1
+ 100 2 aa0
+ 40 3 bb0
- aa0
+ 100 2 aa0
- ccc
R 10
c 5
";

#[test]
fn raw_files_have_lifetimes_and_addresses_of_the_file() {
    let imported = heaptrack("raw", RAW.as_bytes()).unwrap();
    let profile = imported.profile;
    assert_eq!(
        (
            &profile.program[..],
            profile.command.len(),
            profile.sites.len()
        ),
        ("p", 2, 2)
    );
    let first = &profile.sites[0];
    let offsets: Vec<u64> = first.key.stack().iter().map(|frame| frame.offset).collect();
    assert_eq!(
        offsets,
        [0x1295, 0x1134],
        "return addresses, the innermost first"
    );
    let c = &first.counts;
    assert_eq!(
        (c.objects, c.bytes, c.peak_bytes, c.freed, c.lifetime_bytes),
        (2, 0x200, 0x100, 1, 0x40)
    );
    assert_eq!(profile.sites[1].counts.freed, 0);
    assert_eq!(imported.missing.len(), 1);
    assert_eq!(profile.modules.len(), 1);
}

#[test]
fn packed_files_are_the_same_and_cut_ones_are_refused() {
    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    let plain = heaptrack("raw", RAW.as_bytes()).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(RAW.as_bytes()).unwrap();
    let zstd = compress_to_vec(RAW.as_bytes(), CompressionLevel::Fastest);
    for packed in [gzip.finish().unwrap(), zstd] {
        assert_eq!(heaptrack("raw", &packed[..]).unwrap(), plain);
        let cut = heaptrack("cut.gz", &packed[..packed.len() / 2]);
        let said = cut.unwrap_err().to_string();
        assert!(said.starts_with("cut.gz: "), "{said}");
    }
}

const INTERPRETED: &str = "v 10400 3
X ./p
s 3 a/p
s 4 main
s 8 src/a.cc
i 7f01 1 2 3 c
s 9 grow(int)
i 7f02 1 4 3 5 2 3 d
t 1 0
t 2 1
a 20 2
+ 0
+ 0
- 0
";

#[test]
fn interpreted_files_have_names_lines_and_inlined_functions() {
    let imported = heaptrack("file", INTERPRETED.as_bytes()).unwrap();
    let site = &imported.profile.sites[0];
    assert_eq!(name(&site.key), "grow (a.cc:5)");
    let frame = &site.key.stack()[0];
    assert_eq!(
        (frame.function.as_deref(), frame.line.as_deref()),
        (Some("main"), Some("a.cc:13"))
    );
    let c = &site.counts;
    assert_eq!(
        (c.objects, c.bytes, c.peak_bytes, c.freed),
        (2, 0x40, 0x40, 1)
    );
    assert_eq!(imported.missing.len(), 2);
    // version 2 has strings without lengths
    let older: Vec<&str> = vec!["v 10100 2", "s main", "i 7f01 0 1", "t 1 0", "a 8 1", "+ 0"];
    let imported = heaptrack("file", older.join("\n").as_bytes()).unwrap();
    assert_eq!(name(&imported.profile.sites[0].key), "main");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let says = |text: &[u8]| heaptrack("f.ht", text).unwrap_err().to_string();
    assert_eq!(says(b""), "f.ht: no heaptrack file: it has no line `v`");
    assert!(says(b"hello\n").starts_with("f.ht:1: no heaptrack file"));
    assert_eq!(
        says(b"v 1 3\n+ 0\n"),
        "f.ht:2: there is no allocation 0 yet"
    );
    assert_eq!(says(b"v 1 3\nt 1 5\n"), "f.ht:2: there is no trace 5 yet");
    assert_eq!(
        says(b"v 1 3\ns 9 abc\n"),
        "f.ht:2: the string is shorter than 9 bytes"
    );
    assert_eq!(
        says(b"v 1 3\n\nt x 0\n"),
        "f.ht:3: `x` is no hexadecimal number"
    );
    assert!(says(b"v 1 9\n").contains("file version 9"));
    assert!(says(b"v 1 3\nq 1\n").contains("unknown kind, `q`"));
}

/// Lengths are of bytes. This is what heaptrack 1.4 writes of a program whose name is no UTF-8.
#[test]
fn names_of_any_bytes_shift_nothing() {
    let raw = b"v 10400 3
x 15 /tmp/h-import-ht/a b\xff
X ./a b\xff
I 1000 5e298f
m 1 -
m 1 x 562e67ffa000 0 688 1000 1c5
m 5 /l/\xff\n 7f3ca3f11000 0 1522
t 562e67ffb010 0
t 7f3ca3f11010 0
+ 100 1 aa0
+ 100 2 bb0
";
    let profile = heaptrack("raw", &raw[..]).unwrap().profile;
    assert_eq!(profile.program, "a b\u{fffd}");
    let frames: Vec<(&str, u64)> = profile
        .sites
        .iter()
        .map(|site| (&site.key.stack()[0].module[..], site.key.stack()[0].offset))
        .collect();
    assert_eq!(frames, [("a b\u{fffd}", 0x1011), ("\u{fffd}\n", 0x11)]);
}

/// As they were before 1.0, in 1.0, and in 1.1: without lengths, and without inlined functions before 1.1.
#[test]
fn old_versions_are_read() {
    let names = "X ./p -x\ns a/p\ns operator new(unsigned long)\ns f g\ni 7f01 1 2\ni 7f02 1 3 0 0\nt 1 0\nt 2 0\n";
    let objects = "+ 20 2 aa0\n- 5\n- aa0\n+ 10 2 aa0\n";
    let kinds = "a 20 2\n+ 0\n- 0\na 10 2\n+ 1\n";
    for text in [
        format!("v 9999\n{names}- 1\n{objects}"),
        format!("v 10200\n{names}{kinds}"),
        format!("v 10000 1\n{names}{kinds}"),
        format!("v 10100 2\n{names}{kinds}"),
    ] {
        let imported = heaptrack("f", text.as_bytes()).unwrap();
        let site = &imported.profile.sites[0];
        assert_eq!(site.key.stack()[0].function.as_deref(), Some("f g"));
        let c = &site.counts;
        assert_eq!((c.objects, c.bytes, c.freed), (2, 0x30, 1), "{text}");
    }
    let said = heaptrack("f", &b"v 10500 4\n"[..]).unwrap_err().to_string();
    assert_eq!(said, "f:1: heaptrack's file version 4; 0 to 3 can be read");
}

#[test]
fn lengths_that_are_wrong_are_refused() {
    let says = |text: &[u8]| heaptrack("f", text).unwrap_err().to_string();
    assert_eq!(
        says(b"v 1 3\ns 2 abc\n"),
        "f:2: the string is longer than 2 bytes"
    );
    assert_eq!(says(b"v 1 3\ns 3 abc d\n"), "f:2: `d` is behind the string");
    assert_eq!(
        says(b"v 1 3\nc 1\ns ff abc\nt 1 0\n"),
        "f:3: the string is shorter than ff bytes"
    );
    assert_eq!(says(b"v 1 3\nm abc\n"), "f:2: a string is missing");
    assert_eq!(says(b"v 1 3\nx zz abc\n"), "f:2: `zz` is no length");
    // a name with a newline is two lines
    assert_eq!(
        says(b"v 1 3\ns 3 a\nb\nt x 0\n"),
        "f:4: `x` is no hexadecimal number"
    );
}
