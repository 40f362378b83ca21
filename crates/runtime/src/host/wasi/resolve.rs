//! Where a path leads: never out of the directory that it begins in.

use super::errno::{Errno, Outcome};
use super::table::Directory;
use rustix::fs::{AtFlags, Mode, OFlags, openat, readlinkat};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Symbolic links that a path may lead through.
const MOST_LINKS: u32 = 40;

/// A directory, and a path from there that stays within what the program may see.
pub(crate) struct Place {
    pub directory: Arc<OwnedFd>,
    pub name: Vec<u8>,
    /// Whether the host is to follow a link that the name may be.
    pub follow: bool,
}

impl Place {
    /// For calls that follow unless told otherwise.
    pub fn at_flags(&self) -> AtFlags {
        if self.follow {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        }
    }
}

/// Follows a path from a directory to the name at its end, and through that if it is a link and `follow` is set.
///
/// Below the host's root any path is fine, and the host follows it. Elsewhere each component is opened on its own, and links are
/// read here, so that nobody can exchange one in between.
pub(crate) fn resolve(from: &Directory, path: &[u8], follow: bool) -> Outcome<Place> {
    match path {
        [] => return Err(Errno::NOENT),
        [b'/', ..] => return Err(Errno::NOTCAPABLE),
        _ if path.contains(&0) => return Err(Errno::INVAL),
        _ => {}
    }
    if from.whole {
        return Ok(Place {
            directory: from.fd.clone(),
            name: path.to_vec(),
            follow,
        });
    }
    // The directories on the way, innermost last, and the components still to go, next last.
    let mut way = vec![from.fd.clone()];
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
                Err(rustix::io::Errno::INVAL) => {}
                // A file that is yet to be made.
                Err(rustix::io::Errno::NOENT) if last => {}
                Err(e) => return Err(e.into()),
            }
        }
        if last {
            return Ok(end(name));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        way.push(Arc::new(openat(
            &*here,
            name.as_slice(),
            flags,
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
