//! Calls that leave compiled code: to the compiler, to the host, to handlers of exceptions.

use super::traps::{leave, raise};
use crate::arch::varve_resume;
use crate::code::walk;
use crate::compile::resume::Why;
use crate::error::Error;
use crate::store::Vm;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Compiles a function on its first call.
///
/// # Safety
/// Called by the lazy stub of this store's code.
pub(super) unsafe extern "C" fn compile(vm: *mut Vm, func: u32) -> *const u8 {
    // SAFETY: as this function.
    unsafe { super::run(vm, |vm| vm.compile(func)) }
}

/// Has the next calls of a function that has become hot go to better code, once there is any.
///
/// # Safety
/// Called by baseline code of this store.
pub(super) unsafe extern "C" fn hot(vm: *mut Vm, func: u32) {
    // SAFETY: as this function.
    unsafe { super::run(vm, |vm| vm.optimize(func)) }
}

/// The code in which an activation goes on whose state is in the buffer.
///
/// # Safety
/// Called by compiled code of this store, with one of its points.
pub(super) unsafe extern "C" fn resume(vm: *mut Vm, point: u32, why: u32, root: u32) -> *const u8 {
    // SAFETY: as this function.
    unsafe { super::run(vm, |vm| vm.continuation(point, Why::from_number(why), root)) }
}

/// Empties the buffer of recorded accesses.
///
/// # Safety
/// Called by compiled code of this store, when the buffer is full.
pub(super) unsafe extern "C" fn tell(vm: *mut Vm) {
    // SAFETY: as this function.
    unsafe {
        super::run(vm, |vm| {
            vm.sample_by_model();
            vm.tell()
        });
    }
}

/// Throws an exception object to the closest handler on the stack, or leaves the activation with it.
///
/// # Safety
/// Called by compiled code of this store; `exception` is an exception object.
pub(super) unsafe extern "C" fn throw(vm: *mut Vm, exception: u32) {
    // SAFETY: as this function.
    unsafe { throw_object(vm, exception) }
}

/// Makes an exception object of a type, with its tag and the one reference that it carries, and throws it.
///
/// # Safety
/// Called by baseline code of this store; the type is of exceptions that carry one reference to an object.
pub(super) unsafe extern "C" fn throw_new(vm: *mut Vm, ty: u32, site: u32, tag: u32, carried: u32) {
    let make = |vm: &mut Vm| {
        let mark = vm.roots.mark();
        let carried = vm.roots.push(carried);
        let exception = vm.new_struct(ty, site, |vm, field| match field {
            0 => tag.into(),
            _ => vm.roots.get(&carried).expect("its scope is open").into(),
        });
        vm.roots.release(mark);
        exception
    };
    // SAFETY: as this function.
    unsafe {
        let exception = super::run(vm, make);
        throw_object(vm, exception)
    }
}

/// As [`throw`].
pub(super) unsafe fn throw_object(vm: *mut Vm, exception: u32) -> ! {
    // SAFETY: compiled code has called out. Frames between here and the handler are compiled code's, which hold nothing
    // that needs dropping; the borrows end before the jumps.
    unsafe {
        let mut found = None;
        walk::innermost(&*vm, &mut |frame| {
            found = frame
                .info
                .handler(frame.pc)
                .map(|h| (frame.fp, h.frame_size, frame.info.start + h.code as usize));
            found.is_none()
        });
        match found {
            Some((fp, size, code)) => varve_resume(
                (*vm).context,
                fp,
                fp - size as usize,
                code,
                exception as u64,
            ),
            None => {
                let error = (*vm).exception_error(exception);
                leave(vm, error)
            }
        }
    }
}

/// Calls a function of the host with its arguments in an array, where the results go too.
///
/// # Safety
/// Called by the glue code of that host function.
pub(super) unsafe extern "C" fn host_call(vm: *mut Vm, func: u32, values: *mut u64) {
    enum Outcome {
        Done,
        Failed(Error),
        Thrown(u32),
    }
    // SAFETY: as this function. No borrow of the store lives while the host runs: it gets the store again.
    let outcome = unsafe {
        let (call, words, mark) = {
            let vm = &mut *vm;
            vm.keep_code_in_time();
            let (call, words) = vm.host_function(func);
            (call, words, vm.roots.mark())
        };
        let values = std::slice::from_raw_parts_mut(values, words);
        let result = catch_unwind(AssertUnwindSafe(|| call(vm, values)));
        let vm = &mut *vm;
        let outcome = match result {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(Error::Exception { exception, tag })) => match vm.roots.get(&exception) {
                Some(raw) => Outcome::Thrown(raw),
                None => Outcome::Failed(Error::usage(format!(
                    "exception of tag {tag} thrown after its scope ended"
                ))),
            },
            Ok(Err(e)) => Outcome::Failed(e),
            Err(panic) => {
                vm.panic = Some(panic);
                Outcome::Failed(Error::Internal("a host function panicked".into()))
            }
        };
        vm.roots.release(mark);
        drop(call);
        outcome
    };
    match outcome {
        Outcome::Done => {}
        // SAFETY: nothing is left to drop here.
        Outcome::Failed(e) => unsafe { raise(vm, e) },
        // SAFETY: as above.
        Outcome::Thrown(e) => unsafe { throw_object(vm, e) },
    }
}
