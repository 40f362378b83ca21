//! Waits: for a time, for something to read, or for whichever comes first.

use super::environment::now;
use super::errno::{Errno, Outcome};
use super::guest::{Guest, u32_at, u64_at};
use super::table::{Kind, rights};
use crate::Clock;
use crate::host::State;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Subscriptions of one call: more than all descriptors that a program may have, for both directions.
const MOST_SUBSCRIPTIONS: u32 = 4096;
const SUBSCRIPTION_BYTES: u32 = 48;
const EVENT_BYTES: u32 = 32;
const CLOCK: u8 = 0;
const READ: u8 = 1;
const WRITE: u8 = 2;
const ABSOLUTE: u8 = 1;
const HANGUP: u16 = 1;

struct Event {
    user: u64,
    kind: u8,
    error: u16,
    /// Bytes that can be read or written.
    bytes: u64,
    flags: u16,
}

/// A subscription to wait for.
enum Wait<'a> {
    Time(Duration),
    Host(BorrowedFd<'a>, u8),
    /// Nothing: it has happened, or never can.
    Done(Outcome),
}

/// The numbers of a subscription: the caller's own, its kind, and its condition.
fn wait<'a>(of: &[u8], s: &'a State) -> Outcome<(u64, u8, Wait<'a>)> {
    let (user, kind) = (u64_at(of, 0), of[8]);
    let wait = match kind {
        CLOCK => match now(&s.clock, u32_at(of, 16)) {
            Ok(now) if of[40] & ABSOLUTE != 0 => {
                Wait::Time(Duration::from_nanos(u64_at(of, 24).saturating_sub(now)))
            }
            Ok(_) => Wait::Time(Duration::from_nanos(u64_at(of, 24))),
            Err(e) => Wait::Done(Err(e)),
        },
        READ | WRITE => match s.wasi.files.get(u32_at(of, 16), rights::POLL) {
            Err(e) => Wait::Done(Err(e)),
            Ok(entry) => match &entry.kind {
                Kind::File(f) => Wait::Host(f.as_fd(), kind),
                Kind::Input if kind == READ && s.console.input.is_inherited() => {
                    Wait::Host(rustix::stdio::stdin(), kind)
                }
                Kind::Directory(_) => Wait::Done(Err(Errno::BADF)),
                Kind::Input | Kind::Output | Kind::Error => Wait::Done(Ok(())),
            },
        },
        _ => return Err(Errno::INVAL),
    };
    Ok((user, kind, wait))
}

pub fn poll_oneoff(
    g: &mut Guest,
    s: &mut State,
    list: u32,
    events: u32,
    count: u32,
    done: u32,
) -> Outcome {
    if count == 0 {
        return Err(Errno::INVAL);
    }
    g.check(done, 4)?;
    let size = count.checked_mul(EVENT_BYTES).ok_or(Errno::FAULT)?;
    g.check(events, size)?;
    let size = count.checked_mul(SUBSCRIPTION_BYTES).ok_or(Errno::FAULT)?;
    let list = g.bytes(list, size)?;
    if count > MOST_SUBSCRIPTIONS {
        return Err(Errno::INVAL);
    }
    let waits = list
        .chunks_exact(SUBSCRIPTION_BYTES as usize)
        .map(|of| wait(of, s))
        .collect::<Outcome<Vec<_>>>()?;
    let happened = until_first(&s.clock, &waits)?;

    let mut bytes = Vec::with_capacity(happened.len() * EVENT_BYTES as usize);
    for e in &happened {
        bytes.extend_from_slice(&e.user.to_le_bytes());
        bytes.extend_from_slice(&e.error.to_le_bytes());
        bytes.extend_from_slice(&[e.kind, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&e.bytes.to_le_bytes());
        bytes.extend_from_slice(&e.flags.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
    }
    g.put(events, &bytes)?;
    g.put_u32(done, happened.len() as u32)
}

/// Waits until something of the list has happened; all that has then.
fn until_first(clock: &Clock, waits: &[(u64, u8, Wait)]) -> Outcome<Vec<Event>> {
    let start = Instant::now();
    let mut files: Vec<PollFd> = Vec::new();
    let mut most: Option<Duration> = None;
    for (_, _, wait) in waits {
        match wait {
            Wait::Time(t) => most = Some(most.map_or(*t, |m| m.min(*t))),
            Wait::Done(_) => most = Some(Duration::ZERO),
            Wait::Host(fd, kind) => {
                let flag = if *kind == READ {
                    PollFlags::IN
                } else {
                    PollFlags::OUT
                };
                files.push(PollFd::from_borrowed_fd(*fd, flag));
            }
        }
    }
    // A program sleeps by the clock that it sees.
    let slept = most.filter(|&time| files.is_empty() && clock.sleep(time));
    while slept.is_none() {
        // A time too far away for the host means forever.
        let left = most.map(|m| m.saturating_sub(start.elapsed()));
        let left = left.and_then(|l| Timespec::try_from(l).ok());
        match poll(&mut files, left.as_ref()) {
            Ok(0) if most.is_none_or(|m| start.elapsed() < m) => {}
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let elapsed = slept.unwrap_or_else(|| start.elapsed());
    let mut polled = files.iter();
    let mut happened = Vec::new();
    for (user, kind, wait) in waits {
        let event = |outcome: Outcome, bytes, flags| Event {
            user: *user,
            kind: *kind,
            error: outcome.err().map_or(0, |e| e.0),
            bytes,
            flags,
        };
        match wait {
            Wait::Time(t) if *t <= elapsed => happened.push(event(Ok(()), 0, 0)),
            Wait::Time(_) => {}
            Wait::Done(outcome) => happened.push(event(*outcome, 0, 0)),
            Wait::Host(fd, _) => {
                let seen = polled.next().map_or(PollFlags::empty(), PollFd::revents);
                if !seen.is_empty() {
                    let hangup = if seen.contains(PollFlags::HUP) {
                        HANGUP
                    } else {
                        0
                    };
                    // Devices that cannot say have nothing known to read.
                    let bytes = if *kind == READ {
                        rustix::io::ioctl_fionread(fd).unwrap_or(0)
                    } else {
                        0
                    };
                    happened.push(event(Ok(()), bytes, hangup));
                }
            }
        }
    }
    Ok(happened)
}
