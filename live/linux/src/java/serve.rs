//! The socket at which agents ask, while the program runs.

use super::decide::{Decided, GenerationPolicy, Talk};
use crate::nodes::Kinds;
use crate::probe::sysfs::{bytes_of, meminfo};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The policy for each virtual machine, and the interval between its decisions.
#[derive(Clone, Copy)]
pub struct Deciding<'d, D> {
    /// Bytes that a program allocates in an interval.
    pub unit: u64,
    /// Makes one for a machine that has begun.
    pub new: &'d (dyn Fn() -> D + Sync),
}

/// Answers agents while `work` is done. Gives what came of both.
///
/// # Errors
/// There can be no socket of that path.
pub(super) fn meanwhile<D: GenerationPolicy, R>(
    path: &Path,
    kinds: &Kinds,
    deciding: Deciding<'_, D>,
    work: impl FnOnce() -> R,
) -> std::io::Result<(R, Vec<Decided<D>>)> {
    let listener = UnixListener::bind(path)?;
    let begun = Instant::now();
    let (is_over, streams) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let decided = Mutex::new(Vec::new());
    let answer = |stream: UnixStream| {
        let talk = Talk::new(kinds, deciding.unit, (deciding.new)());
        let talk = answer(stream, talk, begun);
        locked(&decided).push(talk.decided);
    };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(SeqCst) {
                    break;
                }
                locked(&streams).extend(stream.try_clone());
                scope.spawn(|| answer(stream));
            }
        });
        let result = work();
        is_over.store(true, SeqCst);
        // The listener stops waiting; machines that live on stay as they are. What they have said is still read.
        let _ = UnixStream::connect(path);
        for stream in locked(&streams).iter() {
            let _: std::io::Result<()> = UnixStream::shutdown(stream, Shutdown::Read);
        }
        result
    });
    let decided = decided.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((result, decided))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Talks with an agent until its machine ends.
fn answer<'k, D: GenerationPolicy>(
    stream: UnixStream,
    mut talk: Talk<'k, D>,
    begun: Instant,
) -> Talk<'k, D> {
    let Ok(mut out) = stream.try_clone() else {
        return talk;
    };
    let nodes = talk.kinds().of_tier(0).to_vec();
    let free = || nodes.iter().map(|node| available(&meminfo(*node))).sum();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(answer) = talk.hear(&line, begun.elapsed(), &free)
            && out.write_all(answer.as_bytes()).is_err()
        {
            break;
        }
    }
    talk
}

/// Bytes that a node has for those who ask: free memory, and inactive files in the page cache.
fn available(meminfo: &str) -> u64 {
    bytes_of(meminfo, "MemFree") + bytes_of(meminfo, "Inactive(file)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_has_is_what_is_free_and_files_that_nobody_reads() {
        let said = "Node 0 MemTotal:  24111 kB\nNode 0 MemFree:   1000 kB\nNode 0 Active(file):   7 kB\nNode 0 Inactive(file):  24 kB\n";
        assert_eq!(available(said), 1024 << 10);
    }
}
