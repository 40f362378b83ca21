//! A program of ours while it runs.

use super::interrupts::Interrupts;
use crate::error::LiveError;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A program that was started.
pub(crate) struct Running {
    child: Child,
    begun: Instant,
    interrupts: Option<Interrupts>,
}

/// How a program ended. As long as it lives, signals do not end us: the report is still to be read.
pub(crate) struct Ended {
    pub status: ExitStatus,
    /// Wall-clock time.
    pub seconds: f64,
    _interrupts: Option<Interrupts>,
}

/// Starts a program, waits for it with `wait`, and returns its exit status. Signals that end programs are the program's.
pub(crate) fn run(
    command: Command,
    wait: impl FnOnce(&mut Running) -> io::Result<ExitStatus>,
) -> Result<Ended, LiveError> {
    let interrupts = Interrupts::left_to_the_program();
    let program = PathBuf::from(command.get_program());
    let mut running = Running::start(command, Some(interrupts))?;
    let status = wait(&mut running).map_err(|error| {
        // Its files are there until it has ended.
        let _ = running.wait();
        LiveError::Start { program, error }
    })?;
    Ok(Ended {
        status,
        seconds: running.begun.elapsed().as_secs_f64(),
        _interrupts: running.interrupts,
    })
}

impl Running {
    /// Starts a program. With `interrupts`, signals that end programs are its own from now on.
    pub fn start(
        mut command: Command,
        interrupts: Option<Interrupts>,
    ) -> Result<Running, LiveError> {
        let begun = Instant::now();
        let child = command.spawn().map_err(|error| LiveError::Start {
            program: command.get_program().into(),
            error,
        })?;
        if let Some(interrupts) = &interrupts {
            interrupts.begin(&child);
        }
        Ok(Running {
            child,
            begun,
            interrupts,
        })
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// When it was started.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.let_go();
        }
        Ok(status)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait();
        self.let_go();
        status
    }

    /// Waits for its end, and calls `look` periodically, the first time at once.
    pub fn wait_and(
        &mut self,
        mut look: impl FnMut(&Running) -> io::Result<()>,
    ) -> io::Result<ExitStatus> {
        /// Time between two calls: at first less, since many programs are short.
        const LEAST: Duration = Duration::from_millis(1);
        const MOST: Duration = Duration::from_millis(10);
        loop {
            look(self)?;
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep((self.begun.elapsed() / 8).clamp(LEAST, MOST));
        }
    }

    /// Waits for its end for so long; `None` if it is there still.
    pub fn wait_for(&mut self, time: Duration) -> io::Result<Option<ExitStatus>> {
        /// The end is not to come late.
        const PERIOD: Duration = Duration::from_millis(5);
        let begun = Instant::now();
        while begun.elapsed() < time {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            std::thread::sleep(PERIOD);
        }
        Ok(None)
    }

    /// Asks it to end, if it has not.
    pub fn ask_to_end(&mut self) {
        if let Ok(None) = self.ended() {
            // SAFETY: takes no memory; the child was not waited for, so that its number is its own.
            unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        }
    }

    /// Ends it: it is asked, and after some seconds it is made to.
    pub fn end(&mut self) -> ExitStatus {
        const PATIENCE: Duration = Duration::from_secs(5);
        self.ask_to_end();
        if let Ok(Some(status)) = self.wait_for(PATIENCE) {
            return status;
        }
        let _ = self.child.kill();
        self.wait().unwrap_or(ExitStatus::from_raw(libc::SIGKILL))
    }

    /// It has ended: its number may be another's.
    fn let_go(&self) {
        if let Some(interrupts) = &self.interrupts {
            interrupts.end();
        }
    }
}
