//! Full heaps and full stacks, as exceptions that programs can catch.
//!
//! A language's exceptions are made by its own code. So a module that wants to catch these exports functions that throw them, without
//! parameters and results:
//!
//! | export | called when |
//! |---|---|
//! | `varve.outOfMemory` | an object has no room after everything was collected |
//! | `varve.stackOverflow` | a call has no room on the stack |
//!
//! Their exceptions are thrown where room was missing. They run on a stretch of the stack and in a stretch of the heap that are kept for
//! them. Without such a function, or if it does anything but throw, the program ends with the trap.

use super::Vm;
use crate::error::{Error, TrapKind};
use crate::extern_::ExternId;
use crate::types::FuncType;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The export that throws for a trap, if programs can catch that.
fn thrower(kind: TrapKind) -> Option<&'static str> {
    match kind {
        TrapKind::OutOfMemory => Some("varve.outOfMemory"),
        TrapKind::StackOverflow => Some("varve.stackOverflow"),
        _ => None,
    }
}

impl Vm {
    /// The function of the program that throws an exception for an error of the code that called out.
    fn thrower(&self, error: &Error) -> Option<u32> {
        let name = thrower(error.trap()?.kind)?;
        // The throwing function may itself find no room.
        if !self.engine.config().throw_exhaustion || self.throwing {
            return None;
        }
        let ExternId::Func(id) = self.export(self.calling_instance()?, name)?.id else {
            return None;
        };
        let plain = |ty: &FuncType| ty.params.is_empty() && ty.results.is_empty();
        self.with_func_type(id, plain).then_some(id)
    }

    /// Opens the reserve for the throwing function, or closes it again. Returns whether that was possible: not if the heap's reserve is in use, or
    /// another thread stops the program.
    fn lend(&mut self, open: bool) -> bool {
        let (usual, lent) = (self.stack.limit(), self.stack.last_limit());
        let (from, to) = match open {
            true => (usual, lent),
            false => (lent, usual),
        };
        let room = self.with_heap(|heap, mutator, _| heap.lend(mutator, open));
        // SAFETY: the context lives as long as the store; others write this word as an atomic too.
        let limit = unsafe { AtomicUsize::from_ptr(&raw mut (*self.context).stack_limit) };
        // If an interrupt has raised the limit, it stays raised.
        let swapped = limit.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        self.throwing = open;
        room && swapped.is_ok()
    }

    /// The exception that the program throws for an error, if it does.
    ///
    /// # Safety
    /// Compiled code of this store has called out, or was interrupted and is described as if it had. No code uses the store but through `vm`.
    pub(crate) unsafe fn thrown_for(vm: *mut Vm, error: &Error) -> Option<u32> {
        // SAFETY: as this function; the borrow ends before code runs.
        let (func, mark, ready) = unsafe {
            let vm = &mut *vm;
            let func = vm.thrower(error)?;
            (func, vm.roots.mark(), vm.lend(true))
        };
        // SAFETY: as this function.
        let call = || unsafe { Vm::call(vm, func, &mut []) };
        let outcome = match ready {
            true => catch_unwind(AssertUnwindSafe(call)),
            false => Ok(Ok(())),
        };
        // SAFETY: as above.
        let vm = unsafe { &mut *vm };
        vm.lend(false);
        let thrown = match outcome {
            Ok(Err(Error::Exception { exception, .. })) => vm.roots.get(&exception),
            Ok(_) => None,
            // Of a function of the host. It goes on once compiled code has been left.
            Err(panic) => {
                vm.panic = Some(panic);
                None
            }
        };
        vm.roots.release(mark);
        thrown
    }
}
