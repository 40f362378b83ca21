//! Kept results: a result that the same program made before from the same inputs is not made again. Sweeps, studies and
//! groups of programs keep their results here.
//!
//! A result is a file, named by the hash of its key, and written whole or not at all. Its first line has the program
//! that made it, the inputs, and the length of the rest; the rest is the result as JSON:
//!
//! ```text
//! {"maker":"0.1.0 81234 5d3f00aa","key":"...","bytes":912,"checksum":"02fe1b77"}
//! {...}
//! ```
//!
//! So the state of a result is known without reading it. Names and makers go by content, never by places and times, so
//! that machines which share a folder agree on them.

use crate::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// The end of a result's name.
const RESULT: &str = "result";
/// Of why there is none.
const FAILURE: &str = "failure";
/// Bytes of a file that usually have its first line.
const HEAD: usize = 1 << 10;
/// The longest first line, bytes: a machine and a program's arguments are in it.
const MOST_HEAD: usize = 1 << 24;

/// State of a result that is known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// It is not there, or not whole.
    Missing,
    /// Another build of the program made it.
    Other,
    /// It is there.
    Done,
}

/// Results that this process makes if they are not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Makes {
    /// This process makes everything.
    All,
    /// One of several shares: its number, and the number of shares.
    Share(usize, usize),
    /// Those with these names.
    These(Arc<BTreeSet<String>>),
    /// Nothing is made.
    Nothing,
}

/// Why something could not be made.
pub trait Failed: std::fmt::Display + From<Error> {
    /// Did a user end it?
    fn is_interrupt(&self) -> bool;
}

impl Failed for Error {
    fn is_interrupt(&self) -> bool {
        Error::is_interrupt(self)
    }
}

/// A folder of results, by the content of their inputs.
#[derive(Clone, Debug)]
pub struct Keep {
    folder: Option<PathBuf>,
    /// The program that makes the results: another build may give other numbers.
    maker: Arc<str>,
    makes: Makes,
    asked: Arc<Mutex<BTreeMap<String, Asked>>>,
    /// Why something could not be kept, the first time.
    lost: Arc<OnceLock<String>>,
}

/// A result that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Description of the run, for people.
    pub what: String,
    /// Whether it is there now, or it is known why there is none.
    pub done: bool,
    /// State of its file.
    pub state: State,
    /// Why there is no result, if a process tried to make it.
    pub failed: Option<String>,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    maker: Cow<'a, str>,
    #[serde(borrow)]
    key: Cow<'a, str>,
    bytes: u64,
    #[serde(borrow)]
    checksum: Cow<'a, str>,
}

/// The folder for results that can be made anew: `$XDG_CACHE_HOME/varve` or `~/.cache/varve`; `None` when there is no
/// home.
pub fn usual_folder() -> Option<PathBuf> {
    // An empty variable is as good as none.
    let folder = |name| std::env::var_os(name).filter(|v| !v.is_empty());
    let cache = folder("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| folder("HOME").map(|home| PathBuf::from(home).join(".cache")));
    Some(cache?.join("varve"))
}

impl Keep {
    /// Keeps results in `folder`, which is made when the first one is written.
    pub fn in_folder(folder: &Path) -> Keep {
        Keep::new(Some(folder.into()), maker().into())
    }

    /// Keeps nothing.
    pub fn nothing() -> Keep {
        Keep::new(None, "".into())
    }

    fn new(folder: Option<PathBuf>, maker: Arc<str>) -> Keep {
        Keep {
            folder,
            maker,
            makes: Makes::All,
            asked: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// The usual place: `runs` in the [usual folder](usual_folder); nowhere when there is no home.
    pub fn usual() -> Keep {
        match usual_folder() {
            Some(folder) => Keep::in_folder(&folder.join("runs")),
            None => Keep::nothing(),
        }
    }

    /// The same folder, where [`Keep::kept_or_made`] makes one of `of` shares of the missing results, that with number
    /// `own`.
    pub fn share(&self, own: usize, of: usize) -> Keep {
        self.making(Makes::Share(own, of))
    }

    /// The same folder, where [`Keep::kept_or_made`] makes those of the results with these names that are missing.
    pub fn these(&self, names: impl IntoIterator<Item = String>) -> Keep {
        self.making(Makes::These(Arc::new(names.into_iter().collect())))
    }

    /// The same folder, where [`Keep::kept_or_made`] makes nothing.
    pub fn only_kept(&self) -> Keep {
        self.making(Makes::Nothing)
    }

    fn making(&self, makes: Makes) -> Keep {
        Keep {
            makes,
            asked: Arc::default(),
            lost: Arc::default(),
            ..self.clone()
        }
    }

    /// The program that makes results here: its version and the content of its file.
    pub fn maker(&self) -> &str {
        &self.maker
    }

    /// Does it keep anything?
    pub fn is_on(&self) -> bool {
        self.folder.is_some()
    }

    /// All that [`Keep::kept_or_made`] was asked for, by name.
    pub fn asked(&self) -> BTreeMap<String, Asked> {
        self.asked.lock().expect("no holder panics").clone()
    }

    /// Why something could not be kept, if that happened.
    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(|why| &why[..])
    }

    fn file(&self, key: &str, end: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.{end}", name(key))))
    }

    /// State of the result whose inputs `key` describes in full.
    pub fn state(&self, key: &str) -> State {
        let Some(path) = self.file(key, RESULT) else {
            return State::Missing;
        };
        head(&path, key, &self.maker).unwrap_or(State::Missing)
    }

    /// The kept result whose inputs `key` describes in full. One that cannot be read, or is of another build, counts as
    /// none.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let all = fs::read(self.file(key, RESULT)?).ok()?;
        let (first, rest) = all.split_at(all.iter().position(|byte| *byte == b'\n')? + 1);
        let head: Head = serde_json::from_slice(first).ok()?;
        let whole = rest.len() as u64 == head.bytes && checksum(rest) == head.checksum;
        let ours = *head.maker == *self.maker && head.key == key;
        serde_json::from_slice(rest).ok().filter(|_| whole && ours)
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn put<T: Serialize>(&self, key: &str, result: &T) -> Result<(), Error> {
        self.write(key, RESULT, result)?;
        if let Some(failure) = self.file(key, FAILURE) {
            // Usually it never failed.
            let _ = fs::remove_file(failure);
        }
        Ok(())
    }

    /// Keeps why there is no result; the next one that is kept removes it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn put_failure(&self, key: &str, why: &str) -> Result<(), Error> {
        self.write(key, FAILURE, &why)
    }

    /// Why there was no result the last time that this program tried.
    pub fn failure(&self, key: &str) -> Option<String> {
        let path = self.file(key, FAILURE)?;
        if head(&path, key, &self.maker) != Some(State::Done) {
            return None;
        }
        let text = fs::read_to_string(path).ok()?;
        serde_json::from_str(text.split_once('\n')?.1).ok()
    }

    fn write<T: Serialize>(&self, key: &str, end: &str, content: &T) -> Result<(), Error> {
        let (Some(path), Some(folder)) = (self.file(key, end), &self.folder) else {
            return Ok(());
        };
        let write = || {
            let content = serde_json::to_vec(content).map_err(io::Error::other)?;
            let head = Head {
                maker: Cow::Borrowed(&self.maker),
                key: Cow::Borrowed(key),
                bytes: content.len() as u64,
                checksum: checksum(&content).into(),
            };
            let mut all = serde_json::to_vec(&head).map_err(io::Error::other)?;
            all.push(b'\n');
            all.extend(content);
            write_whole(folder, &path, &all)
        };
        write().map_err(|source| {
            let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
            let source = match full.contains(&source.kind()) {
                true => io::Error::new(source.kind(), "the disk is full"),
                false => source,
            };
            let error = Error::Keep {
                path: path.clone(),
                source,
            };
            let _ = self.lost.set(error.to_string());
            error
        })
    }

    /// Whether [`Keep::kept_or_made`] makes a part, and other processes the rest.
    pub fn is_share(&self) -> bool {
        matches!(self.makes, Makes::Share(..) | Makes::These(_))
    }

    /// Returns the kept result, or else that of `make`, which it then keeps. `what` describes the run, for people. The
    /// reason of a failure is kept too, for processes that make nothing.
    ///
    /// # Errors
    /// Those of `make`; the folder cannot be written; [`Error::Elsewhere`] if it is not this process that makes it.
    pub fn kept_or_made<T, E>(
        &self,
        key: &str,
        what: &dyn Fn() -> String,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: Failed,
    {
        if !self.is_on() {
            return make();
        }
        let name = name(key);
        let told = |state, failed: Option<&str>| {
            let mut asked = self.asked.lock().expect("no holder panics");
            let point = Asked {
                what: what(),
                done: state == State::Done || failed.is_some(),
                state,
                failed: failed.map(String::from),
            };
            asked.insert(name.clone(), point);
        };
        if let Some(kept) = self.get(key) {
            told(State::Done, None);
            return Ok(kept);
        }
        let state = match self.state(key) {
            // It is damaged further on.
            State::Done => State::Missing,
            state => state,
        };
        told(state, None);
        let ours = match &self.makes {
            Makes::All => true,
            Makes::Nothing => false,
            Makes::Share(own, of) => hash(key.as_bytes()) % *of as u128 == *own as u128,
            Makes::These(names) => names.contains(&name),
        };
        if !ours {
            let Some(why) = self.failure(key) else {
                return Err(Error::Elsewhere(what()).into());
            };
            told(state, Some(&why));
            return Err(Error::Asked(why).into());
        }
        let made = match make() {
            Ok(made) => made,
            Err(e) => {
                if !e.is_interrupt() {
                    let why = e.to_string();
                    self.put_failure(key, &why)?;
                    told(state, Some(&why));
                }
                return Err(e);
            }
        };
        self.put(key, &made)?;
        told(State::Done, None);
        Ok(made)
    }
}

/// Name of a result: the hash of its key.
pub fn name(key: &str) -> String {
    format!("{:032x}", hash(key.as_bytes()))
}

/// State of a file by its first line and its length.
fn head(path: &Path, key: &str, maker: &str) -> Option<State> {
    let mut file = File::open(path).ok()?;
    let mut first = vec![0; HEAD];
    let mut read = 0;
    let end = loop {
        match file.read(&mut first[read..]).ok()? {
            0 => return None,
            n => {
                let before = read;
                read += n;
                let found = first[before..read].iter().position(|byte| *byte == b'\n');
                if let Some(at) = found {
                    break before + at + 1;
                }
            }
        }
        if read == first.len() {
            if read > MOST_HEAD {
                return None;
            }
            first.resize(2 * read, 0);
        }
    };
    let head: Head = serde_json::from_slice(&first[..end]).ok()?;
    let whole = file.metadata().ok()?.len() == end as u64 + head.bytes;
    match whole && head.key == key {
        false => None,
        true if head.maker == maker => Some(State::Done),
        true => Some(State::Other),
    }
}

/// Another process may write the same file at the same time, perhaps on another machine: each writes its own and renames it.
fn write_whole(folder: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".varve-").suffix(".part");
    // A temporary file is private by default; a result is an ordinary file under the user's umask.
    builder.permissions(fs::Permissions::from_mode(0o666));
    let mut part = builder.tempfile_in(folder)?;
    part.write_all(content)?;
    // Some file systems find out that they are full only here.
    part.as_file().sync_all()?;
    part.persist(path).map(drop).map_err(|e| e.error)
}

/// Length and checksum of a file's content; none if it is no file.
pub fn digest(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = 0;
    let mut part = vec![0; 1 << 18];
    loop {
        match file.read(&mut part).ok()? {
            0 => return Some(format!("{bytes} {:08x}", hasher.finalize())),
            n => {
                hasher.update(&part[..n]);
                bytes += n;
            }
        }
    }
}

fn checksum(content: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(content))
}

/// FNV-1a with 128 bits (the constants are the authors': isthe.com/chongo/tech/comp/fnv): the same on every machine.
fn hash(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62272e07bb014262b821756295c58d;
    const PRIME: u128 = 0x0000000001000000000000000000013b;
    bytes.iter().fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

/// The running program: its version and the content of its file.
fn maker() -> String {
    let own = std::env::current_exe().ok().and_then(|path| digest(&path));
    format!("{} {}", crate::VERSION, own.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_again_and_others_are_not_taken_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut keep = Keep::in_folder(&folder.path().join("runs"));
        // Longer than one read.
        let key = "k\n".repeat(HEAD);
        assert_eq!(keep.state(&key), State::Missing);
        keep.put(&key, &vec![1.5, 2.5]).unwrap();
        assert_eq!(keep.state(&key), State::Done);
        assert_eq!(keep.get(&key), Some(vec![1.5, 2.5]));
        assert_eq!(keep.state("another"), State::Missing);
        let files = || fs::read_dir(folder.path().join("runs")).unwrap();
        let file = files().next().unwrap().unwrap().path();
        let text = fs::read(&file).unwrap();
        let ours = keep.maker.clone();
        keep.maker = "another".into();
        assert_eq!(keep.state(&key), State::Other);
        assert_eq!(keep.get::<Vec<f64>>(&key), None);
        keep.maker = ours;
        // Half a file, as another program may have copied it; and one with other bytes in it.
        fs::write(&file, &text[..text.len() - 3]).unwrap();
        assert_eq!(keep.state(&key), State::Missing);
        assert_eq!(keep.get::<Vec<f64>>(&key), None);
        let mut wrong = text.clone();
        let last = wrong.len() - 2;
        wrong[last] = b'6';
        fs::write(&file, wrong).unwrap();
        assert_eq!(keep.get::<Vec<f64>>(&key), None);
        assert_eq!(files().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn a_failure_is_told_until_there_is_a_result() {
        let folder = tempfile::tempdir().unwrap();
        let keep = Keep::in_folder(folder.path());
        assert_eq!(keep.failure("k"), None);
        keep.put_failure("k", "no such machine").unwrap();
        assert_eq!(keep.failure("k").unwrap(), "no such machine");
        assert_eq!(keep.state("k"), State::Missing);
        keep.put("k", &1).unwrap();
        assert_eq!(keep.failure("k"), None);
    }

    #[test]
    fn shares_make_everything_once_and_say_what_others_make() {
        let folder = tempfile::tempdir().unwrap();
        let keep = Keep::in_folder(folder.path());
        let mut made = 0;
        let mut all = |keep: &Keep| {
            let one = |n: u32| {
                keep.kept_or_made(&n.to_string(), &|| format!("run {n}"), || {
                    made += 1;
                    Ok::<u32, Error>(n)
                })
            };
            (0..20).map(one).collect::<Vec<_>>()
        };
        for own in 0..3 {
            all(&keep.share(own, 3));
        }
        let kept = keep.only_kept();
        assert!(all(&kept).into_iter().all(|n| n.is_ok()));
        assert!(kept.asked().values().all(|point| point.done));
        assert_eq!(made, 20);
        let empty = Keep::in_folder(&folder.path().join("empty")).only_kept();
        let missing = empty.kept_or_made("k", &|| "run k".into(), || Ok::<u32, Error>(1));
        assert_eq!(missing.unwrap_err().to_string(), "run k: is not there yet");
        let points: Vec<Asked> = empty.asked().into_values().collect();
        assert_eq!((&points[0].what[..], points[0].done), ("run k", false));
    }

    #[test]
    fn what_could_not_be_kept_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let keep = Keep::in_folder(&file.join("runs"));
        assert_eq!(keep.lost(), None);
        let error = keep.put("k", &1).unwrap_err().to_string();
        assert!(error.contains("cannot keep a result: "), "{error}");
        assert_eq!(keep.clone().lost(), Some(&error[..]));
    }

    #[test]
    fn names_are_the_same_on_every_machine() {
        assert_eq!(name("a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
