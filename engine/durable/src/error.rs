//! Errors, each with its remedy.

use std::io;

/// The reason why a region cannot be opened, or an operation on it fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("{path}: {what}: {source}{}", remedy(source))]
    Io {
        /// The region file.
        path: String,
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has the file open.
    #[error("{0}: another process has this region open; wait until it ends, or use another file")]
    Locked(String),
    /// Another process has the file open, and gives no copy of it to inspect.
    #[error(
        "{path}: another process has this region open and gives no copy to look at ({why}); try again when it has ended"
    )]
    InUse {
        /// The region file.
        path: String,
        /// The reason why there is no copy.
        why: String,
    },
    /// The file's name leads to another file, or to none.
    #[error(
        "{0}: the file was removed or replaced while it was open: stores from now on would be lost; everything that was committed is in the old file"
    )]
    Gone(String),
    /// The medium failed before: its contents are unknown.
    #[error(
        "{0}: the medium failed, so nothing more is stored; everything that was committed before is there when the region is opened again"
    )]
    Failed(String),
    /// The file is something else.
    #[error(
        "{0}: this is no region file (it does not begin with VARVEREG); it stays as it is: use another name, or remove it"
    )]
    Foreign(String),
    /// The file was copied while its region was open.
    #[error(
        "{0}: {COPIED}; `varve durable backup` makes consistent copies; --verify opens this one if no damage is found, `varve durable salvage` writes its intact objects into a new region"
    )]
    Copied(String),
    /// There is nothing in the file: it may have held a region before.
    #[error(
        "{path}: this is no region file: it {has}; it stays as it is: if it held a region, put a backup in its place, or remove it to begin anew"
    )]
    Empty {
        /// The region file.
        path: String,
        /// Its contents: no bytes, or only zeroes.
        has: &'static str,
    },
    /// The name leads to something that is no regular file.
    #[error("{path}: this is {is}, and a region is a regular file: use another name")]
    NoFile {
        /// The name.
        path: String,
        /// The kind of file that it is.
        is: &'static str,
    },
    /// The file system has no locks.
    #[error(
        "{path}: its file system locks no files ({why}), so that two programs could change it at once: put it on a local file system"
    )]
    NoLocks {
        /// The region file.
        path: String,
        /// The system's error.
        why: io::Error,
    },
    /// The file is of another version of the format.
    #[error(
        "{path}: the file has version {found} of the format, this program reads {oldest} to {version}: open it with the varve that wrote it",
        oldest = crate::layout::OLDEST,
        version = crate::layout::VERSION
    )]
    Version {
        /// The region file.
        path: String,
        /// Its version.
        found: u32,
    },
    /// The file's contents are inconsistent.
    #[error(
        "{path}: the file is damaged: {what}; `varve durable check` has details, `varve durable salvage` recovers the intact objects"
    )]
    Damaged {
        /// The region file.
        path: String,
        /// The place and the damage.
        what: String,
    },
    /// So much of the file is damaged that nothing of it can be read.
    #[error(
        "{path}: the file is damaged: {what}; nothing in it can be read: put a copy in its place, or remove it"
    )]
    Lost {
        /// The region file.
        path: String,
        /// The place and the damage.
        what: String,
    },
    /// The file is of a program with other types.
    #[error("{path}: the region is of another program: {what}")]
    OtherProgram {
        /// The region file.
        path: String,
        /// The first difference.
        what: String,
    },
    /// No room for an object.
    #[error(
        "{path}: the region is full: no room for {bytes} bytes in the {max} that it may have; `varve durable compact` makes room if there is garbage"
    )]
    Full {
        /// The region file.
        path: String,
        /// Bytes that were asked for.
        bytes: u64,
        /// Most bytes of the region.
        max: u64,
    },
    /// An object that must not survive.
    #[error("an object of type {ty} was to become durable, reached from {from}: {why}")]
    Refused {
        /// Name of the object's type.
        ty: String,
        /// Name of the type of the object that refers to it, or a root.
        from: String,
        /// Why it is refused.
        why: String,
    },
    /// Wrong use by the program.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// Whether there is no room: in the region, in the medium, or in this user's quota.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Full { .. } => true,
            Error::Io { source, .. } => is_full(source),
            _ => false,
        }
    }
}

/// The description of a file in [`Error::Copied`].
pub(crate) const COPIED: &str = "this is a copy of a region that was open or had not been closed, and it may be torn, which checksums need not show";

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The remedy for an error of the system.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; everything that was committed is intact: make room on its file system and run the program again"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; a program stores into its region: have the file system be written to, or copy the region with `varve durable backup`"
        }
        _ => "",
    }
}

/// Whether there is no room in the medium, or none that this user may have.
pub(crate) fn is_full(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded)
}
