//! Any bytes are read as a trace or refused, by the stream reader, the file reader and the replay.
//!
//! Checksums would hide almost everything from the fuzzer, so the coding of ops and events is also fed directly.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Write;
use std::path::Path;
use varve_access::Program;
use varve_trace::format::{OpDecoder, decode_events};
use varve_trace::{TraceProgram, TraceStream};

fuzz_target!(|bytes: &[u8]| {
    if let Some((&count, rest)) = bytes.split_first() {
        let _ = OpDecoder::default().decode(rest, usize::from(count), &mut Vec::new());
        let _ = decode_events(rest, usize::from(count), 1000);
    }
    if let Ok(stream) = TraceStream::new(bytes, Path::new("fuzz")) {
        stream.for_each(drop);
    }
    let file = Temporary::new(bytes);
    if let Ok(mut program) = TraceProgram::open(&file.path) {
        let mut alive = vec![true; program.threads()];
        for _ in 0..10_000 {
            for thread in 0..alive.len() {
                alive[thread] =
                    alive[thread] && program.fill(thread, 0, &mut Vec::with_capacity(64));
            }
        }
        let _ = program.failure();
    }
});

/// The bytes as a file that vanishes.
struct Temporary {
    path: std::path::PathBuf,
}

impl Temporary {
    fn new(bytes: &[u8]) -> Temporary {
        let path = std::env::temp_dir().join(format!("varve-fuzz-{}", std::process::id()));
        let mut file = std::fs::File::create(&path).expect("the temporary folder is writable");
        file.write_all(bytes)
            .expect("the temporary folder has room");
        Temporary { path }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
