//! Signals that end programs, while a program of ours runs.

use std::process::Child;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// While it lives, signals that end programs end the run's program and not us, so that its report is still read and
/// its files are removed. The keyboard's (SIGINT, SIGQUIT) reach the program by themselves; the others are passed on.
///
/// Handlers belong to the process: of several runs at a time, the program that was started last gets them.
pub(crate) struct Interrupts([libc::sighandler_t; 4]);

const KEYBOARD: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];
const PASSED_ON: [i32; 2] = [libc::SIGTERM, libc::SIGHUP];

/// The program of the run; 0 before it is started, [`GONE`] when it has ended.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
const GONE: i32 = -1;
/// A signal that came before the program was started; 0 for none.
static EARLY: AtomicI32 = AtomicI32::new(0);

extern "C" fn leave_alone(_: i32) {}

extern "C" fn pass_on(signal: i32) {
    match PROGRAM.load(SeqCst) {
        0 => EARLY.store(signal, SeqCst),
        GONE => {}
        // SAFETY: takes no memory.
        program => _ = unsafe { libc::kill(program, signal) },
    }
}

impl Interrupts {
    pub fn left_to_the_program() -> Interrupts {
        // Handlers, unlike ignoring, are not inherited by the program.
        let handle = |signal, handler: extern "C" fn(i32)| {
            // SAFETY: one handler does nothing and the other makes one system call, which is safe at any instant.
            unsafe { libc::signal(signal, handler as libc::sighandler_t) }
        };
        let [int, quit] = KEYBOARD.map(|signal| handle(signal, leave_alone));
        let [term, hup] = PASSED_ON.map(|signal| handle(signal, pass_on));
        Interrupts([int, quit, term, hup])
    }

    /// From now on signals are passed on to this program.
    pub fn begin(&self, program: &Child) {
        PROGRAM.store(program.id() as i32, SeqCst);
        match EARLY.swap(0, SeqCst) {
            0 => {}
            signal => pass_on(signal),
        }
    }

    /// The program has ended, and its number is another's soon. What is left of the run takes no time worth a signal.
    pub fn end(&self) {
        PROGRAM.store(GONE, SeqCst);
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let signals = KEYBOARD.into_iter().chain(PASSED_ON);
        for (signal, old) in signals.zip(self.0) {
            // SAFETY: the handler that was there before.
            unsafe { libc::signal(signal, old) };
        }
        PROGRAM.store(0, SeqCst);
        EARLY.store(0, SeqCst);
    }
}
