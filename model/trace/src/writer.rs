//! Writes a trace as it comes: to a file or into a pipe.

use crate::error::TraceError;
use crate::format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, Event, EventAt, FileHeader, MAGIC, TRAILER_MAGIC,
    VERSION, put,
};
use crate::java::JavaMachine;
use crate::packer::{Content, Packed, Packer};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};
use varve_access::Op;
use varve_sites::native::{Frame, Inlined, Key};

/// Ops per block: 1 MiB before coding. Larger blocks compress hardly better and make seeking coarse.
pub const BLOCK_OPS: usize = 1 << 16;
/// Events per block, at most.
const BLOCK_EVENTS: usize = 1 << 16;

/// Where an allocation was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallSite {
    /// File of the program or library, or empty when the address belongs to none.
    pub module: String,
    /// Offset in that file, or the address itself when there is no module.
    pub offset: u64,
    /// Function and offset in it, such as `main+0x1c`, if the file has them. Demangled since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The same place as the file counts addresses (link-time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Build id of the file in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build_id: String,
    /// File and line of the source, such as `dict.c:214`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Functions that were inlined at the call, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<Inlined>,
    /// Callers of the function that asked, the innermost first, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<CallSite>,
}

impl CallSite {
    /// This call, and those that led there.
    fn calls(&self) -> impl Iterator<Item = &CallSite> {
        [self].into_iter().chain(&self.callers)
    }

    /// Name of the file without its folder. The line of a script says it with as much of the folder as tells it apart.
    fn file_name(&self) -> &str {
        let line = self.line.as_deref().and_then(|line| line.rsplit_once(':'));
        let script = line
            .filter(|(file, line)| *line == self.offset.to_string() && self.module.ends_with(file));
        let name = || self.module.rsplit('/').next().unwrap_or_default();
        script.map_or_else(name, |(file, _)| file)
    }

    /// The call by itself, without those that led there.
    pub fn frame(&self) -> Frame {
        let symbol = self.symbol.as_deref();
        let parts = symbol.and_then(|symbol| symbol.rsplit_once("+0x"));
        let function = parts.map(|(name, _)| name).or(symbol);
        Frame {
            module: self.file_name().into(),
            build_id: self.build_id.clone(),
            offset: self.address.unwrap_or(self.offset),
            function: function.map(str::to_string),
            within: parts.and_then(|(_, within)| u64::from_str_radix(within, 16).ok()),
            line: self.line.clone(),
            inlined: self.inlined.clone(),
        }
    }

    /// The site of allocations here, the same in all processes.
    pub fn key(&self) -> Key {
        Key::Heap(self.calls().map(CallSite::frame).collect())
    }
}

/// A program or library in a recorded process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedModule {
    /// Number of the process.
    pub process: u32,
    /// Offset from an address of the file (link-time) to the one in the process.
    pub base: u64,
    /// The file.
    pub path: String,
    /// Its build id in hexadecimal digits; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build_id: String,
}

/// The stack of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackRange {
    /// Number of the process.
    pub process: u32,
    /// First address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
}

impl std::fmt::Display for CallSite {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let module = self.module.rsplit('/').next().unwrap_or_default();
        match &self.symbol {
            Some(symbol) => write!(out, "{module}!{symbol}")?,
            None if module.is_empty() => write!(out, "{:#x}", self.offset)?,
            None => write!(out, "{module}+{:#x}", self.offset)?,
        }
        for caller in &self.callers {
            match &caller.symbol {
                // the module of a caller goes without saying when it is the same
                Some(symbol) if caller.module == self.module => write!(out, " < {symbol}")?,
                _ => write!(out, " < {caller}")?,
            }
        }
        Ok(())
    }
}

/// What a window of a sample stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowShare {
    /// The phase of the run that it is in, from 1 on; 0 if that is not known.
    pub phase: u32,
    /// Instructions outside of windows that it stands for: those of its phase around it.
    pub instructions: u64,
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
    /// Instructions of the program while it was not recorded.
    #[serde(default)]
    pub skipped_instructions: u64,
    /// Which of these each window of a sample stands for; empty if they all stand for as many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowShare>,
    /// Ops of the trace that are no work of the program: lines that it had touched while it was not recorded.
    #[serde(default)]
    pub touches: u64,
    /// Losses of the recording, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Programs and libraries that were loaded, by process. Addresses are as the process sees them: see
    /// [`Event::Process`] for those in the trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<LoadedModule>,
    /// Stacks of threads, likewise, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackRange>,
    /// Java virtual machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub java: Vec<JavaMachine>,
    /// Memory that the program called hot or cold; none if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colors: Option<ColoredBytes>,
}

/// Memory to which a program gave a color, bytes; each time that it did counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColoredBytes {
    /// Hot memory.
    pub hot: u64,
    /// Cold memory.
    pub cold: u64,
}

/// One line of the index: where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Byte offset of its header.
    pub offset: u64,
    /// Its header.
    pub header: BlockHeader,
}

/// A block on its way to the file.
enum Pending {
    /// Ops that are being packed.
    Packing(BlockHeader, Receiver<Packed>),
    /// JSON or templates, still uncompressed.
    Plain(BlockHeader, Vec<u8>),
}

/// Writes a trace block by block. Ops of different threads may be pushed in any order; [`TraceWriter::finish`] writes
/// the remaining ops, the end and the index.
pub struct TraceWriter<W: Write> {
    out: W,
    path: PathBuf,
    threads: Vec<Content>,
    packer: Packer,
    /// Blocks that are not in the file yet, in the order in which they will be.
    pending: VecDeque<Pending>,
    /// Memory of blocks that are written.
    spare: Vec<Content>,
    blocks: u64,
    /// Numbers of calls, each without those that led there.
    calls: HashMap<CallSite, u32>,
    new_calls: Vec<CallSite>,
    /// Sites that are in no block yet: numbers of calls, the innermost first.
    new_sites: Vec<Vec<u32>>,
    /// The number of each site, by its calls.
    sites: HashMap<Vec<u32>, u32>,
    /// Coded templates that are in no block yet.
    new_templates: Vec<u8>,
    /// Their functions, coded.
    new_functions: Vec<u8>,
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

    /// Writes what there is so far into another file, as a trace that ends there.
    pub fn so_far(&mut self, path: &Path, end: End) -> Result<End, TraceError> {
        self.flush()?;
        let io = |source| TraceError::Io {
            path: path.into(),
            source,
        };
        std::fs::copy(&self.path, path).map_err(io)?;
        let file = std::fs::File::options().append(true).open(path);
        let copy = TraceWriter {
            index: self.index.clone(),
            offset: self.offset,
            blocks: self.blocks,
            instructions: self.instructions,
            ops: self.ops,
            ..TraceWriter::empty(std::io::BufWriter::new(file.map_err(io)?), path)
        };
        Ok(copy.finish(end)?.1)
    }
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace; `path` only names it in errors.
    pub fn new(out: W, path: &Path, header: &FileHeader) -> Result<Self, TraceError> {
        let mut writer = TraceWriter::empty(out, path);
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

    fn empty(out: W, path: &Path) -> TraceWriter<W> {
        TraceWriter {
            out,
            path: path.into(),
            threads: Vec::new(),
            packer: Packer::default(),
            pending: VecDeque::new(),
            spare: Vec::new(),
            blocks: 0,
            calls: HashMap::new(),
            new_calls: Vec::new(),
            new_sites: Vec::new(),
            sites: HashMap::new(),
            new_templates: Vec::new(),
            new_functions: Vec::new(),
            index: Vec::new(),
            offset: 0,
            instructions: 0,
            ops: 0,
        }
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

    fn thread(&mut self, thread: u32) -> &mut Content {
        let wanted = thread as usize + 1;
        if self.threads.len() < wanted {
            self.threads.resize_with(wanted, Content::default);
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

    /// The number of an allocation site. Processes that allocate through the same calls share it.
    pub fn site(&mut self, site: CallSite) -> u32 {
        let stack: Vec<u32> = site.calls().map(|call| self.call(call)).collect();
        let next = self.sites.len() as u32;
        *self.sites.entry(stack).or_insert_with_key(|stack| {
            self.new_sites.push(stack.clone());
            next
        })
    }

    /// The number of a call.
    pub(crate) fn call(&mut self, call: &CallSite) -> u32 {
        let alone = CallSite {
            callers: Vec::new(),
            ..call.clone()
        };
        let next = self.calls.len() as u32;
        *self.calls.entry(alone).or_insert_with_key(|call| {
            self.new_calls.push(call.clone());
            next
        })
    }

    /// Where coded templates go that following blocks of runs use.
    pub(crate) fn templates(&mut self) -> &mut Vec<u8> {
        &mut self.new_templates
    }

    /// Writes the function of the next template, by its number as a call; `None` if it is that of the template before.
    pub(crate) fn function(&mut self, function: Option<u32>) {
        let told = function.map_or(0, |number| u64::from(number) + 1);
        put(&mut self.new_functions, told);
    }

    /// Empty columns for a block of runs, with memory of old ones.
    pub(crate) fn spare(&mut self) -> Content {
        self.spare.pop().unwrap_or_default()
    }

    /// Writes a block of runs of a thread: `ops` ops with `instructions` instructions.
    pub(crate) fn push_runs(
        &mut self,
        thread: u32,
        ops: usize,
        instructions: u64,
        content: Content,
    ) -> Result<(), TraceError> {
        self.flush_tables();
        let is_empty = content.runs.are_empty();
        let kind = if is_empty {
            BlockKind::Ops
        } else {
            BlockKind::Runs
        };
        self.start_block(kind, thread, ops as u64, instructions, content)
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

    /// Writes buffered ops, so that a reader of the file sees them.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        for thread in 0..self.threads.len() {
            self.flush_thread(thread as u32)?;
        }
        self.flush_tables();
        self.write_pending(0)?;
        self.out.flush().map_err(|source| self.failed(source))
    }

    /// Starts a block of a thread's buffered ops, and writes those that are ready.
    fn flush_thread(&mut self, thread: u32) -> Result<(), TraceError> {
        // a site or template must be known before the first event or run that names it
        self.flush_tables();
        let empty = self.spare.pop().unwrap_or_default();
        let content = std::mem::replace(&mut self.threads[thread as usize], empty);
        if content.ops.is_empty() && content.events.is_empty() {
            return Ok(());
        }
        let instructions = content
            .ops
            .iter()
            .map(|op| u64::from(op.instructions))
            .sum();
        let ops = content.ops.len() as u64;
        self.start_block(BlockKind::Ops, thread, ops, instructions, content)
    }

    fn start_block(
        &mut self,
        kind: BlockKind,
        thread: u32,
        ops: u64,
        instructions: u64,
        content: Content,
    ) -> Result<(), TraceError> {
        let header = BlockHeader {
            thread,
            ops: ops as u32,
            instructions,
            events: content.events.len() as u32,
            ..self.next_header(kind)
        };
        self.pending
            .push_back(Pending::Packing(header, self.packer.pack(content)));
        self.instructions += instructions;
        self.ops += ops;
        self.write_pending(self.packer.capacity())
    }

    fn flush_tables(&mut self) {
        if !self.new_calls.is_empty() {
            let json = serde_json::to_vec(&self.new_calls).unwrap_or_default();
            self.new_calls.clear();
            let header = self.next_header(BlockKind::Calls);
            self.pending.push_back(Pending::Plain(header, json));
        }
        if !self.new_sites.is_empty() {
            let json = serde_json::to_vec(&self.new_sites).unwrap_or_default();
            self.new_sites.clear();
            let header = self.next_header(BlockKind::Sites);
            self.pending.push_back(Pending::Plain(header, json));
        }
        if !self.new_templates.is_empty() {
            let coded = std::mem::take(&mut self.new_templates);
            let header = self.next_header(BlockKind::Templates);
            self.pending.push_back(Pending::Plain(header, coded));
        }
        if !self.new_functions.is_empty() {
            let coded = std::mem::take(&mut self.new_functions);
            let header = self.next_header(BlockKind::Code);
            self.pending.push_back(Pending::Plain(header, coded));
        }
    }

    /// The header of the next block, with unknown fields left at zero.
    fn next_header(&mut self, kind: BlockKind) -> BlockHeader {
        self.blocks += 1;
        BlockHeader {
            kind,
            thread: 0,
            ops: 0,
            sequence: self.blocks - 1,
            first_instruction: self.instructions,
            first_op: self.ops,
            instructions: 0,
            raw_bytes: 0,
            stored_bytes: 0,
            events: 0,
            op_bytes: 0,
        }
    }

    /// Writes the blocks that are ready, and waits for the first ones until at most `left` are under way.
    fn write_pending(&mut self, left: usize) -> Result<(), TraceError> {
        while let Some(first) = self.pending.pop_front() {
            match first {
                Pending::Plain(header, raw) => {
                    let stored = lz4_flex::block::compress(&raw);
                    self.write_block(
                        BlockHeader {
                            raw_bytes: raw.len() as u32,
                            ..header
                        },
                        &stored,
                    )?;
                }
                Pending::Packing(header, packing) => {
                    let packed = match packing.try_recv() {
                        Err(TryRecvError::Empty) if self.pending.len() < left => {
                            self.pending.push_front(Pending::Packing(header, packing));
                            return Ok(());
                        }
                        Err(TryRecvError::Empty) => packing.recv().ok(),
                        other => other.ok(),
                    };
                    let lost = || {
                        self.failed(std::io::Error::other("a thread that packs blocks has died"))
                    };
                    let packed = packed.ok_or_else(lost)?;
                    let header = BlockHeader {
                        raw_bytes: packed.raw_bytes,
                        op_bytes: packed.op_bytes,
                        ..header
                    };
                    self.write_block(header, &packed.stored)?;
                    self.spare.push(packed.emptied);
                }
            }
        }
        Ok(())
    }

    fn write_block(&mut self, mut header: BlockHeader, stored: &[u8]) -> Result<(), TraceError> {
        header.stored_bytes = stored.len() as u32;
        let offset = self.offset;
        self.write(&header.to_bytes(stored))?;
        self.write(stored)?;
        self.index.push(BlockPlace { offset, header });
        Ok(())
    }

    /// Writes buffered ops, the program's end, and the index. Returns the output.
    pub fn finish(mut self, mut end: End) -> Result<(W, End), TraceError> {
        self.flush()?;
        end.ops = self.ops;
        end.instructions = self.instructions;
        let json = serde_json::to_vec(&end).unwrap_or_default();
        let mut raw = (json.len() as u32).to_le_bytes().to_vec();
        raw.extend_from_slice(&json);
        for place in &self.index {
            raw.extend_from_slice(&place.offset.to_le_bytes());
            raw.extend_from_slice(&place.header.to_bytes(&[]));
        }
        let offset = self.offset;
        let header = self.next_header(BlockKind::End);
        self.pending.push_back(Pending::Plain(header, raw));
        self.write_pending(0)?;
        let mut trailer = offset.to_le_bytes().to_vec();
        trailer.extend_from_slice(&TRAILER_MAGIC);
        self.write(&trailer)?;
        self.out.flush().map_err(|source| self.failed(source))?;
        Ok((self.out, end))
    }
}
