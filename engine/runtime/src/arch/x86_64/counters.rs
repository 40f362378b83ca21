//! Counts targets of calls, in assembly: baseline code calls it without saving anything.

use crate::store::region::TargetCounters;
use std::arch::global_asm;
use std::mem::offset_of;

global_asm!(
    ".globl varve_count_target",
    ".type varve_count_target,@function",
    // rdi counters, esi function; leaves all registers as they are
    "varve_count_target:",
    "cmp [rdi + {targets}], esi",
    "je 20f",
    "cmp [rdi + {targets} + 4], esi",
    "je 21f",
    "cmp [rdi + {targets} + 8], esi",
    "je 22f",
    "cmp [rdi + {targets} + 12], esi",
    "je 23f",
    "cmp dword ptr [rdi + {targets}], 0",
    "je 30f",
    "cmp dword ptr [rdi + {targets} + 4], 0",
    "je 31f",
    "cmp dword ptr [rdi + {targets} + 8], 0",
    "je 32f",
    "cmp dword ptr [rdi + {targets} + 12], 0",
    "je 33f",
    "inc dword ptr [rdi + {others}]",
    "ret",
    "30: mov [rdi + {targets}], esi",
    "20: inc dword ptr [rdi + {hits}]",
    "ret",
    "31: mov [rdi + {targets} + 4], esi",
    "21: inc dword ptr [rdi + {hits} + 4]",
    "ret",
    "32: mov [rdi + {targets} + 8], esi",
    "22: inc dword ptr [rdi + {hits} + 8]",
    "ret",
    "33: mov [rdi + {targets} + 12], esi",
    "23: inc dword ptr [rdi + {hits} + 12]",
    "ret",
    targets = const offset_of!(TargetCounters, targets),
    hits = const offset_of!(TargetCounters, hits),
    others = const offset_of!(TargetCounters, others),
);

unsafe extern "C" {
    /// Counts a call of `func` at `counters`. Changes no register.
    pub(crate) fn varve_count_target(counters: *mut TargetCounters, func: u32);
}
