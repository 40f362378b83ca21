//! Errors of placing pages.

use std::fmt;

/// Why pages could not be placed. The kernel's own pages stay in use whenever this is returned.
#[derive(Debug)]
pub enum PlaceError {
    /// The cache cannot be split into bins; the text says why.
    Geometry(String),
    /// The kernel shows frame numbers as zero.
    Hidden,
    /// More memory than the limits allow would be needed.
    NoMemory(String),
    /// A system call failed: what was tried, and the error.
    System(&'static str, std::io::Error),
    /// The shared load table is unusable; the text names the file and says why.
    Table(String),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Geometry(why) | PlaceError::NoMemory(why) | PlaceError::Table(why) => f.write_str(why),
            PlaceError::Hidden => f.write_str(
                "the kernel hides frame numbers in /proc/PID/pagemap from this process: run as root, or with CAP_SYS_ADMIN as an \
                 ambient capability (see `setpriv --ambient-caps`)",
            ),
            PlaceError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for PlaceError {}
