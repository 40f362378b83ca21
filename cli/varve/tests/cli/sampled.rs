//! Programs that are not traced: profiles from samples of what they do with their memory.

use crate::common::{Said, command, home, is_root, varve};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use varve_sites::native::{Key, Profile, names};
use varve_sites::sampled::{agreement, draw};
use varve_sites::select::{Candidate, hot_sites};
use varve_sites::{Counts, SitesFile};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A program with a hot site and a cold one, that runs until its input ends; `None`, with the reason said, without a compiler.
fn hot_and_cold(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("hot_and_cold");
    let source = home().join("cli/varve/tests/data/hot_and_cold.c");
    let gcc = Command::new("gcc")
        .args(["-O1", "-g", "-o"])
        .args([&program, &source])
        .status();
    let compiled = gcc.is_ok_and(|status| status.success());
    if !compiled || cfg!(not(target_arch = "x86_64")) {
        varve_skip::skip!("no gcc, or not x86-64");
        return None;
    }
    Some(program)
}

/// Starts a command, and waits until the program in it has its objects: it prints its number then.
fn started(mut words: Command) -> (Child, u32) {
    let mut child = words
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let number = line.trim().parse();
    (
        child,
        number.unwrap_or_else(|_| panic!("{line:?} is no number")),
    )
}

/// Ends the program's input, and with it the program.
fn ends(mut child: Child) -> Said {
    let _ = child.stdin.take().unwrap().write_all(b"end\n");
    Said::of(child.wait_with_output().unwrap())
}

/// Samples the program for two seconds.
fn sampled(program: &Path, file: &Path) -> Said {
    let words = ["profile", "--live", "--for", "2s", "-o", text(file), "--"];
    let (mut child, _) = started(command(&[&words[..], &[text(program)]].concat()));
    // Its input ends when the samples are there.
    let _input = child.stdin.take();
    Said::of(child.wait_with_output().unwrap()).well()
}

/// Counts of the sites whose names begin so.
fn counts(profile: &Profile, function: &str) -> Counts {
    let mut sum = Counts::default();
    for site in &profile.sites {
        if names::name(&site.key).starts_with(function) {
            sum.add(&site.counts);
        }
    }
    sum
}

fn is_hot_worth_more(file: &Path) -> Profile {
    let profile = Profile::read(file).unwrap();
    let [hot, cold] = ["make_hot", "make_cold"].map(|f| counts(&profile, f));
    assert!(hot.samples > 20 && cold.samples > 20, "{hot:?} {cold:?}");
    let value = |c: &Counts| c.misses + c.write_misses;
    assert!(value(&hot) > 10 * value(&cold), "{hot:?} {cold:?}");
    // 200,000 objects of 64 bytes each.
    for bytes in [hot.peak_bytes, cold.peak_bytes] {
        assert!((8_000_000..20_000_000).contains(&bytes), "{bytes}");
    }
    profile
}

#[test]
fn a_hot_site_is_worth_more_than_a_cold_one_and_is_placed_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = hot_and_cold(folder.path()) else {
        return;
    };
    let file = folder.path().join("p.sites");
    let said = sampled(&program, &file);
    assert!(said.err.contains("not observed: "), "{}", said.err);
    let profile = is_hot_worth_more(&file);
    let hot = counts(&profile, "make_hot");
    let told_apart = !said.err.contains("not distinguished");
    assert!(!told_apart || hot.write_misses > 0, "{hot:?}");

    let table = varve(&["sites", text(&file), "--fast", "50%"]).well().out;
    for word in ["from samples", "pages used", "in doubt", "make_hot"] {
        assert!(table.contains(word), "no `{word}` in {table}");
    }
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    let json = varve(&["sites", text(&file), "--fast", "50%", "--json"]);
    let json = json.well().json();
    let site = |name: &str| {
        let sites = json["sites"].as_array().unwrap().iter();
        let mut named = sites.filter(|s| s["site"].as_str().unwrap().starts_with(name));
        named.next().unwrap_or_else(|| panic!("no {name}")).clone()
    };
    assert_eq!(site("make_hot")["in_doubt"], false, "{json}");
    assert_eq!(site("make_cold")["in_doubt"], false, "{json}");

    // Room for the hot site and not for both, whatever the samples say of their sizes.
    let cold = counts(&profile, "make_cold");
    let room = (hot.peak_bytes + cold.peak_bytes / 2).to_string();
    let placed = format!(
        "run --live --nodes fast=0,slow=0 --sites {} --fast {room} --json -- {}",
        file.display(),
        program.display()
    );
    let json = varve(&placed).well().json();
    let bytes = |name: &str, kind: &str| {
        let sites = json["sites"].as_array().unwrap().iter();
        let mut named = sites.filter(|s| s["site"].as_str().unwrap().starts_with(name));
        named.next().unwrap()[kind].as_u64().unwrap()
    };
    assert!(bytes("make_hot", "fast_bytes") > 12_000_000, "{json}");
    // A busy machine takes samples while the cold objects are made, too. Then these are worth a little, and take the room that is left.
    assert!(bytes("make_cold", "slow_bytes") > 4_000_000, "{json}");
}

#[test]
fn a_placed_program_that_runs_is_sampled_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = hot_and_cold(folder.path()) else {
        return;
    };
    let (first, second) = (folder.path().join("a.sites"), folder.path().join("b.sites"));
    sampled(&program, &first);
    let placed = command(&format!(
        "run --live --nodes fast=0,slow=0 --sites {} --fast 1GiB -- {}",
        first.display(),
        program.display()
    ));
    let (child, process) = started(placed);
    let process = process.to_string();
    varve(&format!(
        "profile --live --pid {process} --for 2s -o {}",
        second.display()
    ))
    .well();
    is_hot_worth_more(&second);
    let said = ends(child).well();
    assert!(
        said.err.contains("Objects by allocation site"),
        "{}",
        said.err
    );
}

#[test]
fn without_the_allocator_mappings_are_known_and_sites_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = hot_and_cold(folder.path()) else {
        return;
    };
    let file = folder.path().join("p.sites");
    let (child, process) = started(Command::new(&program));
    let process = process.to_string();
    let words = ["profile", "--live", "--pid", &process, "--for", "500ms"];
    let said = varve(&[&words[..], &["-o", text(&file)]].concat()).well();
    ends(child).well();
    assert!(
        said.err.contains("allocation sites are not known"),
        "{}",
        said.err
    );
    let profile = Profile::read(&file).unwrap();
    assert!(!profile.sampled.as_ref().unwrap().blind.is_empty());
    assert!(profile.sites.iter().all(|s| s.key.stack().is_empty()));
    let rest = profile.sites.iter().find(|s| s.key == Key::Rest);
    let rest = &rest.expect("the heap is other memory").counts;
    assert!(rest.peak_bytes > 20_000_000 && rest.misses > 0, "{rest:?}");
    let table = varve(&["sites", text(&file)]).well().out;
    assert!(table.contains("Note: the process does not"), "{table}");
}

#[test]
fn ctrl_c_writes_what_was_seen() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = hot_and_cold(folder.path()) else {
        return;
    };
    let (file, scratch) = (folder.path().join("p.sites"), folder.path().join("tmp"));
    std::fs::create_dir(&scratch).unwrap();
    let mut words = command(&["profile", "--live", "-o", text(&file), "--", text(&program)]);
    words.env("TMPDIR", &scratch);
    let (mut child, _) = started(words);
    // It would run on.
    let _input = child.stdin.take();
    let status = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
    Said::of(child.wait_with_output().unwrap()).well();
    let profile = Profile::read(&file).unwrap();
    assert!(counts(&profile, "make_hot").samples > 0);
    let left = std::fs::read_dir(&scratch).unwrap().count();
    assert_eq!(left, 0, "nothing else is left");
}

#[test]
fn what_cannot_be_sampled_is_said_in_one_line() {
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let gone = ended.id().to_string();
    let live = ["profile", "--live", "-o", "x.sites"];
    let refused: [(&[&str], &[&str]); 6] = [
        (&["--pid", &gone], &["no such process", &gone]),
        (&[], &["--pid NUMBER", "COMMAND"]),
        (&["--pid", &gone, "--", "true"], &["leave the command out"]),
        (&["--", "/nowhere/p"], &["/nowhere/p"]),
        (&["./p"], &["./p", "-- ./p"]),
        (&["--for", "0s", "--", "true"], &["--for"]),
    ];
    for (words, said) in &refused[..5] {
        varve(&[&live[..], words].concat()).refuses(2, said);
    }
    let wrong = varve(&[&live[..], refused[5].0].concat());
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("--for"), "{}", wrong.err);
    assert!(!home().join("x.sites").exists());

    // Another user's: the first process, or our own for the user `nobody`.
    let (mut words, process) = match is_root() {
        true => (command(&live), std::process::id()),
        false => (command(&live), 1),
    };
    words.args(["--pid", &process.to_string()]);
    if is_root() {
        words.uid(65_534);
    }
    words.current_dir("/");
    match words.output() {
        Ok(output) => Said::of(output).refuses(2, &["another user's", &process.to_string()]),
        Err(why) => varve_skip::skip!("nobody cannot run varve: {why}"),
    }
}

/// Samples of a recorded program's misses: at one in a hundred, 95 % of its bytes are placed as by all.
#[test]
fn one_miss_in_a_hundred_places_a_recorded_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sqlite.sites");
    let words = ["profile", "traces/sqlite-join.trace", "-o", text(&file)];
    varve(&words).well();
    let profile = Profile::read(&file).unwrap();
    let exact: Vec<Counts> = profile.sites.iter().map(|s| s.counts.clone()).collect();
    let peak: u64 = exact.iter().map(|c| c.peak_bytes).sum();
    let place = |counts: &[Counts]| {
        let sites: Vec<Candidate> = counts.iter().map(Candidate::by_misses).collect();
        let mut bytes = vec![0; sites.len()];
        for (site, fast) in hot_sites(&sites, peak / 4) {
            bytes[site] = fast;
        }
        bytes
    };
    let truth = place(&exact);
    let agreed = |rate: f64| {
        let draws =
            (0..20).map(|seed| agreement(&exact, &truth, &place(&draw(&exact, rate, seed))));
        draws.sum::<f64>() / 20.0
    };
    assert_eq!(agreed(1.0), 1.0);
    assert!(agreed(0.01) >= 0.95, "{}", agreed(0.01));
    assert!(agreed(0.0001) < agreed(0.01));
}
