//! Read-only access to a region's bytes: from its file, or from the process that has it open.

use crate::error::{Error, Result};
use crate::header::Commit;
use crate::image::Image;
use crate::name::{self, share};
use crate::transfer;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

pub(crate) const CANNOT_MAP: &str = "the region file cannot be mapped";

/// A source of a region's bytes that no process changes meanwhile.
pub(crate) struct Source {
    file: File,
    /// Whether no process has it open: then none can open it while this lives.
    pub free: bool,
}

impl Source {
    pub fn of(path: &Path) -> Result<Source> {
        let (file, free) = share(path)?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(io_error(&path.display().to_string(), CANNOT_MAP))?;
        match metadata.is_file() {
            true => Ok(Source { file, free }),
            false => Err(Error::Foreign(path.display().to_string())),
        }
    }

    /// Whether the file is a copy of the one that its region was open in, by its commit record. Bytes given by the owner do not count as such a copy.
    pub fn is_copy(&self, commit: &Commit) -> bool {
        self.free && commit.is_of_copy(&self.file)
    }

    /// Writes the bytes into a file that has none.
    pub fn copy(&self, to: &File, progress: &mut dyn FnMut(u64, u64)) -> io::Result<u64> {
        if !self.free {
            return transfer::fetch(&self.file.metadata()?, to, progress);
        }
        let bytes = self.file.metadata()?.len();
        io::copy(&mut &self.file, &mut &*to)?;
        progress(bytes, bytes);
        Ok(bytes)
    }
}

/// A private view of a region's bytes at one instant: of the file if no process has it open, else of a copy that its owner gives.
pub(crate) fn look_at(path: &Path) -> Result<(Image, Source)> {
    let name = path.display().to_string();
    let mut tries = 0;
    loop {
        let source = Source::of(path)?;
        if source.free {
            let image = Image::private(&source.file).map_err(io_error(&name, CANNOT_MAP))?;
            return Ok((image, source));
        }
        let copy = name::unnamed_beside(path)
            .map_err(io_error(&name, "there is no room for a copy to look at"))?;
        match source.copy(&copy, &mut |_, _| ()) {
            Ok(_) => {
                let image = Image::private(&copy).map_err(io_error(&name, CANNOT_MAP))?;
                return Ok((image, source));
            }
            // It may just be opening the file, or closing it.
            Err(_) if tries < 20 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(e) => return Err(in_use(path, &e)),
        }
    }
}

pub(crate) fn in_use(path: &Path, e: &io::Error) -> Error {
    Error::InUse {
        path: path.display().to_string(),
        why: match e.kind() {
            io::ErrorKind::UnexpectedEof => "it stopped in the middle".into(),
            _ => e.to_string(),
        },
    }
}

pub(crate) fn io_error(path: &str, what: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_string();
    move |source| Error::Io { path, what, source }
}
