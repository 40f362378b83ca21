//! Runs a workload against any store of values.

use super::report::Report;
use super::workload::{Operation, Operations, Workload, key, value};
use crate::cache::{Cache, Stored};
use crate::store::{Meta, Store, StoreError};
use std::io;
use std::time::Instant;

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The workload.
    pub workload: Workload,
    /// Records that are there at first.
    pub records: u64,
    /// Operations.
    pub operations: u64,
    /// Bytes of a value.
    pub value: usize,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
}

/// A store of values.
pub trait Target {
    /// Whether a key has a value; the value is read.
    ///
    /// # Errors
    /// If the target does not answer as it should.
    fn read(&mut self, key: &[u8]) -> io::Result<bool>;

    /// Keeps a value.
    ///
    /// # Errors
    /// If the value is not kept.
    fn write(&mut self, key: &[u8], value: &[u8]) -> io::Result<()>;
}

/// A cache in this process.
pub struct Local<S> {
    /// The cache.
    pub cache: Cache<S>,
    /// Of the values that were read.
    sum: u64,
}

impl<S> Local<S> {
    /// The cache as a target.
    pub fn new(cache: Cache<S>) -> Local<S> {
        Local { cache, sum: 0 }
    }
}

fn failed(e: StoreError) -> io::Error {
    io::Error::other(e)
}

impl<S: Store> Target for Local<S> {
    fn read(&mut self, key: &[u8]) -> io::Result<bool> {
        let found = self.cache.get(key, |_, value| checksum(value));
        let found = found.map_err(failed)?;
        self.sum = self.sum.wrapping_add(found.unwrap_or(0));
        Ok(found.is_some())
    }

    fn write(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        match self
            .cache
            .put(key, Meta::default(), value)
            .map_err(failed)?
            .0
        {
            Stored::Stored => Ok(()),
            other => Err(io::Error::other(format!(
                "a value is not kept ({other:?}): give it more memory"
            ))),
        }
    }
}

/// Reads all of a value.
pub(crate) fn checksum(value: &[u8]) -> u64 {
    let words = value.chunks_exact(8);
    words.fold(0, |sum, word| {
        sum ^ u64::from_le_bytes(std::array::from_fn(|i| word[i]))
    })
}

/// Writes all records for the first time.
///
/// # Errors
/// The target's error.
pub fn load(spec: &Spec, target: &mut impl Target) -> io::Result<Report> {
    let (mut name, mut bytes) = (Vec::new(), Vec::new());
    let mut times = Vec::with_capacity(spec.records as usize);
    let since = Instant::now();
    for record in 0..spec.records {
        key(record, &mut name);
        value(record, 0, spec.value, &mut bytes);
        let began = Instant::now();
        target.write(&name, &bytes)?;
        times.push(nanoseconds(began));
    }
    Ok(Report::new(times, 0, since.elapsed()))
}

/// Runs the workload on records that are there.
///
/// # Errors
/// The target's error.
pub fn run(spec: &Spec, target: &mut impl Target) -> io::Result<Report> {
    let mut operations = Operations::new(spec.workload, spec.records, spec.seed);
    let (mut name, mut bytes) = (Vec::new(), Vec::new());
    let mut times = Vec::with_capacity(spec.operations as usize);
    let mut missed = 0;
    let since = Instant::now();
    for version in 1..=spec.operations {
        let operation = operations.draw();
        let (Operation::Read(record)
        | Operation::Update(record)
        | Operation::Insert(record)
        | Operation::ReadModifyWrite(record)) = operation;
        key(record, &mut name);
        if !matches!(operation, Operation::Read(_)) {
            value(record, version, spec.value, &mut bytes);
        }
        let began = Instant::now();
        if matches!(
            operation,
            Operation::Read(_) | Operation::ReadModifyWrite(_)
        ) {
            missed += u64::from(!target.read(&name)?);
        }
        if !matches!(operation, Operation::Read(_)) {
            target.write(&name, &bytes)?;
        }
        times.push(nanoseconds(began));
    }
    Ok(Report::new(times, missed, since.elapsed()))
}

pub(crate) fn nanoseconds(since: Instant) -> u32 {
    since.elapsed().as_nanos().try_into().unwrap_or(u32::MAX)
}
