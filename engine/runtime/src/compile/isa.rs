//! How Cranelift is set up.

use crate::error::{Error, Result};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use serde::{Deserialize, Serialize};

/// How much work the compiler puts into code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Level {
    /// Quick to compile, with counters.
    Baseline,
    /// Quick to run: inlined, by the counters.
    Optimizing,
}

/// The code generator for this processor.
///
/// # Errors
/// Where Cranelift does not know the processor.
pub(crate) fn isa(level: Level) -> Result<OwnedTargetIsa> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) {
        "true"
    } else {
        "false"
    };
    let (level, registers) = match level {
        Level::Baseline => ("none", "single_pass"),
        Level::Optimizing => ("speed", "backtracking"),
    };
    let values = [
        ("opt_level", level),
        ("regalloc_algorithm", registers),
        ("enable_verifier", verify),
        // The walk over frames follows frame pointers.
        ("preserve_frame_pointers", "true"),
        // The heap's base, see `store::region`.
        ("enable_pinned_reg", "true"),
        ("unwind_info", "false"),
        // Functions with more results than registers.
        ("enable_multi_ret_implicit_sret", "true"),
        // The prologue compares with the stack's limit instead.
        ("enable_probestack", "false"),
    ];
    for (name, value) in values {
        flags
            .set(name, value)
            .map_err(|e| Error::Internal(format!("code generator: {name}: {e}")))?;
    }
    let builder =
        cranelift_native::builder().map_err(|e| Error::System(format!("this processor: {e}")))?;
    builder
        .finish(settings::Flags::new(flags))
        .map_err(|e| Error::Internal(format!("code generator: {e}")))
}
