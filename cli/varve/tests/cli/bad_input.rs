//! Wrong names, wrong files, wrong sizes: one line that says what is wrong and what to do, and the exit code for it.

use crate::common::{TINY, home, typed, varve};
use std::fs;

#[test]
fn an_unknown_name_is_told_with_the_known_ones() {
    varve(&["run", "gupps"]).refuses(2, &["gupps", "gups", "ycsb"]);
    varve(&["run", TINY, "--machine", "nope"]).refuses(2, &["nope", "cxl-spr"]);
    varve(&["run", TINY, "--policy", "nope"]).refuses(2, &["nope", "static"]);
    varve(&["run", TINY, "--policy", "static,nope"]).refuses(2, &["nope"]);
    varve(&["policy", "nope"]).refuses(2, &["nope", "first-touch"]);
    varve(&["workload", "nope"]).refuses(2, &["nope", "gups"]);
    varve(&["study", "nope"]).refuses(2, &["nope", "johnny-cache"]);
    varve(&["study", "count", "nothing", "1"]).refuses(2, &["nothing"]);
    varve(&["study", "quickcheck", "--shard", "0/2"]).refuses(2, &["measures the machine"]);
    let words = ["study", "pima", "--keep", "none", "--merge"];
    varve(&words).refuses(2, &["--keep"]);
    let words = ["study", "pima", "--keep", "k", "--shard", "2/2"];
    varve(&words).refuses(2, &["--shard 2/2", "3/16"]);
    varve(&["machine", "show", "nope"]).refuses(2, &["nope", "haswell-2620v3"]);
    varve(&["machine", "calibrate", "nope"]).refuses(2, &["nope", "optane-8260"]);
    varve(&["trace", "import", "--from", "nope", "a", "-o", "b"]).refuses(2, &["nope", "lackey"]);
}

#[test]
fn an_unknown_parameter_is_told_with_the_known_ones() {
    varve(&["run", "gups:byts=3"]).refuses(2, &["gups", "byts", "bytes", "to_hot"]);
    varve(&["run", "gups:bytes=many"]).refuses(2, &["gups", "bytes", "many"]);
    varve(&["run", TINY, "--policy", "static:colour=3"]).refuses(2, &["static", "colour", "seed"]);
    varve(&["run", TINY, "--policy", "dynamic:period=soon"])
        .refuses(2, &["dynamic", "period", "soon"]);
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fs::write(at("letter.trace"), "Dear reader,\nthis is no trace.\n").unwrap();
    fs::write(at("empty.trace"), "").unwrap();
    for name in ["letter.trace", "empty.trace"] {
        varve(&["run", &at(name)]).refuses(2, &[name]);
        varve(&["trace", "info", &at(name)]).refuses(2, &[name]);
    }
    varve(&["run", &at("letter.trace")]).refuses(2, &["not a varve trace"]);
    varve(&["run", &at("letter.trace")]).refuses(2, &["varve trace", "import"]);
    varve(&[
        "trace",
        "import",
        "--from",
        "lackey",
        &at("letter.trace"),
        "-o",
        &at("out.trace"),
    ])
    .refuses(2, &["letter.trace"]);
    assert!(
        !folder.path().join("out.trace").exists(),
        "no half trace is left"
    );
}

/// A file that is not there, a folder in its place: told before any work is done, with what to do.
#[test]
fn a_file_or_folder_that_is_not_there_comes_with_a_remedy() {
    let remedy = "record one with `varve trace -o nothere.trace -- COMMAND`";
    varve(&["run", "nothere.trace"]).refuses(2, &["nothere.trace: no such trace", remedy]);
    varve(&["run", "nothere.trace", "--scale", "2"]).refuses(2, &[remedy]);
    varve(&["trace", "info", "nothere.trace"]).refuses(2, &[remedy]);
    varve(&["run", "docs/"]).refuses(2, &["docs/", "a folder", "name a file"]);
    varve(&["run", "no/such.csv"]).refuses(2, &["no/such.csv: no such trace"]);
    varve(&["trace", "-o", "docs", "--", "true"]).refuses(2, &["docs", "folder", "--output"]);
    varve(&["trace", "-o", "no/x.trace", "--", "true"])
        .refuses(2, &["no/x.trace", "no folder no", "--output"]);
    let import = ["trace", "import", "--from", "lackey"];
    varve(&[&import[..], &["nothere", "-o", "x.trace"]].concat())
        .refuses(2, &["nothere: no such file", "lackey wrote"]);
    varve(&[&import[..], &["README.md", "-o", "no/x.trace"]].concat())
        .refuses(2, &["no/x.trace", "--output"]);
    varve(&["run", TINY, "--policy", ""]).refuses(2, &["no page policy", "`varve policy`"]);
    assert!(!home().join("x.trace").exists());
}

/// A program may run for an hour, and what is wrong is known before.
#[test]
fn a_command_does_not_run_for_a_policy_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    let touched = file.to_str().unwrap();
    for (policies, words) in [
        ("fast;nonsense", &["nonsense", "static"][..]),
        ("nonsense", &["nonsense"]),
        ("random;static:colour=3", &["static", "colour"]),
        ("random;dynamic:period=soon", &["period", "soon"]),
        ("random;hotset", &["hotset", "flat"]),
        ("hotset", &["hotset", "flat"]),
        (";", &["no page policy"]),
    ] {
        let said = varve(&["run", "--policy", policies, "--", "touch", touched]);
        said.refuses(2, words);
        assert!(!file.exists(), "{policies}: the command ran");
    }
}

/// Runs without arguments refuse them; runs without an option refuse it, too.
#[test]
fn what_a_run_does_not_take_is_refused() {
    let trace = "traces/sqlite-join.trace";
    for work in [TINY, trace] {
        let said = varve(&["run", work, "--policy", "static", "--", "ls"]);
        said.refuses(2, &[work, "takes no arguments", "leave `-- ls` out"]);
    }
    let hello = typed("run programs/dist/hello.wasm --machine optane-6242");
    for policy in ["all", "slow"] {
        let said = varve(&[&hello[..], &["--plan", "dram", "--policy", policy]].concat());
        said.refuses(
            2,
            &[
                "--policy is for pages on a model",
                "with its objects on a modelled machine",
            ],
        );
    }
    varve(&["run", TINY, "--durable", "x.region"])
        .refuses(2, &["--durable is for WebAssembly programs;"]);
    varve(&["run", "sh", "script"]).refuses(2, &["write `varve run -- sh script`"]);
    varve(&["run", "sh"]).refuses(2, &["write `varve run -- sh`"]);
    varve(&["run", TINY, "gups"]).refuses(2, &["only one can run at a time"]);
    let said = varve(&["polcy"]);
    assert!(
        said.code == 2 && said.err.contains("'policy'"),
        "{}",
        said.err
    );
}

/// The remedy is one: the scale that is named fits.
#[test]
fn out_of_memory_names_the_scale_that_fits() {
    let run = |scale: &str| {
        let words = typed("run traces/sqlite-join.trace --machine optane-6242");
        varve(&[&words[..], &["--policy", "fast", "--scale", scale]].concat())
    };
    let mut scale = 65536;
    let said = run(&scale.to_string());
    said.refuses(
        1,
        &[
            "out of memory",
            "the trace touches",
            "MiB",
            "`optane-6242` at 1/65536",
        ],
    );
    let fits = said
        .err
        .split("--scale ")
        .nth(1)
        .and_then(|s| s.split(' ').next());
    let fits: u32 = fits
        .and_then(|s| s.parse().ok())
        .expect("a scale that fits");
    assert!(fits < scale && fits.is_power_of_two());
    scale = fits;
    run(&scale.to_string()).well();
    run(&(2 * scale).to_string()).refuses(1, &["out of memory"]);
}

/// The disk was full, the host went down: what was recorded counts, and the user is told where it ends.
#[test]
fn a_truncated_trace_runs_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(home().join("traces/sqlite-join.trace")).unwrap();
    let file = folder.path().join("cut.trace");
    let path = file.to_str().unwrap();
    for share in [0.1, 0.5, 0.99] {
        fs::write(&file, &whole[..(whole.len() as f64 * share) as usize]).unwrap();
        let info = varve(&["trace", "info", path]).well().out;
        assert!(info.contains("cut at byte"), "{info}");
        let run = varve(&["run", path, "--policy", "static"]).well().out;
        assert!(run.contains("cut.trace: stops at byte"), "{run}");
    }
}

/// Of no access there is nothing to advise on: not inside the header, before the first block, or inside of it.
#[test]
fn a_trace_that_is_cut_off_before_its_first_accesses_is_to_be_recorded_again() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(home().join("traces/sqlite-join.trace")).unwrap();
    let header = 16 + 4 + u32::from_le_bytes(whole[12..16].try_into().unwrap()) as usize;
    let file = folder.path().join("cut.trace");
    let path = file.to_str().unwrap();
    for bytes in [12, 60, header, header + 10, header + 2000] {
        fs::write(&file, &whole[..bytes]).unwrap();
        for more in [&[][..], &["--scale", "64"]] {
            let said = varve(&[&["run", path][..], more].concat());
            said.refuses(2, &["cut.trace: cut off", "record it again"]);
        }
    }
}

/// Bits that turned over in the middle: the checksum finds it, and nothing after it is believed.
#[test]
fn a_damaged_trace_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(home().join("traces/sqlite-join.trace")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    let file = folder.path().join("damaged.trace");
    fs::write(&file, bytes).unwrap();
    let said = varve(&["run", file.to_str().unwrap(), "--policy", "static"]);
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("damaged.trace"), "{told}");
    assert!(told.contains("byte"), "where: {told}");
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn a_footprint_larger_than_the_machine_is_out_of_memory() {
    let words = typed("run gups:bytes=4TiB,updates=1k --scale 512 --policy static");
    varve(&words).refuses(1, &["out of memory", "larger machine"]);
    // What every policy says alike is said once.
    varve(&words[..4]).refuses(1, &["out of memory"]);
}

#[test]
fn a_page_larger_than_a_device_is_refused() {
    varve(&["run", TINY, "--page", "1TiB"])
        .refuses(2, &["page", "larger", "optane-6230-memory-mode"]);
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    varve(&["run", TINY, "--page", "4KiB"]).refuses(2, &["4096 B", "--scale"]);
    varve(&["run", TINY, "--scale", "3"]).refuses(2, &["3", "power of two"]);
    varve(&["run", TINY, "--page", "3MiB", "--scale", "1"]).refuses(2, &["power of two"]);
    for (flag, value) in [
        ("--until", "0"),
        ("--until", "-1"),
        ("--until", "soon"),
        ("--page", "12 apples"),
        ("--seed", "x"),
    ] {
        let said = varve(&["run", TINY, flag, value]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (2, ""),
            "{flag} {value}: {}",
            said.err
        );
        assert!(said.err.contains(flag), "{}", said.err);
    }
}

#[test]
fn a_policy_that_does_not_go_with_the_machine_says_which_does() {
    varve(&["run", TINY, "--policy", "hotset"]).refuses(2, &["hotset", "flat"]);
    varve(&["run", TINY, "--machine", "cxl-spr", "--policy", "static"]).refuses(2, &["static"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    varve(&["run", TINY, "--policy", "static", "--out", "/proc/nowhere"])
        .refuses(2, &["/proc/nowhere", "--out"]);
}

#[test]
fn live_placement_says_what_it_lacks() {
    varve(&["run", "--live", "--bins", "48GiB", "--", "no-such-program"])
        .refuses(2, &["no-such-program"]);
    let said = varve(&["run", "--live", "--bins", "1MiB", "--", "true"]);
    assert_eq!(said.code, 2, "{}", said.err);
    let said = varve(&["run", "--live", "--machine", "cxl-spr", "--", "true"]);
    said.refuses(
        2,
        &[
            "--machine is for",
            "-- true runs with its pages on this machine",
        ],
    );
    if kernel_tells_of_no_cache() {
        let said = varve(&["run", "--live", "--", "true"]);
        let remedies = ["--bins 48GiB", "--sites FILE.sites", "varve profile -o"];
        said.refuses(2, &[&["no DRAM cache"], &remedies[..]].concat());
    }
}

fn kernel_tells_of_no_cache() -> bool {
    let nodes = std::fs::read_dir("/sys/devices/system/node");
    let nodes = nodes.into_iter().flatten().flatten();
    let mut caches = nodes.map(|node| node.path().join("memory_side_cache"));
    !caches.any(|cache| cache.exists())
}

/// Files that are written at the end are tried at the beginning.
#[test]
fn results_that_could_not_be_written_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let inside = file.join("more");
    for (path, why) in [
        (&file, "a file, and no folder"),
        (&inside, "is a file, and no folder"),
    ] {
        let path = path.to_str().unwrap();
        varve(&["run", TINY, "--out", path]).refuses(2, &[path, why, "choose another --out"]);
        varve(&["study", "app-aware", "--quick", "--keep", path])
            .refuses(2, &[path, why, "choose another --keep"]);
    }
    varve(&["run", TINY, "--numa", "auto", "--machine", "optane-6242"])
        .refuses(2, &["--numa", "WebAssembly"]);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left there");
}

/// An argument that is no UTF-8 is a program's own affair.
#[test]
fn arguments_may_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_varve"));
    let module = crate::common::home().join("programs/dist/hello.wasm");
    command.arg("run").arg(module);
    command.args(["--machine", "optane-6242", "--plan", "dram", "--json", "--"]);
    command.arg(std::ffi::OsStr::from_bytes(b"A\xffda"));
    let said = command.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stdout).contains("A\u{fffd}da"));
}
