//! Every field of a machine file: its type, unit and meaning. The reader, the checks and `docs/machines.md` share this table.

/// Type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Words.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Count,
    /// A number of bytes, as [`varve_spec::Bytes`] reads it.
    Size,
    /// A number.
    Real,
}

impl FieldType {
    /// Does the field need a source?
    pub fn is_number(self) -> bool {
        matches!(self, FieldType::Count | FieldType::Size | FieldType::Real)
    }

    /// Description of a valid value, for messages.
    pub fn describe(self) -> String {
        match self {
            FieldType::Text => "text in quotes".into(),
            FieldType::Choice(words) => format!(
                "one of {}",
                words
                    .iter()
                    .map(|w| format!("\"{w}\""))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            FieldType::Count => "a whole number such as 16".into(),
            FieldType::Size => "a size such as \"16KiB\" or 4096".into(),
            FieldType::Real => "a number such as 14.25".into(),
        }
    }
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Dotted key.
    pub key: &'static str,
    /// Type.
    pub ty: FieldType,
    /// Unit, or "" for words and plain counts.
    pub unit: &'static str,
    /// May be left out by itself.
    pub optional: bool,
    /// May be zero.
    pub zero: bool,
    /// The largest value that is not a slip of the pen, and that the model has room for.
    pub limit: f64,
    /// Meaning.
    pub about: &'static str,
}

/// Sections that a machine may lack.
pub const OPTIONAL_SECTIONS: [&str; 6] = ["pm", "cxl", "dram_cache", "link", "dram.power", "cpu"];

use FieldType::{Choice, Count, Real, Size, Text};

const fn field(key: &'static str, ty: FieldType, unit: &'static str, about: &'static str) -> Field {
    let limit = match ty {
        Count => 65536.0,
        Size => (1u64 << 50) as f64,
        _ => 1e12,
    };
    Field {
        key,
        ty,
        unit,
        optional: false,
        zero: false,
        limit,
        about,
    }
}

const fn or_zero(f: Field) -> Field {
    Field { zero: true, ..f }
}

const fn at_most(limit: f64, f: Field) -> Field {
    Field { limit, ..f }
}

const fn optional(f: Field) -> Field {
    Field {
        optional: true,
        ..f
    }
}

const fn count(key: &'static str, unit: &'static str, about: &'static str) -> Field {
    field(key, Count, unit, about)
}

const fn size(key: &'static str, about: &'static str) -> Field {
    field(key, Size, "bytes", about)
}

const fn real(key: &'static str, unit: &'static str, about: &'static str) -> Field {
    field(key, Real, unit, about)
}

const fn ns(key: &'static str, about: &'static str) -> Field {
    field(key, Real, "ns", about)
}

const fn ma(key: &'static str, about: &'static str) -> Field {
    field(key, Real, "mA", about)
}

const GIB: f64 = (1u64 << 30) as f64;

/// All fields but `[sources]`, in the order of a file.
pub const FIELDS: &[Field] = &[
    field("name", Text, "", "name, the same as the file's"),
    field(
        "about",
        Text,
        "",
        "one line: what it is and where it was used",
    ),
    at_most(64.0, count("sockets", "", "sockets, all alike")),
    field(
        "mode",
        Choice(&["flat", "memory-mode"]),
        "",
        "each kind of memory a NUMA node, or DRAM as the cache of the slow memory",
    ),
    at_most(4096.0, count("core.per_socket", "", "cores per socket")),
    at_most(64.0, count("core.threads", "", "hardware threads per core")),
    real("core.ghz", "GHz", "clock under load"),
    real(
        "core.ipc",
        "instructions per cycle",
        "while no access misses L1",
    ),
    count(
        "core.reorder_buffer",
        "instructions",
        "how far the core runs ahead of a missing load",
    ),
    count("core.fill_buffers", "lines", "that may miss L1 at once"),
    count("core.store_misses", "lines", "... for stores"),
    count(
        "core.super_queue",
        "lines",
        "in flight beyond L2, prefetches included",
    ),
    count(
        "core.evictions",
        "lines",
        "pushed out of the last level for a core's, and not yet taken by memory",
    ),
    count("core.store_buffer", "stores", "that may wait to enter L1"),
    ns(
        "core.stream_ns",
        "that a non-temporal store to idle local DRAM keeps its fill buffer",
    ),
    ns(
        "core.write_back_ns",
        "between two write-backs (CLWB) of a core, at least",
    ),
    count("tlb.l1_entries", "", "first-level entries"),
    count("tlb.l1_ways", "", "ways of the first level"),
    count(
        "tlb.l2_entries",
        "",
        "second-level entries, shared by 4 KiB and 2 MiB pages",
    ),
    count("tlb.l2_ways", "", "ways of the second level"),
    ns("tlb.l2_ns", "first-level miss that hits the second level"),
    ns(
        "tlb.walk_4k_ns",
        "page walk, 4 KiB pages, upper levels cached",
    ),
    ns(
        "tlb.walk_2m_ns",
        "page walk, 2 MiB pages, upper levels cached",
    ),
    at_most(
        GIB,
        size("l1.bytes", "capacity of one core's L1 data cache"),
    ),
    at_most(256.0, count("l1.ways", "", "ways")),
    ns("l1.ns", "load-to-use latency of a hit"),
    at_most(GIB, size("l2.bytes", "capacity of one core's L2")),
    at_most(256.0, count("l2.ways", "", "ways")),
    ns("l2.ns", "load-to-use latency of a hit"),
    at_most(
        16.0 * GIB,
        size("llc.bytes", "capacity of one socket's last level"),
    ),
    at_most(256.0, count("llc.ways", "", "ways")),
    ns("llc.ns", "load-to-use latency of a hit"),
    or_zero(count(
        "prefetch.streams",
        "",
        "streams that one core's prefetcher tracks; 0 switches it off",
    )),
    or_zero(count(
        "prefetch.distance",
        "lines",
        "how far ahead of the program",
    )),
    ns(
        "controller.overhead_ns",
        "from the LLC's miss to the channel and back, without the memory",
    ),
    count(
        "controller.read_queue",
        "entries",
        "read queue of one channel, shared by DRAM and PM",
    ),
    count(
        "controller.write_queue",
        "entries",
        "write queue of one channel, shared by DRAM and PM",
    ),
    count(
        "controller.drain_high",
        "entries",
        "writes are drained in earnest above this fill",
    ),
    or_zero(count(
        "controller.drain_low",
        "entries",
        "and until this fill",
    )),
    at_most(
        256.0,
        count("dram.channels", "", "populated channels of one socket"),
    ),
    at_most(
        64.0,
        count("dram.dimms_per_channel", "", "DIMMs on one channel"),
    ),
    size("dram.dimm_bytes", "capacity of one DIMM"),
    at_most(64.0, count("dram.ranks", "", "ranks of one DIMM")),
    at_most(1024.0, count("dram.banks", "", "banks of one rank")),
    size("dram.row_bytes", "row of one rank across its devices"),
    or_zero(size(
        "dram.interleave_bytes",
        "on one channel before the next; 0 fills each DIMM before the next",
    )),
    count("dram.mts", "MT/s", "transfers per second, of 8 B"),
    ns("dram.cl_ns", "column access, CL"),
    ns("dram.rcd_ns", "row to column, tRCD"),
    ns("dram.rp_ns", "precharge, tRP"),
    ns("dram.ras_ns", "row active at least, tRAS"),
    ns("dram.faw_ns", "four activates of one rank within, tFAW"),
    ns(
        "dram.turnaround_ns",
        "bus from reads to writes and back, both turns",
    ),
    ns("dram.rfc_ns", "refresh of one rank, tRFC"),
    ns("dram.refi_ns", "refresh interval, tREFI"),
    ns(
        "dram.powerdown_after_ns",
        "an idle rank enters power-down after",
    ),
    ns("dram.powerdown_exit_ns", "leaving power-down, tXP"),
    ns(
        "dram.selfrefresh_after_ns",
        "an idle rank enters self-refresh after",
    ),
    ns("dram.selfrefresh_exit_ns", "leaving self-refresh, tXS"),
    real("dram.power.vdd", "V", "supply"),
    count(
        "dram.power.devices",
        "",
        "devices of one rank, ECC included",
    ),
    ma("dram.power.idd0_ma", "one bank activate-precharge"),
    ma("dram.power.idd2n_ma", "precharge stand-by"),
    ma("dram.power.idd2p_ma", "precharge power-down"),
    ma("dram.power.idd3n_ma", "active stand-by"),
    ma("dram.power.idd3p_ma", "active power-down"),
    ma("dram.power.idd4r_ma", "burst read"),
    ma("dram.power.idd4w_ma", "burst write"),
    ma("dram.power.idd5_ma", "burst refresh"),
    ma("dram.power.idd6_ma", "self-refresh"),
    optional(ma(
        "dram.power.register_ma",
        "register of one DIMM, clock on",
    )),
    optional(ma(
        "dram.power.register_powerdown_ma",
        "the same while all ranks of the DIMM sleep",
    )),
    or_zero(optional(ma(
        "dram.power.register_selfrefresh_ma",
        "the same in self-refresh, with the clock off",
    ))),
    optional(real(
        "dram.power.io_nj",
        "nJ",
        "drivers and termination for 64 B",
    )),
    real("cpu.asleep_w", "W", "a socket on which nothing runs"),
    real(
        "cpu.awake_w",
        "W",
        "a socket on which something runs, without its cores",
    ),
    real(
        "cpu.core_w",
        "W",
        "a core on which a thread runs, waits or spins",
    ),
    count("pm.dimms", "", "PM DIMMs of one socket, one per channel"),
    at_most(1024.0 * GIB, size("pm.dimm_bytes", "capacity of one DIMM")),
    or_zero(size(
        "pm.interleave_bytes",
        "on one DIMM before the next; 0 switches interleaving off",
    )),
    at_most(512.0, size("pm.line_bytes", "media line")),
    at_most(
        GIB,
        size("pm.buffer_bytes", "write-combining buffer in the DIMM"),
    ),
    ns(
        "pm.buffer_ns",
        "a read that hits the DIMM's buffer, from the channel and back",
    ),
    ns(
        "pm.media_read_ns",
        "reading a media line into the buffer, on top",
    ),
    real(
        "pm.media_read_gbps",
        "GB/s",
        "media read bandwidth of one DIMM",
    ),
    real(
        "pm.media_write_gbps",
        "GB/s",
        "media write bandwidth of one DIMM",
    ),
    optional(real("pm.read_nj", "nJ", "reading one media line")),
    optional(real("pm.write_nj", "nJ", "writing one media line")),
    optional(real("pm.idle_w", "W", "an idle DIMM")),
    size("cxl.bytes", "capacity of one socket's expander"),
    ns(
        "cxl.link_ns",
        "link and device controllers, there and back, without the DRAM",
    ),
    real("cxl.read_gbps", "GB/s", "payload towards the host"),
    real("cxl.write_gbps", "GB/s", "payload towards the device"),
    count("cxl.channels", "", "DRAM channels of the device"),
    count("cxl.mts", "MT/s", "their transfers per second"),
    count("cxl.queue", "requests", "that the device takes at once"),
    size(
        "dram_cache.bytes",
        "DRAM of one socket that is usable as a cache",
    ),
    at_most(
        256.0,
        count(
            "dram_cache.ways",
            "",
            "ways; 1 is direct-mapped, as hardware is",
        ),
    ),
    optional(ns(
        "dram_cache.conflict_ns",
        "what a read that pushes a dirty line out takes beyond its reads and writes of memory",
    )),
    ns("link.ns", "added to a remote access, there and back"),
    real(
        "link.gbps",
        "GB/s",
        "what leaves a socket for others, headers included",
    ),
    optional(field(
        "link.directory",
        Choice(&["none", "memory"]),
        "",
        "what memory knows of other sockets' caches: nothing, or which lines they may have",
    )),
    ns("os.fault_ns", "a minor page fault without zeroing"),
    ns(
        "os.sample_ns",
        "one event sample, its share of the interrupt",
    ),
    ns(
        "os.remap_ns",
        "page-table update and book-keeping of one page move",
    ),
    ns(
        "os.shootdown_ns",
        "one TLB shoot-down, on every core that runs the program",
    ),
    ns("os.slice_ns", "time slice when cores are shared"),
];

/// The field with this dotted key.
pub fn find(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|f| f.key == key)
}

/// Whether a text may be a machine file: it is empty, or a line begins with a key or a section of machine files. Errors by line
/// help for such a text alone.
pub fn occur_in(text: &str) -> bool {
    let lines = || text.lines().map(str::trim);
    let section = |line: &str| {
        let name = line.strip_prefix('[').and_then(|l| l.split_once(']'));
        name.is_some_and(|(name, _)| is_section(name.trim()))
    };
    let key = |line: &str| {
        line.split_once('=')
            .is_some_and(|(k, _)| find(k.trim()).is_some())
    };
    // Keys below a section are that section's.
    let mut top = lines().take_while(|line| !line.starts_with('['));
    text.trim().is_empty() || lines().any(section) || top.any(key)
}

/// Is this dotted key a section?
pub fn is_section(key: &str) -> bool {
    FIELDS.iter().any(|f| {
        f.key
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}
