//! `--timeout`: ends a program that takes too long.

use crate::ui::Failure;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use varve_runtime::{Error, Interrupt, TrapKind};

/// The exit code of what was ended so: that of the command `timeout`.
const CODE: u8 = 124;
/// The time that a stopped program has to end. A program that waits for the host does not notice the stop.
const GRACE: Duration = Duration::from_millis(500);

/// A thread that watches the time until this is dropped.
pub struct Timeout {
    line: String,
    stops: Arc<Mutex<Vec<Interrupt>>>,
    _ended: Sender<()>,
}

impl Timeout {
    /// Begins to count, if a time was given.
    pub fn begin(time: Option<Duration>, file: &str) -> Option<Timeout> {
        let time = time?;
        let line = format!("{file}: did not end within --timeout {}", humantime(time));
        let stops = Arc::new(Mutex::new(Vec::<Interrupt>::new()));
        let (ended, end) = mpsc::channel();
        let (told, stopped) = (line.clone(), Arc::clone(&stops));
        thread::spawn(move || {
            if end.recv_timeout(time) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let programs = stopped.lock().unwrap_or_else(PoisonError::into_inner);
            programs.iter().for_each(Interrupt::now);
            let stopping = !programs.is_empty();
            drop(programs);
            if stopping && end.recv_timeout(GRACE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            crate::ui::message!("varve: {told}");
            std::process::exit(CODE.into());
        });
        Some(Timeout {
            line,
            stops,
            _ended: ended,
        })
    }

    /// Has a program stopped in time, so that what it printed, its logs and its region are whole.
    pub fn stops(&self, program: Interrupt) {
        let mut stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.push(program);
    }

    /// The failure of a program that ended with this error because of the time.
    pub fn failure(&self, error: &Error) -> Option<Failure> {
        let Error::Trap(trap) = error else {
            return None;
        };
        (trap.kind == TrapKind::Interrupted).then(|| {
            let place = trap.frames.first();
            let place = place.map(|frame| format!(", {frame}"));
            Failure::Line {
                code: CODE,
                line: format!("{}{}", self.line, place.unwrap_or_default()),
            }
        })
    }
}

/// A time as it is given to the option.
fn humantime(time: Duration) -> String {
    match time.as_millis() {
        ms if ms % 1000 != 0 => format!("{ms}ms"),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms => format!("{}s", ms / 1000),
    }
}
