//! Allocation sites of stock Java virtual machines: programs whose objects live for as long as is known, and what is said of them.

use crate::common::{Said, command, has, home, typed, varve};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use varve_sites::SitesFile;
use varve_sites::java::advice::lines;
use varve_sites::java::{Ages, Profile};

/// Three sites. What `stays` makes is kept. What `twice` makes is kept until two collections have passed: the program asks the
/// machine how many there were. What `dies` makes is garbage at once.
const KNOWN: &str = "\
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.ArrayList;

public class Known {
    static ArrayList<byte[]> kept = new ArrayList<>();
    static ArrayDeque<ArrayList<char[]>> passing = new ArrayDeque<>();
    static Object last;

    static void stays() { kept.add(new byte[1000]); }

    static void twice() { passing.getLast().add(new char[1000]); }

    static void dies() { last = new long[100]; }

    public static void main(String[] words) {
        long young = 0, collections = Long.parseLong(words[0]);
        GarbageCollectorMXBean collector = null;
        for (var bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            if (bean.getName().matches(\"Copy|PS Scavenge|G1 Young.*|.*Cycles\")) collector = bean;
        }
        passing.add(new ArrayList<>(1000));
        while (young < collections) {
            if (collector.getCollectionCount() != young) {
                young = collector.getCollectionCount();
                passing.add(new ArrayList<>(1000));
                while (passing.size() > 2) passing.removeFirst();
            }
            for (int i = 0; i < 36; i++) dies();
            twice();
            for (int i = 0; i < 2; i++) stays();
        }
        System.out.println(\"known\");
    }
}
";

/// Allocates until its input ends; says first that it has begun.
const SERVICE: &str = "\
public class Service {
    static Object[] kept = new Object[1 << 12];

    static Object order() { return new int[250]; }

    public static void main(String[] words) throws Exception {
        System.out.println(ProcessHandle.current().pid());
        for (int n = 0; System.in.available() == 0; n++) {
            for (int i = 0; i < 1000; i++) kept[(n * 1000 + i) % kept.length] = order();
        }
    }
}
";

/// Both survive, and only one is used: an archive that is filled once, and a map that is read and written all the time.
const COLD_AND_HOT: &str = "\
import java.util.ArrayList;
import java.util.HashMap;

public class ColdAndHot {
    static ArrayList<byte[]> archive = new ArrayList<>();
    static HashMap<Integer, long[]> map = new HashMap<>();
    static Object last;

    static void fill(int blocks, int entries) {
        for (int i = 0; i < blocks; i++) archive.add(new byte[65520]);
        for (int i = 0; i < entries; i++) map.put(i, new long[6]);
        System.gc();
    }

    public static void main(String[] words) {
        fill(1000, 300_000);
        long at = 1, end = System.nanoTime() + Long.parseLong(words[0]) * 1_000_000_000;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 1000; i++) {
                at = at * 6364136223846793005L + 1442695040888963407L;
                map.get((int) ((at >>> 33) % map.size()))[i % 6]++;
            }
            last = new byte[2000];
        }
    }
}
";

/// A heap that is nearly full.
const FULL: &str = "\
import java.util.HashMap;

public class Full {
    static HashMap<Integer, byte[]> kept = new HashMap<>();
    static Object last;

    public static void main(String[] words) {
        for (int i = 0; i < 60_000; i++) {
            kept.put(i % 20_000, new byte[1000]);
            last = new byte[20_000];
        }
    }
}
";

/// A folder with a compiled program; none where Java is missing, which is said.
fn compiled(name: &str, source: &str) -> Option<tempfile::TempDir> {
    let debian = "openjdk-17-jdk-headless";
    if cfg!(not(target_arch = "x86_64")) || !has("java", debian) || !has("javac", debian) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name).with_extension("java");
    std::fs::write(&file, source).unwrap();
    let mut javac = Command::new("javac");
    let made = javac.args(["-g", "-d"]);
    let made = made.arg(folder.path()).arg(&file).status();
    assert!(made.unwrap().success());
    Some(folder)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The fate of the objects of a class that a method makes, and their bytes.
fn made_in(profile: &Profile, method: &str, class: &str) -> (u64, Ages) {
    let (mut bytes, mut ages) = (0, Ages::default());
    for site in &profile.sites {
        let frame = site.stack.first();
        if frame.is_some_and(|f| f.class == "Known" && f.method == method) && site.class == class {
            bytes += site.counts.bytes;
            ages.add(&site.ages);
        }
    }
    (bytes, ages)
}

/// The three sites.
fn three(profile: &Profile) -> [(u64, Ages); 3] {
    [("stays", "byte[]"), ("twice", "char[]"), ("dies", "long[]")]
        .map(|(method, class)| made_in(profile, method, class))
}

fn known(collector: &str, name: &str, old_by: &str) {
    let Some(folder) = compiled("Known", KNOWN) else {
        return;
    };
    let file = folder.path().join("known.sites");
    let words = format!(
        "profile -o {} --interval 4KiB -- java {collector} -Xmx256m -Xmn30m -XX:SurvivorRatio=1 \
         -XX:InitialSurvivorRatio=3 -XX:-UseAdaptiveSizePolicy -XX:TargetSurvivorRatio=100 \
         -XX:InitialTenuringThreshold=4 -XX:MaxTenuringThreshold=4 -cp {} Known 24",
        file.display(),
        folder.path().display()
    );
    let said = varve(&words).well();
    assert_eq!(said.out, "known\n");
    assert!(
        said.err.contains("reached the old generation"),
        "{}",
        said.err
    );
    let profile = Profile::read(&file).unwrap();
    assert_eq!(profile.program, "Known");
    assert_eq!(profile.heap.collector, name);
    assert_eq!(profile.heap.old_by, old_by);
    assert_eq!(profile.heap.tenuring, Some(4));
    assert!(profile.heap.young_collections >= 24, "{:?}", profile.heap);

    let [stays, twice, dies] = three(&profile);
    // 36 objects of 816 bytes for each of 2016 and two of 1016.
    for (one, other, factor) in [(&dies, &twice, 14.57), (&twice, &stays, 0.992)] {
        let ratio = one.0 as f64 / other.0 as f64 / factor;
        assert!((0.8..1.25).contains(&ratio), "{ratio}");
    }
    let part = |of: &(u64, Ages), collections| of.1.surviving(collections).unwrap();
    // What is kept dies never, and is old when it has survived more than four collections.
    assert_eq!(part(&stays, 5), 1.0, "{:?}", stays.1);
    assert!(
        stays.1.old_bytes as f64 > 0.6 * stays.0 as f64,
        "{:?}",
        stays.1
    );
    assert_eq!(stays.1.survived.len(), 5, "{:?}", stays.1);
    assert_eq!(stays.1.old_freed_bytes, 0);
    // A collection may come between the question and the answer, or before anybody has looked: some count for another one.
    assert!(part(&twice, 2) > 0.75, "{:?}", twice.1);
    assert!(part(&twice, 3) < 0.1, "{:?}", twice.1);
    assert!(
        twice.1.old_bytes as f64 <= 0.01 * twice.0 as f64,
        "{:?}",
        twice.1
    );
    // The last one is alive.
    assert!(part(&dies, 1) < 0.01, "{:?}", dies.1);
    assert_eq!(dies.1.old_bytes, 0);
    for (bytes, ages) in [&stays, &twice, &dies] {
        assert!(ages.live_bytes <= *bytes);
    }

    let fills = lines(&profile).into_iter().max_by_key(|l| l.ages.old_bytes);
    let fills = fills.unwrap();
    assert_eq!(fills.name, "Known.java:11 byte[]");
    let table = varve(&["sites", text(&file)]).well().out;
    for word in [
        "Known.java:11 byte[]",
        "of old",
        &format!("by its {old_by}"),
        "Young generation: ",
        "the old generation was not collected",
        "is of Known.java:11 byte[]",
    ] {
        let all = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(all.contains(word), "no `{word}` in {table}");
    }
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    let json = varve(&["sites", text(&file), "--json"]).well().json();
    let first = &json["sites"][0];
    assert_eq!(first["site"], "Known.java:11 byte[]");
    // It is never read. A short run may be over before that is known.
    let candidate = first["candidate_for"].as_str();
    assert!(
        [None, Some("slow memory or off-heap")].contains(&candidate),
        "{first}"
    );
    assert_eq!(first["stacks"][0]["frames"][0]["method"], "stays");
    assert_eq!(first["old_bytes"], fills.ages.old_bytes);
}

#[test]
fn what_survives_is_known_by_line_under_the_serial_collector() {
    known("-XX:+UseSerialGC", "Serial", "address");
}

#[test]
fn what_survives_is_known_by_line_under_the_parallel_collector() {
    known("-XX:+UseParallelGC", "Parallel", "address");
}

#[test]
fn what_survives_is_known_by_line_under_g1() {
    known("-XX:+UseG1GC", "G1", "age");
}

/// What survives is for slow memory only if it is not used.
fn told_apart(collector: &str) {
    let Some(folder) = compiled("ColdAndHot", COLD_AND_HOT) else {
        return;
    };
    let file = folder.path().join("uses.sites");
    let words = format!(
        "profile -o {} --interval 64KiB -- java {collector} -Xmx256m -cp {} ColdAndHot 4",
        file.display(),
        folder.path().display()
    );
    varve(&words).well();
    let json = varve(&["sites", text(&file), "--json"]).well().json();
    let sites = json["sites"].as_array().unwrap();
    let of = |name: &str| {
        let site = sites.iter().find(|site| site["site"] == name);
        let site = site.unwrap_or_else(|| panic!("no {name} in {sites:?}"));
        let used = site["used_share"].as_f64();
        let used = used.unwrap_or_else(|| panic!("it is not known how much of {site} is used"));
        (used, site["candidate_for"].as_str().unwrap_or_default())
    };
    let (used, candidate) = of("ColdAndHot.java:10 byte[]");
    assert!(used < 0.01, "{used}");
    assert_eq!(candidate, "slow memory or off-heap");
    let (used, candidate) = of("ColdAndHot.java:11 long[]");
    // On a busy machine the program may not run in some windows.
    assert!(used > 0.3, "{used}");
    assert_eq!(candidate, "fast memory");
    let table = varve(&["sites", text(&file)]).well().out;
    let all = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        all.contains("ColdAndHot.java:10 byte[], mostly stays, and is hardly used: for slow"),
        "{table}"
    );
    assert!(
        all.contains("mostly stays, and is used: for fast memory"),
        "{table}"
    );
    assert!(all.contains("Fast memory: "), "{table}");
    let old = |name: &str| json["old"][name].as_f64().unwrap() / f64::from(1 << 20);
    // 1,000 blocks of 64 KiB; 300,000 entries of some 100 bytes.
    let (cold, used) = (old("cold_bytes"), old("used_bytes") + old("unknown_bytes"));
    assert!((40.0..90.0).contains(&cold), "{cold} MiB");
    assert!((15.0..50.0).contains(&used), "{used} MiB");
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
}

#[test]
fn a_map_in_use_is_told_from_an_archive_under_the_serial_collector() {
    told_apart("-XX:+UseSerialGC");
}

#[test]
fn a_map_in_use_is_told_from_an_archive_under_the_parallel_collector() {
    told_apart("-XX:+UseParallelGC");
}

#[test]
fn a_map_in_use_is_told_from_an_archive_under_g1() {
    told_apart("-XX:+UseG1GC");
}

#[test]
fn a_heap_that_is_too_small_is_said_to_be() {
    let Some(folder) = compiled("Full", FULL) else {
        return;
    };
    let file = folder.path().join("full.sites");
    let words = format!(
        "profile -o {} -- java -XX:+UseSerialGC -Xmx34m -XX:-UseTLAB -cp {} Full",
        file.display(),
        folder.path().display()
    );
    varve(&words).well();
    let table = varve(&["sites", text(&file)]).well().out;
    for word in [
        "Heap: too small",
        "No advice: the heap is too small",
        "Without TLABs (-XX:-UseTLAB) Java 17 takes few of its samples",
    ] {
        let all = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(all.contains(word), "no `{word}` in {table}");
    }
}

/// Without generations that are known it is told what is alive, and no size is advised.
#[test]
fn under_zgc_it_is_known_what_is_alive() {
    let Some(folder) = compiled("Known", KNOWN) else {
        return;
    };
    let file = folder.path().join("z.sites");
    let options = ["-XX:+UseZGC", "-Xmx128m", "-cp", text(folder.path())];
    let profile = ["profile", "-o", text(&file), "--interval", "16KiB", "--"];
    let java = [&["java"][..], &options, &["Known", "3"]].concat();
    let said = varve(&[&profile[..], &java].concat()).well();
    assert!(
        said.err.contains("are not known one by one"),
        "{}",
        said.err
    );
    let profile = Profile::read(&file).unwrap();
    let [stays, _, dies] = three(&profile);
    assert_eq!(stays.1.live_bytes, stays.0, "all that is kept is alive");
    assert!(dies.1.live_bytes < dies.0);
    let table = varve(&["sites", text(&file)]).well().out;
    let all = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all.contains("alive at end"), "{table}");
    assert!(all.contains("this collector's collections"), "{table}");
}

/// A script starts two machines: the profile is of the one that allocates most. A second run is added to it.
#[test]
fn a_script_that_starts_java_is_profiled_and_runs_add_up() {
    let Some(folder) = compiled("Known", KNOWN) else {
        return;
    };
    let file = folder.path().join("two.sites");
    let script = "java -version 2>/dev/null; java -XX:+UseSerialGC -Xmx64m -Xmn6m -cp \"$0\" Known 9; exit 3";
    let once = |more: &[&str]| {
        let words = format!("profile --java -o {} --interval 32KiB", file.display());
        let words = typed(&words);
        let command = ["--", "sh", "-c", script, text(folder.path())];
        varve(&[&words[..], more, &command].concat())
    };
    let said = once(&[]);
    assert_eq!((said.code, &*said.out), (3, "known\n"), "{}", said.err);
    assert!(said.err.contains("1 more virtual machines"), "{}", said.err);
    let first = Profile::read(&file).unwrap();
    assert_eq!(first.program, "Known");
    assert_eq!(first.command[0], "sh");
    once(&[]).refuses(2, &["two.sites", "--add"]);
    assert_eq!(once(&["--add"]).code, 3);
    let both = Profile::read(&file).unwrap();
    let [one, two] = [&first, &both].map(|p| three(p)[2].0 as f64);
    assert!((1.5..2.5).contains(&(two / one)), "{one} {two}");
}

/// Starts the service with options, and waits until it works.
fn service(folder: &Path, options: &[&str]) -> (Child, u32) {
    let mut java = Command::new("java");
    java.args(options)
        .args(["-Xmx64m", "-Xmn8m", "-cp", text(folder), "Service"]);
    let streams = java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = streams.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let number = line.trim().parse().unwrap_or_else(|_| panic!("{line:?}"));
    (child, number)
}

fn ends(mut child: Child) {
    child.stdin.take().unwrap().write_all(b"end\n").unwrap();
    assert!(child.wait().unwrap().success(), "it ran on, and ended well");
}

#[test]
fn a_machine_that_runs_is_attached_to_as_often_as_one_likes_and_runs_on() {
    let Some(folder) = compiled("Service", SERVICE) else {
        return;
    };
    let (child, process) = service(folder.path(), &["-XX:+UseSerialGC"]);
    let process = process.to_string();
    for name in ["first.sites", "second.sites"] {
        let file = folder.path().join(name);
        let words = ["profile", "--pid", &process, "--for", "1s", "--interval"];
        let said = varve(&[&words[..], &["16KiB", "-o", text(&file)]].concat()).well();
        assert!(
            said.err.contains("sampling the allocations"),
            "{}",
            said.err
        );
        let profile = Profile::read(&file).unwrap();
        assert_eq!(profile.program, "Service");
        let orders = profile.sites.iter().filter(|s| s.class == "int[]");
        let orders: u64 = orders.map(|s| s.counts.bytes).sum();
        assert!(orders as f64 > 0.9 * profile.heap.allocated_bytes as f64);
        assert!(profile.heap.young_collections > 0, "{:?}", profile.heap);
    }
    ends(child);
}

#[test]
fn what_cannot_be_attached_to_is_said_in_one_line() {
    let attach = |process: &str| {
        let words = ["profile", "--java", "-o", "x.sites", "--for", "1s", "--pid"];
        varve(&[&words[..], &[process]].concat())
    };
    let own = std::process::id().to_string();
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    attach(&ended.id().to_string()).refuses(2, &["no such process"]);
    let said = attach(&own);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(
        said.err
            .contains("not a Java virtual machine (it has not loaded libjvm.so)")
    );
    varve(&["profile", "-o", "x.sites", "--pid", &own]).refuses(2, &["--pid", "--live", "--java"]);
    assert!(!home().join("x.sites").exists());

    let Some(folder) = compiled("Service", SERVICE) else {
        return;
    };
    for (option, words) in [
        ("-XX:+DisableAttachMechanism", "does not allow attaching"),
        ("-XX:-EnableDynamicAgentLoading", "refuses the agent"),
    ] {
        let (child, process) = service(folder.path(), &[option]);
        let said: Said = attach(&process.to_string());
        assert_eq!(said.code, 2, "{}", said.err);
        let last = said.err.lines().last().unwrap();
        assert!(last.contains(words), "{last}");
        ends(child);
    }
}

#[test]
fn a_profile_of_java_is_refused_where_another_kind_is_needed() {
    let Some(folder) = compiled("Known", KNOWN) else {
        return;
    };
    let file = folder.path().join("k.sites");
    let file = text(&file);
    let java = format!("-- java -cp {} -Xmn2m Known 1", folder.path().display());
    let java = typed(&java);
    varve(&[&["profile", "-o", file][..], &java].concat()).well();
    varve(&["sites", file, "--fast", "25%"]).refuses(2, &["--fast 25%", "Java"]);
    varve(&["sites", file, "--by", "writes"]).refuses(2, &["--by writes", "Java"]);
    varve(&["sites", file, "--heuristic", "cgz-f"]).refuses(2, &["--heuristic", "Java"]);
    let wasm = typed("run programs/dist/trees.wasm --plan cgz-f --machine");
    varve(&[&wasm[..], &["optane-6242", "--profile", file]].concat())
        .refuses(2, &["a profile of a java program"]);

    // What starts no machine has no profile, and what is not there is not started.
    let out = folder.path().join("o.sites");
    let profile = ["profile", "--java", "-o", text(&out), "--"];
    let said = varve(&[&profile[..], &["true"]].concat());
    said.refuses(1, &["no Java virtual machine", "none has started"]);
    varve(&[&profile[..], &["/nowhere/java", "X"]].concat()).refuses(2, &["/nowhere/java"]);
    let named = ["profile", "--java", "app.jar", "-o", text(&out)];
    varve(&named).refuses(2, &["app.jar", "-- COMMAND"]);
    assert!(!out.exists());
    let mut wrong = command(&format!(
        "profile -o {} --interval 4GiB -- java",
        out.display()
    ));
    let wrong = Said::of(wrong.output().unwrap());
    assert!(
        wrong.code == 2 && wrong.err.contains("--interval"),
        "{}",
        wrong.err
    );
}
