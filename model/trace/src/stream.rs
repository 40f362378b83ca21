//! Reads a trace from a pipe, block after block.

use crate::error::TraceError;
use crate::format::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, FileHeader, OpDecoder, Templates};
use crate::parts::Block;
use crate::parts::{FIXED_BYTES, decode_block, read_file_header, split_end, unpack};
use crate::sites::Sites;
use crate::writer::{CallSite, End};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads a trace from a pipe, block after block.
pub struct TraceStream<R: Read> {
    input: R,
    path: PathBuf,
    header: FileHeader,
    offset: u64,
    decoder: OpDecoder,
    sites: Sites,
    templates: Templates,
    end: Option<End>,
    stopped: bool,
}

impl<R: Read> TraceStream<R> {
    /// Reads the header; `path` only names the input in errors.
    pub fn new(mut input: R, path: &Path) -> Result<TraceStream<R>, TraceError> {
        let mut fixed = [0; FIXED_BYTES];
        input
            .read_exact(&mut fixed)
            .map_err(|_| TraceError::Foreign {
                path: path.into(),
                hint: "",
            })?;
        let (header, offset) = read_file_header(&fixed, path, |bytes| input.read_exact(bytes))?;
        Ok(TraceStream {
            input,
            path: path.into(),
            header,
            offset,
            decoder: OpDecoder::default(),
            sites: Sites::default(),
            templates: Templates::default(),
            end: None,
            stopped: false,
        })
    }

    /// Header of the trace.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The allocation sites so far.
    pub fn sites(&self) -> &[CallSite] {
        &self.sites.all
    }

    /// How the recording ended, once the last block has been read.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    fn step(&mut self) -> Result<Option<Block>, TraceError> {
        loop {
            let offset = self.offset;
            let damaged = |what| TraceError::Damaged {
                path: self.path.clone(),
                offset,
                what,
            };
            let mut bytes = [0; BLOCK_HEADER_BYTES];
            self.input
                .read_exact(&mut bytes)
                .map_err(|_| damaged("the trace stops here, before its end"))?;
            let header = BlockHeader::from_bytes(&bytes).map_err(damaged)?;
            let mut stored = vec![0; header.stored_bytes as usize];
            self.input
                .read_exact(&mut stored)
                .map_err(|_| damaged("the trace stops inside this block"))?;
            let raw = unpack(&bytes, &header, &stored).map_err(damaged)?;
            self.offset += (BLOCK_HEADER_BYTES + stored.len()) as u64;
            match header.kind {
                BlockKind::Ops | BlockKind::Runs => {
                    let mut block = Block::default();
                    let (templates, decoder) = (&self.templates, &mut self.decoder);
                    decode_block(&header, &raw, templates, decoder, &mut block, false)
                        .map_err(damaged)?;
                    return Ok(Some(block));
                }
                BlockKind::Sites => {
                    let read = self.sites.add_sites(&raw);
                    read.ok_or_else(|| damaged("the site table cannot be read"))?;
                }
                BlockKind::Calls => {
                    let read = self.sites.add_calls(&raw);
                    read.ok_or_else(|| damaged("the calls of sites cannot be read"))?;
                }
                BlockKind::Templates => self
                    .templates
                    .decode(&raw)
                    .map_err(|_| damaged("the templates cannot be read"))?,
                BlockKind::Code => self
                    .templates
                    .decode_functions(&raw, self.sites.calls().len())
                    .map_err(|_| damaged("the functions of templates cannot be read"))?,
                BlockKind::End => {
                    self.end = split_end(&raw).map(|(end, _)| end);
                    return Ok(None);
                }
            }
        }
    }
}

impl<R: Read> Iterator for TraceStream<R> {
    type Item = Result<Block, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stopped {
            return None;
        }
        let step = self.step().transpose();
        self.stopped = !matches!(step, Some(Ok(_)));
        step
    }
}
