//! How many objects a sample stands for.

/// Objects that a sample of an object of `size` bytes stands for, where a thread's samples are `interval` bytes apart on
/// average.
///
/// The machine draws the distance to the next sample from an exponential distribution (JEP 331, `threadHeapSampler.cpp`), so
/// samples are a Poisson process over allocated bytes. An object of `s` bytes is hit with probability `1 - exp(-s / interval)`,
/// and its weight is the inverse of that: the estimator of Horvitz and Thompson, without bias whatever the sizes are. Heap
/// profiles of gperftools and of Go are scaled the same way. An interval of 0 samples every object.
///
/// After an object that is larger than the interval, HotSpot draws the next distance a little too short. Such an object weighs
/// nearly 1 itself; those right after it are overestimated, by less than one sample for each large object.
pub fn stands_for(size: u64, interval: u64) -> f64 {
    if interval == 0 {
        return 1.0;
    }
    let intervals = size.max(1) as f64 / interval as f64;
    1.0 / -(-intervals).exp_m1()
}
