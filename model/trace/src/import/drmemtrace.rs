//! DynamoRIO's offline traces (drmemtrace), as its tools read them: uncompressed records of 12 bytes, of which the first is
//! the header. Type (2), size (2), address or value (8), all little-endian, of 64-bit programs.
//!
//! A `.trace.gz` is unpacked with `gunzip`, a `.trace.zip` with `unzip -p`; the `.raw` files of the tracer itself need the
//! code of the traced program and are turned into these by DynamoRIO first.

use super::{ImportError, Sink};
use std::io::{BufReader, Read};
use std::path::Path;
use varve_access::{Kind, Op};

const RECORD_BYTES: usize = 12;

// Types of records, by DynamoRIO's `trace_entry.h`.
const READ: u16 = 0;
const WRITE: u16 = 1;
const BUNDLE: u16 = 17;
const DATA_FLUSH: u16 = 20;
const THREAD: u16 = 22;
const HEADER: u16 = 25;
const LAST_KNOWN: u16 = 49;

/// One instruction that was fetched, of any sort; not the further rounds of a string instruction (29).
fn is_instruction(kind: u16) -> bool {
    matches!(kind, 10..=16 | 30 | 31 | 48 | 49)
}

pub(super) fn read<R: Read>(
    input: &mut BufReader<R>,
    path: &Path,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut record = [0; RECORD_BYTES];
    let mut offset = 0u64;
    loop {
        let got = super::fill(input, &mut record).map_err(|source| ImportError::Io {
            path: path.into(),
            source,
        })?;
        let wrong = |what: String| {
            Err(ImportError::Record {
                path: path.into(),
                offset,
                what,
            })
        };
        if got == 0 && offset > 0 {
            return Ok(());
        }
        if got < RECORD_BYTES {
            return wrong(format!(
                "a record has {RECORD_BYTES} bytes, {got} are left; is it a drmemtrace trace, and whole?"
            ));
        }
        let [a, b, c, d, address @ ..] = record;
        let (kind, size, address) = (
            u16::from_le_bytes([a, b]),
            u16::from_le_bytes([c, d]),
            u64::from_le_bytes(address),
        );
        if offset == 0 && kind != HEADER {
            return wrong(format!(
                "the first record is of type {kind}, not a header ({HEADER}); is it a drmemtrace trace of a 64-bit program, unpacked and not raw?"
            ));
        }
        match kind {
            READ => sink.access(Op::read(address, size, 0))?,
            WRITE => sink.access(Op::write(address, size, 0))?,
            DATA_FLUSH if size > 0 => sink.access(Op::new(Kind::Flush, address, size, 0))?,
            BUNDLE => (0..size).for_each(|_| sink.instruction()),
            THREAD => sink.thread(address)?,
            kind if is_instruction(kind) => sink.instruction(),
            kind if kind <= LAST_KNOWN => {}
            _ => {
                return wrong(format!(
                    "records of type {kind} are not known here; the trace is of a newer version, export it with an older one"
                ));
            }
        }
        offset += RECORD_BYTES as u64;
    }
}
