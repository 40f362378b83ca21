//! Kept results: a run that was made before with the same inputs by the same program is not made again.

use crate::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder of results by the content of what made them.
#[derive(Clone, Debug)]
pub struct Keep {
    folder: Option<PathBuf>,
    /// Identifies the program that makes the results: another build may give other numbers.
    maker: u64,
}

impl Keep {
    /// Keeps results in `folder`, which is made when the first one is written.
    pub fn in_folder(folder: &Path) -> Keep {
        Keep {
            folder: Some(folder.into()),
            maker: maker(),
        }
    }

    /// Keeps nothing.
    pub fn nothing() -> Keep {
        Keep {
            folder: None,
            maker: 0,
        }
    }

    /// The usual place: `$XDG_CACHE_HOME/varve` or `~/.cache/varve`; nowhere when there is no home.
    pub fn usual() -> Keep {
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
        match cache {
            Some(folder) => Keep::in_folder(&folder.join("varve").join("runs")),
            None => Keep::nothing(),
        }
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let mut hash = DefaultHasher::new();
        self.maker.hash(&mut hash);
        key.hash(&mut hash);
        Some(folder.join(format!("{:016x}.json", hash.finish())))
    }

    /// The kept result of what `key` says everything about. One that cannot be read counts as none.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let text = fs::read_to_string(self.file(key)?).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn put<T: Serialize>(&self, key: &str, result: &T) -> Result<(), Error> {
        let (Some(path), Some(folder)) = (self.file(key), &self.folder) else {
            return Ok(());
        };
        let write = || {
            fs::create_dir_all(folder)?;
            // Another process may keep the same result at the same time: each writes its own and renames it.
            let part = path.with_extension(format!("part{}", std::process::id()));
            let text = serde_json::to_string(result).map_err(std::io::Error::other)?;
            fs::write(&part, text)
                .and_then(|()| fs::rename(&part, &path))
                .inspect_err(|_| {
                    let _ = fs::remove_file(&part);
                })
        };
        write().map_err(|source| Error::Keep {
            path: path.clone(),
            source,
        })
    }
}

/// Size and time of a file.
pub(crate) fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()?))
}

/// A number for the running executable: version, size and time of its file.
fn maker() -> u64 {
    let mut hash = DefaultHasher::new();
    crate::VERSION.hash(&mut hash);
    std::env::current_exe()
        .ok()
        .and_then(|p| stamp(&p))
        .hash(&mut hash);
    hash.finish()
}
