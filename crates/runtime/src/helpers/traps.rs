//! Leaving compiled code: traps and errors.

use crate::arch::varve_leave;
use crate::code::walk;
use crate::error::{Error, FrameInfo, Trap, TrapKind};
use crate::store::Vm;
use crate::store::region::Context;

/// Frames that a trap keeps.
const MOST_FRAMES: usize = 64;

/// What a trap says of a frame, and of the functions inlined there.
fn frame_info(vm: &Vm, frame: &walk::Frame, innermost: bool) -> impl Iterator<Item = FrameInfo> {
    // A return address belongs to what comes after the call.
    let pc = if innermost { frame.pc } else { frame.pc - 1 };
    let places = frame.info.places(pc).into_iter();
    places.map(|(func, offset)| FrameInfo {
        function: vm.func_name(func),
        offset,
        line: None,
    })
}

/// The frames of the innermost activation.
///
/// # Safety
/// Compiled code of this store has called out.
pub(crate) unsafe fn frames(vm: &Vm) -> Vec<FrameInfo> {
    let mut frames = Vec::new();
    // SAFETY: as this function.
    unsafe {
        walk::innermost(vm, &mut |f| {
            frames.extend(frame_info(vm, &f, false));
            frames.len() < MOST_FRAMES
        })
    };
    frames.truncate(MOST_FRAMES);
    frames
}

/// Leaves the innermost activation with an error; a trap gets the frames that led to it.
///
/// # Safety
/// Compiled code of this store has called out, and the caller's frame holds nothing to drop.
pub(crate) unsafe fn raise(vm: *mut Vm, mut error: Error) -> ! {
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

/// Where the signal handler continues: the fault fields of the context say what happened.
///
/// # Safety
/// Called by the signal handler's return only.
pub(crate) unsafe extern "C" fn fault_landing(context: *mut Context) -> ! {
    // SAFETY: the handler found this context running on this thread, interrupted in compiled code.
    unsafe {
        {
            let vm = &mut *(*context).vm;
            vm.pending = Some(fault(vm, &*context));
        }
        varve_leave(context, 1)
    }
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
            frames.extend(frame_info(vm, &f, innermost));
            frames.len() < MOST_FRAMES
        })
    };
    frames.truncate(MOST_FRAMES);
    Error::Trap(Box::new(Trap { kind, frames }))
}
