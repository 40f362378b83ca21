//! Region files as users meet them: damaged, in use, replaced, of an older format, on a full disk.

use crate::common::{command, home, typed, varve};
use crate::small_disk::SmallDisk;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const ACCOUNTS: &str = "programs/dist/accounts.wasm";

fn run<'a>(region: &'a Path, arguments: &[&'a str]) -> Vec<&'a str> {
    let region = region.to_str().expect("a path of ours");
    let begin = [
        "run",
        ACCOUNTS,
        "--durable",
        region,
        "--domain",
        "memory",
        "--",
    ];
    [&begin[..], arguments].concat()
}

/// A program that goes on until it is killed, once its region is there.
fn running(region: &Path) -> Child {
    let child = command(&run(region, &[]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut tries = 0;
    while !varve(&["durable", "info", region.to_str().unwrap()])
        .out
        .contains("root")
    {
        tries += 1;
        assert!(tries < 500, "no region");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.expect("varve starts")
}

#[test]
fn a_file_of_zeroes_is_nobodys_region() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let zeroes = vec![0; 100_000];
    std::fs::write(&region, &zeroes).unwrap();
    varve(&run(&region, &["10"])).refuses(2, &["a.region", "no region file", "stays as it is"]);
    assert_eq!(std::fs::read(&region).unwrap(), zeroes);
    std::fs::write(&region, "").unwrap();
    varve(&run(&region, &["10"])).refuses(2, &["a.region", "no bytes", "remove it to begin anew"]);
    assert_eq!(std::fs::metadata(&region).unwrap().len(), 0);
    std::fs::remove_file(&region).unwrap();
    varve(&run(&region, &["10"])).well();
    let mut bytes = std::fs::read(&region).unwrap();
    bytes[..8].fill(0);
    std::fs::write(&region, &bytes).unwrap();
    for command in ["check", "compact", "info", "export"] {
        varve(&["durable", command, region.to_str().unwrap()]).refuses(2, &["no region file"]);
    }
    assert_eq!(std::fs::read(&region).unwrap(), bytes);
}

#[test]
fn a_region_in_use_is_looked_at_as_it_is_at_one_instant() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let mut program = running(&region);
    let path = region.to_str().unwrap();
    for _ in 0..10 {
        assert!(
            varve(&["durable", "check", path])
                .well()
                .out
                .contains("whole")
        );
    }
    varve(&["durable", "compact", path]).refuses(2, &["another process has this region open"]);
    varve(&run(&region, &["1"])).refuses(2, &["another process has this region open"]);
    let copy = folder.path().join("copy.region");
    let said = varve(&["durable", "backup", path, copy.to_str().unwrap()])
        .well()
        .out;
    assert!(said.contains("verified"), "{said}");
    program.kill().unwrap();
    program.wait().unwrap();
    for region in [&copy, &region] {
        let said = varve(&run(region, &["0"])).well().out;
        let words: Vec<i64> = said.split(' ').filter_map(|w| w.parse().ok()).collect();
        assert_eq!(words[0] + words[1], 2000, "{said}");
    }
}

/// The one line of a program whose file others change under it.
fn last_words(mut program: Child) -> String {
    let mut tries = 0;
    while program.try_wait().unwrap().is_none() {
        tries += 1;
        assert!(tries < 1000, "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = program.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

#[test]
fn a_file_that_is_removed_replaced_or_cut_off_under_a_program_ends_it_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let program = running(&region);
    std::fs::remove_file(&region).unwrap();
    assert!(last_words(program).contains("removed or replaced"));
    let program = running(&region);
    std::fs::rename(&region, folder.path().join("b.region")).unwrap();
    std::fs::write(&region, "somebody else's").unwrap();
    assert!(last_words(program).contains("removed or replaced"));
    assert_eq!(std::fs::read(&region).unwrap(), b"somebody else's");
    // What was over is in the file that was moved.
    varve(&[
        "durable",
        "check",
        folder.path().join("b.region").to_str().unwrap(),
    ])
    .well();
    std::fs::remove_file(&region).unwrap();
    let program = running(&region);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&region)
        .unwrap();
    file.set_len(8192).unwrap();
    let said = last_words(program);
    assert!(
        said.contains("cut off") && said.contains("a.region"),
        "{said}"
    );
}

#[test]
fn a_flipped_bit_is_found_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    varve(&run(&region, &["1000"])).well();
    let before = varve(&run(&region, &["0"])).well().out;
    let path = region.to_str().unwrap();
    let export = varve(&["durable", "export", path]).well().out;
    let id = export
        .lines()
        .find(|l| l.contains("java.lang.Long"))
        .expect("a balance");
    let id: serde_json::Value = serde_json::from_str(id).unwrap();
    let at = id["id"].as_u64().unwrap() as usize + 9;
    let mut bytes = std::fs::read(&region).unwrap();
    bytes[at] ^= 4;
    std::fs::write(&region, &bytes).unwrap();
    let said = varve(&["durable", "check", path]);
    assert!(
        said.code == 1 && said.out.contains("checksum"),
        "{}",
        said.out
    );
    varve(&run(&region, &["0"])).refuses(2, &["checksum", "durable salvage"]);
    let saved = folder.path().join("saved.region");
    let saved_path = saved.to_str().unwrap();
    let said = varve(&["durable", "salvage", path, saved_path]).well().out;
    assert!(
        said.contains("repaired: bit 2 of the byte at") && said.contains("nothing is lost"),
        "{said}"
    );
    assert_eq!(varve(&run(&saved, &["0"])).well().out, before);
    // What cannot be repaired is said, in numbers too.
    bytes[at - 9..at + 60].fill(0x77);
    std::fs::write(&region, &bytes).unwrap();
    let said = varve(&["durable", "salvage", path, saved_path, "--json"]);
    assert_eq!(said.code, 1);
    assert!(!said.json()["lost"].as_array().unwrap().is_empty());
    varve(&["durable", "check", saved_path]).well();
    // A foreign file is not written over.
    let letter = folder.path().join("letter");
    std::fs::write(&letter, "Dear reader").unwrap();
    varve(&["durable", "salvage", path, letter.to_str().unwrap()])
        .refuses(2, &["letter", "no region file"]);
}

#[test]
fn a_region_of_the_format_before_is_taken_along() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    std::fs::copy(
        home().join("cli/varve/tests/data/accounts-2.region"),
        &region,
    )
    .unwrap();
    let path = region.to_str().unwrap();
    assert!(
        varve(&["durable", "info", path])
            .well()
            .out
            .contains("format 2")
    );
    assert!(
        varve(&["durable", "check", path])
            .well()
            .out
            .contains("whole")
    );
    let said = varve(&run(&region, &["0"])).well().out;
    assert!(said.contains("700 + 1300 after 300 transfers"), "{said}");
    assert!(
        varve(&["durable", "info", path])
            .well()
            .out
            .contains("format 3")
    );
}

#[test]
fn a_file_stays_what_it_is_when_it_is_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let (region, link) = (folder.path().join("a.region"), folder.path().join("link"));
    varve(&run(&region, &["5000"])).well();
    std::os::unix::fs::symlink("a.region", &link).unwrap();
    std::fs::set_permissions(&region, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    varve(&["durable", "compact", link.to_str().unwrap()]).well();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&region).unwrap().mode() & 0o777, 0o600);
    varve(&run(&link, &["0"])).well();
}

/// Regions log what they store over; the log's room is not the file's for ever.
#[test]
fn regions_that_store_much_leave_a_small_file() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let path = region.to_str().unwrap();
    let size = |operations: &str| {
        let begin = format!("run programs/dist/durable.wasm --durable {path} --domain memory --");
        let begin = typed(&begin);
        let kernel = ["fararray", "--size", "20000", "--operations", operations];
        varve(&[&begin[..], &kernel].concat()).well();
        std::fs::metadata(&region).unwrap().len()
    };
    let (few, many) = (size("30"), size("600"));
    assert!(many < 16 << 20 && many <= 2 * few, "{few} {many}");
}

#[test]
fn ctrl_c_leaves_nothing_of_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let path = region.to_str().unwrap();
    let begin = format!("run programs/dist/durable.wasm --durable {path} --domain memory");
    let begin = typed(&begin);
    let farray = ["--", "farray", "--size", "100000", "--operations", "1"];
    varve(&[&begin[..], &farray].concat()).well();
    for wait in [1, 5, 15, 40, 80] {
        for kind in ["compact", "backup", "salvage"] {
            let mut words = vec!["durable", kind, region.to_str().unwrap()];
            let copy = folder.path().join("copy.region");
            if kind != "compact" {
                words.push(copy.to_str().unwrap());
            }
            let mut child = command(&words)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(wait));
            let _ = std::process::Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status();
            let code = child.wait().unwrap();
            assert!(
                [None, Some(0), Some(130)].contains(&code.code()),
                "{kind}: {code}"
            );
            // A signal that comes before the command looks for it ends it at once; then it has made nothing.
            let left: Vec<_> = std::fs::read_dir(folder.path())
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            assert!(
                !left.iter().any(|n| n.to_string_lossy().ends_with("-new")),
                "{kind} after {wait} ms: {left:?}"
            );
            let _ = std::fs::remove_file(&copy);
        }
    }
    varve(&["durable", "check", region.to_str().unwrap()]).well();
}

#[test]
fn a_full_disk_loses_nothing() {
    for domain in ["memory", "file"] {
        let Some(small) = SmallDisk::new(4096) else {
            return;
        };
        let region = small.path().join("a.region");
        let path = region.to_str().unwrap();
        let durable = "programs/dist/durable.wasm";
        let begin = ["run", durable, "--durable", path, "--domain", domain, "--"];
        let said = varve(&[&begin[..], &["farray", "--size", "40000"]].concat());
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(
            said.err.contains("a.region") && said.err.contains("make room"),
            "{}",
            said.err
        );
        varve(&["durable", "check", path]).well();
        // A copy needs as much again: it is not made, and nothing is left of it.
        let copy = small.path().join("copy.region");
        varve(&["durable", "backup", path, copy.to_str().unwrap()])
            .refuses(1, &["copy.region", "make room"]);
        let left = std::fs::read_dir(small.path()).unwrap().count();
        assert_eq!(left, 1);
        varve(&["durable", "check", path]).well();
    }
}

/// All commands that take a region file, with what they write.
fn all_commands<'a>(region: &'a str, new: &'a str) -> Vec<Vec<&'a str>> {
    vec![
        vec!["run", ACCOUNTS, "--durable", region, "--", "1"],
        vec!["serve", "--durable", region, "--listen", "127.0.0.1:0"],
        vec!["durable", "check", region],
        vec!["durable", "info", region],
        vec!["durable", "export", region],
        vec!["durable", "compact", region],
        vec!["durable", "backup", region, new],
        vec!["durable", "salvage", region, new],
    ]
}

#[test]
fn what_is_no_region_file_is_refused_by_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let new = at("new.region");
    let fifo = at("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let newer = at("newer.region");
    varve(&run(Path::new(&newer), &["10"])).well();
    let mut bytes = std::fs::read(&newer).unwrap();
    bytes[8..12].copy_from_slice(&9u32.to_le_bytes());
    std::fs::write(&newer, &bytes).unwrap();
    for (file, says) in [
        (fifo.as_str(), "a FIFO"),
        ("/dev/null", "a device"),
        (folder.path().to_str().unwrap(), "a directory"),
        (newer.as_str(), "version 9 of the format"),
    ] {
        for command in all_commands(file, &new) {
            varve(&command).refuses(2, &[file, says]);
        }
    }
    assert_eq!(std::fs::read(&newer).unwrap(), bytes);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_copy_that_cp_made_of_an_open_region_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let (region, copy) = (folder.path().join("a.region"), folder.path().join("copy"));
    let mut program = running(&region);
    std::fs::copy(&region, &copy).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let path = copy.to_str().unwrap();
    let bytes = std::fs::read(&copy).unwrap();
    let said = varve(&["durable", "check", path]);
    let words = "a copy of a region that was open";
    assert!(said.code == 1 && said.out.contains(words), "{}", said.out);
    varve(&run(&copy, &["0"])).refuses(2, &[words, "durable backup", "--verify"]);
    varve(&["durable", "compact", path]).refuses(2, &[words]);
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);
    let saved = folder.path().join("saved.region");
    let said = varve(&["durable", "salvage", path, saved.to_str().unwrap()]);
    assert!(said.out.contains(words), "{}", said.out);
    // The file itself goes on, under another name too, and a copy of what was closed is as good.
    let moved = folder.path().join("moved.region");
    std::fs::rename(&region, &moved).unwrap();
    let before = varve(&run(&moved, &["0"])).well().out;
    std::fs::copy(&moved, &copy).unwrap();
    assert_eq!(varve(&run(&copy, &["0"])).well().out, before);
}

#[test]
fn a_file_system_that_is_only_read_is_named() {
    let Some(small) = SmallDisk::new(4096) else {
        return;
    };
    let region = small.path().join("a.region");
    varve(&run(&region, &["10"])).well();
    let path = region.to_str().unwrap();
    let remounted = std::process::Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(small.path())
        .status();
    assert!(remounted.unwrap().success());
    for command in [&run(&region, &["0"])[..], &["durable", "compact", path]] {
        varve(command).refuses(1, &["a.region", "Read-only file system", "durable backup"]);
    }
    varve(&["durable", "check", path]).well();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.region");
    varve(&["durable", "backup", path, copy.to_str().unwrap()]).well();
    let after = varve(&run(&copy, &["0"])).well().out;
    assert!(after.contains("990 + 1010"), "{after}");
}
