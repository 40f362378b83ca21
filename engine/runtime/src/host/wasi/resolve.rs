//! Where a path leads: never out of the directory that it begins in.
//!
//! The kernel follows paths where it can keep them below a directory (`openat2`, Linux 5.6). Where it cannot, each component is
//! opened on its own, and links are read here. Either way no other process can exchange a component in between and lead out.

use super::errno::{Errno, Outcome};
use super::table::Directory;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno as Host;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

/// Symbolic links that a path may lead through, as on Linux.
const MOST_LINKS: u32 = 40;
/// Bytes of a path, as on Linux.
const MOST_BYTES: usize = 4095;
/// Times that the kernel is asked again while others rename directories that the path leads through.
const MOST_TRIES: u32 = 8;

/// A directory, and a name in it. The host follows the name only below its own root.
#[derive(Debug)]
pub(crate) struct Place {
    pub directory: Arc<OwnedFd>,
    pub name: Vec<u8>,
    /// Whether the host is to follow a link that the name may be.
    pub follow: bool,
}

impl Place {
    /// For calls that follow links by default.
    pub fn at_flags(&self) -> AtFlags {
        if self.follow {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        }
    }
}

/// Follows a path from a directory to the name at its end, and through that if it is a link and `follow` is set.
pub(crate) fn resolve(from: &Directory, path: &[u8], follow: bool) -> Outcome<Place> {
    check(path)?;
    if from.whole {
        // No path leads out of the host's root, and the host follows it.
        return Ok(Place {
            directory: from.fd.clone(),
            name: path.to_vec(),
            follow,
        });
    }
    match kernel_can() {
        true => by_kernel(&from.fd, path, follow),
        false => walk(&from.fd, path, follow),
    }
}

/// Opens the file or directory that a path leads to.
pub(crate) fn open(from: &Directory, path: &[u8], follow: bool, flags: OFlags) -> Outcome<OwnedFd> {
    check(path)?;
    let mode = match flags.contains(OFlags::CREATE) {
        true => Mode::from_raw_mode(0o666),
        false => Mode::empty(),
    };
    let last = match follow {
        true => OFlags::empty(),
        false => OFlags::NOFOLLOW,
    };
    if !from.whole && kernel_can() {
        match beneath(&from.fd, path, flags | last, mode) {
            Err(Errno::AGAIN) => {}
            answer => return answer,
        }
    }
    let place = match (from.whole, path) {
        (true, _) => resolve(from, path, follow)?,
        // A file that is yet to be made has no slash at its end.
        (false, [way @ .., b'/']) if flags.contains(OFlags::CREATE) => {
            let end = way.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
            walk(&from.fd, &way[..end], false)?;
            return Err(Errno::ISDIR);
        }
        (false, _) => walk(&from.fd, path, follow)?,
    };
    let last = match place.follow {
        true => OFlags::empty(),
        false => OFlags::NOFOLLOW,
    };
    Ok(rustix::io::retry_on_intr(|| {
        openat(&*place.directory, place.name.as_slice(), flags | last, mode)
    })?)
}

/// Rejects invalid paths of WASI.
fn check(path: &[u8]) -> Outcome {
    match path {
        [] => Err(Errno::NOENT),
        _ if path.len() > MOST_BYTES => Err(Errno::NAMETOOLONG),
        [b'/', ..] => Err(Errno::NOTCAPABLE),
        _ if path.contains(&0) => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

/// Whether the kernel keeps paths below a directory. Older ones cannot, and some containers forbid the call.
fn kernel_can() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH).is_ok()
    })
}

/// Opens a path that the kernel follows. `AGAIN`: others rename directories all the time.
fn beneath(from: &OwnedFd, path: &[u8], flags: OFlags, mode: Mode) -> Outcome<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match openat2(from, path, flags, mode, resolve) {
            Err(Host::INTR) => {}
            Err(Host::AGAIN) if tries < MOST_TRIES => tries += 1,
            // The kernel's word for a path that leads out.
            Err(Host::XDEV) => return Err(Errno::NOTCAPABLE),
            answer => return Ok(answer?),
        }
    }
}

const WAY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// As [`walk`], with one call of the kernel for the way to the last name. Paths that do not end in a name are walked.
fn by_kernel(from: &Arc<OwnedFd>, path: &[u8], follow: bool) -> Outcome<Place> {
    let (way, name) = match path.iter().rposition(|&b| b == b'/') {
        Some(slash) => (Some(&path[..slash]), &path[slash + 1..]),
        None => (None, path),
    };
    if matches!(name, b"" | b"." | b"..") {
        return walk(from, path, follow);
    }
    let directory = match way {
        None => from.clone(),
        // Links on the way are followed: that the last of them is one is no reason to stop.
        Some(way) => match beneath(from, way, WAY - OFlags::NOFOLLOW, Mode::empty()) {
            Ok(directory) => Arc::new(directory),
            Err(Errno::AGAIN) => return walk(from, path, follow),
            Err(e) => return Err(e),
        },
    };
    if follow && readlinkat(&*directory, name, Vec::new()).is_ok() {
        return walk(from, path, follow);
    }
    Ok(Place {
        directory,
        name: name.to_vec(),
        follow: false,
    })
}

/// Follows a path one component at a time.
fn walk(from: &Arc<OwnedFd>, path: &[u8], follow: bool) -> Outcome<Place> {
    // The directories on the way, innermost last, and the components still to go, next last.
    let mut way = vec![from.clone()];
    let mut rest = components(path);
    let mut links = 0;
    loop {
        let here = way[way.len() - 1].clone();
        let name = rest.pop().unwrap_or_else(|| b".".to_vec());
        let last = rest.is_empty();
        let end = |name: Vec<u8>| Place {
            directory: here.clone(),
            name,
            follow: false,
        };
        match name.as_slice() {
            b"." if last => return Ok(end(name)),
            b"." => continue,
            b".." => {
                way.pop();
                if way.is_empty() {
                    return Err(Errno::NOTCAPABLE);
                }
                continue;
            }
            _ => {}
        }
        if follow || !last {
            match readlinkat(&*here, name.as_slice(), Vec::new()) {
                Ok(target) => {
                    links += 1;
                    let target = target.into_bytes();
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP);
                    }
                    if target.starts_with(b"/") {
                        return Err(Errno::NOTCAPABLE);
                    }
                    rest.extend(components(&target));
                    continue;
                }
                // No link.
                Err(Host::INVAL) => {}
                // A file that is yet to be made.
                Err(Host::NOENT) if last => {}
                Err(e) => return Err(e.into()),
            }
        }
        if last {
            return Ok(end(name));
        }
        way.push(Arc::new(openat(
            &*here,
            name.as_slice(),
            WAY,
            Mode::empty(),
        )?));
    }
}

/// The components of a path, the first one last. A slash at the end means the directory itself.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let mut components: Vec<Vec<u8>> = path
        .split(|&b| b == b'/')
        .filter(|c| !c.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    if path.ends_with(b"/") {
        components.push(b".".to_vec());
    }
    components.reverse();
    components
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn folder(host: &Path) -> Arc<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Arc::new(openat(CWD, host, flags, Mode::empty()).unwrap())
    }

    /// The number of the file that a place leads to.
    fn file(place: Outcome<Place>) -> Outcome<u64> {
        let place = place?;
        assert!(!place.follow, "the host follows nothing");
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let file = openat(
            &*place.directory,
            place.name.as_slice(),
            flags,
            Mode::empty(),
        )?;
        Ok(rustix::fs::fstat(file)?.st_ino)
    }

    /// Folders, files and links that lead everywhere, some of them out.
    fn maze(outside: &Path) -> std::path::PathBuf {
        let top = outside.join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(outside.join("a"), "secret").unwrap();
        fs::write(top.join("f"), "").unwrap();
        fs::write(top.join("a/b/f"), "").unwrap();
        for (to, name) in [
            ("a/b", "l"),
            ("..", "up"),
            ("../f", "a/l"),
            ("../../l/b", "a/b/l"),
            ("../../..", "a/b/up"),
            ("loop", "loop"),
            ("/", "a/root"),
            ("f/", "slash"),
        ] {
            symlink(to, top.join(name)).unwrap();
        }
        top
    }

    proptest! {
        /// The kernel and the walk agree about every path, and neither ever leaves.
        #[test]
        fn both_ways_lead_to_the_same_place(
            words in prop::collection::vec(
                prop::sample::select(vec!["a", "b", "f", "l", "up", "loop", "root", "slash", "none", "..", ".", ""]), 1..8),
            follow: bool,
        ) {
            let outside = tempfile::tempdir().unwrap();
            let top = maze(outside.path());
            let path = words.join("/");
            let from = folder(&top);
            prop_assume!(check(path.as_bytes()).is_ok());
            if !kernel_can() {
                return Ok(());
            }
            let walked = file(walk(&from, path.as_bytes(), follow));
            let by_kernel = file(by_kernel(&from, path.as_bytes(), follow));
            match (walked, by_kernel) {
                (Ok(a), Ok(b)) => prop_assert_eq!(a, b, "{}", path),
                // Which of two errors in a path is reported depends on the method.
                (a, b) => prop_assert_eq!(a.is_ok(), b.is_ok(), "{}: {:?} {:?}", path, a, b),
            }
            if let Ok(inode) = walked {
                let secret = fs::metadata(outside.path().join("a")).unwrap();
                prop_assert_ne!(inode, std::os::unix::fs::MetadataExt::ino(&secret));
            }
        }
    }
}
