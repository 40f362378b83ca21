//! Java virtual machines in a trace: the collector, and the uses of memory. The agent inside the machine has this file
//! too.

/// A collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Collector {
    /// None that is known here, and so its heap is not.
    Other = 0,
    /// One thread, two generations.
    Serial = 1,
    /// Several threads, two generations.
    Parallel = 2,
    /// Regions that change their role.
    G1 = 3,
    /// Pages that change their role; collects beside the program.
    Z = 4,
}

impl Collector {
    /// All of them, by their codes.
    pub const ALL: [Collector; 5] = [
        Collector::Other,
        Collector::Serial,
        Collector::Parallel,
        Collector::G1,
        Collector::Z,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Collector::Other => "other",
            Collector::Serial => "Serial",
            Collector::Parallel => "Parallel",
            Collector::G1 => "G1",
            Collector::Z => "ZGC",
        }
    }

    /// Whether its generations have places of their own.
    pub fn has_generations(self) -> bool {
        matches!(self, Collector::Serial | Collector::Parallel)
    }
}

/// Use of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Use {
    /// The young generation, all that is reserved for it.
    Young = 0,
    /// In it, where objects are born.
    Eden = 1,
    /// In it, the two spaces of objects that survived.
    Survivor = 2,
    /// The old generation, all that is reserved for it.
    Old = 3,
    /// A heap whose parts change their role.
    Heap = 4,
    /// Metadata of classes.
    Metaspace = 5,
    /// Compiled code.
    Code = 6,
}

impl Use {
    /// All of them, by their codes.
    pub const ALL: [Use; 7] = [
        Use::Young,
        Use::Eden,
        Use::Survivor,
        Use::Old,
        Use::Heap,
        Use::Metaspace,
        Use::Code,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Use::Young => "young",
            Use::Eden => "eden",
            Use::Survivor => "survivor",
            Use::Old => "old",
            Use::Heap => "heap",
            Use::Metaspace => "metaspace",
            Use::Code => "code",
        }
    }
}
