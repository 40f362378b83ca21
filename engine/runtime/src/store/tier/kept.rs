//! A store's compiled code from run to run.
//!
//! All results of compilation are kept: the code in use, and the numbers and places that are in it, which are those of the run that made it. A later
//! run begins with the same numbers and places, goes on with them, and keeps both runs' code. So it has to be a run of the same modules, whose
//! functions, globals, tables and memories have the same places: the file's name is a digest of [all that code depends on](super::depends). Its code
//! is used without further checks.

use super::super::Vm;
use super::super::sites::Origin;
use crate::code::cache;
use crate::code::map::CodeInfo;
use crate::compile::Generated;
use crate::compile::feedback::FeedbackTable;
use crate::compile::isa::Level;
use crate::compile::resume::{Point, Points, What};
use crate::error::Result;
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

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
    /// A [`Body`], which is decoded when it is needed.
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
    /// The file of an earlier run.
    file: Vec<u8>,
    /// Where the bodies of its pieces are in it.
    pieces: HashMap<(What, Level), Range<usize>>,
    /// Functions that go on in optimized code from a loop.
    looping: HashSet<u32>,
    /// Since when, by [`now`], there has been more, or less, than in the file.
    changed: Option<Duration>,
}

/// The time to some milliseconds. Each call of the host asks for it, and an exact one would take a third of the cheapest such call.
fn now() -> Duration {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
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
            kept.changed.get_or_insert_with(now);
        }
    }

    /// Whether something has been new for so long.
    fn has_waited(&self, time: Duration) -> bool {
        let Keeping::In(kept) = self else {
            return false;
        };
        kept.changed
            .is_some_and(|since| now().saturating_sub(since) >= time)
    }

    /// Baseline code of a function is not to be taken into use again.
    pub fn forget_baseline(&mut self, func: u32) {
        if let Some(kept) = self.kept() {
            kept.pieces.remove(&(What::Function(func), Level::Baseline));
        }
    }

    /// Optimized code was given up, of all that `unwanted` says.
    pub fn forget(&mut self, unwanted: impl Fn(What) -> bool) {
        if let Some(kept) = self.kept() {
            kept.pieces
                .retain(|&(what, level), _| level == Level::Baseline || !unwanted(what));
            self.grew();
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
            changed: None,
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

    /// Puts a kept piece of code into memory, if there is one.
    pub(super) fn take_kept(&mut self, what: What, level: Level) -> Result<Option<*const u8>> {
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
        let generated = Generated {
            code: body.code.to_vec(),
            info: body.info,
        };
        let Ok(info) = generated.place(&mut c.memory, &c.helpers) else {
            return Ok(None);
        };
        let code = info.start as *const u8;
        c.tiers.stats.kept += 1;
        self.tell_perf(&info, level);
        self.code.map.add(info);
        Ok(Some(code))
    }

    /// Keeps the code in use for later runs, if there is new one. That it cannot be kept is no reason for a program to fail that has run.
    pub(in crate::store) fn keep_code(&mut self) {
        // A panic may have left the store in an inconsistent state.
        if !std::thread::panicking() && self.heap.is_some() && self.take_generated().is_ok() {
            self.write_code();
        }
    }

    /// Keeps new code of a running program, once it has waited: a killed program never drops its store. Called where a program leaves its code
    /// often enough, and for more than this.
    pub(crate) fn keep_code_in_time(&mut self) {
        if self
            .code
            .tiers
            .keeping
            .has_waited(self.engine.config().code_cache_after)
        {
            self.write_code();
        }
    }

    fn write_code(&mut self) {
        let Keeping::In(kept) = &self.code.tiers.keeping else {
            return;
        };
        // Instances and functions made since were compiled, too.
        if kept.changed.is_some()
            && self.digest().as_ref() == Some(&kept.name)
            && let Some(content) = self.content(kept)
        {
            let _ = cache::write(&kept.folder, &kept.name, &content);
        }
        // After a failed write, no other is tried before there is more code.
        if let Some(kept) = self.code.tiers.keeping.kept() {
            kept.changed = None;
        }
    }

    /// All that compilation has come to, as it is in a file.
    fn content(&self, kept: &Kept) -> Option<Vec<u8>> {
        let tiers = &self.code.tiers;
        let mut bodies: HashMap<(What, Level), Vec<u8>> = HashMap::default();
        for (what, level, code) in tiers.in_use() {
            let Some(info) = self.code.map.find(code as usize) else {
                continue;
            };
            let code = self.code.memory.bytes(info.start, info.len);
            if let Ok(body) = postcard::to_allocvec(&Body {
                code,
                info: &**info,
            }) {
                bodies.insert((what, level), body);
            }
        }
        let fresh = bodies.iter().map(|(&of, body)| (of, &body[..]));
        let others = kept
            .pieces
            .iter()
            .filter(|(of, _)| !bodies.contains_key(of));
        let others = others.map(|(&of, range)| (of, &kept.file[range.clone()]));
        let pieces = fresh.chain(others);
        let pieces = pieces.map(|((what, level), body)| Piece { what, level, body });
        let points = tiers.points.all().iter();
        let content = Content {
            cells: self.region.cells(),
            feedback: &tiers.feedback,
            points: points.map(|p| &**p).collect::<Vec<_>>(),
            sites: self.sites.origins(),
            marked: self.sites.any_marked(),
            pieces: pieces.collect(),
        };
        postcard::to_allocvec(&content).ok()
    }
}
