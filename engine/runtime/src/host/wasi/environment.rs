//! Arguments, environment, clocks, random bytes.

use super::errno::{Errno, Outcome};
use super::guest::Guest;
use crate::Clock;
use crate::host::State;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

pub fn args_sizes_get(g: &mut Guest, s: &mut State, count: u32, bytes: u32) -> Outcome {
    g.put_sizes(count, bytes, &s.wasi.arguments)
}

pub fn args_get(g: &mut Guest, s: &mut State, list: u32, texts: u32) -> Outcome {
    g.put_texts(list, texts, &s.wasi.arguments)
}

pub fn environ_sizes_get(g: &mut Guest, s: &mut State, count: u32, bytes: u32) -> Outcome {
    g.put_sizes(count, bytes, &s.wasi.environment)
}

pub fn environ_get(g: &mut Guest, s: &mut State, list: u32, texts: u32) -> Outcome {
    g.put_texts(list, texts, &s.wasi.environment)
}

fn clock(id: u32) -> Outcome<ClockId> {
    match id {
        0 => Ok(ClockId::Realtime),
        1 => Ok(ClockId::Monotonic),
        2 => Ok(ClockId::ProcessCPUTime),
        3 => Ok(ClockId::ThreadCPUTime),
        _ => Err(Errno::INVAL),
    }
}

fn nanoseconds(t: Timespec) -> u64 {
    (t.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.tv_nsec as u64)
}

/// A clock's time, ns. All clocks of a program whose time is not the host's show the same.
pub(crate) fn now(clocks: &Clock, id: u32) -> Outcome<u64> {
    let id = match clock(id)? {
        ClockId::Monotonic if clocks.is_processor() => ClockId::ThreadCPUTime,
        id => id,
    };
    if let Some(now) = clocks.virtual_time() {
        return Ok(now.as_nanos() as u64);
    }
    Ok(nanoseconds(clock_gettime(id)))
}

pub fn clock_time_get(
    g: &mut Guest,
    s: &mut State,
    id: u32,
    _precision: u64,
    time: u32,
) -> Outcome {
    g.put_u64(time, now(&s.clock, id)?)
}

pub fn clock_res_get(g: &mut Guest, _: &mut State, id: u32, resolution: u32) -> Outcome {
    g.put_u64(resolution, nanoseconds(clock_getres(clock(id)?)))
}

pub fn random_get(g: &mut Guest, s: &mut State, at: u32, size: u32) -> Outcome {
    s.wasi.random(g.bytes_mut(at, size)?)?;
    Ok(())
}

pub fn sched_yield(_: &mut Guest, _: &mut State) -> Outcome {
    std::thread::yield_now();
    Ok(())
}

/// There are no signals.
pub fn proc_raise(_: &mut Guest, _: &mut State, _signal: u32) -> Outcome {
    Err(Errno::NOTSUP)
}
