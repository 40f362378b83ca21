//! Which mappings of a process are tiered: memory of its own without a file, and what it may share with others: segments, memfds, files.

use crate::sampled::used::Mapping;
use std::rc::Rc;

/// The kind of memory that processes may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedKind {
    /// Shared memory: System V segments, memfd, files of tmpfs, mappings without a file.
    Memory,
    /// A file's pages in the kernel's cache that are mapped.
    File,
    /// A process's own memory that none of those who had it at a fork has written since.
    Fork,
}

impl SharedKind {
    /// In words that follow a name.
    pub fn words(self) -> &'static str {
        match self {
            SharedKind::Memory => "shared memory",
            SharedKind::File => "a mapped file",
            SharedKind::Fork => "shared since a fork",
        }
    }
}

/// What several processes may have mapped: for all of them it is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedObject {
    /// Its kind.
    pub kind: SharedKind,
    /// Its name, as `/proc/PID/maps` has it; of memory that is shared since a fork the program's. A segment and a memfd of one number
    /// differ in it.
    pub name: String,
    /// Its device, as the kernel writes it, and its number there; of memory that is shared since a fork where the program's stack and
    /// arguments begin.
    pub file: (String, u64),
}

/// What a mapping is to `tier`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tierable {
    /// The process's own memory: its heap, its stacks, what it has mapped without a file.
    Own,
    /// Pages of this.
    Shared(Rc<SharedObject>),
}

/// The mappings that are tiered, and what each is. Programs and libraries are not, nor are devices and explicit huge pages.
pub fn tiered(all: &[Mapping]) -> impl Iterator<Item = (&Mapping, Tierable)> {
    // A library has several mappings, one of which is code.
    let runs = all.iter().filter(|m| m.rights.contains('x'));
    let code: Vec<(&str, u64)> = runs.map(|m| (&*m.device, m.inode)).collect();
    let one = move |m| what(m, &code).map(|what| (m, what));
    all.iter().filter_map(one)
}

fn what(mapping: &Mapping, code: &[(&str, u64)]) -> Option<Tierable> {
    let path = &*mapping.path;
    if !mapping.rights.starts_with('r') {
        return None;
    }
    let is_private = mapping.rights.ends_with('p');
    let is_anonymous = path.is_empty()
        || path == "[heap]"
        || path.starts_with("[stack")
        || path.starts_with("[anon:");
    if is_anonymous {
        return is_private.then_some(Tierable::Own);
    }
    let is_memory = is_shared_memory(path);
    let is_device = path.starts_with("/dev/") && !is_memory;
    let is_file = path.starts_with('/') && !path.starts_with("/anon_hugepage");
    let is_code = code.contains(&(&*mapping.device, mapping.inode));
    if is_device || is_code || !(is_memory || is_file) {
        return None;
    }
    let kind = match is_memory {
        true => SharedKind::Memory,
        false => SharedKind::File,
    };
    Some(Tierable::Shared(Rc::new(SharedObject {
        kind,
        name: path.to_owned(),
        file: (mapping.device.clone(), mapping.inode),
    })))
}

/// By its name, a mapping is of memory and of no file: made by `mmap`, `shmget` and `memfd_create`, or in `/dev/shm`.
pub fn is_shared_memory(name: &str) -> bool {
    const KINDS: [&str; 5] = ["/dev/zero", "/SYSV", "/memfd:", "/dev/shm/", "[anon_shmem:"];
    KINDS.iter().any(|kind| name.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_shared_memory_are_tiered_and_programs_are_not() {
        let mapping = |rights: &str, inode, path: &str| Mapping {
            rights: rights.into(),
            path: path.into(),
            device: "00:01".into(),
            inode,
            ..Mapping::default()
        };
        let all = [
            mapping("rw-p", 0, ""),
            mapping("rw-p", 0, "[heap]"),
            mapping("rw-s", 7, "/memfd:a (deleted)"),
            mapping("rw-s", 7, "/SYSV00000000 (deleted)"),
            mapping("rw-s", 8, "/dev/zero (deleted)"),
            mapping("rw-s", 9, "/dev/shm/a"),
            mapping("rw-s", 10, "/dev/dri/card0"),
            mapping("rw-p", 11, "/anon_hugepage (deleted)"),
            mapping("r-xp", 12, "/lib/libc.so.6"),
            mapping("r--p", 12, "/lib/libc.so.6"),
            mapping("r--p", 13, "/var/a.db"),
            mapping("---p", 0, ""),
            mapping("r--p", 0, "[vvar]"),
            mapping("rw-s", 14, "anon_inode:[perf_event]"),
            mapping("rw-p", 0, "[anon:arena]"),
            mapping("rw-p", 0, "[stack]"),
        ];
        let found: Vec<(&str, Option<SharedKind>)> = tiered(&all)
            .map(|(m, what)| match what {
                Tierable::Own => (&*m.path, None),
                Tierable::Shared(object) => (&*m.path, Some(object.kind)),
            })
            .collect();
        let (memory, file) = (Some(SharedKind::Memory), Some(SharedKind::File));
        assert_eq!(
            found,
            [
                ("", None),
                ("[heap]", None),
                ("/memfd:a (deleted)", memory),
                ("/SYSV00000000 (deleted)", memory),
                ("/dev/zero (deleted)", memory),
                ("/dev/shm/a", memory),
                ("/var/a.db", file),
                ("[anon:arena]", None),
                ("[stack]", None),
            ]
        );
    }
}
