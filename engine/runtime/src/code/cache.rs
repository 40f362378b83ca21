//! Files with compiled code, from run to run: one for each module, build and processor.
//!
//! ```text
//! magic, 12 bytes | crc32 of the rest, 4 bytes | what `store/tier/kept.rs` makes of it
//! ```
//!
//! A file is machine code that will run with all rights of its user. So it is read only where no other user could have written it, and the
//! checksum is there for disks and files that were cut short, not against people.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Another format has another number.
const MAGIC: &[u8; 12] = b"varve code 1";
const HEAD: usize = MAGIC.len() + 4;
/// The suffix of files.
const SUFFIX: &str = ".code";
const PART: &str = ".part";
/// Bytes of a file that is read or written at most.
const MOST: usize = 128 << 20;
/// Bytes of all files of a folder. Those that were not used for longest go first.
const MOST_OF_ALL: u64 = 512 << 20;
/// The leftover of a killed write is removed after this time.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// Whether only this user and root can have changed it.
fn is_ours(metadata: &Metadata) -> bool {
    // SAFETY: has no preconditions.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o022 == 0
}

/// The content cached under a name; none if there is none, or it cannot be trusted.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
    if !is_ours(&fs::metadata(folder).ok()?) {
        return None;
    }
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(folder.join(format!("{name}{SUFFIX}"))).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || !is_ours(&metadata) || metadata.len() > MOST as u64 {
        return None;
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.read_to_end(&mut bytes).ok()?;
    let content = bytes.get(HEAD..)?;
    let checksum = crc32fast::hash(content).to_le_bytes();
    if bytes[..MAGIC.len()] != *MAGIC || bytes[MAGIC.len()..HEAD] != checksum {
        return None;
    }
    // Files that are used stay. A failure to record the use is no reason not to use the file.
    let _ = file.set_modified(SystemTime::now());
    bytes.drain(..HEAD);
    Some(bytes)
}

/// Makes a folder for code that is kept, if there is none.
///
/// # Errors
/// The file system's error; a folder that others can write to.
pub fn make_code_cache(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    match is_ours(&fs::metadata(folder)?) {
        true => Ok(()),
        false => Err(io::Error::other(
            "others can write to the folder, or another user owns it",
        )),
    }
}

/// Keeps `content` under a name, in the place of what was there.
///
/// # Errors
/// The file system's error; a folder that others can write to.
pub(crate) fn write(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    if content.len() > MOST - HEAD {
        return Err(io::Error::other("more code than is kept"));
    }
    make_code_cache(folder)?;
    let mut builder = tempfile::Builder::new();
    let mut part = builder.prefix("").suffix(PART).tempfile_in(folder)?;
    part.write_all(MAGIC)?;
    part.write_all(&crc32fast::hash(content).to_le_bytes())?;
    part.write_all(content)?;
    part.persist(folder.join(format!("{name}{SUFFIX}")))
        .map_err(|e| e.error)?;
    make_room(folder)
}

/// Removes files that were not used for longest, as long as all are too many.
fn make_room(folder: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        // Another process may have removed it by now.
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let used = metadata.modified()?;
        if name.ends_with(SUFFIX) {
            files.push((used, metadata.len(), path));
        } else if name.ends_with(PART)
            && now.duration_since(used).is_ok_and(|age| age > LEFT_BEHIND)
        {
            let _ = fs::remove_file(&path);
        }
    }
    files.sort();
    let mut all: u64 = files.iter().map(|f| f.1).sum();
    for (_, bytes, path) in files {
        if all <= MOST_OF_ALL {
            break;
        }
        let _ = fs::remove_file(path);
        all -= bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("code");
        (scratch, folder)
    }

    #[test]
    fn what_is_kept_is_read_again_and_replaced() {
        let (_scratch, folder) = folder();
        assert_eq!(read(&folder, "a"), None);
        write(&folder, "a", b"one").unwrap();
        write(&folder, "b", b"other").unwrap();
        assert_eq!(read(&folder, "a").unwrap(), b"one");
        write(&folder, "a", b"two").unwrap();
        assert_eq!(read(&folder, "a").unwrap(), b"two");
        assert_eq!(read(&folder, "b").unwrap(), b"other");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn a_damaged_file_counts_as_none() {
        let (_scratch, folder) = folder();
        write(&folder, "a", &[7; 1000]).unwrap();
        let path = folder.join("a.code");
        let whole = fs::read(&path).unwrap();
        for cut in [0, 5, HEAD, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(read(&folder, "a"), None, "cut at {cut}");
        }
        for at in [0, MAGIC.len() - 1, MAGIC.len(), HEAD, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&folder, "a"), None, "another byte {at}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(read(&folder, "a").unwrap(), [7; 1000]);
    }

    #[test]
    fn what_others_can_write_is_neither_read_nor_written() {
        let (_scratch, folder) = folder();
        write(&folder, "a", b"mine").unwrap();
        let path = folder.join("a.code");
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        allow(&path, 0o666);
        assert_eq!(read(&folder, "a"), None);
        allow(&path, 0o600);
        assert_eq!(read(&folder, "a").unwrap(), b"mine");
        allow(&folder, 0o777);
        assert_eq!(read(&folder, "a"), None);
        let refused = write(&folder, "a", b"mine").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "others can write to the folder, or another user owns it"
        );
        allow(&folder, 0o700);
        // A link may lead to a file that another user can write.
        fs::rename(&path, folder.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert_eq!(read(&folder, "a"), None);
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let (_scratch, folder) = folder();
        let age = |name: &str, seconds: u64, bytes: u64| {
            let file = File::create(folder.join(name)).unwrap();
            file.set_len(bytes).unwrap();
            let when = SystemTime::now() - Duration::from_secs(seconds);
            file.set_modified(when).unwrap();
        };
        write(&folder, "new", b"new").unwrap();
        // Nothing of them is on the disk.
        age("old.code", 30, MOST_OF_ALL / 2);
        age("oldest.code", 40, MOST_OF_ALL / 2);
        age("dead.part", 2 * 3600, 5);
        age("alive.part", 2, 5);
        age("of-another-user", 9000, MOST_OF_ALL);
        make_room(&folder).unwrap();
        let mut left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["alive.part", "new.code", "of-another-user", "old.code"]
        );
    }
}
