//! A program as the model runs it: some threads, each a stream of [`Op`]s that is pulled when its virtual time comes.

use crate::Op;

/// A named range of the program's virtual memory, for reports and for policies that place by range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The program's name for it, such as `csr.edges` or `heap`.
    pub name: String,
    /// First byte, a virtual address.
    pub base: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Something that runs on the model.
///
/// The model owns time: it asks for more ops of a thread when that thread's clock is the earliest.
/// A program must give the same ops for the same seed whatever the order of the calls between barriers allows.
pub trait Program: Send {
    /// Short name, such as `gups`.
    fn name(&self) -> String;

    /// Number of threads; fixed for the whole run.
    fn threads(&self) -> usize;

    /// The ranges of virtual memory that the program uses, as far as it knows them at the start.
    fn regions(&self) -> Vec<Region> {
        Vec::new()
    }

    /// Appends the next ops of `thread` to `out`, at least one and about `out.capacity()` at most.
    /// `now` is the thread's virtual time in nanoseconds (what a clock read by the program would say).
    /// Returns `false` when the thread has ended; what was appended is still run.
    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool;

    /// Which code the ops are of that `fill` gave last for a thread: number of the op in `out`, and of what it is the first of; what comes
    /// before the first is of what ran before. 0 is code of which nothing is known, and what ran at the beginning. Asked right after
    /// `fill`, and only if waits are counted.
    fn code(&mut self, _thread: usize, _steps: &mut Vec<(u32, u32)>) {}

    /// The name of the code with a number, from the outermost part inwards: the file, the function, what is inlined in it.
    fn code_name(&self, _number: u32) -> Vec<String> {
        Vec::new()
    }

    /// Names for the classes of requests that `End` marks carry.
    fn classes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The program's results, once it has ended: name and value, for checks and reports.
    fn answers(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The stretches of its run, in order, if it gives only windows of it; none: it gives all of its run. They are known when it has
    /// ended; whether there are any is known from the start.
    fn stretches(&self) -> Option<Vec<Stretch>> {
        None
    }

    /// An error that ended the program early (a truncated trace, a crashed command), in one line.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// What a window of a run stands for: what is like it around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The phase that is measured. Phases that no stretch names warm caches for the next one that is named.
    pub phase: u64,
    /// Instructions that the program does not give, and that it stands for.
    pub unseen: u64,
    /// Number of the part of the run that it belongs to, which is a phase of the whole run.
    pub part: u64,
    /// Windows with the same number are alike in what they access.
    pub like: u32,
}
