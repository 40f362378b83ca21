//! Opening an event, and why one is not opened.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

const CLOSE_ON_EXEC: u64 = 8;

/// `struct perf_event_attr`, PERF_ATTR_SIZE_VER1 (72 bytes).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Attributes {
    /// `type`: which device.
    pub kind: u32,
    /// Filled in by [`open`].
    pub size: u32,
    /// See [`super::config`].
    pub config: u64,
    /// A frequency in samples a second, or a period.
    pub period: u64,
    /// The fields of a sample.
    pub sample_type: u64,
    /// The fields that are read of a counter.
    pub read_format: u64,
    /// A word of bits.
    pub flags: u64,
    /// Fill level of the ring at which the reader is woken.
    pub wakeup: u32,
    /// Not used.
    pub breakpoint: u32,
    /// See [`super::config`].
    pub config1: u64,
    /// See [`super::config`].
    pub config2: u64,
}

impl Attributes {
    /// Left out: what the kernel does.
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    /// Left out: what a hypervisor does.
    pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

    /// Of a device, and what it is to count.
    pub fn of(kind: u32, config: [u64; 3]) -> Attributes {
        Attributes {
            kind,
            config: config[0],
            config1: config[1],
            config2: config[2],
            ..Attributes::default()
        }
    }
}

/// Opens an event of a thread (-1: all) on a processor (-1: any), in a group (-1: alone).
///
/// # Errors
/// Those of `perf_event_open(2)`.
pub fn open(
    mut attributes: Attributes,
    thread: i32,
    processor: i32,
    group: i32,
) -> io::Result<OwnedFd> {
    attributes.size = size_of::<Attributes>() as u32;
    // SAFETY: the attributes are as long as they say; the answer is a descriptor of ours, or an error.
    unsafe {
        let file = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            processor,
            group,
            CLOSE_ON_EXEC,
        );
        match file {
            0.. => Ok(OwnedFd::from_raw_fd(file as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Why an event is not opened, in words that say what to do. `level`: the highest of `kernel.perf_event_paranoid` that allows it.
pub fn refused(error: &io::Error, level: i32) -> String {
    let now = || {
        let now = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        now.map_or(String::new(), |l| format!(" (it is {})", l.trim()))
    };
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "not allowed: be root, or set sysctl kernel.perf_event_paranoid={level}{}",
            now()
        ),
        Some(libc::EMFILE) => {
            "too many threads and processors for the limit of open files (ulimit -n)".into()
        }
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "the processor or virtual machine does not have it".into()
        }
        _ => format!("perf_event_open: {error}"),
    }
}
