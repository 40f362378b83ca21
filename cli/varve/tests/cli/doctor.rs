//! The set-up of a machine's memories: what the doctor says of machines that are set up wrongly, and that it mends and reverts
//! what it says, in a guest.

use crate::common::{Said, command, has, varve};
use crate::machine_files::unpack;
use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../live/linux/tests/doctor");

/// Each has its text beside it; `VARVE_ACCEPT=1` writes a new one.
#[test]
fn each_wrong_set_up_is_told_with_its_reason_and_its_commands() {
    let accept = std::env::var_os("VARVE_ACCEPT").is_some();
    let entries = fs::read_dir(FOLDER)
        .expect("the machines are there")
        .flatten();
    let mut seen = 0;
    for path in entries
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "sys"))
    {
        let root = tempfile::tempdir().unwrap();
        unpack(&fs::read_to_string(&path).unwrap(), root.path());
        let root = root.path().to_str().unwrap();
        let mut words = vec!["machine", "--doctor", "--root", root];
        let measured = format!("{FOLDER}/measured.json");
        if path
            .file_stem()
            .is_some_and(|name| name == "weights-measured")
        {
            words.extend(["--calibrated", &measured]);
        }
        let said = varve(&words).well();
        for line in said.out.lines() {
            assert!(
                line.starts_with("   $ ") || line.chars().count() <= 80,
                "{line}"
            );
        }
        let golden = path.with_extension("said");
        match accept {
            true => fs::write(&golden, &said.out).unwrap(),
            false => assert_eq!(said.out, fs::read_to_string(&golden).unwrap(), "{golden:?}"),
        }
        words.push("--json");
        let json = varve(&words).well().json();
        assert_eq!(
            json["checks"].as_array().map(Vec::len),
            Some(0),
            "nothing was tried"
        );
        for finding in json["findings"].as_array().expect("a list") {
            for word in ["name", "what", "why"] {
                assert!(
                    finding[word].as_str().is_some_and(|w| !w.is_empty()),
                    "{finding}"
                );
            }
        }
        seen += 1;
    }
    assert!(seen >= 10);
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    varve(&["machine", "--doctor", "--root", "/no/such"]).refuses(2, &["--root /no/such"]);
    varve(&["machine", "--doctor", "--calibrated", "/no/such"]).refuses(2, &["--calibrated"]);
    let words = ["machine", "--doctor", "--calibrated", "Cargo.toml"];
    varve(&words).refuses(2, &["--calibrated Cargo.toml", "calibrate here"]);
    assert_eq!(varve(&["machine", "--fix"]).code, 2);
    assert_eq!(varve(&["machine", "--doctor", "--fix", "--undo"]).code, 2);
    assert_eq!(varve(&["machine", "--doctor", "--fix", "--root=/"]).code, 2);
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().into()
}

/// Only in a guest: the developer's machine must not be changed.
#[test]
fn a_guest_is_mended_and_taken_back() {
    if !Path::new("/.guest").exists() || crate::nodes::skip_unless_two_kinds() {
        return varve_skip::skip!("needs a guest with two kinds of memory");
    }
    let demotion = "/sys/kernel/mm/numa/demotion_enabled";
    let balancing = "/proc/sys/kernel/numa_balancing";
    let weight = "/sys/kernel/mm/mempolicy/weighted_interleave/node0";
    fs::write(balancing, "1").expect("a guest's root may");
    fs::write(demotion, "0").expect("a guest's root may");
    let before = [demotion, balancing, weight].map(read);
    assert_eq!(before, ["false", "1", "1"]);

    let doctor = ["machine", "--doctor"];
    let with = |more: &[&'static str]| [&doctor[..], more].concat();
    let said = varve(&doctor).well().out;
    for word in [
        "demotion_enabled is off",
        "numa_balancing is 1",
        "ask for 2:1",
        "--fix",
    ] {
        assert!(said.contains(word), "no {word} in {said}");
    }
    // Without a terminal to ask on, nothing happens.
    let said = varve(&with(&["--fix"]));
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("--yes"), "{}", said.err);
    assert_eq!([demotion, balancing, weight].map(read), before);

    if has("setpriv", "util-linux") {
        let stranger = [
            "--reuid=65534",
            "--clear-groups",
            env!("CARGO_BIN_EXE_varve"),
        ];
        let mut as_nobody = Command::new("setpriv");
        as_nobody.args(stranger).args(with(&["--fix", "--yes"]));
        let said = Said::of(as_nobody.output().unwrap());
        assert_eq!(
            (said.code, said.err.lines().count()),
            (1, 1),
            "{}",
            said.err
        );
        assert!(said.err.contains("be root"), "{}", said.err);
    }
    if has("unshare", "util-linux") {
        let line = format!(
            "mount -o remount,ro /sys && exec {} machine --doctor --fix --yes",
            env!("CARGO_BIN_EXE_varve")
        );
        let said = Command::new("unshare")
            .args(["-m", "sh", "-c", &line])
            .output();
        let said = Said::of(said.unwrap());
        let remounted = Command::new("mount")
            .args(["-o", "remount,rw", "/sys"])
            .status();
        assert!(remounted.unwrap().success());
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("demotion_enabled: "), "{}", said.err);
        assert!(said.err.contains("read-only"), "{}", said.err);
        // The rest was done, and is reverted.
        assert_eq!(read(balancing), "2");
        varve(&with(&["--undo"])).well();
        assert_eq!([demotion, balancing, weight].map(read), before);
    }

    let said = varve(&with(&["--fix", "--yes"])).well();
    assert!(
        said.out
            .contains("done: /proc/sys/kernel/numa_balancing is `2`"),
        "{}",
        said.out
    );
    assert_eq!([demotion, balancing, weight].map(read), ["true", "2", "2"]);
    assert!(Path::new("/run/varve/doctor.json").exists());
    let again = varve(&doctor).well().out;
    assert!(again.contains("nothing wrong was found"), "{again}");
    let said = varve(&with(&["--fix", "--yes"])).well();
    assert!(said.out.contains("nothing to fix"), "{}", said.out);

    // A setting that another program has changed since stays.
    fs::write(balancing, "0").unwrap();
    let said = command(&with(&["--undo", "--json"])).output().unwrap();
    let json = Said::of(said).well().json();
    let became = |file: &str| {
        let all = json["changes"].as_array().expect("a list").iter();
        let of = all
            .filter(|c| c["file"] == file)
            .map(|c| c["became"].clone());
        of.collect::<Vec<_>>()
    };
    assert_eq!(became(balancing), ["changed by others"]);
    assert_eq!(became(demotion), ["done"]);
    assert_eq!([demotion, balancing, weight].map(read), ["false", "0", "1"]);
    assert!(!Path::new("/run/varve/doctor.json").exists());
    let said = varve(&with(&["--undo"])).well();
    assert!(said.out.contains("nothing to revert"), "{}", said.out);
}
