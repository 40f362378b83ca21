//! Headers: of the file, and of each block.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first 8 bytes of a trace.
pub const MAGIC: [u8; 8] = *b"VARVETRC";
/// The version that this code writes. It reads all from 1 on.
pub const VERSION: u32 = 8;
/// The last 8 bytes of a trace that was finished.
pub const TRAILER_MAGIC: [u8; 8] = *b"VARVEEND";
/// Length of the trailer: the offset of the end block, and its magic.
pub const TRAILER_BYTES: u64 = 16;
/// Length of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 72;

const BLOCK_MAGIC: [u8; 4] = *b"VBLK";
/// Where the checksum is in a block's header.
const CHECKSUM_AT: usize = 64;

/// Header of a trace, as JSON at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHeader {
    /// The command line that was recorded.
    pub command: Vec<String>,
    /// Where the accesses come from: `qemu`, `compiled`, or `lackey`, `champsim`, `memtrace` for imports.
    pub source: String,
    /// How the source counts instructions, in one sentence.
    pub instructions: String,
    /// Anything else of interest: the program's version, the host, the day.
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
    /// Which part of the run is in it; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// Which part of a run is in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Windows all over the run: they stand for all of it. Each begins with some that only warms caches.
    Sample {
        /// Parts in a million that were to be recorded.
        ppm: u32,
    },
    /// All of its beginning, and windows of the rest if it is longer: together they stand for all of it.
    Thinning,
    /// One window that the user chose: it stands for itself.
    Window,
}

/// Kind of a block's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Ops and events of one thread.
    Ops = 1,
    /// New entries of the site table, as JSON.
    Sites = 2,
    /// The end: a summary as JSON and the index.
    End = 3,
    /// New templates.
    Templates = 4,
    /// Ops and events of one thread, as runs of templates.
    Runs = 5,
    /// New calls that sites are made of, as JSON; functions of code are among them.
    Calls = 6,
    /// Of which function new templates are.
    Code = 7,
}

/// The header of a block. All numbers are little-endian in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Kind of its contents.
    pub kind: BlockKind,
    /// Thread, from 0 in order of birth.
    pub thread: u32,
    /// Ops in the block.
    pub ops: u32,
    /// Number of the block in the file, from 0.
    pub sequence: u64,
    /// Instructions of all threads in the blocks before this one.
    pub first_instruction: u64,
    /// Ops of all threads in the blocks before this one.
    pub first_op: u64,
    /// Instructions in the block.
    pub instructions: u64,
    /// Length of the payload before compression.
    pub raw_bytes: u32,
    /// Length of the payload in the file.
    pub stored_bytes: u32,
    /// Events in the block.
    pub events: u32,
    /// Bytes of the uncompressed payload that code the ops; the rest codes the events.
    pub op_bytes: u32,
}

impl BlockHeader {
    /// The header's bytes, with the checksum of header and payload.
    pub fn to_bytes(&self, payload: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&BLOCK_MAGIC);
        bytes[4] = self.kind as u8;
        bytes[8..12].copy_from_slice(&self.thread.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.ops.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_instruction.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_op.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.instructions.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.events.to_le_bytes());
        bytes[60..64].copy_from_slice(&self.op_bytes.to_le_bytes());
        let checksum = checksum(&bytes, payload);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header; the error names the problem. The checksum needs the payload: see [`checksum_matches`].
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<BlockHeader, &'static str> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[0..4] != BLOCK_MAGIC {
            return Err("no block starts here");
        }
        let kind = match bytes[4] {
            1 => BlockKind::Ops,
            2 => BlockKind::Sites,
            3 => BlockKind::End,
            4 => BlockKind::Templates,
            5 => BlockKind::Runs,
            6 => BlockKind::Calls,
            7 => BlockKind::Code,
            _ => return Err("the block is of an unknown kind"),
        };
        let header = BlockHeader {
            kind,
            thread: word(8),
            ops: word(12),
            sequence: long(16),
            first_instruction: long(24),
            first_op: long(32),
            instructions: long(40),
            raw_bytes: word(48),
            stored_bytes: word(52),
            events: word(56),
            op_bytes: word(60),
        };
        if header.raw_bytes > MAX_RAW_BYTES
            || header.stored_bytes > MAX_RAW_BYTES
            || header.op_bytes > header.raw_bytes
            || header.ops > MAX_OPS
        {
            return Err("the block's header has impossible lengths");
        }
        Ok(header)
    }
}

/// No writer makes larger blocks, so a reader need not believe in them.
const MAX_RAW_BYTES: u32 = 64 << 20;

/// Likewise; bounds the memory that a damaged header can ask for.
const MAX_OPS: u32 = 1 << 20;

fn checksum(header: &[u8; BLOCK_HEADER_BYTES], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..CHECKSUM_AT]);
    hasher.update(payload);
    hasher.finalize()
}

/// Does the checksum in a header fit header and payload?
pub fn checksum_matches(header: &[u8; BLOCK_HEADER_BYTES], payload: &[u8]) -> bool {
    header[CHECKSUM_AT..CHECKSUM_AT + 4] == checksum(header, payload).to_le_bytes()
}
