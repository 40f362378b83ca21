//! Events between the ops of a thread: memory that is allocated and freed, threads that begin, wait and end.

use super::heap::{Collector, Use};

/// One event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An allocation: `site` is a number in the trace's site table.
    Alloc {
        /// Number of the call site.
        site: u32,
        /// Virtual address of the first byte.
        addr: u64,
        /// Bytes that the program asked for.
        bytes: u64,
    },
    /// The allocation at `addr` is freed.
    Free {
        /// Virtual address of the first byte.
        addr: u64,
    },
    /// Pages from `addr` on are mapped.
    Map {
        /// Virtual address of the first byte.
        addr: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// The range that was mapped just before was asked for by the program itself, rather than by its C library: `site` is
    /// a number in the trace's site table.
    MapSite {
        /// Number of the call site.
        site: u32,
        /// Virtual address of the first byte.
        addr: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// Pages from `addr` on are unmapped.
    Unmap {
        /// Virtual address of the first byte.
        addr: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// The thread begins. It comes after everything that other threads did before `tick`.
    Start {
        /// The thread's place in the order of all threads.
        tick: u64,
    },
    /// The thread returns from a system call that may have waited for actions of others before `tick`.
    Wait {
        /// The thread's place in the order of all threads.
        tick: u64,
    },
    /// The thread has come this far at `tick`.
    Tick {
        /// The thread's place in the order of all threads.
        tick: u64,
    },
    /// The thread, which has just begun, belongs to another process than the first. Addresses of its ops and events differ
    /// from those of the first process in bits 41 to 47.
    Process {
        /// Number of the process, in order of birth; the first, which has no such event, is 0.
        number: u32,
    },
    /// The process of the thread was forked from another one: it has that one's memory, until one of both writes it. It comes
    /// after [`Event::Process`] of its first thread.
    Forked {
        /// Number of the other process.
        parent: u32,
    },
    /// The process of the thread has become another program: of what it had mapped, nothing is left.
    Replaced,
    /// The range that was mapped just before is of an object that other processes may have mapped too: a file, or memory that is
    /// shared with children.
    Shared {
        /// Virtual address of the first byte.
        addr: u64,
        /// Length in bytes.
        bytes: u64,
        /// Number of the object, the same for all that map it.
        object: u64,
        /// Offset in the object of the byte at `addr`.
        offset: u64,
        /// A process that writes a page has its own from then on.
        private: bool,
    },
    /// The program says that memory is hot, or cold, until it says otherwise or frees it.
    Colored {
        /// Virtual address of the first byte.
        addr: u64,
        /// Length in bytes.
        bytes: u64,
        /// Hot rather than cold.
        hot: bool,
    },
    /// A Java virtual machine has started.
    Machine {
        /// Its collector.
        collector: Collector,
        /// Its feature version, such as 17.
        version: u32,
    },
    /// Use of memory of a Java virtual machine, until another such event has a part of it.
    Range {
        /// Its use.
        what: Use,
        /// Virtual address of the first byte.
        addr: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// A Java virtual machine stands still from here on, for a collection or a part of one.
    Pause,
    /// It goes on.
    Resume {
        /// Collections of the young generation in the pause.
        minor: u32,
        /// Collections of everything.
        full: u32,
    },
    /// Pages that the program touched while it was not recorded.
    Touched {
        /// Virtual address of the first byte.
        addr: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// The thread is recorded again after a part of the run that is not. It goes on after everything that other threads did
    /// before `tick`.
    Window {
        /// Which recorded part this is, from 1 on.
        number: u32,
        /// Instructions of the thread that comes first which only warm caches.
        warm: u64,
        /// The thread's place in the order of all threads.
        tick: u64,
    },
    /// The thread ends.
    Exit {
        /// The thread's place in the order of all threads.
        tick: u64,
    },
}

/// An event and its place: before op `at` of its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAt {
    /// Number of ops of the block that come before it.
    pub at: u32,
    /// The event.
    pub event: Event,
}

/// Why coded events cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadEvents;

/// Appends a number in 7-bit groups, lowest first (LEB128).
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn get(bytes: &mut &[u8]) -> Result<u64, BadEvents> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first().ok_or(BadEvents)?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            return Ok(value);
        }
    }
    Err(BadEvents)
}

/// Small for small differences of either sign.
pub(super) fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (((difference as i64) >> 63) as u64)
}

pub(super) fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Appends the coded events. Places and addresses are written as differences.
pub fn encode_events(events: &[EventAt], out: &mut Vec<u8>) {
    let (mut last_at, mut last_addr, mut last_tick) = (0u32, 0u64, 0u64);
    for EventAt { at, event } in events {
        put(out, u64::from(at.wrapping_sub(last_at)));
        last_at = *at;
        let (code, addr, bytes) = match *event {
            Event::Process { number } => {
                out.push(8);
                put(out, u64::from(number));
                continue;
            }
            Event::Machine { collector, version } => {
                out.extend([10, collector as u8]);
                put(out, u64::from(version));
                continue;
            }
            Event::Pause => {
                out.push(12);
                continue;
            }
            Event::Forked { parent } => {
                out.push(16);
                put(out, u64::from(parent));
                continue;
            }
            Event::Replaced => {
                out.push(17);
                continue;
            }
            Event::Resume { minor, full } => {
                out.push(13);
                put(out, u64::from(minor));
                put(out, u64::from(full));
                continue;
            }
            Event::Alloc { addr, bytes, .. } => (0, addr, Some(bytes)),
            Event::Free { addr } => (1, addr, None),
            Event::Map { addr, bytes } => (2, addr, Some(bytes)),
            Event::Unmap { addr, bytes } => (3, addr, Some(bytes)),
            Event::MapSite { addr, bytes, .. } => (9, addr, Some(bytes)),
            Event::Range { addr, bytes, .. } => (11, addr, Some(bytes)),
            Event::Touched { addr, bytes } => (14, addr, Some(bytes)),
            Event::Shared { addr, bytes, .. } => (18, addr, Some(bytes)),
            Event::Colored { addr, bytes, .. } => (19, addr, Some(bytes)),
            Event::Start { tick }
            | Event::Wait { tick }
            | Event::Tick { tick }
            | Event::Window { tick, .. }
            | Event::Exit { tick } => {
                let code = match event {
                    Event::Start { .. } => 4,
                    Event::Wait { .. } => 5,
                    Event::Tick { .. } => 6,
                    Event::Window { .. } => 15,
                    _ => 7,
                };
                out.push(code);
                put(out, zigzag(tick.wrapping_sub(last_tick)));
                last_tick = tick;
                if let Event::Window { number, warm, .. } = event {
                    put(out, u64::from(*number));
                    put(out, *warm);
                }
                continue;
            }
        };
        out.push(code);
        put(out, zigzag(addr.wrapping_sub(last_addr)));
        last_addr = addr;
        if let Some(bytes) = bytes {
            put(out, bytes);
        }
        if let Event::Alloc { site, .. } | Event::MapSite { site, .. } = event {
            put(out, u64::from(*site));
        }
        if let Event::Range { what, .. } = event {
            out.push(*what as u8);
        }
        if let Event::Colored { hot, .. } = event {
            out.push(u8::from(!hot));
        }
        if let Event::Shared {
            object,
            offset,
            private,
            ..
        } = event
        {
            put(out, *object);
            put(out, *offset);
            out.push(u8::from(*private));
        }
    }
}

/// A number of 32 bits.
fn small(bytes: &mut &[u8]) -> Result<u32, BadEvents> {
    u32::try_from(get(bytes)?).map_err(|_| BadEvents)
}

/// One of these, by its code.
fn one_of<T: Copy>(all: &[T], bytes: &mut &[u8]) -> Result<T, BadEvents> {
    let (&code, rest) = bytes.split_first().ok_or(BadEvents)?;
    *bytes = rest;
    all.get(usize::from(code)).copied().ok_or(BadEvents)
}

/// An event that has neither an address nor a tick; none if the code is of another.
fn plain(code: u8, bytes: &mut &[u8]) -> Result<Option<Event>, BadEvents> {
    Ok(Some(match code {
        8 => Event::Process {
            number: small(bytes)?,
        },
        10 => Event::Machine {
            collector: one_of(&Collector::ALL, bytes)?,
            version: small(bytes)?,
        },
        12 => Event::Pause,
        16 => Event::Forked {
            parent: small(bytes)?,
        },
        17 => Event::Replaced,
        13 => Event::Resume {
            minor: small(bytes)?,
            full: small(bytes)?,
        },
        _ => return Ok(None),
    }))
}

/// Reads `count` events; places must be in order and at most `ops`.
pub fn decode_events(mut bytes: &[u8], count: usize, ops: u32) -> Result<Vec<EventAt>, BadEvents> {
    // an event has two bytes at least: a count that cannot be true must not reserve memory
    if count > bytes.len() {
        return Err(BadEvents);
    }
    let mut events = Vec::with_capacity(count);
    let (mut at, mut addr, mut tick) = (0u64, 0u64, 0u64);
    for _ in 0..count {
        at = at
            .checked_add(get(&mut bytes)?)
            .filter(|&at| at <= u64::from(ops))
            .ok_or(BadEvents)?;
        let (&code, rest) = bytes.split_first().ok_or(BadEvents)?;
        bytes = rest;
        if let Some(event) = plain(code, &mut bytes)? {
            events.push(EventAt {
                at: at as u32,
                event,
            });
            continue;
        }
        let difference = unzigzag(get(&mut bytes)?);
        if code < 4 || matches!(code, 9 | 11 | 14 | 18 | 19) {
            addr = addr.wrapping_add(difference);
        } else {
            tick = tick.wrapping_add(difference);
        }
        let event = match code {
            0 | 9 => {
                let length = get(&mut bytes)?;
                let site = small(&mut bytes)?;
                match code {
                    0 => Event::Alloc {
                        site,
                        addr,
                        bytes: length,
                    },
                    _ => Event::MapSite {
                        site,
                        addr,
                        bytes: length,
                    },
                }
            }
            1 => Event::Free { addr },
            2 => Event::Map {
                addr,
                bytes: get(&mut bytes)?,
            },
            3 => Event::Unmap {
                addr,
                bytes: get(&mut bytes)?,
            },
            11 => Event::Range {
                addr,
                bytes: get(&mut bytes)?,
                what: one_of(&Use::ALL, &mut bytes)?,
            },
            18 => Event::Shared {
                addr,
                bytes: get(&mut bytes)?,
                object: get(&mut bytes)?,
                offset: get(&mut bytes)?,
                private: one_of(&[false, true], &mut bytes)?,
            },
            19 => Event::Colored {
                addr,
                bytes: get(&mut bytes)?,
                hot: one_of(&[true, false], &mut bytes)?,
            },
            14 => Event::Touched {
                addr,
                bytes: get(&mut bytes)?,
            },
            15 => Event::Window {
                number: small(&mut bytes)?,
                warm: get(&mut bytes)?,
                tick,
            },
            4 => Event::Start { tick },
            5 => Event::Wait { tick },
            6 => Event::Tick { tick },
            7 => Event::Exit { tick },
            _ => return Err(BadEvents),
        };
        events.push(EventAt {
            at: at as u32,
            event,
        });
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (any::<u32>(), any::<u64>(), any::<u64>())
                .prop_map(|(site, addr, bytes)| Event::Alloc { site, addr, bytes }),
            (any::<u32>(), any::<u64>(), any::<u64>())
                .prop_map(|(site, addr, bytes)| Event::MapSite { site, addr, bytes }),
            any::<u64>().prop_map(|addr| Event::Free { addr }),
            (any::<u64>(), any::<u64>()).prop_map(|(addr, bytes)| Event::Map { addr, bytes }),
            (any::<u64>(), any::<u64>()).prop_map(|(addr, bytes)| Event::Unmap { addr, bytes }),
            any::<u64>().prop_map(|tick| Event::Start { tick }),
            any::<u64>().prop_map(|tick| Event::Wait { tick }),
            any::<u64>().prop_map(|tick| Event::Tick { tick }),
            any::<u64>().prop_map(|tick| Event::Exit { tick }),
            any::<u32>().prop_map(|number| Event::Process { number }),
            any::<u32>().prop_map(|parent| Event::Forked { parent }),
            Just(Event::Replaced),
            any::<(u64, u64, u64, u64, bool)>().prop_map(
                |(addr, bytes, object, offset, private)| {
                    Event::Shared {
                        addr,
                        bytes,
                        object,
                        offset,
                        private,
                    }
                }
            ),
            any::<(u64, u64, bool)>().prop_map(|(addr, bytes, hot)| Event::Colored {
                addr,
                bytes,
                hot
            }),
            (prop::sample::select(&Collector::ALL[..]), any::<u32>())
                .prop_map(|(collector, version)| Event::Machine { collector, version }),
            (
                prop::sample::select(&Use::ALL[..]),
                any::<u64>(),
                any::<u64>()
            )
                .prop_map(|(what, addr, bytes)| Event::Range { what, addr, bytes }),
            Just(Event::Pause),
            (any::<u32>(), any::<u32>()).prop_map(|(minor, full)| Event::Resume { minor, full }),
        ]
    }

    proptest! {
        #[test]
        fn any_events_come_back_as_they_were(mut places in prop::collection::vec(0u32..1000, 0..50), event in any_event()) {
            places.sort_unstable();
            let events: Vec<EventAt> = places.iter().map(|&at| EventAt { at, event: event.clone() }).collect();
            let mut bytes = Vec::new();
            encode_events(&events, &mut bytes);
            prop_assert_eq!(decode_events(&bytes, events.len(), 1000), Ok(events));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), count in 0usize..100) {
            let _ = decode_events(&bytes, count, 10);
        }
    }
}
