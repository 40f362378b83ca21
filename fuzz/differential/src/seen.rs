//! What a run shows, and whether two runs show the same.

use crate::Outcome;
use std::fmt;

/// References are followed this deep.
pub const DEPTH: u32 = 3;
/// Fields of a struct that are looked at.
pub const FIELDS: usize = 16;
/// Elements of an array, and of a table, that are looked at.
pub const ELEMENTS: u32 = 32;

/// A value as far as both engines show it. References are what they lead to.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    I32(i32),
    I64(i64),
    /// By its bits.
    F32(u32),
    /// By its bits.
    F64(u64),
    V128(u128),
    Null,
    Func,
    I31(i32),
    Struct(Vec<Value>),
    /// With its length.
    Array(u32, Vec<Value>),
    Exception(Vec<Value>),
    /// Too deep to look into.
    Deep,
}

/// How an operation ended.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    Returned(Vec<Value>),
    /// By the kind of the trap.
    Trapped(&'static str),
    Threw(Vec<Value>),
    /// Out of memory or stack.
    Exhausted,
    /// Not a module, or not one that could be linked.
    Refused(String),
}

/// A line of what was seen: where, and what.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    End(End),
    Global(Value),
    Table(u32, Vec<Value>),
    /// Bytes in all, and those that are not zero, by their places.
    Memory(usize, Vec<(usize, u8)>),
}

/// All that was seen of a run, in order.
#[derive(Default)]
pub struct Seen(pub Vec<(String, What)>);

impl Seen {
    pub fn add(&mut self, place: impl Into<String>, what: What) {
        self.0.push((place.into(), what));
    }

    /// Whether a run that ended so goes on.
    pub fn end(&mut self, place: impl Into<String>, end: End) -> bool {
        let goes_on = matches!(end, End::Returned(_) | End::Trapped(_) | End::Threw(_));
        self.add(place, What::End(end));
        goes_on
    }
}

/// How many operations ended how: what a comparison is worth.
#[derive(Default, Debug)]
pub struct Tally {
    pub returned: u64,
    pub trapped: u64,
    pub threw: u64,
    pub exhausted: u64,
    /// Modules that did not load or link.
    pub refused: u64,
    /// Globals, tables and memories that were compared.
    pub states: u64,
}

impl Tally {
    /// Counts what was seen of a run.
    pub fn add(&mut self, seen: &Seen) {
        for (_, what) in &seen.0 {
            *match what {
                What::End(End::Returned(_)) => &mut self.returned,
                What::End(End::Trapped(_)) => &mut self.trapped,
                What::End(End::Threw(_)) => &mut self.threw,
                What::End(End::Exhausted) => &mut self.exhausted,
                What::End(End::Refused(_)) => &mut self.refused,
                _ => &mut self.states,
            } += 1;
        }
    }
}

/// The bytes of a memory that are not zero.
pub fn memory(bytes: &[u8]) -> What {
    let written = bytes.iter().copied().enumerate().filter(|&(_, b)| b != 0);
    What::Memory(bytes.len(), written.collect())
}

/// Whether two runs are the same, as far as both went.
///
/// # Errors
/// The first difference.
pub fn compare(ours: &Seen, theirs: &Seen) -> Result<Outcome, String> {
    for ((place, a), (other, b)) in ours.0.iter().zip(&theirs.0) {
        if [a, b].contains(&&What::End(End::Exhausted)) {
            return Ok(Outcome::Exhausted);
        }
        // Why a module is refused each engine says in its own words.
        let both = matches!(
            (a, b),
            (What::End(End::Refused(_)), What::End(End::Refused(_)))
        );
        if place != other || a != b && !both {
            return Err(format!("{place}: {}", Difference(a, b)));
        }
    }
    match ours.0.len() == theirs.0.len() {
        true => Ok(Outcome::Same),
        false => Err(format!("{} steps, not {}", ours.0.len(), theirs.0.len())),
    }
}

struct Difference<'a>(&'a What, &'a What);

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (What::Memory(n, a), What::Memory(m, b)) = (self.0, self.1)
            && n == m
        {
            let only = |x: &[(usize, u8)], y: &[(usize, u8)]| {
                x.iter()
                    .find(|p| !y.contains(p))
                    .map_or("the same".into(), |(at, b)| format!("{b:#x} at {at:#x}"))
            };
            return write!(f, "memory with {}, other: {}", only(a, b), only(b, a));
        }
        write!(f, "{:?}, other: {:?}", self.0, self.1)
    }
}
