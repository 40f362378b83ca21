//! Files that appear whole or not at all, and errors that name them.

use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a result could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: cannot {verb}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation: `write` or `read`.
        verb: &'static str,
        /// The system's error, and the remedy.
        why: String,
    },
    /// The file is not a result.
    #[error("{}: not a result of varve: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The problem, with line and column.
        why: String,
    },
    /// The result itself is inconsistent, such as a row with too few values.
    #[error("{what}: {why}")]
    Inconsistent {
        /// The table or chart.
        what: String,
        /// The inconsistency.
        why: String,
    },
}

impl Error {
    fn io(path: &Path, verb: &'static str, error: &io::Error) -> Error {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        let why = match (error.kind(), folder) {
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => {
                "the disk is full; free some space or name another folder".to_string()
            }
            (io::ErrorKind::NotFound, Some(folder)) if verb == "write" => {
                format!("there is no folder {}; create it first", folder.display())
            }
            (io::ErrorKind::NotFound, _) => "there is no such file".to_string(),
            (io::ErrorKind::PermissionDenied, _) => "permission denied".to_string(),
            _ => error.to_string(),
        };
        Error::Io {
            path: path.to_path_buf(),
            verb,
            why,
        }
    }
}

/// Write `content` beside `path` and rename it there: a reader sees the old file or the new one, never a part.
///
/// ```
/// let folder = std::env::temp_dir().join("no such folder of ours");
/// let error = varve_report::write_atomically(&folder.join("a.json"), b"{}").unwrap_err();
/// assert!(error.to_string().contains("create it first"));
/// ```
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), Error> {
    write_with(path, |file| file.write_all(content))
}

/// The same for a writer that produces its content as it goes.
pub(crate) fn write_with<F>(path: &Path, fill: F) -> Result<(), Error>
where
    F: FnOnce(&mut std::fs::File) -> io::Result<()>,
{
    let io_error = |e: &io::Error| Error::io(path, "write", e);
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // In the same folder, because a rename is atomic only within one file system.
    let mut builder = tempfile::Builder::new();
    builder.prefix(".varve-").suffix(".part");
    #[cfg(unix)]
    {
        // A temporary file is private by default; a result is an ordinary file under the user's umask.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temp = builder.tempfile_in(folder).map_err(|e| io_error(&e))?;
    fill(temp.as_file_mut()).map_err(|e| io_error(&e))?;
    // Some file systems find out that they are full only here.
    temp.as_file().sync_all().map_err(|e| io_error(&e))?;
    temp.persist(path).map_err(|e| io_error(&e.error))?;
    Ok(())
}

/// Read a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, "read", &e))?;
    serde_json::from_str(&text).map_err(|e| Error::Foreign {
        path: path.to_path_buf(),
        why: e.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        write_atomically(&path, b"old").unwrap();
        let error = write_with(&path, |file| {
            file.write_all(b"half of the new")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}: cannot write: the disk is full; free some space or name another folder",
                path.display()
            )
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_missing_folder_a_folder_in_the_way_and_a_foreign_file_are_one_line_each() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("nowhere/results.json");
        let text = write_atomically(&missing, b"x").unwrap_err().to_string();
        assert!(text.contains("nowhere; create it first"), "{text}");
        let text = write_atomically(folder.path(), b"x")
            .unwrap_err()
            .to_string();
        assert!(text.contains("cannot write: "), "{text}");
        let foreign = folder.path().join("foreign.json");
        write_atomically(&foreign, b"{\n  \"study\": 7\n}").unwrap();
        let text = crate::StudyResult::read(&foreign).unwrap_err().to_string();
        assert!(
            text.contains("foreign.json: not a result of varve: ") && text.contains("line 2"),
            "{text}"
        );
        let text = crate::StudyResult::read(&missing).unwrap_err().to_string();
        assert!(
            text.ends_with("cannot read: there is no such file"),
            "{text}"
        );
    }
}
