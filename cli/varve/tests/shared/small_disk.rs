//! A small file system, for tests of full disks.

use std::path::Path;
use std::process::Command;

/// A file system of so many KiB in a folder of its own, gone with the guard.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// None, and a word about it, where none can be mounted: that needs root.
    pub fn new(kib: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(folder.path())
            .output();
        if mounted.is_ok_and(|o| o.status.success()) {
            return Some(SmallDisk(folder));
        }
        varve_skip::skip!("needs the right to mount");
        None
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
