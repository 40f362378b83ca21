//! The registers of an interrupted thread, as the kernel shows them to a signal handler.

/// Bytes below the stack pointer that code may use without moving it, and some more.
const RED_ZONE: usize = 256;

/// A thread where a signal has interrupted it.
pub(crate) struct Interrupted<'a> {
    registers: &'a mut [libc::greg_t; 23],
}

impl Interrupted<'_> {
    /// # Safety
    /// `context` is the third argument of a signal handler that does not return before the result is dropped.
    pub unsafe fn new<'a>(context: *mut libc::c_void) -> Interrupted<'a> {
        // SAFETY: the kernel passes a valid one, and no other code reads it.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        Interrupted {
            registers: &mut context.uc_mcontext.gregs,
        }
    }

    /// The instruction that did not end.
    pub fn pc(&self) -> usize {
        self.registers[libc::REG_RIP as usize] as usize
    }

    pub fn frame_pointer(&self) -> usize {
        self.registers[libc::REG_RBP as usize] as usize
    }

    /// An address below which nothing of the stack is in use.
    pub fn free_stack(&self) -> usize {
        self.registers[libc::REG_RSP as usize] as usize - RED_ZONE
    }

    /// Has the thread go on in a function of one argument, which never returns, with a stack that is free below `stack`.
    pub fn call(&mut self, function: usize, argument: usize, stack: usize) {
        self.registers[libc::REG_RDI as usize] = argument as i64;
        // As after a call: the return address would lie at a multiple of 16, less 8.
        self.registers[libc::REG_RSP as usize] = ((stack & !15) - 8) as i64;
        self.registers[libc::REG_RIP as usize] = function as i64;
    }
}
