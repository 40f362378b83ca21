//! Which of perf's events are of memory.

/// What perf makes of each access that Arm's SPE has sampled, besides `memory`: they would count it again.
const REPEATED: [&str; 10] = [
    "l1d-miss",
    "l1d-access",
    "llc-miss",
    "llc-access",
    "tlb-miss",
    "tlb-access",
    "branch-miss",
    "branch",
    "remote-access",
    "instructions",
];

/// What an event is of, as far as its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Loads, or stores, of memory.
    Loads,
    Stores,
    /// Both; `data_src` says which.
    Memory,
    /// Something else, whatever a sample says.
    Other,
    /// Memory if a sample has loads or stores in its `data_src`.
    Unknown,
}

/// `cpu_core/mem-loads,ldlat=30/P`, `mem_load_retired.l3_miss:P`, `ibs_op//`, `arm_spe_0/load_filter=1/u`, `memory`.
pub(super) fn kind(name: &str) -> Kind {
    let base = without_modifiers(name);
    // `kmem:kmalloc` and such of the kernel, and `mem:0x404010:w`, are not of samples
    if REPEATED.contains(&base) || base.contains("mem-loads-aux") || is_of_kernel(base) {
        return Kind::Other;
    }
    if base.starts_with("ibs_op") || base.starts_with("arm_spe") {
        return Kind::Memory;
    }
    if !base.contains("mem") {
        return Kind::Unknown;
    }
    if base.contains("store") {
        return Kind::Stores;
    }
    match base.contains("load") {
        true => Kind::Loads,
        false => Kind::Memory,
    }
}

/// `:P` and `:upp` at the end say when it counts.
fn without_modifiers(name: &str) -> &str {
    let is_modifiers = |text: &str| {
        !text.is_empty() && text.chars().all(|letter| "ukhIGHpPSDWebR".contains(letter))
    };
    match name.rsplit_once(':') {
        Some((base, modifiers)) if is_modifiers(modifiers) => base,
        _ => name,
    }
}

/// `system:event`.
fn is_of_kernel(base: &str) -> bool {
    !base.contains('/') && base.contains(':')
}
