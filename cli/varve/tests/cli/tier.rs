//! Pages of programs that run already. Most stories are of a machine with memory alone on a node, and say elsewhere that they are
//! skipped: `.ci/run` tells them in a guest.

use crate::common::{Said, command, has, is_root, typed, varve};
use crate::nodes::skip_unless_two_kinds;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/guest/");

/// The program whose hot memory is known, compiled; says if it cannot be.
pub fn tiered(folder: &Path) -> Option<PathBuf> {
    compiled("tiered", folder)
}

/// A program of the guests' tests.
pub fn compiled(name: &str, folder: &Path) -> Option<PathBuf> {
    if !has("cc", "gcc") {
        return None;
    }
    let program = folder.join(name);
    let mut build = Command::new("cc");
    let source = format!("{SOURCES}{name}.c");
    build
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(source);
    assert!(build.status().expect("cc starts").success());
    Some(program)
}

/// Starts it, and waits until it has told where its memory is.
pub fn begun(program: &str, words: &[&str]) -> Started {
    let mut child = Command::new(program)
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it says something");
    Started {
        child,
        out,
        first: line,
    }
}

pub struct Started {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    /// Its first line of output.
    pub first: String,
}

impl Started {
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The rest of what it says; it ended well.
    pub fn ends_well(mut self) -> String {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut text).expect("it is text");
        assert!(self.child.wait().expect("it ends").success(), "{text}");
        text
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells a story of the program on a machine with two kinds of memory, one story at a time; elsewhere says that it is skipped.
fn on_two_kinds(tell: impl FnOnce(&str)) {
    let folder = tempfile::tempdir().expect("a folder");
    let _turn = turn();
    if skip_unless_two_kinds() {
        return;
    }
    if let Some(program) = tiered(folder.path()) {
        tell(program.to_str().expect("a path of ours"));
    }
}

/// Settings under which a slow guest is done soon: a third of a second between two looks, a whole core.
fn quick<'a>(policy: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let first = ["tier", "--core=100%", "--hold=1s", "--policy", policy];
    [&first[..], more].concat()
}

/// One at a time: one program has the kernel's monitors, and a slow guest two processors. In a guest, which is ours, the kernel's own moves of
/// used pages are off: what comes to fast memory has come by us.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    if Path::new("/.guest").exists() {
        std::fs::write("/proc/sys/kernel/numa_balancing", "0").expect("a guest's root may");
    }
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const HOTSET: &str = "hotset:period=300ms";

#[test]
fn what_cannot_be_tiered_is_refused_in_a_line() {
    let both = "--nodes=fast=0,slow=0";
    varve(&["tier"]).refuses(2, &["nothing to tier", "--pid", "--cgroup"]);
    varve(&["tier", "--pid=1", "--", "true"]).refuses(2, &["leave the command out"]);
    varve(&["tier", both, "--pid=999999999"]).refuses(2, &["--pid 999999999", "no such process"]);
    varve(&["tier", both, "--rate=0", "--", "true"]).refuses(2, &["--rate 0", "no page"]);
    varve(&["tier", both, "--", "/no/such/program"]).refuses(2, &["/no/such/program"]);
    varve(&["tier", both, "--cgroup=no/such.slice"]).refuses(2, &["--cgroup no/such.slice"]);
    let groups = ["--cgroup=no/other.slice", "--cgroup=no/such.slice"];
    varve(&[&["tier", both][..], &groups].concat()).refuses(2, &["--cgroup no/other.slice"]);
    varve(&["tier", "--policy=static", "--", "true"]).refuses(2, &["run --live"]);
    varve(&["tier", "--policy=random", "--", "true"]).refuses(2, &["models only"]);
    varve(&["tier", "--policy=hotst", "--", "true"]).refuses(2, &["did you mean `hotset`"]);
    varve(&["tier", "--policy=hotset:threads=1", "--", "true"]).refuses(2, &["for the model"]);
    let out = "--out=/nowhere/at/all";
    varve(&["tier", both, "--policy=trays", out, "--", "true"]).refuses(2, &["chooses frames"]);
    varve(&["tier", both, "--policy=hotset:period=1ms", "--", "true"]).refuses(2, &["10ms"]);
    varve(&format!("tier {both} --policy=slow --observe=bits -- true"))
        .refuses(2, &["leave --observe out"]);
}

#[test]
fn where_memory_is_alike_it_says_so_or_tells_what_it_would_decide() {
    if !crate::nodes::two_kinds() {
        varve(&["tier", "--", "true"]).refuses(2, &["all memory is alike", "--nodes"]);
    }
    let words = typed("tier --nodes=fast=0,slow=0 --policy=hotset:period=100ms --beside");
    let folder = tempfile::tempdir().unwrap();
    let out = format!("--out={}", folder.path().display());
    let more = format!("--observe=bits --core=100% --json {out} -- sleep 3");
    let more = typed(&more);
    let said = varve(&[&words[..], &more].concat()).well();
    assert!(said.err.contains("both fast and slow"), "{}", said.err);
    assert!(said.err.contains("not seen: "), "{}", said.err);
    let json = said.json();
    // A slow guest may see it once.
    assert!(json["intervals"].as_u64().unwrap() >= 1, "{json}");
    assert_eq!(json["to_fast_bytes"], 0);
    assert_eq!(json["processes"][0]["name"], "sleep");
    // What was seen is drawn.
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(text("heat-memory.svg").contains("hotset"));
    let timeline = text("timeline.perfetto.json");
    assert!(timeline.contains("pages in fast memory"), "{timeline}");
    let page = text("index.html");
    for name in ["heat-memory.svg", "timeline.perfetto.json"] {
        assert!(page.contains(&format!("href=\"{name}\"")), "{page}");
    }
    // The exit code is the command's.
    let words = typed("tier --nodes=fast=0,slow=0 --policy=slow --beside -- sh -c");
    let said = varve(&[&words[..], &["exit 7"]].concat());
    assert_eq!(said.code, 7, "{}", said.err);
}

#[test]
fn another_users_process_and_one_that_is_tiered_already_are_refused() {
    if !is_root() || !has("setpriv", "util-linux") {
        return;
    }
    let mut sleep = Command::new("sleep").arg("30").spawn().unwrap();
    let pid = format!("--pid={}", sleep.id());
    let words = format!("tier --nodes=fast=0,slow=0 --policy=slow --beside {pid}");
    let words = typed(&words);
    let stranger = [
        "--reuid=65534",
        "--clear-groups",
        env!("CARGO_BIN_EXE_varve"),
    ];
    let foreign = Command::new("setpriv").args(stranger).args(&words).output();
    Said::of(foreign.unwrap()).refuses(2, &["another user's"]);
    let mut first = command(&words).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(first.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("tiering sleep"), "{line}");
    varve(&words).refuses(2, &["another `varve tier`"]);
    // Killed, it leaves nothing behind that is in the way.
    first.kill().unwrap();
    first.wait().unwrap();
    let again = varve(&[&words[..], &["--for=100ms"]].concat()).well();
    assert!(again.err.contains("cost: "), "{}", again.err);
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

/// The terminal is gone, as where a connection breaks: the report comes all the same.
#[test]
fn a_lost_terminal_ends_tiering_with_its_report() {
    let mut slept = Command::new("sleep").arg("30").spawn().unwrap();
    let words = format!(
        "tier --nodes=fast=0,slow=0 --policy=slow --beside --pid={}",
        slept.id()
    );
    let mut child = command(&words).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    err.read_line(&mut said).unwrap();
    assert!(said.contains("tiering sleep"), "{said}");
    let hung_up = Command::new("kill")
        .args(["-s", "HUP", &child.id().to_string()])
        .status();
    assert!(hung_up.unwrap().success());
    err.read_to_string(&mut said).unwrap();
    assert!(said.contains("cost: "), "{said}");
    child.wait().unwrap();
    slept.kill().unwrap();
    slept.wait().unwrap();
}

#[test]
fn hot_pages_come_to_fast_memory_by_each_way_of_seeing() {
    on_two_kinds(|program| {
        // The program fails if its hot pages are not in fast memory in time, and its cold ones not out of it.
        for (way, policy) in [("damon", "hotset:period=1s"), ("writes", HOTSET)] {
            for node in ["node=0", "node=1"] {
                let tier = format!("--fast=12MiB --page=4KiB --observe {way} -- {program}");
                let tier = typed(&tier);
                let memory = format!("total=40 hot=8 budget=13 do=write seconds=300 {node}");
                let memory = typed(&memory);
                let said = varve(&[&quick(policy, &tier)[..], &memory].concat());
                let said = said.well();
                eprintln!("{way} from {node}: {}", said.out.lines().last().unwrap());
            }
        }
    });
}

#[test]
fn policies_without_a_daemon_put_all_pages_where_they_say() {
    on_two_kinds(|program| {
        // From the node on which they are not to be.
        for (policy, node, least, most) in [
            ("slow", "node=0", "least=0", "most=0"),
            ("fast", "node=1", "least=4096", "most=4096"),
            ("first-touch", "node=1", "least=4096", "most=4096"),
            (
                "interleave:fast=1,slow=3",
                "node=1",
                "least=900",
                "most=1100",
            ),
        ] {
            let tier = ["--fast=24MiB", "--page=4KiB", "--", program];
            let memory = format!("total=16 hot=4 budget=0 seconds=120 {node} {least} {most}");
            let memory = typed(&memory);
            let said = varve(&[&quick(policy, &tier)[..], &memory].concat());
            assert!(
                said.out.contains("placed after"),
                "{policy}: {}{}",
                said.out,
                said.err
            );
            said.well();
        }
    });
}

#[test]
fn huge_pages_move_whole_and_pages_that_cannot_move_are_named() {
    on_two_kinds(|program| {
        let tier = format!("--fast=12MiB --page=2MiB --observe=writes -- {program}");
        let tier = typed(&tier);
        let memory = typed("total=40 hot=8 block=2 budget=13 do=write do=huge node=0");
        let said = varve(&[&quick(HOTSET, &tier)[..], &memory].concat()).well();
        assert!(said.out.contains("settled"), "{}", said.out);
        // Smaller pages leave huge ones alone, and say so.
        let tier = format!("--fast=12MiB --page=4KiB --observe=writes -- {program}");
        let tier = typed(&tier);
        let memory = typed("total=16 hot=8 block=2 budget=0 do=huge seconds=3");
        let said = varve(&[&quick(HOTSET, &tier)[..], &memory].concat()).well();
        assert!(
            said.err.contains("--page 2MiB migrates them"),
            "{}",
            said.err
        );
        // A pipe has 16 pages; they are in it before anything is moved, and until the program ends.
        let memory = typed("total=8 hot=4 budget=0 do=pin seconds=300 node=0");
        let running = begun(program, &memory);
        let pid = running.pid();
        let tier = ["--page=4KiB", "--json", "--for=20s", "--pid", &pid];
        let said = varve(&quick("slow", &tier)).well();
        let last = said.out.find('{').map(|at| &said.out[at..]).unwrap();
        let json: Value = serde_json::from_str(last).unwrap();
        let busy = json["not_moved"].as_array().unwrap().iter();
        let busy = busy.filter(|r| r["why"] == "busy or pinned");
        assert!(busy.count() == 1, "{json}");
        assert!(json["left_alone_pages"].as_u64().unwrap() >= 16, "{json}");
    });
}

/// A node of 32 MiB as fast memory for a program of 48.
#[test]
fn a_full_fast_node_is_said_and_does_no_harm() {
    if !Path::new("/sys/devices/system/node/node2/meminfo").exists() {
        return varve_skip::skip!("there is no third node");
    }
    on_two_kinds(|program| {
        let nodes = "--nodes=fast=2,slow=0+1";
        let tier = [nodes, "--fast=1GiB", "--page=4KiB", "--", program];
        let memory = ["total=48", "hot=4", "budget=0", "seconds=12"];
        let said = varve(&[&quick("first-touch", &tier)[..], &memory].concat()).well();
        assert!(
            said.err.contains("have less memory than --fast"),
            "{}",
            said.err
        );
        assert!(said.err.contains("the node was full"), "{}", said.err);
    });
}

/// Of what workers share, each page is seen and placed once, by the uses of all of them.
#[test]
fn shared_memory_is_seen_and_moved_by_what_all_workers_use() {
    on_two_kinds(|program| {
        for (way, more) in [
            ("writes", "workers=0"),
            ("writes", "workers=3"),
            ("damon", "workers=3"),
        ] {
            let tier = format!("--fast=12MiB --page=4KiB --observe {way} --json -- {program}");
            let tier = typed(&tier);
            let policy = if way == "damon" {
                "hotset:period=1s"
            } else {
                HOTSET
            };
            let memory =
                format!("total=40 hot=8 budget=13 do=write do=shared seconds=300 node=1 {more}");
            let memory = typed(&memory);
            // It ends well once it has seen its hot pages there.
            let said = varve(&[&quick(policy, &tier)[..], &memory].concat());
            let json = said.well().json();
            eprintln!("{way} {more}: {} s", json["seconds"]);
            let shared = &json["shared"][0];
            assert!(
                shared["name"].as_str().unwrap().starts_with("/dev/zero"),
                "{json}"
            );
            let bytes = |key: &str| shared[key].as_u64().unwrap();
            let (fast, slow) = (bytes("on_fast_bytes"), bytes("on_slow_bytes"));
            // Each page once, however many processes have it.
            assert_eq!(fast + slow, 40 << 20, "{json}");
            assert!((7 << 20..=12 << 20).contains(&fast), "{json}");
            let processes = shared["processes"].as_u64().unwrap();
            assert_eq!(processes, if more == "workers=0" { 1 } else { 4 }, "{json}");
        }
    });
}

/// What workers had from their parent and only read is one page of all of them.
#[test]
fn memory_that_was_there_before_a_fork_is_moved_for_all_that_have_it() {
    on_two_kinds(|program| {
        let tier = format!("--fast=12MiB --page=4KiB --observe damon --json -- {program}");
        let tier = typed(&tier);
        let memory = typed("total=40 hot=8 budget=13 do=read seconds=300 node=1 workers=3");
        let said = varve(&[&quick("hotset:period=1s", &tier)[..], &memory].concat());
        let json = said.well().json();
        eprintln!("{} s", json["seconds"]);
        let shared = &json["shared"][0];
        let named = ["name", "kind"].map(|key| shared[key].as_str().unwrap());
        assert_eq!(named, ["tiered", "shared since a fork"], "{json}");
        let bytes = |key: &str| shared[key].as_u64().unwrap();
        let (fast, slow) = (bytes("on_fast_bytes"), bytes("on_slow_bytes"));
        // The table and little else: what a worker writes is its own.
        assert!((40 << 20..42 << 20).contains(&(fast + slow)), "{json}");
        assert!((7 << 20..=12 << 20).contains(&fast), "{json}");
        assert_eq!(shared["processes"], 4, "{json}");
    });
}

/// Two programs that read: the kernel has a monitor for each.
#[test]
fn several_processes_are_all_seen() {
    on_two_kinds(|program| {
        // Each ends well once its own hot pages are in fast memory, which is too small for all pages of one.
        let memory = typed("total=24 hot=6 budget=16 seconds=240 node=1");
        let both = [begun(program, &memory), begun(program, &memory)];
        let [first, second] = [both[0].pid(), both[1].pid()];
        let pids = ["--pid", &first, "--pid", &second];
        let tier = ["--fast=16MiB", "--page=4KiB", "--observe=damon"];
        let said = varve(&[&quick("hotset:period=1s", &tier)[..], &pids].concat()).well();
        assert!(!said.err.contains("all monitors watch"), "{}", said.err);
        for one in both {
            assert!(one.ends_well().contains("settled"));
        }
    });
}

/// A shell that starts the program: it is found and seen like the shell.
#[test]
fn a_process_that_is_started_is_tiered_too_and_killing_tier_leaves_nothing_on() {
    on_two_kinds(|program| {
        let line = format!(
            "{} total=32 hot=8 budget=13 do=write seconds=300 node=0; exit $?",
            program
        );
        let tier = ["--fast=12MiB", "--page=4KiB", "--", "sh", "-c", &line];
        let said = varve(&quick(HOTSET, &tier)).well();
        assert!(said.out.contains("settled"), "{}", said.out);
        assert!(said.err.contains("tiered ("), "{}", said.err);

        let count = Path::new("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds");
        let monitors = || std::fs::read_to_string(count).unwrap_or("0".into());
        assert_eq!(monitors().trim(), "0");
        let memory = ["total=24", "hot=8", "budget=0", "seconds=15", "node=0"];
        let running = begun(program, &memory);
        let pid = running.pid();
        let words = quick(
            "hotset:period=1s",
            &["--observe=damon", "--fast=10MiB", "--pid", &pid],
        );
        let mut killed = command(&words).stderr(Stdio::null()).spawn().unwrap();
        // Before it takes all of them it tries with one.
        let until = Instant::now() + Duration::from_secs(20);
        while monitors().trim() != "64" && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(monitors().trim(), "64");
        std::thread::sleep(Duration::from_secs(2));
        killed.kill().unwrap();
        killed.wait().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while monitors().trim() != "0" && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(monitors().trim(), "0", "the guard turns them off");
        // The program ran on, and another one may take over.
        let words = quick(HOTSET, &["--observe=writes", "--for=2s", "--pid", &pid]);
        varve(&words).well();
        running.ends_well();
    });
}

/// An unmodified server: most of its values are never asked for again.
#[test]
fn a_redis_server_has_its_hot_keys_in_fast_memory() {
    let _turn = turn();
    if skip_unless_two_kinds()
        || !has("redis-server", "redis-server")
        || !has("redis-cli", "redis-tools")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("redis.sock");
    let socket = socket.to_str().unwrap();
    let options = [
        "--port",
        "0",
        "--unixsocket",
        socket,
        "--save",
        "",
        "--appendonly",
        "no",
    ];
    let server = Command::new("redis-server")
        .args(options)
        .stdout(Stdio::null())
        .spawn();
    struct Server(Child);
    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let server = Server(server.expect("it starts"));
    let client = |words: &[&str]| {
        let said = Command::new("redis-cli")
            .args(["-s", socket])
            .args(words)
            .output();
        String::from_utf8(said.expect("it starts").stdout).expect("text")
    };
    let until = Instant::now() + Duration::from_secs(30);
    while client(&["ping"]).trim() != "PONG" && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(200));
    }
    // 24 MiB of values of 16 KiB each. The first 64 are the hot ones.
    let fill =
        "for i = 1, 1536 do redis.call('set', 'k' .. i, string.rep('x', 16384)) end return 1";
    assert_eq!(client(&["eval", fill, "0"]).trim(), "1");
    let pid = server.0.id().to_string();
    let words = quick(
        "hotset:period=300ms",
        &[
            "--observe=writes",
            "--fast=8MiB",
            "--page=4KiB",
            "--for=16s",
            "--json",
            "--pid",
            &pid,
        ],
    );
    let mut tier = command(&words);
    let mut tier = tier
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Every page of theirs is written, again and again, until observation ends.
    let work = "for round = 1, 12 do for i = 1, 64 do for at = 0, 16000, 4000 do redis.call('setrange', 'k' .. i, at, 'y') end end end \
                return redis.call('memory', 'usage', 'k1')";
    while tier.try_wait().unwrap().is_none() {
        assert!(client(&["eval", work, "0"]).trim().parse::<u64>().is_ok());
    }
    let said = Said::of(tier.wait_with_output().unwrap()).well();
    let json = said.json();
    let process = &json["processes"][0];
    assert_eq!(process["name"], "redis-server");
    let (fast, slow) = (&process["on_fast_bytes"], &process["on_slow_bytes"]);
    // Huge pages stay where they are if pages are smaller.
    let left = process["huge_left_bytes"].as_u64().unwrap();
    assert!(fast.as_u64().unwrap() <= (9 << 20) + left, "{json}");
    assert!(slow.as_u64().unwrap() >= 15 << 20, "{json}");
    let (hot, there) = (&json["hot_bytes"], &json["hot_in_fast_bytes"]);
    let (hot, there) = (hot.as_u64().unwrap(), there.as_u64().unwrap());
    assert!(hot >= 512 << 10 && there * 10 >= hot * 9, "{json}");
    assert_eq!(client(&["strlen", "k1500"]).trim(), "16384", "it serves on");
}
