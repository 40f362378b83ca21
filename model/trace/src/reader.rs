//! Reads a trace: by block, by thread, or from a point in time.

use crate::error::TraceError;
use crate::format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, Event, FileHeader, MAGIC, OpDecoder, Part,
    TRAILER_BYTES, TRAILER_MAGIC, Templates,
};
use crate::java::{JavaMachine, note};
use crate::parts::{Block, FIXED_BYTES, decode_block, read_file_header, split_end, unpack};
use crate::sites::Sites;
use crate::writer::{BlockPlace, CallSite, End};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where a trace stops before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Offset of the first byte that is no whole block.
    pub offset: u64,
    /// Why it is none.
    pub why: String,
}

/// A trace file that is open for reading. Cheap to share: reading a block needs no position.
pub struct TraceReader {
    file: File,
    path: PathBuf,
    header: FileHeader,
    /// Places of the blocks with ops, in the order of the file.
    blocks: Vec<BlockPlace>,
    sites: Sites,
    templates: Templates,
    end: Option<End>,
    cut: Option<Cut>,
    threads: u32,
    /// Once it was asked for: blocks are read for it.
    several_processes: OnceLock<bool>,
}

impl TraceReader {
    /// Opens a trace and finds its blocks: from its index, or by walking through it when it has none.
    pub fn open(path: &Path) -> Result<TraceReader, TraceError> {
        let file = File::open(path).map_err(|source| TraceError::Io {
            path: path.into(),
            source,
        })?;
        TraceReader::from_file(file, path)
    }

    /// The same for a file that is open already; `path` only names it in errors.
    pub fn from_file(file: File, path: &Path) -> Result<TraceReader, TraceError> {
        let io = |source| TraceError::Io {
            path: path.into(),
            source,
        };
        let length = file.metadata().map_err(io)?.len();
        let mut fixed = [0; FIXED_BYTES];
        if length < FIXED_BYTES as u64 {
            let begin = &mut fixed[..length as usize];
            file.read_exact_at(begin, 0).map_err(io)?;
            if length > 0 && begin.iter().zip(&MAGIC).all(|(a, b)| a == b) {
                return Err(TraceError::CutOff {
                    path: path.into(),
                    offset: 0,
                    why: "the file ends inside its header".into(),
                });
            }
            return Err(TraceError::Foreign {
                path: path.into(),
                hint: if length == 0 { ": it is empty" } else { "" },
            });
        }
        file.read_exact_at(&mut fixed, 0).map_err(io)?;
        let (header, start) = read_file_header(&fixed, path, |bytes| {
            file.read_exact_at(bytes, FIXED_BYTES as u64)
        })?;
        let mut reader = TraceReader {
            file,
            path: path.into(),
            header,
            blocks: Vec::new(),
            sites: Sites::default(),
            templates: Templates::default(),
            end: None,
            cut: None,
            threads: 0,
            several_processes: OnceLock::new(),
        };
        let places = match reader.read_index(length) {
            Some(places) => places,
            None => reader.scan(start, length),
        };
        reader.keep(places);
        Ok(reader)
    }

    /// The index at the end, if there is a whole one.
    fn read_index(&mut self, length: u64) -> Option<Vec<BlockPlace>> {
        let mut trailer = [0; TRAILER_BYTES as usize];
        self.file
            .read_exact_at(&mut trailer, length.checked_sub(TRAILER_BYTES)?)
            .ok()?;
        let (offset, magic) = trailer.split_first_chunk::<8>()?;
        if magic != TRAILER_MAGIC {
            return None;
        }
        let (header, raw) = self.read_raw(u64::from_le_bytes(*offset)).ok()?;
        if header.kind != BlockKind::End {
            return None;
        }
        let (end, index) = split_end(&raw)?;
        let places = index
            .chunks_exact(8 + BLOCK_HEADER_BYTES)
            .map(|line| {
                let (offset, header) = line.split_first_chunk::<8>()?;
                let header = BlockHeader::from_bytes(header.first_chunk()?).ok()?;
                Some(BlockPlace {
                    offset: u64::from_le_bytes(*offset),
                    header,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        self.end = Some(end);
        Some(places)
    }

    /// Walks from block to block, and records where that stops being possible.
    fn scan(&mut self, start: u64, length: u64) -> Vec<BlockPlace> {
        let mut places = Vec::new();
        let mut offset = start;
        let why = loop {
            if offset == length {
                break "the trace was not finished (the recorder was stopped, or the disk filled up)";
            }
            let mut bytes = [0; BLOCK_HEADER_BYTES];
            if self.file.read_exact_at(&mut bytes, offset).is_err() {
                break "the file ends inside a block";
            }
            let header = match BlockHeader::from_bytes(&bytes) {
                Ok(header) => header,
                Err(what) => break what,
            };
            let next = offset + BLOCK_HEADER_BYTES as u64 + u64::from(header.stored_bytes);
            if next > length {
                break "the file ends inside a block";
            }
            if header.kind == BlockKind::End {
                self.end = self
                    .read_raw(offset)
                    .ok()
                    .and_then(|(_, raw)| split_end(&raw).map(|(end, _)| end));
                match self.end {
                    Some(_) => return places,
                    None => break "the end block is damaged",
                }
            }
            places.push(BlockPlace { offset, header });
            offset = next;
        };
        self.cut = Some(Cut {
            offset,
            why: why.to_string(),
        });
        places
    }

    fn keep(&mut self, places: Vec<BlockPlace>) {
        for place in places {
            match place.header.kind {
                BlockKind::Ops | BlockKind::Runs => {
                    // a damaged header must not make us believe in four billion threads
                    self.threads = self
                        .threads
                        .max(place.header.thread.saturating_add(1).min(MAX_THREADS));
                    self.blocks.push(place);
                }
                BlockKind::Sites => {
                    if let Ok((_, raw)) = self.read_raw(place.offset) {
                        let _ = self.sites.add_sites(&raw);
                    }
                }
                BlockKind::Calls => {
                    if let Ok((_, raw)) = self.read_raw(place.offset) {
                        let _ = self.sites.add_calls(&raw);
                    }
                }
                BlockKind::Templates => {
                    // blocks that need the damaged one fail when they are read
                    if let Ok((_, raw)) = self.read_raw(place.offset) {
                        let _ = self.templates.decode(&raw);
                    }
                }
                BlockKind::Code => {
                    // without it nothing is known of code from here on
                    if let Ok((_, raw)) = self.read_raw(place.offset) {
                        let calls = self.sites.calls().len();
                        let _ = self.templates.decode_functions(&raw, calls);
                    }
                }
                BlockKind::End => {}
            }
        }
        self.blocks
            .retain(|place| place.header.thread < MAX_THREADS);
    }

    fn damaged(&self, offset: u64, what: &'static str) -> TraceError {
        TraceError::Damaged {
            path: self.path.clone(),
            offset,
            what,
        }
    }

    fn read_raw(&self, offset: u64) -> Result<(BlockHeader, Vec<u8>), TraceError> {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        let ends = |_| self.damaged(offset, "the file ends inside a block");
        self.file.read_exact_at(&mut bytes, offset).map_err(ends)?;
        let header = BlockHeader::from_bytes(&bytes).map_err(|what| self.damaged(offset, what))?;
        let mut stored = vec![0; header.stored_bytes as usize];
        self.file
            .read_exact_at(&mut stored, offset + BLOCK_HEADER_BYTES as u64)
            .map_err(ends)?;
        let raw = unpack(&bytes, &header, &stored).map_err(|what| self.damaged(offset, what))?;
        Ok((header, raw))
    }

    /// Header of the trace.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Which part of the run is in it; none: all of it.
    pub fn part(&self) -> Option<Part> {
        let skipped = self.end.as_ref().map(|end| end.skipped_instructions);
        let ended_soon = |part: &Part| *part == Part::Thinning && skipped == Some(0);
        self.header.part.filter(|part| !ended_soon(part))
    }

    /// Places of the blocks with ops, in the order in which they were recorded.
    pub fn blocks(&self) -> &[BlockPlace] {
        &self.blocks
    }

    /// The allocation sites; events name them by their place here.
    pub fn sites(&self) -> &[CallSite] {
        &self.sites.all
    }

    /// How the recording ended; `None` when the trace is cut.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Where and why the trace stops before its end, if it does.
    pub fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// The Java virtual machines of the recording. A trace that is cut is read for them, as far as its blocks are whole.
    pub fn java(&self) -> Cow<'_, [JavaMachine]> {
        if let Some(end) = &self.end {
            return Cow::Borrowed(&end.java);
        }
        let (mut machines, mut processes) = (Vec::new(), HashMap::new());
        for block in self.iter_from(0).map_while(Result::ok) {
            let process = processes.entry(block.thread).or_insert(0);
            for told in &block.events {
                if let Event::Process { number } = told.event {
                    *process = number;
                }
                note(&mut machines, *process, &told.event);
            }
        }
        Cow::Owned(machines)
    }

    /// Whether threads are of several processes. Each says so before its first op.
    pub(crate) fn has_several_processes(&self) -> bool {
        *self.several_processes.get_or_init(|| {
            let (mut decoder, mut block) = (OpDecoder::default(), Block::default());
            let mut first = HashSet::new();
            self.blocks.iter().enumerate().any(|(number, place)| {
                first.insert(place.header.thread)
                    && self.read_block(number, &mut decoder, &mut block).is_ok()
                    && (block.events.iter()).any(|told| matches!(told.event, Event::Process { .. }))
            })
        })
    }

    /// Number of threads.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// The file's name, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has the functions that ran.
    pub fn has_code(&self) -> bool {
        self.templates.have_functions()
    }

    /// Functions by their numbers, as [`Block::code`] has them: those of places that were called, and of code that ran.
    pub fn functions(&self) -> &[CallSite] {
        self.sites.calls()
    }

    /// Reads block `number` of [`TraceReader::blocks`] into `block`, whose memory is used again.
    pub fn read_block(
        &self,
        number: usize,
        decoder: &mut OpDecoder,
        block: &mut Block,
    ) -> Result<(), TraceError> {
        self.read_with(number, decoder, block, false)
    }

    /// The same; besides, it reports the functions of the ops.
    pub fn read_block_with_code(
        &self,
        number: usize,
        decoder: &mut OpDecoder,
        block: &mut Block,
    ) -> Result<(), TraceError> {
        self.read_with(number, decoder, block, true)
    }

    fn read_with(
        &self,
        number: usize,
        decoder: &mut OpDecoder,
        block: &mut Block,
        wants_code: bool,
    ) -> Result<(), TraceError> {
        let place = &self.blocks[number];
        let (header, raw) = self.read_raw(place.offset)?;
        decode_block(&header, &raw, &self.templates, decoder, block, wants_code)
            .map_err(|what| self.damaged(place.offset, what))
    }

    /// All blocks from block `first` on, in order.
    pub fn iter_from(&self, first: usize) -> impl Iterator<Item = Result<Block, TraceError>> + '_ {
        let mut decoder = OpDecoder::default();
        (first..self.blocks.len()).map(move |number| {
            let mut block = Block::default();
            self.read_block(number, &mut decoder, &mut block)
                .map(|()| block)
        })
    }

    /// The blocks of one thread, in order.
    pub fn thread(&self, thread: u32) -> impl Iterator<Item = Result<Block, TraceError>> + '_ {
        let mut decoder = OpDecoder::default();
        let mine = (0..self.blocks.len())
            .filter(move |&number| self.blocks[number].header.thread == thread);
        mine.map(move |number| {
            let mut block = Block::default();
            self.read_block(number, &mut decoder, &mut block)
                .map(|()| block)
        })
    }
}

/// More threads than any recorder writes.
const MAX_THREADS: u32 = 1 << 16;
