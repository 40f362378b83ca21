//! The parts of a trace that both readers take apart: blocks, the file's header, payloads, the end block.

use crate::error::TraceError;
use crate::format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, CodeAt, EventAt, FileHeader, MAGIC, OpDecoder,
    PADDING, Templates, VERSION, checksum_matches, decode_events,
};
use crate::writer::End;
use std::path::Path;
use varve_access::Op;

/// The ops and events of a block, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its thread.
    pub thread: u32,
    /// Instructions of all threads before the block.
    pub first_instruction: u64,
    /// The ops.
    pub ops: Vec<Op>,
    /// The events, in order of their places among the ops.
    pub events: Vec<EventAt>,
    /// The functions that the thread was in, if they are asked for, as far as they are known.
    pub code: Vec<CodeAt>,
}

/// Length of the fixed part of the file's header: magic, version, length of the JSON.
pub(crate) const FIXED_BYTES: usize = 16;
/// A longer JSON header is not believed.
const MAX_JSON_BYTES: u32 = 16 << 20;

/// Reads the JSON header that follows the fixed bytes. Returns it and the offset of the first block.
pub(crate) fn read_file_header(
    fixed: &[u8; FIXED_BYTES],
    path: &Path,
    mut read_rest: impl FnMut(&mut [u8]) -> std::io::Result<()>,
) -> Result<(FileHeader, u64), TraceError> {
    let word =
        |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    if fixed[..8] != MAGIC {
        return Err(TraceError::Foreign {
            path: path.into(),
            hint: foreign_hint(fixed),
        });
    }
    if !(1..=VERSION).contains(&word(8)) {
        return Err(TraceError::Version {
            path: path.into(),
            found: word(8),
            known: VERSION,
        });
    }
    let damaged = |what| TraceError::Damaged {
        path: path.into(),
        offset: FIXED_BYTES as u64,
        what,
    };
    if word(12) > MAX_JSON_BYTES {
        return Err(damaged("the header has an impossible length"));
    }
    let mut rest = vec![0; word(12) as usize + 4];
    read_rest(&mut rest).map_err(|_| TraceError::CutOff {
        path: path.into(),
        offset: FIXED_BYTES as u64,
        why: "the file ends inside its header".into(),
    })?;
    let (json, checksum) = rest.split_at(rest.len() - 4);
    if checksum != crc32fast::hash(json).to_le_bytes() {
        return Err(damaged("the header does not fit its checksum"));
    }
    let header = serde_json::from_slice(json)
        .map_err(|_| damaged("the header is no JSON of this version"))?;
    Ok((header, (FIXED_BYTES + rest.len()) as u64))
}

/// Guess at the file's format, and the remedy.
fn foreign_hint(start: &[u8]) -> &'static str {
    match start {
        [0x1f, 0x8b, ..] => "; it is compressed with gzip: `gunzip` it first",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "; it is compressed with xz: `unxz` it first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "; it is compressed with zstd: `unzstd` it first",
        [b'=', b'=', ..] | [b'I' | b' ', b' ', ..] => {
            "; it looks like valgrind's lackey output: import it first"
        }
        _ => "",
    }
}

/// Checks and decompresses a payload, with room for the decoder at its end.
pub(crate) fn unpack(
    bytes: &[u8; BLOCK_HEADER_BYTES],
    header: &BlockHeader,
    stored: &[u8],
) -> Result<Vec<u8>, &'static str> {
    if !checksum_matches(bytes, stored) {
        return Err("the block does not fit its checksum");
    }
    let length = header.raw_bytes as usize;
    let mut raw = vec![0; length + PADDING];
    match lz4_flex::block::decompress_into(stored, &mut raw[..length]) {
        Ok(unpacked) if unpacked == length => {
            if !matches!(header.kind, BlockKind::Ops | BlockKind::Runs) {
                raw.truncate(length);
            }
            Ok(raw)
        }
        _ => Err("the block cannot be decompressed"),
    }
}

pub(crate) fn decode_block(
    header: &BlockHeader,
    raw: &[u8],
    templates: &Templates,
    decoder: &mut OpDecoder,
    block: &mut Block,
    wants_code: bool,
) -> Result<(), &'static str> {
    let length = header.raw_bytes as usize;
    block.thread = header.thread;
    block.first_instruction = header.first_instruction;
    block.ops.clear();
    block.code.clear();
    let events = raw
        .get(header.op_bytes as usize..length)
        .ok_or("the block is shorter than in its header")?;
    let count = header.ops as usize;
    match header.kind {
        BlockKind::Ops => decoder.decode(raw, count, &mut block.ops),
        BlockKind::Runs => {
            let code = wants_code.then_some(&mut block.code);
            decoder.decode_runs(raw, count, templates, &mut block.ops, code)
        }
        _ => return Err("the index names a block without ops"),
    }
    .map_err(|_| "the ops of the block cannot be decoded")?;
    block.events = decode_events(events, header.events as usize, header.ops)
        .map_err(|_| "the events of the block cannot be decoded")?;
    Ok(())
}

/// The summary and the index of an end block.
pub(crate) fn split_end(raw: &[u8]) -> Option<(End, &[u8])> {
    let (length, rest) = raw.split_first_chunk::<4>()?;
    let (json, index) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((serde_json::from_slice(json).ok()?, index))
}
