//! The files of a machine from a text, as `tests/doctor/README.md` has it.

use std::fs;
use std::path::Path;

/// Writes them below a folder.
pub fn unpack(text: &str, root: &Path) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let place = |path: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it is below the root")).expect("a folder");
            path
        };
        if let Some((path, target)) = line.split_once(" -> ") {
            std::os::unix::fs::symlink(target, place(path)).expect("a link");
        } else if let Some((path, content)) = line.split_once(" = ") {
            let path = place(path);
            let before = fs::read_to_string(&path).unwrap_or_default();
            fs::write(path, format!("{before}{content}\n")).expect("a file");
        } else {
            let path = line
                .strip_suffix(" =")
                .expect("`PATH = LINE`, or `PATH -> TARGET`");
            fs::write(place(path), "").expect("a file");
        }
    }
}
