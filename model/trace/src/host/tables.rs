//! Answers the plugin, which asks for the unwind table of each file that it meets on a stack.
//!
//! The plugin connects to a socket, writes a path and a line feed, and reads the path of the table's file, or nothing if
//! there can be none.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;

/// A thread that makes tables; it ends when this is dropped.
pub(super) struct Tables {
    path: PathBuf,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tables {
    /// Begins to answer, with files in `folder`.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn serve(folder: &Path) -> io::Result<Tables> {
        let path = folder.join("tables");
        let listener = UnixListener::bind(&path)?;
        let ends = Arc::new(AtomicBool::new(false));
        let (folder, over) = (folder.to_path_buf(), ends.clone());
        let thread = std::thread::spawn(move || {
            let mut known = HashMap::new();
            for stream in listener.incoming() {
                if over.load(SeqCst) {
                    return;
                }
                // a client that has gone away gets no answer
                let _ = stream.and_then(|stream| answer(&stream, &folder, &mut known));
            }
        });
        Ok(Tables {
            path,
            ends,
            thread: Some(thread),
        })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn answer(
    mut stream: &UnixStream,
    folder: &Path,
    known: &mut HashMap<String, Option<PathBuf>>,
) -> io::Result<()> {
    let mut asked = String::new();
    // a client that is stopped in between must not hold up the others for long
    stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
    BufReader::new(stream).read_line(&mut asked)?;
    let path = asked.trim_end_matches('\n');
    if !known.contains_key(path) {
        let file = folder.join(format!("{}.unwind", known.len()));
        let table = varve_symbols::unwind::table_for(Path::new(path)).ok();
        let written = table.filter(|table| std::fs::write(&file, table.bytes()).is_ok());
        known.insert(path.into(), written.map(|_| file));
    }
    let file = known.get(path).and_then(Option::as_ref);
    let file = file.map_or(String::new(), |file| file.display().to_string());
    stream.write_all(format!("{file}\n").as_bytes())
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.ends.store(true, SeqCst);
        // wakes the thread, which then sees that it ends
        if UnixStream::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}
