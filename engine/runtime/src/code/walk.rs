//! Walks over the frames of compiled code by their frame pointers.

use super::map::CodeInfo;
use crate::arch;
use crate::store::Vm;
use crate::store::region::EntryRecord;
use std::sync::Arc;

/// A frame of compiled code.
pub(crate) struct Frame {
    pub fp: usize,
    /// Where it goes on.
    pub pc: usize,
    pub info: Arc<CodeInfo>,
}

/// Frames of the innermost activation, from the one that called out (or was interrupted) to the entry.
///
/// # Safety
/// `fp` and `pc` are of a frame of compiled code of this store that is on the current stack, or was just interrupted.
unsafe fn activation(
    vm: &Vm,
    mut fp: usize,
    mut pc: usize,
    visit: &mut dyn FnMut(Frame) -> bool,
) -> bool {
    let range = vm.code.memory.range();
    while range.contains(&pc) {
        if let Some(info) = vm.code.map.find(pc)
            && !visit(Frame {
                fp,
                pc,
                info: info.clone(),
            })
        {
            return false;
        }
        // SAFETY: `pc` was in compiled code, whose frame this is.
        (fp, pc) = unsafe { arch::caller(fp) };
    }
    true
}

/// Visits the frames of the innermost activation that called out of compiled code, until `visit` says false.
///
/// # Safety
/// Compiled code of this store has called out and waits for the caller.
pub(crate) unsafe fn innermost(vm: &Vm, visit: &mut dyn FnMut(Frame) -> bool) {
    // SAFETY: the exit stub wrote both fields.
    unsafe {
        let context = &*vm.context;
        let pc = arch::return_address(context.exit_sp);
        activation(vm, context.exit_fp, pc, visit);
    }
}

/// Visits the frames of the activation around the innermost one, until `visit` says false.
///
/// # Safety
/// As [`innermost`], and there are two activations.
pub(crate) unsafe fn around(vm: &Vm, visit: &mut dyn FnMut(Frame) -> bool) {
    // SAFETY: the entry saved the exit of the activation before it.
    unsafe {
        let record = &*((*vm.context).entry as *const EntryRecord);
        let pc = arch::return_address(record.exit_sp);
        activation(vm, record.exit_fp, pc, visit);
    }
}

/// Visits the frames of compiled code from one that was interrupted, innermost activation only.
///
/// # Safety
/// A signal handler just wrote the fault fields of the context.
pub(crate) unsafe fn interrupted(vm: &Vm, visit: &mut dyn FnMut(Frame) -> bool) {
    // SAFETY: as this function.
    unsafe {
        let context = &*vm.context;
        activation(vm, context.fault_fp, context.fault_pc, visit);
    }
}

/// Visits the frames of all activations, innermost first.
///
/// # Safety
/// As [`innermost`], or no compiled code is active.
pub(crate) unsafe fn all(vm: &Vm, visit: &mut dyn FnMut(Frame) -> bool) {
    // SAFETY: as this function; each entry saved the exit of the activation before it.
    unsafe {
        let context = &*vm.context;
        let (mut fp, mut sp, mut entry) = (context.exit_fp, context.exit_sp, context.entry);
        while entry != 0 {
            if !activation(vm, fp, arch::return_address(sp), visit) {
                return;
            }
            let record = &*(entry as *const EntryRecord);
            (fp, sp, entry) = (record.exit_fp, record.exit_sp, record.entry);
        }
    }
}
