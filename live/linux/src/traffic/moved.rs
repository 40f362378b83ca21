//! Counted traffic.

/// Bytes between memory and the counted programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficBytes {
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

impl TrafficBytes {
    /// Read and written together.
    pub fn sum(self) -> f64 {
        match self {
            TrafficBytes::Sum(bytes) => bytes,
            TrafficBytes::Apart { read, written } => read + written,
        }
    }
}
