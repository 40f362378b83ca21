//! System calls: a process group of its own, and ending it.

use std::io;

/// A process group of its own, that dies with its parent. Allocates nothing.
pub fn own_group() -> io::Result<()> {
    // SAFETY: neither call touches memory.
    let (group, death) = unsafe {
        (
            libc::setpgid(0, 0),
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        )
    };
    check(group.into()).and_then(|()| check(death.into()))
}

/// Sends a signal to a process group.
pub fn signal(group: u32, signal: i32) {
    // SAFETY: the call touches no memory. A group that is gone is no error here.
    unsafe { libc::kill(-(group as i32), signal) };
}

fn check(result: i64) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
