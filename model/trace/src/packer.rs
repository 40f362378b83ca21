//! Codes and compresses blocks on threads of their own, so that recording is not held up by it.

use crate::format::{Columns, EventAt, OpEncoder, encode_events};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use varve_access::Op;

/// More threads than this wait for the one that takes records out of the shared memory.
const MAX_THREADS: usize = 4;

/// Ops and events that become a block: either ops, or runs that are coded already.
#[derive(Default)]
pub(crate) struct Content {
    pub ops: Vec<Op>,
    pub runs: Columns,
    pub events: Vec<EventAt>,
}

/// A block's payload.
pub(crate) struct Packed {
    /// Length before compression.
    pub raw_bytes: u32,
    /// Of which ops.
    pub op_bytes: u32,
    /// The compressed payload.
    pub stored: Vec<u8>,
    /// The content that it was made from, emptied, for its memory.
    pub emptied: Content,
}

struct Job {
    content: Content,
    reply: Sender<Packed>,
}

/// The threads, which end when this is dropped. They start with the first block.
#[derive(Default)]
pub(crate) struct Packer {
    jobs: Option<Sender<Job>>,
    threads: usize,
}

impl Packer {
    /// Starts to pack a block. The packed block comes out of the receiver.
    pub fn pack(&mut self, content: Content) -> Receiver<Packed> {
        let (reply, packed) = channel();
        let jobs = match &mut self.jobs {
            Some(jobs) => jobs,
            none => {
                self.threads = std::thread::available_parallelism()
                    .map_or(1, |cores| cores.get().min(MAX_THREADS));
                none.insert(start(self.threads))
            }
        };
        // threads only end when the sender is gone; if they could not be started, the receiver reports it
        let _ = jobs.send(Job { content, reply });
        packed
    }

    /// Blocks that may be under way before it is better to wait for the first one.
    pub fn capacity(&self) -> usize {
        2 * self.threads + 1
    }
}

fn start(threads: usize) -> Sender<Job> {
    let (sender, receiver) = channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..threads {
        let receiver = Arc::clone(&receiver);
        std::thread::spawn(move || {
            let mut worker = Worker::default();
            loop {
                let job = receiver.lock().map(|jobs| jobs.recv());
                let Ok(Ok(Job { content, reply })) = job else {
                    return;
                };
                // the receiver may have gone after an error
                let _ = reply.send(worker.pack(content));
            }
        });
    }
    sender
}

#[derive(Default)]
struct Worker {
    encoder: OpEncoder,
    raw: Vec<u8>,
}

impl Worker {
    fn pack(&mut self, mut content: Content) -> Packed {
        self.raw.clear();
        if content.runs.are_empty() {
            self.encoder.encode(&content.ops, &mut self.raw);
        } else {
            content.runs.join(&mut self.raw);
        }
        let op_bytes = self.raw.len() as u32;
        encode_events(&content.events, &mut self.raw);
        content.ops.clear();
        content.runs.clear();
        content.events.clear();
        Packed {
            raw_bytes: self.raw.len() as u32,
            op_bytes,
            stored: lz4_flex::block::compress(&self.raw),
            emptied: content,
        }
    }
}
