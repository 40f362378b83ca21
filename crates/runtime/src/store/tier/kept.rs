//! A store's compiled code from run to run.
//!
//! What is kept is all that compilation has come to: the code in use, and the numbers and places that are in it, which are those of the run
//! that made it. A later run begins with the same numbers and places, goes on with them, and keeps both runs' code. So it has to be a run of
//! the same modules, whose functions, globals, tables and memories have the same places: the file's name is a digest of that. Its code is
//! used without another look.
//!
//! Code that depends on more is not kept: that of stores which are observed or profiled, which have durable objects, and whose plan asks
//! about allocation sites.

use super::super::Vm;
use super::super::func::{FuncKind, Inline, Leaf};
use super::super::sites::Origin;
use crate::code::cache;
use crate::code::link::{self, Native};
use crate::code::map::CodeInfo;
use crate::compile::feedback::FeedbackTable;
use crate::compile::hash::{HashMap, HashSet};
use crate::compile::isa::Level;
use crate::compile::resume::{Point, Points, What};
use crate::engine::Tier;
use crate::error::Result;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::ops::Range;
use std::path::PathBuf;

/// A piece of code with all that is known of it: bytes, and a [`CodeInfo`].
#[derive(Serialize, Deserialize)]
struct Body<B, I> {
    code: B,
    info: I,
}

#[derive(Serialize, Deserialize)]
struct Piece<B> {
    what: What,
    level: Level,
    /// A [`Body`], which is looked at when it is needed.
    body: B,
}

/// A file's content. Its parts are owned or borrowed: `B` are bytes.
#[derive(Serialize, Deserialize)]
struct Content<B, F, P, S> {
    cells: B,
    /// A [`FeedbackTable`].
    feedback: F,
    /// A list of [`Point`].
    points: P,
    /// A list of [`Origin`].
    sites: S,
    marked: bool,
    pieces: Vec<Piece<B>>,
}

/// Where a store's code is kept.
#[derive(Default)]
pub(super) enum Keeping {
    /// Nothing was compiled yet.
    #[default]
    Unasked,
    Not,
    In(Box<Kept>),
}

/// Kept code.
pub(super) struct Kept {
    folder: PathBuf,
    name: String,
    /// What an earlier run left.
    file: Vec<u8>,
    /// Where the bodies of its pieces are in it.
    pieces: HashMap<(What, Level), Range<usize>>,
    /// Functions that go on in optimized code from a loop.
    looping: HashSet<u32>,
    /// Whether there is more now, or less, than in the file.
    changed: bool,
}

impl Keeping {
    fn kept(&mut self) -> Option<&mut Kept> {
        match self {
            Keeping::In(kept) => Some(kept),
            _ => None,
        }
    }

    /// Whether there is a piece.
    pub fn has(&self, what: What, level: Level) -> bool {
        matches!(self, Keeping::In(kept) if kept.pieces.contains_key(&(what, level)))
    }

    /// Whether a function has optimized code from a loop on.
    pub fn loops(&self, func: u32) -> bool {
        matches!(self, Keeping::In(kept) if kept.looping.contains(&func))
    }

    /// There is new code.
    pub fn grew(&mut self) {
        if let Some(kept) = self.kept() {
            kept.changed = true;
        }
    }

    /// Optimized code was given up, of all that `unwanted` says.
    pub fn forget(&mut self, unwanted: impl Fn(What) -> bool) {
        if let Some(kept) = self.kept() {
            kept.pieces
                .retain(|&(what, level), _| level == Level::Baseline || !unwanted(what));
            kept.changed = true;
        }
    }
}

impl Vm {
    /// Goes on with the code of an earlier run, if it is kept. Before anything is compiled.
    pub(super) fn begin_kept(&mut self) -> Result<()> {
        if !matches!(self.code.tiers.keeping, Keeping::Unasked) {
            return Ok(());
        }
        self.code.tiers.keeping = match self.open_kept()? {
            Some(kept) => Keeping::In(Box::new(kept)),
            None => Keeping::Not,
        };
        Ok(())
    }

    /// Whether code depends on nothing that [`Vm::digest`] does not know.
    fn may_keep(&self) -> bool {
        let heap = self.heap();
        self.engine.config().tier == Tier::Auto
            && self.recording.is_none()
            && self.counters.is_none()
            && self.check_counters.is_none()
            && self.sampling.is_none()
            && self.durable.is_none()
            && self.engine.checks().is_none()
            && !heap.asks_about_sites()
    }

    fn open_kept(&mut self) -> Result<Option<Kept>> {
        let folder = self.engine.config().code_cache.clone();
        let Some(folder) = folder.filter(|_| self.may_keep()) else {
            return Ok(None);
        };
        let Some(name) = self.digest() else {
            return Ok(None);
        };
        let mut kept = Kept {
            file: cache::read(&folder, &name).unwrap_or_default(),
            folder,
            name,
            pieces: HashMap::default(),
            looping: HashSet::default(),
            changed: false,
        };
        type Read<'a> = Content<&'a [u8], FeedbackTable, Vec<Point>, Vec<Origin>>;
        let Ok(content) = postcard::from_bytes::<Read<'_>>(&kept.file) else {
            return Ok(Some(kept));
        };
        if !self.sites.restore(content.sites) {
            return Ok(Some(kept));
        }
        if content.marked {
            self.sites.mark();
        }
        self.region.restore_cells(content.cells)?;
        let tiers = &mut self.code.tiers;
        tiers.feedback = content.feedback;
        tiers.points = Points::restore(content.points);
        let start = kept.file.as_ptr() as usize;
        for Piece { what, level, body } in content.pieces {
            let at = body.as_ptr() as usize - start;
            kept.pieces.insert((what, level), at..at + body.len());
            if let (What::Continuation(number), Level::Optimizing) = (what, level) {
                kept.looping.insert(tiers.points.get(number).func);
            }
        }
        Ok(Some(kept))
    }

    /// A digest of all that compiled code depends on; none where that cannot be said.
    fn digest(&self) -> Option<String> {
        let config = self.engine.config();
        let heap = self.heap();
        let mut hash = Sha256::new();
        add(&mut hash, link::build()?);
        let isa = &self.code.isa;
        let features = isa.isa_flags().into_iter().map(|f| format!("{f} "));
        let features = features.collect::<String>();
        let generator = format!("{} {} {features}", isa.triple(), isa.flags());
        add(&mut hash, generator);
        let settings = format!(
            "{:?} {:?} {} {} {} {}",
            config.plan,
            self.align,
            config.interruptible,
            heap.monitors(),
            heap.plan().takes_hints(),
            heap.marked()
        );
        add(&mut hash, settings);
        // Places are where they are because of all that was made before.
        let mut words = String::new();
        for f in &self.funcs {
            let kind = match &f.kind {
                FuncKind::Wasm { instance, index } => format!("{instance} {index}"),
                FuncKind::Host(_, None) => "host".into(),
                FuncKind::Host(_, Some(Inline::Leaf(leaf))) => name_of(*leaf)?,
                FuncKind::Host(_, Some(Inline::Mark)) => "mark".into(),
            };
            let _ = write!(words, "{} {} {kind},", f.place, f.ty);
        }
        for g in &self.globals {
            // Code has the values of those that never change in it.
            let value = match g.ty.mutable || g.ty.ty.is_managed() {
                true => 0,
                false => self.global_bits(g.place),
            };
            let _ = write!(words, "{} {:?} {value},", g.place, g.ty);
        }
        for t in &self.tables {
            let _ = write!(words, "{} {:?},", t.place, t.ty);
        }
        for m in &self.memories {
            let _ = write!(words, "{} {:?},", m.place, m.ty);
        }
        let types = self.engine.types();
        let _ = write!(
            words,
            "{:?} {} {}",
            self.tags,
            types.len(),
            self.region.next()
        );
        add(&mut hash, words);
        for instance in &self.instances {
            let module = &instance.module;
            let indices = format!(
                "{:?} {:?} {:?} {:?} {:?} {:?}",
                module.types,
                instance.funcs,
                instance.tables,
                instance.memories,
                instance.globals,
                instance.tags
            );
            add(&mut hash, indices);
            add(&mut hash, &module.bytes);
        }
        let mut name = String::new();
        for byte in hash.finalize() {
            let _ = write!(name, "{byte:02x}");
        }
        Some(name)
    }

    /// Puts a kept piece of code into memory, if there is one.
    pub(super) fn kept(&mut self, what: What, level: Level) -> Result<Option<*const u8>> {
        let c = &mut self.code;
        let Some(kept) = c.tiers.keeping.kept() else {
            return Ok(None);
        };
        let Some(range) = kept.pieces.get(&(what, level)) else {
            return Ok(None);
        };
        type Read<'a> = Body<&'a [u8], CodeInfo>;
        let Ok(body) = postcard::from_bytes::<Read<'_>>(&kept.file[range.clone()]) else {
            return Ok(None);
        };
        let Body { code, mut info } = body;
        let mut code = code.to_vec();
        info.start = c.memory.next() as usize;
        link::link(&mut code, info.start, &info.relocations, &c.helpers)?;
        let code = c.memory.add(&code)?;
        c.tiers.stats.kept += 1;
        self.tell_perf(&info, level);
        self.code.map.add(info);
        Ok(Some(code))
    }

    /// Keeps the code in use for later runs, if there is new one. That it cannot be kept is no reason for a program to fail that has run.
    pub(in crate::store) fn keep_code(&mut self) {
        // Who panics may have left the store in the middle of something.
        if std::thread::panicking() || self.heap.is_none() || self.take_generated().is_err() {
            return;
        }
        let keeping = std::mem::replace(&mut self.code.tiers.keeping, Keeping::Not);
        let Keeping::In(kept) = keeping else { return };
        // Whoever made instances and functions since had them compiled, too.
        if !kept.changed || self.digest().as_ref() != Some(&kept.name) {
            return;
        }
        let tiers = &self.code.tiers;
        let mut bodies: Vec<(What, Level, Vec<u8>)> = Vec::new();
        for (what, level, code) in tiers.in_use() {
            let Some(info) = self.code.map.find(code as usize) else {
                continue;
            };
            let code = self.code.memory.bytes(info.start, info.len);
            if let Ok(body) = postcard::to_allocvec(&Body {
                code,
                info: &**info,
            }) {
                bodies.push((what, level, body));
            }
        }
        let mut pieces: Vec<Piece<&[u8]>> = Vec::new();
        let mut known = HashSet::default();
        for (what, level, body) in &bodies {
            known.insert((*what, *level));
            pieces.push(Piece {
                what: *what,
                level: *level,
                body,
            });
        }
        for (&(what, level), range) in &kept.pieces {
            if !known.contains(&(what, level)) {
                let body = &kept.file[range.clone()];
                pieces.push(Piece { what, level, body });
            }
        }
        let points = tiers.points.all().iter();
        let content = Content {
            cells: self.region.cells(),
            feedback: &tiers.feedback,
            points: points.map(|p| &**p).collect::<Vec<_>>(),
            sites: self.sites.origins(),
            marked: self.sites.any_marked(),
            pieces,
        };
        if let Ok(content) = postcard::to_allocvec(&content) {
            let _ = cache::write(&kept.folder, &kept.name, &content);
        }
    }
}

/// Adds bytes to a digest so that it is clear where they end.
fn add(hash: &mut Sha256, bytes: impl AsRef<[u8]>) {
    hash.update(bytes.as_ref().len().to_le_bytes());
    hash.update(bytes);
}

/// What a function is whose code is inline, if it is the same in all processes of a build.
fn name_of(leaf: Leaf) -> Option<String> {
    let at = |address| Native::Leaf(address).distance_in_file();
    Some(match leaf {
        Leaf::Sqrt | Leaf::Abs | Leaf::Floor | Leaf::Ceil => format!("{leaf:?}"),
        Leaf::Unary(f) => format!("unary {}", at(f as usize)?),
        Leaf::Binary(f) => format!("binary {}", at(f as usize)?),
    })
}
