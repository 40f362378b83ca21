//! Ordinary files: the system's page cache has every store at once, the medium has it after `fdatasync`.

use super::{Domain, Fence};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Has the system write the file at each fence, or at an interval.
pub struct FileSync {
    file: Arc<File>,
    dirty: Arc<AtomicBool>,
    /// With an interval, the thread and the means to end it.
    timer: Option<(Sender<()>, JoinHandle<()>)>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl FileSync {
    /// With an interval, a thread of its own syncs the file so often while there is something to sync, and fences do nothing.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(file: File, interval: Option<Duration>) -> io::Result<FileSync> {
        let file = Arc::new(file);
        let dirty = Arc::new(AtomicBool::new(false));
        let failed = Arc::new(Mutex::new(None));
        let timer = match interval {
            None => None,
            Some(interval) => {
                let (end, ended) = channel::<()>();
                let (file, dirty, failed) = (file.clone(), dirty.clone(), failed.clone());
                let work = move || {
                    while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                        if dirty.swap(false, Ordering::AcqRel)
                            && let Err(e) = file.sync_data()
                        {
                            *failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(e);
                        }
                    }
                };
                let thread = std::thread::Builder::new().name("region sync".into());
                Some((end, thread.spawn(work)?))
            }
        };
        Ok(FileSync {
            file,
            dirty,
            timer,
            failed,
        })
    }
}

impl Domain for FileSync {
    fn name(&self) -> &'static str {
        "file"
    }

    fn pages_at_a_time(&self) -> u64 {
        // A megabyte is checked in a fraction of the time that a sync takes.
        256
    }

    fn write_back(&mut self, _: *const u8, _: u64) {
        self.dirty.store(true, Ordering::Release);
    }

    fn fence(&mut self, _: Fence) -> io::Result<()> {
        // A crash of this process must see stores in their order; the processor's own order does that.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        if self.timer.is_none() && self.dirty.swap(false, Ordering::AcqRel) {
            return self.file.sync_data();
        }
        if self.timer.is_some()
            && let Some(e) = self.failed.lock().unwrap_or_else(|e| e.into_inner()).take()
        {
            return Err(e);
        }
        Ok(())
    }

    fn commit(&mut self) -> io::Result<()> {
        match self.dirty.swap(false, Ordering::AcqRel) {
            true => self.file.sync_data(),
            false => Ok(()),
        }
    }

    fn uncommitted(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }
}

impl Drop for FileSync {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.timer.take() {
            drop(end);
            let _ = thread.join();
        }
        if self.dirty.load(Ordering::Acquire) {
            let _ = self.file.sync_data();
        }
    }
}
