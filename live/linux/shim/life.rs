//! From the start of the process to its end.

use crate::config::Config;
use crate::place::pagemap::frames_readable;
use crate::place::sys;
use crate::report;
use crate::state::{STATE, State};
use crate::{big, growth, line};
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> i32;
    fn atexit(function: extern "C" fn()) -> i32;
}

/// Runs before the program's own code.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    let config = match Config::from_environment() {
        Ok(Some(config)) => config,
        Ok(None) => return,
        Err(why) => return eprintln!("varve: pages are not placed: {why}"),
    };
    let report_path = config.report.clone();
    let threshold = config.threshold;
    if let Some(report) = &report_path {
        line::begin(report);
    }
    // Without frame numbers nothing can be placed: say so once, in the report, and pass everything on.
    let state = frames_readable().and_then(|()| State::new(config));
    let state = match state {
        Ok(state) => state,
        Err(why) => {
            report::idle(report_path.as_deref(), &why.to_string());
            return;
        }
    };
    let Some(mut guard) = STATE.lock() else {
        return;
    };
    let state = guard.insert(state);
    growth::place_zeroed_data(state);
    growth::start(state);
    drop(guard);
    crate::lazy::start();
    big::start(threshold);
    // SAFETY: plain functions without arguments.
    unsafe {
        pthread_atfork(
            Some(before_fork),
            Some(after_fork_in_parent),
            Some(after_fork_in_child),
        );
        atexit(finish);
    }
}

unsafe extern "C" fn before_fork() {
    STATE.hold();
}

unsafe extern "C" fn after_fork_in_parent() {
    // SAFETY: this thread took it in `before_fork`.
    unsafe { STATE.release() };
}

unsafe extern "C" fn after_fork_in_child() {
    // SAFETY: the forking thread took it, and the child goes on as that thread.
    unsafe { STATE.release() };
    line::after_fork();
    if let Some(mut guard) = STATE.lock()
        && let Some(state) = guard.as_mut()
    {
        state.after_fork();
        crate::lazy::after_fork(state);
        growth::after_fork(state);
    }
}

/// How long a process that ends waits for the run to read its counts.
const WAIT: Duration = Duration::from_secs(1);

/// Lets the parent read the counts, writes the report, and releases the counts. The second call does nothing.
extern "C" fn finish() {
    let Some(mut guard) = STATE.lock() else {
        return;
    };
    // The child of a `vfork` ends on its parent's state, which goes on.
    if guard.as_ref().is_none_or(|s| s.pid != std::process::id()) {
        return;
    }
    let Some(mut state) = guard.take() else {
        return;
    };
    drop(guard);
    state.trim_pools(0);
    if state.config.run != 0 && state.table().own_pages() > 0 {
        let begun = Instant::now();
        while !state.table().leaving() && begun.elapsed() < WAIT {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    report::write(&mut state);
    state.table().leave();
}

/// `_exit(2)`: many programs end without running exit handlers.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: i32) -> ! {
    finish();
    sys::exit_group(status)
}

/// `_Exit(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: i32) -> ! {
    finish();
    sys::exit_group(status)
}
