//! The seam between the model (or live Linux) and the policy that places pages.
//!
//! The model raises a [`Fault`] at the first touch of a page, hands over every Nth miss as a [`Sample`], and calls
//! [`Pager::tick`] when the daemon's time has come. It carries out the [`Move`]s that come back and charges for
//! them. The pager never sees the model, a clock or an access that was not sampled.

/// A first touch of a virtual page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Virtual page number: address divided by [`Pager::page_bytes`].
    pub vpn: u64,
    /// Thread that touched it.
    pub thread: u32,
    /// NUMA socket that the thread runs on.
    pub socket: u32,
    /// Was the first touch a store?
    pub write: bool,
    /// Virtual time of the thread, ns.
    pub now: u64,
}

/// Where a sampled access found its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A load served by fast memory (a DRAM node, or a hit in the DRAM cache).
    Fast,
    /// A load served by slow memory (a PM or CXL node, or a miss in the DRAM cache).
    Slow,
    /// A store, wherever its line was: processors cannot tell (Johnny Cache, section 4.3).
    Store,
}

/// One sampled access, as a processor's event sampling reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Virtual page number.
    pub vpn: u64,
    /// Page frame that backs it.
    pub frame: u32,
    /// Where the data was found.
    pub source: Source,
    /// Sampled thread.
    pub thread: u32,
    /// Virtual time of the sample, ns.
    pub now: u64,
}

/// A decision to move a page to another frame. The target frame is already reserved; the source frame is free
/// for others once [`Pager::moved`] was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Virtual page number.
    pub vpn: u64,
    /// Frame it is in.
    pub from: u32,
    /// Frame it goes to.
    pub to: u32,
}

/// The cost of a policy's daemons, apart from the migrations themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Daemons {
    /// Kernel or user threads that poll samples or migrate pages; each wants a whole core while it runs.
    pub threads: u32,
    /// Time between two calls of [`Pager::tick`], ns; 0 when there is no daemon.
    pub period: u64,
    /// One access in this many is sampled; 0 switches sampling off.
    pub sample_period: u64,
}

/// No frame is left that the policy may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of memory: {pages} pages of {page_bytes} B are in use and none is free; use a larger machine or a smaller footprint"
)]
pub struct OutOfFrames {
    /// Pages in use.
    pub pages: u64,
    /// Bytes of one page.
    pub page_bytes: u64,
}

/// Backs virtual pages with frames. Frames are numbered through all nodes of a machine: node 0 first.
pub trait Pager: Send {
    /// Bytes of a page (4 KiB or 2 MiB on a full-size machine).
    fn page_bytes(&self) -> u64;

    /// Chooses and reserves a frame for a page touched for the first time.
    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames>;

    /// The program gave the page back; its frame is free.
    fn unmap(&mut self, vpn: u64, frame: u32);

    /// A freed frame to zero before its next allocation, if there is one. A separate thread zeroes it,
    /// beside the program, and says when with [`Pager::zeroed`].
    fn to_zero(&mut self) -> Option<u32> {
        None
    }

    /// A frame of [`Pager::to_zero`] is zero now.
    fn zeroed(&mut self, _frame: u32) {}

    /// Does the frame that [`Pager::fault`] just gave hold data of its former owner? The thread that touched it then zeroes
    /// it before it goes on.
    fn is_dirty(&self, _frame: u32) -> bool {
        false
    }

    /// The daemons that run beside the program.
    fn daemons(&self) -> Daemons {
        Daemons::default()
    }

    /// One sampled access.
    fn sample(&mut self, _sample: &Sample) {}

    /// The memory controllers' counts until `now` (ns), as by their events for column accesses: bytes read from and written
    /// to DRAM on all channels, since the beginning. Told right before each [`Pager::tick`].
    fn traffic(&mut self, _now: u64, _bytes: u64) {}

    /// The daemon wakes at `now` (ns) and appends the moves that it wants, in order. The model may take long to
    /// carry them out; `tick` is not called again before the last one is done.
    fn tick(&mut self, _now: u64, _moves: &mut Vec<Move>) {}

    /// A move was carried out.
    fn moved(&mut self, _done: &Move) {}
}
