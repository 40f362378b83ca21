//! The programs: our managed suite for programs that keep nothing, kernels for those that do.

/// A program with its arguments, which make it do its work several times over and say how long each took.
pub struct QuickProgram {
    /// Its name here.
    pub name: &'static str,
    /// Its module's name and bytes.
    pub module: (&'static str, &'static [u8]),
    /// Its arguments, from small to full.
    pub input: [&'static str; 3],
    /// Arguments for runs whose instructions are counted, by an emulator that is fifty times slower: rounds of some ten million instructions. None:
    /// compiling it takes the emulator minutes.
    pub counted: Option<&'static str>,
    /// Part of the coarse version.
    pub quick: bool,
}

macro_rules! module {
    ($name:literal) => {
        (
            concat!($name, ".wasm"),
            include_bytes!(concat!("../../../../programs/dist/", $name, ".wasm")),
        )
    };
}

const fn entry(
    name: &'static str,
    module: (&'static str, &'static [u8]),
    input: [&'static str; 3],
    counted: Option<&'static str>,
    quick: bool,
) -> QuickProgram {
    QuickProgram {
        name,
        module,
        input,
        counted,
        quick,
    }
}

/// Programs without durable objects.
pub const VOLATILE: [QuickProgram; 9] = [
    entry(
        "trees",
        module!("trees"),
        ["6", "13", "15"],
        Some("11"),
        true,
    ),
    entry(
        "maps",
        module!("collections"),
        ["maps 50", "maps 2000", "maps 4000"],
        Some("maps 300"),
        true,
    ),
    entry(
        "linked",
        module!("collections"),
        ["linked 50", "linked 2000", "linked 4000"],
        Some("linked 300"),
        false,
    ),
    entry(
        "mutable",
        module!("collections"),
        ["mutable 50", "mutable 2000", "mutable 4000"],
        Some("mutable 300"),
        false,
    ),
    entry(
        "persistent",
        module!("collections"),
        ["persistent 50", "persistent 2000", "persistent 4000"],
        Some("persistent 300"),
        false,
    ),
    entry(
        "strings",
        module!("strings"),
        ["50", "10000", "20000"],
        None,
        true,
    ),
    entry(
        "richards",
        module!("classics"),
        ["richards 1", "richards 60", "richards 150"],
        Some("richards 3"),
        true,
    ),
    entry(
        "deltablue",
        module!("classics"),
        ["deltablue 10", "deltablue 3000", "deltablue 6000"],
        Some("deltablue 150"),
        true,
    ),
    entry(
        "scimark",
        module!("scimark"),
        ["sparse 1", "all 10", "all 20"],
        Some("sparse 1"),
        false,
    ),
];

/// Programs whose data survive: the paper's kernels. The key-value stores under YCSB go here too.
pub const DURABLE: [QuickProgram; 5] = [
    entry(
        "MArray",
        module!("durable"),
        [
            "marray --operations 50",
            "marray --operations 5000",
            "marray",
        ],
        Some("marray --operations 2000"),
        true,
    ),
    entry(
        "MList",
        module!("durable"),
        ["mlist --operations 50", "mlist --operations 5000", "mlist"],
        Some("mlist --operations 2000"),
        true,
    ),
    entry(
        "FARArray",
        module!("durable"),
        [
            "fararray --operations 50",
            "fararray --operations 5000",
            "fararray",
        ],
        Some("fararray --operations 1000"),
        true,
    ),
    entry(
        "FArray",
        module!("durable"),
        [
            "farray --operations 50",
            "farray --operations 5000",
            "farray",
        ],
        Some("farray --operations 2000"),
        true,
    ),
    entry(
        "FList",
        module!("durable"),
        ["flist --operations 50", "flist --operations 5000", "flist"],
        Some("flist --operations 1000"),
        true,
    ),
];
