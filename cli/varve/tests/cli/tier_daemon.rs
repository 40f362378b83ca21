//! `varve tier --config`: several control groups, each with a budget of its own; and measurements.

use crate::common::{command, has, is_root, typed, varve};
use crate::nodes::two_kinds;
use crate::tier::{tiered, turn};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// Calls `done` until it has something.
fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(it) = done() {
            return it;
        }
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A control group of a test, removed at its end.
struct Group {
    name: String,
    folder: PathBuf,
}

impl Group {
    /// `None` where no group can be made, and says so.
    fn make(name: &str) -> Option<Group> {
        let name = format!("varve-test-{}-{name}", std::process::id());
        let mounts = || fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let top = |mounts: &str| {
            let line = mounts.lines().find(|line| line.contains(" cgroup2 "))?;
            line.split(' ').nth(1).map(PathBuf::from)
        };
        // A guest begins without.
        if Path::new("/.guest").exists() && top(&mounts()).is_none() {
            let mut mount = Command::new("mount");
            mount.args(["-t", "cgroup2", "none", "/sys/fs/cgroup"]);
            assert!(mount.status().unwrap().success());
        }
        let folder = top(&mounts()).map(|top| top.join(&name));
        // A container may have the folder and not the right to use it.
        let group = match folder {
            Some(folder) if is_root() && fs::create_dir(&folder).is_ok() => {
                Some(Group { name, folder })
            }
            _ => None,
        };
        let takes = |group: &Group| {
            let script = format!("echo $$ > {}/cgroup.procs", group.folder.display());
            let mut join = Command::new("sh");
            join.args(["-c", &script]).stderr(Stdio::null());
            join.status().is_ok_and(|status| status.success())
        };
        let group = group.filter(takes);
        if group.is_none() {
            varve_skip::skip!("no control group can be made");
        }
        group
    }

    /// Starts a program in it.
    fn run(&self, words: &[&str]) -> Running {
        let script = format!(
            "echo $$ > {}/cgroup.procs; exec \"$@\"",
            self.folder.display()
        );
        let child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(words)
            .stdout(Stdio::piped())
            .spawn();
        Running(child.unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to see that a process has left.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A program, killed at the end of a test.
struct Running(Child);

impl Running {
    fn is_sent(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    fn ends(&mut self) -> i32 {
        let status = wait_for("its end", || self.0.try_wait().unwrap());
        status.code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A daemon, and what it says.
struct Daemon {
    running: Running,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Daemon {
    fn begin(file: &Path, more: &[&str]) -> Daemon {
        let file = file.display().to_string();
        let mut words = vec!["tier", "--beside", "--config", &file];
        words.extend(more);
        let mut start = command(&words);
        start.env_remove("JOURNAL_STREAM");
        let mut child = start.stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            err.lines().map_while(Result::ok).for_each(|line| {
                let _ = send.send(line);
            });
        });
        Daemon {
            running: Running(child),
            lines,
            said: Vec::new(),
        }
    }

    /// Waits until it says a line with this in it, after all lines that were waited for before.
    fn says(&mut self, part: &str) {
        let lines = &self.lines;
        let said = &mut self.said;
        let mut look = || {
            while let Ok(line) = lines.recv_timeout(Duration::from_millis(10)) {
                said.push(line);
                if said.last().is_some_and(|line| line.contains(part)) {
                    return Some(());
                }
            }
            None
        };
        let until = Instant::now() + PATIENCE;
        while look().is_none() {
            assert!(
                Instant::now() < until,
                "no line with `{part}`: {:#?}",
                self.said
            );
        }
    }
}

/// What is answered to a request for measurements.
fn asked(mut stream: impl Read + Write) -> Option<String> {
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    Some(text)
}

/// The value of a measurement of a group.
fn measured(text: &str, name: &str, group: &str) -> Option<f64> {
    let start = format!("{name}{{group=\"{group}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
    line.parse().ok()
}

/// Memory of one kind: decisions are made, and nothing migrates.
const ALIKE: &str = "nodes = \"fast=0,slow=0\"\nfast = \"512MiB\"\ncore = \"50%\"\n";

#[test]
fn a_file_is_checked_and_what_is_wrong_with_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tier.toml");
    let name = file.display().to_string();
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        varve(&["tier", "--config", &name, "--check"])
    };
    let one =
        "[[group]]\nname = \"a\"\ncgroup = \"varve-none.slice\"\npolicy = \"slow\"\nweight = 3\n";
    let two = "[[group]]\ncgroup = \"varve-other.slice\"\npolicy = \"slow\"\n";
    let said = check(&[ALIKE, one, two].concat()).well();
    for part in [
        "varve-none.slice (does not exist)",
        "384 MiB on node 0",
        "128 MiB on node 0",
    ] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    check(&[ALIKE, &one.replace("weight", "wieght")].concat())
        .refuses(2, &["line 8", "unknown field `wieght`"]);
    check(&[ALIKE, one, &two.replace("other", "none")].concat()).refuses(2, &["overlap"]);
    check(&[ALIKE, &one.replace("weight = 3", "floor = \"1GiB\"")].concat())
        .refuses(2, &["at least 1GiB", "512MiB"]);
    check(&[ALIKE, &one.replace("slow", "static")].concat())
        .refuses(2, &["group `a`", "run --live"]);
    check(&[ALIKE, &one.replace("slow", "dynamic")].concat()).refuses(2, &["chooses frames"]);
    check(ALIKE).refuses(2, &["no [[group]]"]);
    // The examples are right, but for what this machine has.
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tier"));
    let example = fs::read_to_string(examples.join("tier.toml")).unwrap();
    let here = format!(
        "nodes = \"fast=0,slow=0\"\n{}",
        example.replace("GiB", "MiB")
    );
    let said = check(&here).well();
    assert!(
        said.out.contains("system.slice/postgresql.service"),
        "{}",
        said.out
    );
    let cluster = fs::read_to_string(examples.join("daemonset.yaml")).unwrap();
    let inside = cluster.split_once("tier.toml: |\n").unwrap().1;
    let inside = inside.split_once("---").unwrap().0;
    let inside: String = inside
        .lines()
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    check(&format!("nodes = \"fast=0,slow=0\"\n{inside}")).well();
    varve(&["tier", "--config", "/no/such.toml"]).refuses(2, &["/no/such.toml"]);
    for (words, part) in [
        (&["--config", &name, "--pid=1"][..], "--pid"),
        (&["--check", "--pid=1"], "--config"),
        (&["--metrics=0.0.0.0:9464", "--", "true"], "loopback"),
    ] {
        let said = varve(&[&["tier"], words].concat());
        assert!(said.code == 2 && said.err.contains(part), "{}", said.err);
    }
}

#[test]
fn a_daemon_waits_for_groups_answers_and_takes_a_new_file_in() {
    let Some(group) = Group::make("one") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (
        folder.path().join("tier.toml"),
        folder.path().join("m.sock"),
    );
    let write = |fast: &str| {
        let text = format!(
            "{ALIKE}metrics = \"{}\"\n[[group]]\nname = \"one\"\ncgroup = \"{}\"\nobserve = \"bits\"\npolicy = \"hotset:period=100ms\"\n{fast}\n[[group]]\nname = \"none\"\ncgroup = \"varve-none.slice\"\npolicy = \"slow\"\n",
            socket.display(),
            group.name
        );
        fs::write(&file, text).unwrap();
    };
    write("fast = \"64MiB\"");
    let mut daemon = Daemon::begin(&file, &[]);
    daemon.says("none: control group varve-none.slice does not exist: waits for it");
    let sleep = group.run(&["sleep", "1000"]);
    daemon.says("one: tiering sleep");
    let ask = || UnixStream::connect(&socket).ok().and_then(asked);
    let budget = |text: &str| measured(text, "varve_tier_fast_budget_bytes", "one");
    wait_for("a look", || {
        let text = ask()?;
        assert!(budget(&text).is_none_or(|bytes| bytes == 64.0 * f64::from(1 << 20)));
        measured(&text, "varve_tier_looks_total", "one").filter(|looks| *looks >= 2.0)
    });
    // A file with a mistake changes nothing.
    fs::write(&file, "fast = \"much\"\n").unwrap();
    daemon.running.is_sent("-HUP");
    daemon.says("the groups go on as before");
    write("fast = \"32MiB\"");
    daemon.running.is_sent("-HUP");
    daemon.says("32MiB of fast memory");
    wait_for("the new budget", || {
        budget(&ask()?).filter(|bytes| *bytes == 32.0 * f64::from(1 << 20))
    });
    // Its processes end, and others come.
    drop(sleep);
    daemon.says("one: control group");
    let _again = group.run(&["sleep", "1000"]);
    daemon.says("one: tiering sleep");
    daemon.running.is_sent("-TERM");
    assert_eq!(daemon.running.ends(), 0, "{:#?}", daemon.said);
    assert!(!socket.exists(), "nothing is left behind");
}

/// Whatever is measured is read by the program that reads it on most hosts.
#[test]
fn prometheus_reads_what_a_daemon_measures() {
    if !has("prometheus", "prometheus") {
        return;
    }
    let Some(group) = Group::make("prometheus") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [ours, its] = ports.map(|one| one.local_addr().unwrap());
    let file = folder.path().join("tier.toml");
    let text = format!(
        "{ALIKE}metrics = \"{ours}\"\n[[group]]\nname = \"a \\\"b\\\"\"\ncgroup = \"{}\"\nobserve = \"bits\"\n",
        group.name
    );
    fs::write(&file, text).unwrap();
    let _sleep = group.run(&["sleep", "1000"]);
    let _daemon = Daemon::begin(&file, &[]);
    let scrape = folder.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: varve\n  static_configs: [{{targets: ['{ours}']}}]\n"
    );
    fs::write(&scrape, text).unwrap();
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", scrape.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.path().join("data").display()
        ))
        .arg(format!("--web.listen-address={its}"))
        .stderr(Stdio::null())
        .spawn();
    let _prometheus = Running(prometheus.unwrap());
    let answer = |query: &str| -> Option<serde_json::Value> {
        let mut stream = TcpStream::connect(its).ok()?;
        write!(stream, "GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let json: serde_json::Value = serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?;
        let first = json["data"]["result"].get(0)?.clone();
        Some(first)
    };
    let looks = wait_for("a measurement", || answer("varve_tier_looks_total"));
    assert_eq!(looks["metric"]["group"], "a \"b\"", "{looks}");
    // What the dashboard draws is there.
    let dashboard = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/tier/grafana.json"
    );
    let dashboard: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dashboard).unwrap()).unwrap();
    let up = wait_for("the target", || answer("up"));
    assert_eq!(up["value"][1], "1", "{up}");
    let names = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| {
            let targets = panel["targets"].as_array().unwrap();
            targets
                .iter()
                .map(|target| target["expr"].as_str().unwrap())
        });
    let known = asked(TcpStream::connect(ours).unwrap()).unwrap();
    for expression in names {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for name in words.filter(|word| word.starts_with("varve_")) {
            let family = format!("# TYPE {} ", name.strip_suffix("_total").unwrap_or(name));
            assert!(known.contains(&family), "{expression}: no {name}");
        }
    }
}

/// Processes come and go faster than they are looked for: those that were not seen are left out, and nothing is left of the others.
#[test]
fn a_service_that_starts_programs_without_end_is_tiered() {
    let Some(group) = Group::make("forks") else {
        return;
    };
    let _service = group.run(&["sh", "-c", "while :; do sleep 0.01; /bin/true; done"]);
    let name = format!("--cgroup={}", group.name);
    let words = "tier --nodes=fast=0,slow=0 --beside --observe=bits --core=100% --for=4s --json --policy=hotset:period=50ms";
    let words = [&typed(words)[..], &[&name]].concat();
    let said = wait_for("a run", || {
        let said = varve(&words);
        // The shell may not be in its group yet.
        (said.code != 2).then_some(said)
    });
    let json = said.well().json();
    let processes = json["processes"].as_array().unwrap();
    assert!(processes.iter().any(|one| one["name"] == "sh"), "{json}");
    assert!((1..=300).contains(&processes.len()), "{json}");
}

/// A group is frozen as `systemctl freeze` does it, and goes on: its pages move meanwhile or later, and it notices nothing.
#[test]
fn a_group_that_is_frozen_for_a_while_is_tiered() {
    let _turn = turn();
    if !two_kinds() {
        return varve_skip::skip!("all memory of this machine is alike");
    }
    let scratch = tempfile::tempdir().unwrap();
    let (Some(program), Some(group)) = (tiered(scratch.path()), Group::make("frozen")) else {
        return;
    };
    let memory = typed("total=24 hot=4 budget=8 do=write seconds=200 node=1");
    let mut running = group.run(&[&[program.to_str().unwrap()][..], &memory].concat());
    let file = scratch.path().join("tier.toml");
    let text = format!(
        "core = \"100%\"\n[[group]]\nname = \"frozen\"\ncgroup = \"{}\"\nfast = \"8MiB\"\npage = \"4KiB\"\nobserve = \"writes\"\npolicy = \"hotset:period=300ms\"\n",
        group.name
    );
    fs::write(&file, text).unwrap();
    let mut daemon = Daemon::begin(&file, &[]);
    daemon.says("tiering tiered");
    let frozen = group.folder.join("cgroup.freeze");
    for _ in 0..3 {
        fs::write(&frozen, "1").unwrap();
        std::thread::sleep(Duration::from_secs(1));
        fs::write(&frozen, "0").unwrap();
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_eq!(running.ends(), 0, "{:#?}", daemon.said);
    daemon.running.is_sent("-TERM");
    assert_eq!(daemon.running.ends(), 0);
}

/// Two services under one daemon, each with hot memory of its own; the daemon is killed, and its successor goes on.
#[test]
fn each_group_has_its_hot_memory_in_its_part_of_fast_memory() {
    let _turn = turn();
    if !two_kinds() {
        return varve_skip::skip!("all memory of this machine is alike");
    }
    let scratch = tempfile::tempdir().unwrap();
    let (Some(program), Some(first), Some(second)) = (
        tiered(scratch.path()),
        Group::make("first"),
        Group::make("second"),
    ) else {
        return;
    };
    let file = scratch.path().join("tier.toml");
    let of = |name: &str, group: &Group| {
        format!(
            "[[group]]\nname = \"{name}\"\ncgroup = \"{}\"\nfast = \"13MiB\"\npage = \"4KiB\"\nobserve = \"writes\"\nhold = \"1s\"\npolicy = \"hotset:period=300ms\"\n",
            group.name
        )
    };
    let text = [
        "core = \"100%\"\n",
        &of("first", &first),
        &of("second", &second),
    ]
    .concat();
    fs::write(&file, text).unwrap();
    let program = program.to_str().unwrap();
    let memory = [
        "total=40",
        "hot=8",
        "budget=13",
        "do=write",
        "seconds=300",
        "node=1",
    ];
    let mut both = [first, second].map(|group| {
        let running = group.run(&[&[program][..], &memory].concat());
        (running, group)
    });
    let mut killed = Daemon::begin(&file, &[]);
    killed.says("tiering tiered");
    killed.says("tiering tiered");
    std::thread::sleep(Duration::from_secs(2));
    killed.running.is_sent("-KILL");
    killed.running.0.wait().unwrap();
    let mut daemon = Daemon::begin(&file, &[]);
    for (running, _) in &mut both {
        let mut said = String::new();
        let mut out = running.0.stdout.take().unwrap();
        out.read_to_string(&mut said).unwrap();
        assert_eq!(running.ends(), 0, "{said}\n{:#?}", daemon.said);
        eprintln!("{}", said.lines().last().unwrap_or_default());
    }
    daemon.running.is_sent("-TERM");
    assert_eq!(daemon.running.ends(), 0);
}
