//! `varve top`: printed for scripts, and on a terminal, which is left as it was.

use crate::common::{command, has, typed, varve};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Runs it on a terminal, ends it in a way, and compares the terminal's settings before and after.
const ON_A_TERMINAL: &str = r#"
import os, pty, select, signal, sys, termios, time
varve, how = sys.argv[1:]
ours, theirs = pty.openpty()
before = termios.tcgetattr(theirs)
pid = os.fork()
if pid == 0:
    os.setsid()
    import fcntl
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    for n in (0, 1, 2): os.dup2(theirs, n)
    os.environ["TERM"] = "xterm"
    os.execv(varve, [varve, "top", "--every", "100ms"])
termios.tcsetwinsize(theirs, (40, 100)) if hasattr(termios, "tcsetwinsize") else None
seen = b""
def read(until, seconds):
    global seen
    end = time.time() + seconds
    while until not in seen and time.time() < end:
        if select.select([ours], [], [], 0.2)[0]: seen += os.read(ours, 65536)
    return until in seen
assert read(b"MEMORY", 60), seen
assert b"\x1b[?1049h" in seen
{"q": lambda: os.write(ours, b"q"), "ctrl-c": lambda: os.write(ours, b"\x03"),
 "term": lambda: os.kill(pid, signal.SIGTERM)}[how]()
assert read(b"\x1b[?1049l", 60), "the screen before is not back"
_, status = os.waitpid(pid, 0)
assert termios.tcgetattr(theirs) == before, "the terminal's settings have changed"
print(os.waitstatus_to_exitcode(status))
"#;

#[test]
fn a_terminal_is_left_as_it_was() {
    if !has("python3", "python3") {
        return;
    }
    for (how, code) in [("q", "0"), ("ctrl-c", "0"), ("term", "130")] {
        let said = std::process::Command::new("python3")
            .args(["-c", ON_A_TERMINAL, env!("CARGO_BIN_EXE_varve"), how])
            .output()
            .unwrap();
        let (out, err) = (&said.stdout, String::from_utf8_lossy(&said.stderr));
        assert_eq!(String::from_utf8_lossy(out).trim(), code, "{how}: {err}");
    }
}

#[test]
fn it_is_printed_for_scripts_and_refused_without_a_terminal() {
    varve(&["top"]).refuses(2, &["no terminal", "--once"]);
    let said = varve(&["top", "--every=1ms"]);
    assert!(said.code == 2 && said.err.contains("100ms"), "{}", said.err);
    let once = ["top", "--once", "--every=200ms", "--processes=5"];
    let said = varve(&once).well().out;
    for word in ["MEMORY", "MOVES", "PROCESS"] {
        assert!(said.contains(word), "no {word} in {said}");
    }
    for line in said.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    if !crate::nodes::two_kinds() && Path::new("/sys/devices/system/node/node0").exists() {
        assert!(
            said.contains("there is one memory node") || said.contains("node 1"),
            "{said}"
        );
    }
    let json = varve(&[&once[..], &["--json"]].concat()).well().json();
    assert!(json["now"]["processes"].as_array().unwrap().len() <= 5);
    assert!(json["rates"]["seconds"].as_f64().unwrap() > 0.1);
    let nodes = json["now"]["nodes"].as_array().unwrap();
    assert!(
        nodes
            .iter()
            .all(|n| n["total"].as_u64() >= n["free"].as_u64()),
        "{json}"
    );
}

/// A `tier` at work is seen with its decisions, heat and moves; one that was killed is not.
#[test]
fn a_tier_at_work_is_shown_with_what_it_decided() {
    let nodes = match crate::nodes::two_kinds() {
        true => "--nodes=fast=0,slow=1",
        false => "--nodes=fast=0,slow=0",
    };
    let run = Path::new("/run/varve");
    if fs::create_dir_all(run).is_err() {
        return varve_skip::skip!("/run/varve cannot be made");
    }
    let words = format!("tier {nodes} --policy=hotset:period=100ms --observe=bits --beside");
    let words = typed(&words);
    let more = ["--core=100%", "--", "sleep", "600"];
    let mut tier = command(&[&words[..], &more].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = tier.id();
    let file = run.join(format!("tier-{pid}.json"));
    for _ in 0..600 {
        if file.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let once = ["top", "--once", "--every=100ms"];
    let said = varve(&once).well().out;
    let sleep = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let tiers = varve(&[&once[..], &["--json"]].concat()).well().json();
    let mine = tiers["now"]["tiers"].as_array().unwrap().iter();
    let mine: Vec<_> = mine.filter(|t| t["pid"] == pid).cloned().collect();
    // What was killed is shown no more, though its file is there; the next one removes that.
    tier.kill().unwrap();
    tier.wait().unwrap();
    if let Ok(child) = sleep.trim().parse::<u32>() {
        let _ = std::process::Command::new("kill")
            .arg(child.to_string())
            .status();
    }
    assert!(
        said.contains(&format!("VARVE TIER {pid}: hotset")),
        "{said}"
    );
    assert!(
        said.contains("    hot  |") && said.contains("seen by bits"),
        "{said}"
    );
    assert_eq!(mine.len(), 1);
    assert!(file.exists());
    let said = varve(&once).well().out;
    assert!(!said.contains(&format!("VARVE TIER {pid}:")), "{said}");
    let again = format!("tier {nodes} --policy=slow --beside --for=100ms -- sleep 1");
    varve(&again).well();
    assert!(!file.exists(), "the next one removes it");
}
