//! Virtual time: picoseconds in a `u64`, enough for 213 days.

/// A point or span of virtual time, ps.
pub type Ps = u64;

/// Nanoseconds to picoseconds.
pub fn ps(ns: f64) -> Ps {
    (ns * 1000.0).round().max(0.0) as Ps
}

/// The time that `bytes` take at `gbps` GB/s (10^9 B/s), ps.
pub fn transfer(bytes: u64, gbps: f64) -> Ps {
    (bytes as f64 * 1000.0 / gbps).round() as Ps
}
