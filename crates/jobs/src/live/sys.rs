//! System calls: on which processors a process runs, moving its pages, ending it.

use std::io;
use varve_live::nodes::Mask;

/// A set of processors as system calls want it.
#[derive(Clone, Copy)]
pub struct Cpus(libc::cpu_set_t);

impl Cpus {
    pub fn of(cpus: &[u32]) -> Cpus {
        // SAFETY: a set of processors is an array of bits; all zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for &cpu in cpus.iter().filter(|c| **c < libc::CPU_SETSIZE as u32) {
            // SAFETY: the number is within the set.
            unsafe { libc::CPU_SET(cpu as usize, &mut set) };
        }
        Cpus(set)
    }
}

/// From now on this process runs on these processors. Allocates nothing.
pub fn run_on(cpus: &Cpus) -> io::Result<()> {
    // SAFETY: the set is read only and as long as stated; process 0 is the caller.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &cpus.0) };
    check(result.into())
}

/// The processors that this process may run on.
pub fn allowed() -> Vec<u32> {
    // SAFETY: all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the stated bytes.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if result != 0 {
        return vec![0];
    }
    (0..libc::CPU_SETSIZE as u32)
        // SAFETY: the number is within the set.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &set) })
        .collect()
}

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

/// Moves all pages of a process from some nodes to others. Pages that could not move are counted.
pub fn migrate(pid: u32, from: &[u32], to: &[u32]) -> io::Result<u64> {
    let (from, to) = (Mask::of(from), Mask::of(to));
    // SAFETY: both masks have as many bits as stated, since the kernel looks at one less, and are read only; pages of another process
    // keep what they hold.
    let result = unsafe {
        libc::syscall(
            libc::SYS_migrate_pages,
            pid,
            from.limit(),
            from.as_ptr(),
            to.as_ptr(),
        )
    };
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
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
