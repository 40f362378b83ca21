//! For the recorder: programs for x86-64, wherever it runs.

/// The processor that programs must be for.
pub const PROGRAMS: object::Architecture = object::Architecture::X86_64;

/// Runs them. Not `qemu-x86_64-static`: a static QEMU cannot load plugins.
pub const QEMU: &str = "qemu-x86_64";

/// The processor that QEMU shows to programs: all it can do, but without fast string instructions, which make the C
/// library copy with `rep movsb`. QEMU does those byte by byte, where a real processor moves whole lines.
pub const QEMU_CPU: &str = "max,-erms,-fsrm";

pub use varve_symbols::{CALL_BYTES, ends_in_call};
