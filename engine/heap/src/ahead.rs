//! Has the system give memory for the next collection while the program runs: the first touch of a large page costs
//! as much as copying thousands of objects, and would be part of a pause.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::layout::CHUNK_SIZE;
use crate::memory::View;

/// A thread that touches chunks. It is started by the first request, and ends with this value, which must not
/// outlive the memory.
#[derive(Default)]
pub(crate) struct Ahead {
    running: Option<(Sender<u32>, JoinHandle<()>)>,
}

impl Ahead {
    /// Whether anything was asked for yet.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Touches chunks, soon. Their content stays as it is.
    pub fn touch(&mut self, memory: View, chunks: &[u32]) {
        if chunks.is_empty() {
            return;
        }
        if self.running.is_none() {
            self.running = start(memory);
        }
        // Without the thread the memory comes when it is needed, and that is all.
        if let Some((requests, _)) = &self.running {
            chunks.iter().for_each(|&chunk| {
                let _ = requests.send(chunk);
            });
        }
    }
}

fn start(memory: View) -> Option<(Sender<u32>, JoinHandle<()>)> {
    let (requests, received) = channel::<u32>();
    let work = move || {
        for chunk in received {
            memory.populate(u64::from(chunk) * CHUNK_SIZE, CHUNK_SIZE);
        }
    };
    let thread = std::thread::Builder::new().name("toucher".into());
    Some((requests, thread.spawn(work).ok()?))
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some((requests, thread)) = self.running.take() {
            drop(requests);
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use crate::memory::Memory;

    /// Whether each page of a chunk is in memory, as the system says.
    fn resident(memory: &Memory, chunk: u64) -> Vec<bool> {
        let pages = (CHUNK_SIZE / 4096) as usize;
        let mut all = vec![0u8; pages];
        let start = memory.base_address() + chunk * CHUNK_SIZE;
        // SAFETY: the range is mapped, and the vector has one byte for each of its pages.
        let failed =
            unsafe { libc::mincore(start as *mut _, CHUNK_SIZE as usize, all.as_mut_ptr()) };
        assert_eq!(failed, 0);
        all.iter().map(|byte| byte & 1 == 1).collect()
    }

    #[test]
    fn chunks_are_in_memory_before_they_are_used_and_keep_what_they_held() {
        let memory = Memory::reserve(4 * CHUNK_SIZE).unwrap();
        memory.write(2 * CHUNK_SIZE + 100, &[7]);
        let mut ahead = Ahead::default();
        ahead.touch(memory.view(), &[1, 2]);
        drop(ahead);
        for chunk in [1, 2] {
            assert!(resident(&memory, chunk).iter().all(|&page| page));
        }
        assert!(resident(&memory, 3).iter().all(|&page| !page));
        let mut byte = [0];
        memory.read(2 * CHUNK_SIZE + 100, &mut byte);
        assert_eq!(byte, [7]);
    }
}
