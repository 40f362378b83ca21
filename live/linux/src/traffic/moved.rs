//! Counted traffic.

/// Bytes between memory and the counted programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moved {
    /// Read and written together.
    Sum(f64),
    /// Read from memory, and written to it.
    Apart {
        /// Read.
        read: f64,
        /// Written.
        written: f64,
    },
}

impl Moved {
    /// Read and written together.
    pub fn sum(self) -> f64 {
        match self {
            Moved::Sum(bytes) => bytes,
            Moved::Apart { read, written } => read + written,
        }
    }
}
