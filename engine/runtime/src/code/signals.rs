//! Faults of compiled code become traps.
//!
//! The handler only checks whether the interrupted address belongs to a store that runs on this thread; if so it records the address, and goes on in
//! ordinary code that leaves the activation. Any other fault goes to the handler that was there before.

use crate::arch::Interrupted;
use crate::store::region::Context;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Once;

/// The store that runs on this thread: its context and code.
#[derive(Clone)]
pub(crate) struct Running {
    pub context: *mut Context,
    pub code: Range<usize>,
    /// Frames below this address overflow the stack.
    pub limit: usize,
    /// The part of the stack below its limit, where overflows land.
    pub overflow_stack: usize,
    pub guard: Range<usize>,
}

/// Bytes that are left to the handling of an overflow, whatever runs above it.
const HOST: usize = 512 << 10;

thread_local! {
    static RUNNING: Cell<*const Running> = const { Cell::new(std::ptr::null()) };
}

/// Declares what runs on this thread until the result is dropped.
pub(crate) fn running(what: &Running) -> impl Drop + use<> {
    struct Reset(*const Running);
    impl Drop for Reset {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    Reset(RUNNING.replace(what))
}

const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
static mut PREVIOUS: [std::mem::MaybeUninit<libc::sigaction>; 4] =
    [const { std::mem::MaybeUninit::uninit() }; 4];

/// Installs the handlers, once per process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (i, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: `once`; the handler is async-signal-safe, see there. PREVIOUS is written here only, before the
            // handler that reads it can run.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
                libc::sigemptyset(&mut action.sa_mask);
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &action, &mut old);
                (&raw mut PREVIOUS[i]).write(std::mem::MaybeUninit::new(old));
            }
        }
    });
}

/// Reads thread-local and shared words, writes the context and the interrupted registers: nothing that a signal handler may
/// not do.
unsafe extern "C" fn handler(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    ucontext: *mut libc::c_void,
) {
    // SAFETY: the kernel passes valid pointers; RUNNING is null or points at what `running` was given and still lives.
    unsafe {
        let running = RUNNING.get();
        let mut thread = Interrupted::new(ucontext);
        let pc = thread.pc();
        // A file that cannot be read is no mistake of the program.
        if signal == libc::SIGSEGV || signal == libc::SIGBUS {
            varve_durable::end_if_in_region(signal, (*info).si_addr() as usize);
        }
        if !running.is_null() && (*running).code.contains(&pc) {
            let running = &*running;
            let context = &mut *running.context;
            context.fault_pc = pc;
            context.fault_fp = thread.frame_pointer();
            context.fault_address = if signal == libc::SIGSEGV || signal == libc::SIGBUS {
                (*info).si_addr() as usize
            } else {
                0
            };
            let mut stack = thread.free_stack();
            if stack < running.limit || running.guard.contains(&context.fault_address) {
                // Functions of the host that have called back may be deeper than that.
                let host = running.guard.end + HOST..running.overflow_stack;
                stack = match host.contains(&stack) {
                    true => stack,
                    false => running.overflow_stack,
                };
            }
            let landing = crate::helpers::traps::fault_landing as *const () as usize;
            thread.call(landing, running.context as usize, stack);
            return;
        }
        let Some(i) = SIGNALS.iter().position(|&s| s == signal) else {
            return;
        };
        let previous = (&raw const PREVIOUS[i]).read().assume_init();
        if previous.sa_sigaction == libc::SIG_DFL || previous.sa_sigaction == libc::SIG_IGN {
            // Let it happen again, with its default meaning.
            libc::sigaction(signal, &previous, std::ptr::null_mut());
        } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
            let f: unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(previous.sa_sigaction);
            f(signal, info, ucontext);
        } else {
            let f: unsafe extern "C" fn(libc::c_int) = std::mem::transmute(previous.sa_sigaction);
            f(signal);
        }
    }
}
