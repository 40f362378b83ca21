//! Error codes of WASI.

/// The error number of a WASI function, or zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(pub u16);

/// The outcome of a WASI function, besides its results in memory.
pub(crate) type Outcome<T = ()> = Result<T, Errno>;

macro_rules! codes {
    ($($name:ident $code:literal)*) => {
        impl Errno {
            $(pub const $name: Errno = Errno($code);)*
        }

        impl From<rustix::io::Errno> for Errno {
            fn from(e: rustix::io::Errno) -> Errno {
                match e {
                    $(rustix::io::Errno::$name => Errno::$name,)*
                    _ => Errno::IO,
                }
            }
        }
    };
}

// Those that files and streams give.
codes! {
    ACCESS 2 AGAIN 6 BADF 8 BUSY 10 DQUOT 19 EXIST 20 FAULT 21 FBIG 22 ILSEQ 25 INTR 27 INVAL 28 IO 29 ISDIR 31 LOOP 32 MFILE 33
    MLINK 34 NAMETOOLONG 37 NFILE 41 NODEV 43 NOENT 44 NOLCK 46 NOMEM 48 NOSPC 51 NOSYS 52 NOTDIR 54 NOTEMPTY 55 NOTSOCK 57 NOTSUP 58
    NOTTY 59 NXIO 60 OVERFLOW 61 PERM 63 PIPE 64 RANGE 68 ROFS 69 SPIPE 70 STALE 72 TIMEDOUT 73 TXTBSY 74 XDEV 75
}

impl Errno {
    /// A right is missing, or a path leads out of the directory: no other system has a name for that.
    pub const NOTCAPABLE: Errno = Errno(76);
}

impl From<std::io::Error> for Errno {
    fn from(e: std::io::Error) -> Errno {
        rustix::io::Errno::from_io_error(&e).map_or(Errno::IO, Errno::from)
    }
}
