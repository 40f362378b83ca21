//! Every field of a machine file: its type, unit and meaning. The reader, the checks and `docs/machines.md` share this table.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Words.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Count,
    /// A number of bytes, as [`crate::Bytes`] reads it.
    Size,
    /// A number.
    Real,
}

impl FieldType {
    /// Does the field need a source?
    pub fn is_number(self) -> bool {
        matches!(self, FieldType::Count | FieldType::Size | FieldType::Real)
    }

    /// What a person should write.
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

    /// The largest value that is not a slip of the pen.
    pub fn limit(self) -> f64 {
        match self {
            FieldType::Count => 1e6,
            FieldType::Size => (1u64 << 50) as f64,
            _ => 1e12,
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
    /// What it means.
    pub about: &'static str,
}

/// Sections that a machine may lack.
pub const OPTIONAL_SECTIONS: [&str; 5] = ["pm", "cxl", "dram_cache", "link", "dram.power"];

use FieldType::{Choice, Count, Real, Size, Text};

const fn field(key: &'static str, ty: FieldType, unit: &'static str, about: &'static str) -> Field {
    Field {
        key,
        ty,
        unit,
        optional: false,
        zero: false,
        about,
    }
}

const fn or_zero(f: Field) -> Field {
    Field { zero: true, ..f }
}

const fn optional(f: Field) -> Field {
    Field {
        optional: true,
        ..f
    }
}

/// All fields but `[sources]`, in the order of a file.
pub const FIELDS: &[Field] = &[
    field("name", Text, "", "name, the same as the file's"),
    field(
        "about",
        Text,
        "",
        "one line: what it is and where it was used",
    ),
    field("sockets", Count, "", "sockets, all alike"),
    field(
        "mode",
        Choice(&["flat", "memory-mode"]),
        "",
        "each kind of memory a NUMA node, or DRAM as the cache of the slow memory",
    ),
    field("core.per_socket", Count, "", "cores per socket"),
    field("core.threads", Count, "", "hardware threads per core"),
    field("core.ghz", Real, "GHz", "clock under load"),
    field(
        "core.ipc",
        Real,
        "instructions per cycle",
        "while no access misses L1",
    ),
    field(
        "core.reorder_buffer",
        Count,
        "instructions",
        "how far the core runs ahead of a missing load",
    ),
    field(
        "core.fill_buffers",
        Count,
        "lines",
        "that may miss L1 at once",
    ),
    field(
        "core.super_queue",
        Count,
        "lines",
        "in flight beyond L2, prefetches included",
    ),
    field(
        "core.store_buffer",
        Count,
        "stores",
        "that may wait to enter L1",
    ),
    field("tlb.l1_entries", Count, "", "first-level entries"),
    field(
        "tlb.l2_entries",
        Count,
        "",
        "second-level entries, shared by 4 KiB and 2 MiB pages",
    ),
    field("tlb.l2_ways", Count, "", "ways of the second level"),
    field(
        "tlb.l2_ns",
        Real,
        "ns",
        "first-level miss that hits the second level",
    ),
    field(
        "tlb.walk_4k_ns",
        Real,
        "ns",
        "page walk, 4 KiB pages, upper levels cached",
    ),
    field(
        "tlb.walk_2m_ns",
        Real,
        "ns",
        "page walk, 2 MiB pages, upper levels cached",
    ),
    field(
        "l1.bytes",
        Size,
        "bytes",
        "capacity of one core's L1 data cache",
    ),
    field("l1.ways", Count, "", "ways"),
    field("l1.ns", Real, "ns", "load-to-use latency of a hit"),
    field("l2.bytes", Size, "bytes", "capacity of one core's L2"),
    field("l2.ways", Count, "", "ways"),
    field("l2.ns", Real, "ns", "load-to-use latency of a hit"),
    field(
        "llc.bytes",
        Size,
        "bytes",
        "capacity of one socket's last level",
    ),
    field("llc.ways", Count, "", "ways"),
    field("llc.ns", Real, "ns", "load-to-use latency of a hit"),
    or_zero(field(
        "prefetch.streams",
        Count,
        "",
        "streams that one core's prefetcher tracks; 0 switches it off",
    )),
    or_zero(field(
        "prefetch.distance",
        Count,
        "lines",
        "how far ahead of the program",
    )),
    field(
        "controller.overhead_ns",
        Real,
        "ns",
        "from the LLC's miss to the channel and back, without the memory",
    ),
    field(
        "controller.read_queue",
        Count,
        "entries",
        "read queue of one channel, shared by DRAM and PM",
    ),
    field(
        "controller.write_queue",
        Count,
        "entries",
        "write queue of one channel, shared by DRAM and PM",
    ),
    field(
        "controller.drain_high",
        Count,
        "entries",
        "writes are drained in earnest above this fill",
    ),
    or_zero(field(
        "controller.drain_low",
        Count,
        "entries",
        "and until this fill",
    )),
    field(
        "dram.channels",
        Count,
        "",
        "populated channels of one socket",
    ),
    field("dram.dimms_per_channel", Count, "", "DIMMs on one channel"),
    field("dram.dimm_bytes", Size, "bytes", "capacity of one DIMM"),
    field("dram.ranks", Count, "", "ranks of one DIMM"),
    field("dram.banks", Count, "", "banks of one rank"),
    field(
        "dram.row_bytes",
        Size,
        "bytes",
        "row of one rank across its devices",
    ),
    or_zero(field(
        "dram.interleave_bytes",
        Size,
        "bytes",
        "on one channel before the next; 0 fills each DIMM before the next",
    )),
    field("dram.mts", Count, "MT/s", "transfers per second, of 8 B"),
    field("dram.cl_ns", Real, "ns", "column access, CL"),
    field("dram.rcd_ns", Real, "ns", "row to column, tRCD"),
    field("dram.rp_ns", Real, "ns", "precharge, tRP"),
    field("dram.ras_ns", Real, "ns", "row active at least, tRAS"),
    field(
        "dram.faw_ns",
        Real,
        "ns",
        "four activates of one rank within, tFAW",
    ),
    field(
        "dram.turnaround_ns",
        Real,
        "ns",
        "bus from reads to writes and back, both turns",
    ),
    field("dram.rfc_ns", Real, "ns", "refresh of one rank, tRFC"),
    field("dram.refi_ns", Real, "ns", "refresh interval, tREFI"),
    field(
        "dram.powerdown_after_ns",
        Real,
        "ns",
        "an idle rank enters power-down after",
    ),
    field(
        "dram.powerdown_exit_ns",
        Real,
        "ns",
        "leaving power-down, tXP",
    ),
    field(
        "dram.selfrefresh_after_ns",
        Real,
        "ns",
        "an idle rank enters self-refresh after",
    ),
    field(
        "dram.selfrefresh_exit_ns",
        Real,
        "ns",
        "leaving self-refresh, tXS",
    ),
    field("dram.power.vdd", Real, "V", "supply"),
    field(
        "dram.power.devices",
        Count,
        "",
        "devices of one rank, ECC included",
    ),
    field(
        "dram.power.idd0_ma",
        Real,
        "mA",
        "one bank activate-precharge",
    ),
    field("dram.power.idd2n_ma", Real, "mA", "precharge stand-by"),
    field("dram.power.idd2p_ma", Real, "mA", "precharge power-down"),
    field("dram.power.idd3n_ma", Real, "mA", "active stand-by"),
    field("dram.power.idd3p_ma", Real, "mA", "active power-down"),
    field("dram.power.idd4r_ma", Real, "mA", "burst read"),
    field("dram.power.idd4w_ma", Real, "mA", "burst write"),
    field("dram.power.idd5_ma", Real, "mA", "burst refresh"),
    field("dram.power.idd6_ma", Real, "mA", "self-refresh"),
    field(
        "pm.dimms",
        Count,
        "",
        "PM DIMMs of one socket, one per channel",
    ),
    field("pm.dimm_bytes", Size, "bytes", "capacity of one DIMM"),
    or_zero(field(
        "pm.interleave_bytes",
        Size,
        "bytes",
        "on one DIMM before the next; 0 switches interleaving off",
    )),
    field("pm.line_bytes", Size, "bytes", "media line"),
    field(
        "pm.buffer_bytes",
        Size,
        "bytes",
        "write-combining buffer in the DIMM",
    ),
    field(
        "pm.buffer_ns",
        Real,
        "ns",
        "a read that hits the DIMM's buffer, from the channel and back",
    ),
    field(
        "pm.media_read_ns",
        Real,
        "ns",
        "reading a media line into the buffer, on top",
    ),
    field(
        "pm.media_read_gbps",
        Real,
        "GB/s",
        "media read bandwidth of one DIMM",
    ),
    field(
        "pm.media_write_gbps",
        Real,
        "GB/s",
        "media write bandwidth of one DIMM",
    ),
    optional(field("pm.read_nj", Real, "nJ", "reading one media line")),
    optional(field("pm.write_nj", Real, "nJ", "writing one media line")),
    optional(field("pm.idle_w", Real, "W", "an idle DIMM")),
    field(
        "cxl.bytes",
        Size,
        "bytes",
        "capacity of one socket's expander",
    ),
    field(
        "cxl.link_ns",
        Real,
        "ns",
        "link and device controllers, there and back, without the DRAM",
    ),
    field("cxl.read_gbps", Real, "GB/s", "payload towards the host"),
    field("cxl.write_gbps", Real, "GB/s", "payload towards the device"),
    field("cxl.channels", Count, "", "DRAM channels of the device"),
    field("cxl.mts", Count, "MT/s", "their transfers per second"),
    field(
        "cxl.queue",
        Count,
        "requests",
        "that the device takes at once",
    ),
    field(
        "dram_cache.bytes",
        Size,
        "bytes",
        "DRAM of one socket that is usable as a cache",
    ),
    field(
        "dram_cache.ways",
        Count,
        "",
        "ways; 1 is direct-mapped, as hardware is",
    ),
    field(
        "link.ns",
        Real,
        "ns",
        "added to a remote access, there and back",
    ),
    field("link.gbps", Real, "GB/s", "bandwidth in each direction"),
    field(
        "os.fault_ns",
        Real,
        "ns",
        "a minor page fault without zeroing",
    ),
    field(
        "os.sample_ns",
        Real,
        "ns",
        "one event sample, its share of the interrupt",
    ),
    field(
        "os.remap_ns",
        Real,
        "ns",
        "page-table update and book-keeping of one page move",
    ),
    field(
        "os.shootdown_ns",
        Real,
        "ns",
        "one TLB shoot-down, on every core that runs the program",
    ),
    field(
        "os.slice_ns",
        Real,
        "ns",
        "time slice when cores are shared",
    ),
];

/// The field with this dotted key.
pub fn find(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|f| f.key == key)
}

/// Is this dotted key a section?
pub fn is_section(key: &str) -> bool {
    FIELDS.iter().any(|f| {
        f.key
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// The known key nearest to a mistyped one, if one is near.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|k| (distance(word, k), k))
        .filter(|&(d, k)| d <= 1 + k.len() / 4)
        .min()
        .map(|(_, k)| k)
}

/// Levenshtein's distance of two short words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let next = (diagonal + usize::from(ca != cb))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
