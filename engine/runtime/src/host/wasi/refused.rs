//! Paths that led out of the program's directories, for messages to the user: the program itself seldom says enough.

use super::Wasi;
use super::errno::Errno;
use super::table::{Directory, Kind};

/// Paths that are kept. Programs try many places for files that they can do without.
const MOST: usize = 64;

/// A path that a program was refused, or that it did not find.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The program's name of the folder that it looked in; empty if that was opened by the program itself.
    pub folder: Vec<u8>,
    /// The path from there, as the program said it.
    pub path: Vec<u8>,
    /// Nothing was there. The path may have been an absolute one: libraries of C take `/a` for `a` in a folder named `.` or `/`.
    pub missing: bool,
}

impl Wasi {
    /// Paths that led out of the directories of the program, and those that it did not find and may have meant otherwise: the
    /// first ones, each once.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Keeps a path that was answered with an error, if the error may mean that it leads elsewhere.
    pub(super) fn refuse(&mut self, fd: u32, path: &[u8], error: Errno) {
        let missing = error == Errno::NOENT;
        if !missing && error != Errno::NOTCAPABLE || self.refused.len() == MOST {
            return;
        }
        let folder = match self.files.any(fd).map(|entry| &entry.kind) {
            Ok(Kind::Directory(Directory {
                preopened: Some(name),
                ..
            })) => name.clone(),
            _ => Vec::new(),
        };
        if missing && !matches!(folder.as_slice(), b"." | b"/") {
            return;
        }
        let refused = Refused {
            folder,
            path: path.to_vec(),
            missing,
        };
        if !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }
}
