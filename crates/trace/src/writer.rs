//! Writes a trace as it comes: to a file or into a pipe.

use crate::error::TraceError;
use crate::format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, Event, EventAt, FileHeader, MAGIC, OpEncoder,
    TRAILER_MAGIC, VERSION, encode_events,
};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use varve_machine::Op;

/// Ops per block: 1 MiB before coding. Larger blocks compress hardly better and make seeking coarse.
pub const BLOCK_OPS: usize = 1 << 16;
/// Events per block, at most.
const BLOCK_EVENTS: usize = 1 << 16;

/// Where an allocation was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallSite {
    /// File of the program or library, or empty when the address belongs to none.
    pub module: String,
    /// Offset in that file, or the address itself when there is no module.
    pub offset: u64,
    /// Function and offset in it, such as `main+0x1c`, when the file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

impl std::fmt::Display for CallSite {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let module = self.module.rsplit('/').next().unwrap_or_default();
        match &self.symbol {
            Some(symbol) => write!(out, "{module}!{symbol}"),
            None if module.is_empty() => write!(out, "{:#x}", self.offset),
            None => write!(out, "{module}+{:#x}", self.offset),
        }
    }
}

/// How a recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Exit code of the program, when it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Ops in the trace.
    pub ops: u64,
    /// Instructions in the trace.
    pub instructions: u64,
    /// What the recorder could not see, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One line of the index: where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Byte offset of its header.
    pub offset: u64,
    /// Its header.
    pub header: BlockHeader,
}

#[derive(Default)]
struct ThreadBuffer {
    ops: Vec<Op>,
    events: Vec<EventAt>,
}

/// Writes a trace block by block. Ops of different threads may be pushed in any order; [`TraceWriter::finish`]
/// writes what is left, the end and the index.
pub struct TraceWriter<W: Write> {
    out: W,
    path: PathBuf,
    threads: Vec<ThreadBuffer>,
    encoder: OpEncoder,
    raw: Vec<u8>,
    stored: Vec<u8>,
    new_sites: Vec<CallSite>,
    sites: u32,
    index: Vec<BlockPlace>,
    offset: u64,
    instructions: u64,
    ops: u64,
}

impl TraceWriter<std::io::BufWriter<std::fs::File>> {
    /// Starts a trace in a new file.
    pub fn create(path: &Path, header: &FileHeader) -> Result<Self, TraceError> {
        let file = std::fs::File::create(path).map_err(|source| TraceError::Io {
            path: path.into(),
            source,
        })?;
        TraceWriter::new(
            std::io::BufWriter::with_capacity(1 << 20, file),
            path,
            header,
        )
    }
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace; `path` only names it in errors.
    pub fn new(out: W, path: &Path, header: &FileHeader) -> Result<Self, TraceError> {
        let mut writer = TraceWriter {
            out,
            path: path.into(),
            threads: Vec::new(),
            encoder: OpEncoder::default(),
            raw: Vec::new(),
            stored: Vec::new(),
            new_sites: Vec::new(),
            sites: 0,
            index: Vec::new(),
            offset: 0,
            instructions: 0,
            ops: 0,
        };
        let json = serde_json::to_vec(header).unwrap_or_default();
        let mut bytes = Vec::with_capacity(json.len() + 20);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&json);
        bytes.extend_from_slice(&crc32fast::hash(&json).to_le_bytes());
        writer.write(&bytes)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.out
            .write_all(bytes)
            .map_err(|source| self.failed(source))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn failed(&self, source: std::io::Error) -> TraceError {
        let path = self.path.clone();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                let whole = self.index.last();
                TraceError::DiskFull {
                    path,
                    bytes: whole.map_or(0, |place| {
                        place.offset
                            + BLOCK_HEADER_BYTES as u64
                            + u64::from(place.header.stored_bytes)
                    }),
                    ops: whole.map_or(0, |place| {
                        place.header.first_op + u64::from(place.header.ops)
                    }),
                }
            }
            _ => TraceError::Io { path, source },
        }
    }

    fn thread(&mut self, thread: u32) -> &mut ThreadBuffer {
        let wanted = thread as usize + 1;
        if self.threads.len() < wanted {
            self.threads.resize_with(wanted, ThreadBuffer::default);
        }
        &mut self.threads[thread as usize]
    }

    /// Appends ops of a thread (numbered from 0 without gaps).
    pub fn push(&mut self, thread: u32, mut ops: &[Op]) -> Result<(), TraceError> {
        while !ops.is_empty() {
            let buffer = self.thread(thread);
            let room = BLOCK_OPS - buffer.ops.len();
            let (now, later) = ops.split_at(room.min(ops.len()));
            buffer.ops.extend_from_slice(now);
            ops = later;
            if buffer.ops.len() == BLOCK_OPS {
                self.flush_thread(thread)?;
            }
        }
        Ok(())
    }

    /// Appends an event of a thread, after the ops that were pushed.
    pub fn event(&mut self, thread: u32, event: Event) -> Result<(), TraceError> {
        let buffer = self.thread(thread);
        buffer.events.push(EventAt {
            at: buffer.ops.len() as u32,
            event,
        });
        if buffer.events.len() == BLOCK_EVENTS {
            self.flush_thread(thread)?;
        }
        Ok(())
    }

    /// Adds an allocation site and returns its number.
    pub fn site(&mut self, site: CallSite) -> u32 {
        self.new_sites.push(site);
        self.sites += 1;
        self.sites - 1
    }

    /// Ops pushed so far.
    pub fn ops(&self) -> u64 {
        self.ops
            + self
                .threads
                .iter()
                .map(|thread| thread.ops.len() as u64)
                .sum::<u64>()
    }

    /// Writes what is buffered, so that a reader of the file sees it.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        for thread in 0..self.threads.len() {
            self.flush_thread(thread as u32)?;
        }
        self.flush_sites()?;
        self.out.flush().map_err(|source| self.failed(source))
    }

    fn flush_thread(&mut self, thread: u32) -> Result<(), TraceError> {
        // a site must be known before the first event that names it
        self.flush_sites()?;
        let mut buffer = std::mem::take(&mut self.threads[thread as usize]);
        if buffer.ops.is_empty() && buffer.events.is_empty() {
            return Ok(());
        }
        self.raw.clear();
        self.encoder.encode(&buffer.ops, &mut self.raw);
        let op_bytes = self.raw.len() as u32;
        encode_events(&buffer.events, &mut self.raw);
        let instructions = buffer.ops.iter().map(|op| u64::from(op.instructions)).sum();
        let header = BlockHeader {
            kind: BlockKind::Ops,
            thread,
            ops: buffer.ops.len() as u32,
            sequence: self.index.len() as u64,
            first_instruction: self.instructions,
            first_op: self.ops,
            instructions,
            raw_bytes: self.raw.len() as u32,
            stored_bytes: 0,
            events: buffer.events.len() as u32,
            op_bytes,
        };
        self.write_block(header)?;
        self.instructions += instructions;
        self.ops += buffer.ops.len() as u64;
        buffer.ops.clear();
        buffer.events.clear();
        self.threads[thread as usize] = buffer;
        Ok(())
    }

    fn flush_sites(&mut self) -> Result<(), TraceError> {
        if self.new_sites.is_empty() {
            return Ok(());
        }
        self.raw = serde_json::to_vec(&self.new_sites).unwrap_or_default();
        self.new_sites.clear();
        self.write_plain_block(BlockKind::Sites)
    }

    fn write_plain_block(&mut self, kind: BlockKind) -> Result<(), TraceError> {
        self.write_block(BlockHeader {
            kind,
            thread: 0,
            ops: 0,
            sequence: self.index.len() as u64,
            first_instruction: self.instructions,
            first_op: self.ops,
            instructions: 0,
            raw_bytes: self.raw.len() as u32,
            stored_bytes: 0,
            events: 0,
            op_bytes: 0,
        })
    }

    /// Compresses `raw` and writes it under `header`.
    fn write_block(&mut self, mut header: BlockHeader) -> Result<(), TraceError> {
        self.stored
            .resize(lz4_flex::block::get_maximum_output_size(self.raw.len()), 0);
        // the output is as large as the worst case, so this cannot fail
        let length = lz4_flex::block::compress_into(&self.raw, &mut self.stored).unwrap_or(0);
        header.stored_bytes = length as u32;
        let stored = std::mem::take(&mut self.stored);
        let head = header.to_bytes(&stored[..length]);
        let offset = self.offset;
        let written = self
            .write(&head)
            .and_then(|()| self.write(&stored[..length]));
        self.stored = stored;
        written?;
        self.index.push(BlockPlace { offset, header });
        Ok(())
    }

    /// Writes what is buffered, how the program ended, and the index. Returns the output.
    pub fn finish(mut self, mut end: End) -> Result<(W, End), TraceError> {
        self.flush()?;
        end.ops = self.ops;
        end.instructions = self.instructions;
        let json = serde_json::to_vec(&end).unwrap_or_default();
        self.raw.clear();
        self.raw
            .extend_from_slice(&(json.len() as u32).to_le_bytes());
        self.raw.extend_from_slice(&json);
        for place in &self.index {
            self.raw.extend_from_slice(&place.offset.to_le_bytes());
            self.raw.extend_from_slice(&place.header.to_bytes(&[]));
        }
        let offset = self.offset;
        self.write_plain_block(BlockKind::End)?;
        let mut trailer = offset.to_le_bytes().to_vec();
        trailer.extend_from_slice(&TRAILER_MAGIC);
        self.write(&trailer)?;
        self.out.flush().map_err(|source| self.failed(source))?;
        Ok((self.out, end))
    }
}
