//! The parts of the system that a program may access: folders, and variables of the environment.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use varve_runtime::host::Wasi;
use varve_runtime::{Error, Result};

/// A folder that a program may use.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Folder {
    /// Where it is.
    pub host: PathBuf,
    /// The program's name for it.
    pub guest: String,
    /// The program may not change anything in it.
    pub read_only: bool,
}

/// `HOST[::GUEST][:ro]`: without a name of its own the folder is called as it is here.
impl FromStr for Folder {
    type Err = String;

    fn from_str(text: &str) -> Result<Folder, String> {
        let (rest, read_only) = match text.strip_suffix(":ro") {
            // In `data::ro` that is the name.
            Some(rest) if !rest.ends_with(':') => (rest, true),
            _ => (text, false),
        };
        let (host, guest) = rest.split_once("::").unwrap_or((rest, rest));
        if host.is_empty() || guest.is_empty() {
            return Err(format!(
                "`{text}` names no folder: HOST, HOST::GUEST, or either with :ro at its end, such as data or /srv/data::/data:ro"
            ));
        }
        Ok(Folder {
            host: host.into(),
            guest: guest.into(),
            read_only,
        })
    }
}

impl Folder {
    /// The name as libraries of C compare it: `.` and `/` are the same to them, and so are `data` and `/data`.
    pub fn compared(&self) -> &str {
        let mut name = self.guest.as_str();
        while let Some(rest) = name.strip_prefix('/').or(name.strip_prefix("./")) {
            name = rest;
        }
        match name {
            "." => "",
            name => name.trim_end_matches('/'),
        }
    }

    /// Whether an absolute path is below the folder for a program that asks for it by that path.
    pub fn holds(&self, path: &Path) -> bool {
        let name = self.compared();
        self.guest.starts_with('/') && path.starts_with(Path::new("/").join(name))
    }
}

/// The parts of the system that a program may access, besides its arguments, its streams and the time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Folders, in the order of their descriptors.
    pub folders: Vec<Folder>,
    /// A folder of its own, empty, which it calls `.`: it is gone when the program is.
    pub own_folder: bool,
    /// Variables of the environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Default for Access {
    /// The folder in which this process was started, and no environment.
    fn default() -> Access {
        Access {
            folders: vec![Folder {
                host: ".".into(),
                guest: ".".into(),
                read_only: false,
            }],
            own_folder: false,
            environment: Vec::new(),
        }
    }
}

impl Access {
    /// Nothing but a folder of its own.
    pub fn to_own_folder() -> Access {
        Access {
            folders: Vec::new(),
            own_folder: true,
            environment: Vec::new(),
        }
    }

    /// Whether a program could create or change the file at `path`.
    pub fn may_write(&self, path: &Path) -> bool {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        // An existing path may lead elsewhere.
        let real = absolute.ancestors().find_map(|p| p.canonicalize().ok());
        let paths = [Some(absolute.clone()), real];
        self.folders.iter().filter(|f| !f.read_only).any(|folder| {
            let host = folder.host.canonicalize();
            let host = host.unwrap_or_else(|_| folder.host.clone());
            paths.iter().flatten().any(|path| path.starts_with(&host))
        })
    }

    /// The same for a program. Folders are opened now: after a rename it is still the same folder.
    ///
    /// # Errors
    /// A folder that cannot be opened, or made.
    pub fn grant(&self, mut wasi: Wasi) -> Result<Wasi, Error> {
        for (name, value) in &self.environment {
            wasi = wasi.env(name.as_slice(), value.as_slice());
        }
        for folder in &self.folders {
            wasi = match folder.read_only {
                true => wasi.preopen_read_only(&folder.host, &folder.guest)?,
                false => wasi.preopen(&folder.host, &folder.guest)?,
            };
        }
        if self.own_folder {
            let folder = tempfile::tempdir()
                .map_err(|e| Error::System(format!("no folder for a program's own files: {e}")))?;
            wasi = wasi.preopen(folder.path(), ".")?.keep(folder);
        }
        Ok(wasi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(text: &str) -> (String, String, bool) {
        let f: Folder = text.parse().unwrap();
        (f.host.display().to_string(), f.guest, f.read_only)
    }

    #[test]
    fn a_folder_has_a_name_for_the_program_and_may_be_read_only() {
        for (text, host, guest, read_only) in [
            ("data", "data", "data", false),
            (".", ".", ".", false),
            ("data:ro", "data", "data", true),
            ("/srv/data::/data", "/srv/data", "/data", false),
            ("/srv/data::/data:ro", "/srv/data", "/data", true),
            (".::.:ro", ".", ".", true),
            ("data::ro", "data", "ro", false),
            ("a:b", "a:b", "a:b", false),
        ] {
            let expected = (host.to_string(), guest.to_string(), read_only);
            assert_eq!(folder(text), expected, "{text}");
        }
        for text in ["", "::", "::/data", "data::", ":ro"] {
            let refused = text.parse::<Folder>().unwrap_err();
            assert!(refused.contains("names no folder"), "{text}: {refused}");
        }
    }

    #[test]
    fn names_are_compared_as_programs_compare_them() {
        let compared = |text: &str| text.parse::<Folder>().unwrap().compared().to_string();
        for (name, expected) in [
            (".", ""),
            ("/", ""),
            ("./", ""),
            ("data", "data"),
            ("./data/", "data"),
            ("/data", "data"),
            ("//./data", "data"),
            ("..", ".."),
            ("a/b", "a/b"),
        ] {
            assert_eq!(compared(name), expected, "{name}");
        }
    }

    #[test]
    fn a_folder_holds_what_is_below_its_name() {
        let holds = |text: &str, path: &str| text.parse::<Folder>().unwrap().holds(path.as_ref());
        assert!(holds("/etc", "/etc/passwd") && holds("/", "/etc/passwd"));
        assert!(holds("here::/etc/", "/etc"));
        assert!(!holds("/etc", "/etcetera") && !holds("/etc::/e", "/etc/passwd"));
        assert!(
            !holds(".", "/etc/passwd"),
            "a relative name means relative paths"
        );
    }
}
