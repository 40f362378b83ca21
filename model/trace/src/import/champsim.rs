//! ChampSim's `input_instr`: 64 bytes per instruction, little-endian: instruction pointer (8), is branch (1), branch
//! taken (1), destination registers (2), source registers (4), destination addresses (2 x 8), source addresses (4 x 8).
//! An address of 0 is none. Sizes are not in the format; 8 bytes are assumed, the size of a register.

use super::{ImportError, Sink};
use std::io::{BufReader, Read};
use std::path::Path;
use varve_access::{Kind, Op};

const RECORD_BYTES: usize = 64;
const DESTINATIONS: std::ops::Range<usize> = 16..32;
const SOURCES: std::ops::Range<usize> = 32..64;
const ACCESS_BYTES: u16 = 8;

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
        if got == 0 {
            return Ok(());
        }
        if got < RECORD_BYTES {
            let what = format!(
                "a record has {RECORD_BYTES} bytes, {got} are left; is it a ChampSim trace, and whole?"
            );
            return Err(ImportError::Record {
                path: path.into(),
                offset,
                what,
            });
        }
        if record[8] > 1 || record[9] > 1 {
            let what = "the branch flags are neither 0 nor 1; is it a ChampSim trace?".to_string();
            return Err(ImportError::Record {
                path: path.into(),
                offset,
                what,
            });
        }
        sink.instruction();
        for (range, kind) in [(SOURCES, Kind::Read), (DESTINATIONS, Kind::Write)] {
            for bytes in record[range].as_chunks::<8>().0 {
                let addr = u64::from_le_bytes(*bytes);
                if addr != 0 {
                    sink.access(Op::new(kind, addr, ACCESS_BYTES, 0))?;
                }
            }
        }
        offset += RECORD_BYTES as u64;
    }
}
