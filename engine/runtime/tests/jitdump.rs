//! The input of `perf inject --jit`, read back by the specification in the kernel's sources
//! (tools/perf/Documentation/jitdump-specification.txt).

use std::collections::HashMap;
use std::sync::Arc;
use varve_runtime::*;

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn text(&mut self) -> String {
        let len = self.0.iter().position(|&b| b == 0).expect("a zero");
        let text = String::from_utf8(self.take(len).to_vec()).unwrap();
        self.take(1);
        text
    }
}

/// A piece of code.
#[derive(Debug)]
struct Code {
    address: u64,
    bytes: Vec<u8>,
    name: String,
    /// Address, file, line.
    lines: Vec<(u64, String, u32)>,
}

/// The pieces of a file; whether it says that there is no more.
fn read(file: &[u8]) -> (Vec<Code>, bool) {
    let pid = std::process::id();
    let mut bytes = Bytes(file);
    assert_eq!(bytes.u32(), 0x4a69_5444, "little-endian");
    assert_eq!(bytes.u32(), 1, "version");
    assert_eq!(bytes.u32(), 40, "the header's bytes");
    assert_eq!(bytes.u32(), 62, "x86-64");
    assert_eq!(bytes.u32(), 0);
    assert_eq!(bytes.u32(), pid);
    let mut last = bytes.u64();
    assert_eq!(bytes.u64(), 0, "no flags");
    let (mut pieces, mut lines, mut closed) = (Vec::new(), HashMap::new(), false);
    while !bytes.0.is_empty() {
        assert!(!closed, "nothing follows the end");
        let (kind, len) = (bytes.u32(), bytes.u32());
        let time = bytes.u64();
        assert!(time >= last, "times ascend");
        last = time;
        let mut record = Bytes(bytes.take(len as usize - 16));
        match kind {
            0 => {
                assert_eq!(record.u32(), pid);
                assert!(record.u32() >= pid, "a thread of this process");
                let address = record.u64();
                assert_eq!(record.u64(), address, "it is where it runs");
                let size = record.u64() as usize;
                assert_eq!(record.u64(), pieces.len() as u64, "numbered in order");
                pieces.push(Code {
                    address,
                    name: record.text(),
                    bytes: record.take(size).to_vec(),
                    lines: lines.remove(&address).unwrap_or_default(),
                });
            }
            2 => {
                let (address, count) = (record.u64(), record.u64());
                let mut entry = || {
                    let (at, line) = (record.u64(), record.u32());
                    assert_eq!(record.u32(), 0, "no discriminator");
                    (at, record.text(), line)
                };
                lines.insert(address, (0..count).map(|_| entry()).collect());
            }
            3 => closed = true,
            other => panic!("record of kind {other}"),
        }
        assert!(record.0.is_empty(), "all of record {kind} was read");
    }
    assert!(lines.is_empty(), "lines come before their code");
    (pieces, closed)
}

const PROGRAM: &str = r#"(module
    (func $add (param $a i64) (param $b i64) (result i64) (i64.add (local.get $a) (local.get $b)))
    (func $sum (export "sum") (param $n i32) (result i64) (local $s i64)
        (loop $l
            (local.set $s (call $add (local.get $s) (i64.extend_i32_u (local.get $n))))
            (local.set $n (i32.sub (local.get $n) (i32.const 1)))
            (br_if $l (local.get $n)))
        (local.get $s)))"#;

#[test]
fn perf_finds_code_names_and_lines() {
    let folder = tempfile::tempdir().unwrap();
    let dump = Arc::new(JitDump::create(folder.path()).unwrap());
    let names = Arc::new(PerfMap::create().unwrap());
    let (file, map) = (dump.path().to_owned(), names.path().to_owned());
    let name = format!("jit-{}.dump", std::process::id());
    assert!(file.ends_with(&name));
    // That is how `perf` learns of it.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = |line: &&str| line.contains(" r-xp ") && line.ends_with(&name);
    assert_eq!(maps.lines().filter(mapped).count(), 1, "{maps}");

    let engine = Engine::new(Config {
        hot: 100,
        background: false,
        jit_dump: Some(dump),
        perf_map: Some(names),
        ..Config::default()
    });
    let wasm = wat::parse_str(PROGRAM).unwrap();
    let module = Module::new(&engine, &wasm).unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    store.source_lines(|offset| Some(format!("sum.wat:{offset}")));
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap();
    let f = instance
        .get_typed_func::<i32, i64>(&mut store, "sum")
        .unwrap();
    assert_eq!(f.call(&mut store, 100_000).unwrap(), 5_000_050_000);

    let (pieces, closed) = read(&std::fs::read(&file).unwrap());
    assert!(!closed);
    let named: Vec<String> = std::fs::read_to_string(&map)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    std::fs::remove_file(&map).unwrap();
    assert_eq!(named.len(), pieces.len());
    for (piece, line) in pieces.iter().zip(&named) {
        let (address, len) = (piece.address, piece.bytes.len());
        assert_eq!(*line, format!("{address:x} {len:x} {}", piece.name));
        // SAFETY: the store is alive, and with it its code, which does not change.
        let there = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
        assert_eq!(piece.bytes, there);
        let mut last = 0;
        for (at, file, line) in &piece.lines {
            assert!((address..address + len as u64).contains(at) && *at >= last);
            assert_eq!(file, "sum.wat");
            assert!((*line as usize) < wasm.len());
            last = *at;
        }
    }
    for level in ["baseline", "optimized"] {
        let is = |p: &&Code| p.name.contains("sum") && p.name.ends_with(&format!("[{level}]"));
        let piece = pieces.iter().find(is).expect(level);
        assert!(piece.lines.len() > 3, "{piece:?}");
    }
    drop((store, module, engine));
    assert!(
        read(&std::fs::read(&file).unwrap()).1,
        "the end is recorded"
    );
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    let e = JitDump::create(std::path::Path::new("/nowhere/at/all")).unwrap_err();
    assert_eq!(e.kind(), std::io::ErrorKind::NotFound);
}
