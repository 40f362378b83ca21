//! Asks again and again on which nodes the old generation is to be, and moves it there. The answers come from another
//! process, at a socket: `-agentpath:AGENT=...;decide=SOCKET`.
//!
//! ```text
//! agent    machine PID                                                    once
//! agent    came COLLECTIONS ALLOCATED RAN_NS INTERVALS INTERVALS_NS OLD   sums since the machine began, bytes and ns
//! other    stay | move NODES
//! agent    moved BYTES NS ELSEWHERE COLLECTIONS INTERVALS                 after a move; no answer
//! ```

use super::place::{self, Nodes};
use super::progress::{Progress, progress};
use super::{place::Places, reports};
use std::io::{BufRead, BufReader, Result, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// The connection to the deciding process; used by the agent's thread alone.
pub struct Decider {
    out: UnixStream,
    answers: BufReader<UnixStream>,
    told: Option<(Progress, (u64, u64))>,
}

impl Decider {
    /// `None` if no socket is given or no process listens there: then no memory moves.
    pub fn of(places: &Places) -> Option<Decider> {
        let mut out = UnixStream::connect(places.decide.as_ref()?).ok()?;
        writeln!(out, "machine {}", std::process::id()).ok()?;
        let answers = BufReader::new(out.try_clone().ok()?);
        Some(Decider {
            out,
            answers,
            told: None,
        })
    }

    /// Reports the program's progress, and moves the old generation if the answer is a move. At most `old_bytes` bytes
    /// of each of its ranges are in use.
    ///
    /// # Errors
    /// The deciding process has closed the socket.
    pub fn step(&mut self, places: &Places, old_bytes: u64) -> Result<()> {
        let now = (progress(), reports::sums());
        if self.told == Some(now) {
            return Ok(());
        }
        self.told = Some(now);
        let (
            Progress {
                pauses,
                allocated,
                ran_ns,
                old,
            },
            (intervals, nanos),
        ) = now;
        writeln!(
            self.out,
            "came {pauses} {allocated} {ran_ns} {intervals} {nanos} {old}"
        )?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some(nodes) = answer.trim_end().strip_prefix("move ").map(Nodes::parse) else {
            return Ok(());
        };
        let begun = Instant::now();
        let moved = places.move_old(nodes, old_bytes);
        let nanos = begun.elapsed().as_nanos();
        let (place::Moved { bytes, elsewhere }, (intervals, _)) = (moved, reports::sums());
        let pauses = progress().pauses;
        writeln!(
            self.out,
            "moved {bytes} {nanos} {elsewhere} {pauses} {intervals}"
        )
    }
}
