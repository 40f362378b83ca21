//! Python while a run goes on: the run is on a thread of its own, without Python's lock; this thread checks for Ctrl-C and reports
//! progress.

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;
use varve_machine::model::Progress;
use varve_run::request::SoFar;

/// Time between two checks of signals and progress.
const LOOK: Duration = Duration::from_millis(50);

/// How far runs are, and whether they are to end.
pub struct Watcher {
    stop: AtomicBool,
    so_far: Mutex<SoFar>,
    until_ns: Option<u64>,
}

impl Watcher {
    /// Watches `runs` runs; each makes `accesses` accesses, or ends at `until_ns`, if that is known.
    pub fn new(runs: usize, accesses: Option<u64>, until_ns: Option<u64>) -> Watcher {
        Watcher {
            stop: AtomicBool::new(false),
            so_far: Mutex::new(SoFar::of_length(runs, accesses)),
            until_ns,
        }
    }

    /// Records the progress of a run by its number; `false` cancels the runs.
    pub fn note(&self, run: usize, progress: Option<&Progress>) -> bool {
        let mut so_far = self.so_far.lock().unwrap_or_else(|e| e.into_inner());
        match progress {
            Some(p) => so_far.note(run, p.accesses, p.now_ns),
            None => so_far.end(run),
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn share(&self) -> (f64, u64) {
        let so_far = self.so_far.lock().unwrap_or_else(|e| e.into_inner());
        (so_far.share(self.until_ns), so_far.accesses())
    }
}

/// Does `work` on another thread. `progress` is called with the share that is done and the accesses that were made, a few times a
/// second, and when all is done.
///
/// # Errors
/// An interrupt, and what `progress` raises: the work has ended then.
pub fn watched<T: Send>(
    py: Python<'_>,
    watcher: &Watcher,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let done: Mutex<Option<std::thread::Result<T>>> = Mutex::new(None);
    let told = Condvar::new();
    let mut failure: Option<PyErr> = None;
    let tell = |share: f64, accesses: u64| match progress {
        Some(call) => call.call1((share, accesses)).map(drop),
        None => Ok(()),
    };
    std::thread::scope(|scope| {
        let (done, told) = (&done, &told);
        scope.spawn(move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            *done.lock().unwrap_or_else(|e| e.into_inner()) = Some(result);
            told.notify_all();
        });
        loop {
            let over = py.detach(|| {
                let done = done.lock().unwrap_or_else(|e| e.into_inner());
                let waited = told.wait_timeout_while(done, LOOK, |done| done.is_none());
                waited.unwrap_or_else(|e| e.into_inner()).0.is_some()
            });
            if failure.is_none() {
                let (share, accesses) = watcher.share();
                let told = py.check_signals().and_then(|()| match over {
                    true => Ok(()),
                    false => tell(share, accesses),
                });
                if let Err(e) = told {
                    watcher.stop.store(true, Ordering::Relaxed);
                    failure = Some(e);
                }
            }
            if over {
                break;
            }
        }
    });
    if let Some(e) = failure {
        return Err(e);
    }
    let result = done.into_inner().unwrap_or_else(|e| e.into_inner());
    match result {
        Some(Ok(result)) => {
            tell(1.0, watcher.share().1)?;
            Ok(result)
        }
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        None => unreachable!("the loop ends once there is a result"),
    }
}

/// A warning, by Python's own means, at the user's line, `calls` Python calls above.
pub fn warn(py: Python<'_>, line: &str, calls: i32) -> PyResult<()> {
    let text = CString::new(line.replace('\0', " "))?;
    let class = py.get_type::<PyRuntimeWarning>();
    PyErr::warn(py, &class, &text, 1 + calls)
}
