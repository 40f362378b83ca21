//! Leaving compiled code: traps and errors.

use super::calls::throw_object;
use crate::arch::{self, varve_leave, varve_resume};
use crate::code::map::CodeInfo;
use crate::code::walk;
use crate::error::{Error, FrameInfo, Trap, TrapKind};
use crate::store::Vm;
use crate::store::region::Context;

/// Frames that a trap keeps.
const MOST_FRAMES: usize = 64;

/// A trap's description of a frame, and of the functions inlined there.
fn frame_info(
    vm: &Vm,
    info: &CodeInfo,
    pc: usize,
    innermost: bool,
) -> impl Iterator<Item = FrameInfo> {
    // A return address belongs to what comes after the call.
    let pc = if innermost { pc } else { pc - 1 };
    let places = info.places(pc).into_iter();
    places.map(|(func, offset)| FrameInfo {
        function: vm.func_name(func),
        offset,
        line: None,
    })
}

/// The frames of the innermost activation, or of the one that had no room while an exception is made of that.
///
/// # Safety
/// Compiled code of this store has called out.
pub(crate) unsafe fn frames(vm: &Vm) -> Vec<FrameInfo> {
    // SAFETY: as this function.
    frames_at(vm, &unsafe { stack(vm) })
}

/// The return addresses of the frames that [`frames`] describes, innermost first. Code stays where it is as long as its
/// store.
///
/// # Safety
/// As [`frames`].
pub(crate) unsafe fn stack(vm: &Vm) -> Box<[usize]> {
    let mut stack = Vec::new();
    let mut note = |f: walk::Frame| {
        stack.push(f.pc);
        stack.len() < MOST_FRAMES
    };
    // SAFETY: as this function; the code that makes an exception is called by an activation.
    unsafe {
        match vm.throwing {
            true => walk::around(vm, &mut note),
            false => walk::innermost(vm, &mut note),
        }
    };
    stack.into()
}

/// The frames of a [`stack`] of this store.
pub(crate) fn frames_at(vm: &Vm, stack: &[usize]) -> Vec<FrameInfo> {
    let frames = stack.iter().filter_map(|&pc| {
        let info = vm.code.map.find(pc)?;
        Some(frame_info(vm, info, pc, false))
    });
    frames.flatten().take(MOST_FRAMES).collect()
}

/// Goes on where the program catches an error, if it can, else leaves the innermost activation with it.
///
/// # Safety
/// Compiled code of this store has called out, and the caller's frame holds nothing to drop.
pub(crate) unsafe fn raise(vm: *mut Vm, error: Error) -> ! {
    // SAFETY: as this function.
    match unsafe { Vm::thrown_for(vm, &error) } {
        Some(exception) => {
            drop(error);
            // SAFETY: as this function.
            unsafe { throw_object(vm, exception) }
        }
        // SAFETY: as this function.
        None => unsafe { leave(vm, error) },
    }
}

/// Leaves the innermost activation with an error; a trap gets the frames that led to it.
///
/// # Safety
/// As [`raise`].
pub(super) unsafe fn leave(vm: *mut Vm, mut error: Error) -> ! {
    // SAFETY: as this function; the borrow ends before the jump.
    let context = unsafe {
        let vm = &mut *vm;
        if let Error::Trap(trap) = &mut error
            && trap.frames.is_empty()
        {
            trap.frames = frames(vm);
        }
        vm.pending = Some(error);
        vm.context
    };
    // SAFETY: as this function.
    unsafe { varve_leave(context, 1) }
}

/// Where the signal handler continues: the fault fields of the context describe the fault.
///
/// # Safety
/// Called by the signal handler's return only.
pub(crate) unsafe extern "C" fn fault_landing(context: *mut Context) -> ! {
    // SAFETY: the handler found this context running on this thread, interrupted in compiled code.
    unsafe {
        let vm = (*context).vm;
        let frame = (*context).fault_fp;
        let (error, is_dropped) = match (*vm).left_out((*context).fault_pc) {
            // The frame is no longer needed: its caller's is below, as if that had called the code.
            Some(Ok(code)) => {
                let (fp, _) = arch::caller(frame);
                let sp = arch::return_slot(frame);
                varve_resume(context, fp, sp, code as usize, 0)
            }
            Some(Err(error)) => (error, true),
            None => (fault(&*vm, &*context), false),
        };
        if is_dropped || overflowed(&error) {
            // Its caller waits for a function that has done nothing yet: as if the caller had called out.
            let (fp, _) = arch::caller(frame);
            (*context).exit_sp = arch::return_slot(frame);
            (*context).exit_fp = fp;
            raise(vm, error)
        }
        (*vm).pending = Some(error);
        varve_leave(context, 1)
    }
}

/// Whether a call had no room on the stack.
fn overflowed(error: &Error) -> bool {
    error
        .trap()
        .is_some_and(|trap| trap.kind == TrapKind::StackOverflow)
}

/// The trap that a fault means.
unsafe fn fault(vm: &Vm, context: &Context) -> Error {
    let pc = context.fault_pc;
    let info = vm.code.map.find(pc);
    let known = info.and_then(|i| i.trap(pc));
    let kind = match known {
        // The stack's limit was raised, which is no overflow.
        Some(TrapKind::StackOverflow) if context.interrupted() => TrapKind::Interrupted,
        _ if vm.stack.guard().contains(&context.fault_address) => TrapKind::StackOverflow,
        Some(kind) => kind,
        None => {
            let place = info.map(|i| (i.func.map(|f| vm.func_name(f)), i.places(pc)));
            return Error::Internal(format!(
                "fault at address {:#x} in {place:?}",
                context.fault_address
            ));
        }
    };
    let mut frames = Vec::new();
    // SAFETY: as `fault_landing`.
    unsafe {
        walk::interrupted(vm, &mut |f| {
            let innermost = frames.is_empty();
            frames.extend(frame_info(vm, &f.info, f.pc, innermost));
            frames.len() < MOST_FRAMES
        })
    };
    frames.truncate(MOST_FRAMES);
    Error::Trap(Box::new(Trap { kind, frames }))
}
