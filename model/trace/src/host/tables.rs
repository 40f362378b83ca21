//! Answers the plugin, which asks for the unwind table of each file that it meets on a stack.
//!
//! The plugin connects to a socket, writes a path and a line feed, and reads the path of the table's file, or nothing if
//! there can be none. If the file has an interpreter of Python, two more words follow: where its state is, as the file counts
//! addresses, and its version.

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
    known: &mut HashMap<String, String>,
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
        let said = written.map(|_| format!("{}{}", file.display(), python(Path::new(path))));
        known.insert(path.into(), said.unwrap_or_default());
    }
    let said = known.get(path).map_or("", String::as_str);
    stream.write_all(format!("{said}\n").as_bytes())
}

/// The two words about an interpreter, in hexadecimal digits.
fn python(path: &Path) -> String {
    let found = varve_symbols::cpython(path).ok().flatten();
    found.map_or(String::new(), |found| {
        format!("\t{:x}\t{:x}", found.runtime, found.version)
    })
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
