//! Sockets: there are none, and nothing gives a program one.

#![allow(clippy::too_many_arguments)] // as WASI has them

use super::errno::{Errno, Outcome};
use super::guest::Guest;
use crate::host::State;

/// No descriptor is a socket.
fn none(s: &State, fd: u32) -> Outcome {
    s.wasi.files.any(fd)?;
    Err(Errno::NOTSOCK)
}

pub fn sock_accept(_: &mut Guest, s: &mut State, fd: u32, _flags: u32, _accepted: u32) -> Outcome {
    none(s, fd)
}

pub fn sock_recv(
    _: &mut Guest,
    s: &mut State,
    fd: u32,
    _buffers: u32,
    _count: u32,
    _flags: u32,
    _done: u32,
    _out_flags: u32,
) -> Outcome {
    none(s, fd)
}

pub fn sock_send(
    _: &mut Guest,
    s: &mut State,
    fd: u32,
    _buffers: u32,
    _count: u32,
    _flags: u32,
    _done: u32,
) -> Outcome {
    none(s, fd)
}

pub fn sock_shutdown(_: &mut Guest, s: &mut State, fd: u32, _how: u32) -> Outcome {
    none(s, fd)
}
