//! For the ring: one system call (arch/x86/entry/syscalls/syscall_64.tbl).

pub const FUTEX: i64 = 202;
