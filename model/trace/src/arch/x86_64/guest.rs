//! Numbers of the system calls of recorded programs (arch/x86/entry/syscalls/syscall_64.tbl).

pub const STAT: i64 = 4;
pub const MMAP: i64 = 9;
pub const MPROTECT: i64 = 10;
pub const MUNMAP: i64 = 11;
pub const BRK: i64 = 12;
pub const ACCESS: i64 = 21;
pub const MREMAP: i64 = 25;
pub const MADVISE: i64 = 28;
pub const SHMAT: i64 = 30;
pub const SHMDT: i64 = 67;
pub const CLONE: i64 = 56;
pub const FORK: i64 = 57;
pub const VFORK: i64 = 58;
pub const EXECVE: i64 = 59;
pub const EXIT: i64 = 60;
pub const EXIT_GROUP: i64 = 231;
pub const NEWFSTATAT: i64 = 262;
pub const FACCESSAT: i64 = 269;
pub const EXECVEAT: i64 = 322;
pub const STATX: i64 = 332;
pub const CLONE3: i64 = 435;
pub const FACCESSAT2: i64 = 439;

/// Calls that may wait for something that another thread or the outside does.
pub fn may_wait(call: i64) -> bool {
    // read, write, poll, readv, select, pause, nanosleep, connect, accept, sendto, recvfrom, sendmsg, recvmsg,
    // wait4, flock, rt_sigtimedwait, rt_sigsuspend, futex, clock_nanosleep, epoll_wait, waitid, pselect6, ppoll,
    // epoll_pwait, accept4, recvmmsg
    matches!(
        call,
        0 | 1 | 7 | 19 | 23 | 34 | 35 | 42
            ..=47 | 61 | 73 | 128 | 130 | 202 | 230 | 232 | 247 | 270 | 271 | 281 | 288 | 299
    )
}
