//! A program thread's operations, as the model sees them: one 16-byte [`Op`] after another.
//!
//! Everything that can drive the model (a native kernel, a recorded trace, a program traced live, a
//! managed heap) speaks this vocabulary, so that a machine or a policy never learns where a run came from.

/// The kind of an [`Op`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Load `size` bytes at `addr`.
    Read = 0,
    /// Store `size` bytes at `addr`; the line is fetched first when it is not cached (write-allocate).
    Write = 1,
    /// Load and store the same bytes (`a[i] ^= x`, an atomic): one access to the model, two to the program.
    Update = 2,
    /// Instruction fetch at `addr`.
    Fetch = 3,
    /// Non-temporal store: bypasses the caches, goes to the memory controller's write queue.
    NtWrite = 4,
    /// Write the line at `addr` back and keep it (CLWB).
    Flush = 5,
    /// Wait until every earlier `NtWrite` and `Flush` of the thread is accepted by the controller (SFENCE); if `addr` is
    /// [`Op::LOADS`], until every earlier load has its data instead (LFENCE, RDTSCP).
    Fence = 6,
    /// Wait for all threads of the program to arrive at barrier `addr`.
    Barrier = 7,
    /// A request (query, transaction) begins; its latency runs until the thread's next `End`.
    Begin = 8,
    /// The request ends; `addr` is its class, a small number that the program names.
    End = 9,
    /// The program enters phase `addr` (counters are split at the first thread that says so).
    Phase = 10,
    /// The thread sleeps for `addr` nanoseconds (pacing, think time).
    Sleep = 11,
    /// The pages from `addr` on, `size` of them in units of 4 KiB, go back to the operating system.
    Unmap = 12,
    /// A cycle of the program's work ends, such as from one collection to the next. Instances of a program are each at another place of
    /// theirs.
    Cycle = 13,
    /// The thread touched the line at `addr` while its time was not measured, and stored to it if `size` is not 0: pages,
    /// translations and caches beyond the first level are as if it had. No time passes, and nothing is counted.
    Touch = 14,
    /// With an `addr` of 1 the kernel goes on in the thread's place, such as to zero the pages that it maps; with 0 the
    /// program does again. Sampling that counts accesses of programs does not see those of the kernel.
    Kernel = 15,
}

impl Kind {
    /// Every kind, in the order of its code.
    pub const ALL: [Kind; 16] = [
        Kind::Read,
        Kind::Write,
        Kind::Update,
        Kind::Fetch,
        Kind::NtWrite,
        Kind::Flush,
        Kind::Fence,
        Kind::Barrier,
        Kind::Begin,
        Kind::End,
        Kind::Phase,
        Kind::Sleep,
        Kind::Unmap,
        Kind::Cycle,
        Kind::Touch,
        Kind::Kernel,
    ];

    /// The kind with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(code as usize).copied()
    }

    /// Does it go through the first-level data cache: is it a load, a store, or both?
    #[inline(always)]
    pub fn is_cached(self) -> bool {
        (self as u8) < Kind::Fetch as u8
    }

    /// Does it touch memory at `addr` (rather than order or mark time)?
    #[inline(always)]
    pub fn is_access(self) -> bool {
        (self as u8) <= Kind::Flush as u8
    }
}

/// One step of one thread. 16 bytes, so that buffers of them stream through the host's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    /// Virtual byte address for an access; see [`Kind`] for what it means otherwise.
    pub addr: u64,
    /// Instructions retired by the thread since its previous op, this one included.
    pub instructions: u32,
    /// Bytes accessed.
    pub size: u16,
    /// Its kind.
    pub kind: Kind,
    /// 1 when the address was computed from the thread's previous load (pointer chasing): the access
    /// cannot start before that load has finished.
    pub dependent: u8,
}

impl Op {
    /// The `addr` of a [`Kind::Fence`] that waits for loads.
    pub const LOADS: u64 = 1;

    /// An access that is independent of what came before.
    #[inline(always)]
    pub fn new(kind: Kind, addr: u64, size: u16, instructions: u32) -> Op {
        Op {
            addr,
            instructions,
            size,
            kind,
            dependent: 0,
        }
    }

    /// A load.
    #[inline(always)]
    pub fn read(addr: u64, size: u16, instructions: u32) -> Op {
        Op::new(Kind::Read, addr, size, instructions)
    }

    /// A store.
    #[inline(always)]
    pub fn write(addr: u64, size: u16, instructions: u32) -> Op {
        Op::new(Kind::Write, addr, size, instructions)
    }

    /// Does the access touch one line of 64 B only?
    #[inline(always)]
    pub fn is_inside_a_line(&self) -> bool {
        (self.addr & 63) + self.size as u64 <= 64
    }

    /// The same op, waiting for the thread's previous load.
    #[inline(always)]
    pub fn after_load(mut self) -> Op {
        self.dependent = 1;
        self
    }

    /// A mark that touches no memory.
    #[inline(always)]
    pub fn mark(kind: Kind, value: u64) -> Op {
        Op::new(kind, value, 0, 0)
    }
}

const _: () = assert!(std::mem::size_of::<Op>() == 16);
