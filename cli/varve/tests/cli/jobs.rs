//! Groups of programs: on the model, and on this machine. The stories with placement are of a machine with two kinds of memory; `.ci/run`
//! tells them in a guest.

use crate::common::{Said, command, home, typed, varve};
use crate::nodes::skip_unless_two_kinds;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a group from its text on this machine; logs are in `folder`.
fn live(folder: &Path, text: &str, options: &[&str]) -> Said {
    let file = folder.join("group.toml");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let logs = folder.join("logs");
    let words = format!("jobs run {file} --live --logs {}", logs.display());
    let words = typed(&words);
    varve(&[&words[..], options].concat())
}

fn log(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("logs").join(format!("{name}.log"))).unwrap()
}

fn number(said: &Said, run: usize, path: &str) -> f64 {
    let json = said.json();
    json["runs"][run]
        .pointer(path)
        .and_then(|v| v.as_f64())
        .unwrap_or(f64::NAN)
}

/// The paper's first group, small: the baseline, each optimization and their sum, beside the paper's.
#[test]
fn the_first_group_of_the_paper_runs_on_the_model() {
    let words = typed("jobs run examples/group1.toml --machine optane-6230n --quick --keep none");
    let said = varve(&words).well();
    for word in [
        "linux",
        "placement",
        "threads",
        "order",
        "all",
        "57.6",
        "62.8",
        "█ fast memory   ▒ slow memory",
    ] {
        assert!(said.out.contains(word), "no `{word}` in: {}", said.out);
    }
    assert!(
        said.out.lines().all(|l| l.chars().count() <= 80),
        "{}",
        said.out
    );
    let again = varve(&[&words[..], &["--json"]].concat()).well();
    let (linux, placed) = (number(&again, 0, "/seconds"), number(&again, 1, "/seconds"));
    assert!(placed < linux, "{placed} s for {linux} s");
}

#[test]
fn a_plan_explains_itself_and_a_profile_classes() {
    let of = |action: &str| {
        let words = format!("jobs {action} examples/group1.toml --quick --keep none");
        varve(&words).well().out
    };
    let plan = of("plan");
    for words in ["freqmine is cpu-bound", "ocean_cp starts", "its pages move"] {
        assert!(plan.contains(words), "no `{words}` in: {plan}");
    }
    let profile = of("profile");
    assert!(profile.contains("bandwidth-sensitive"), "{profile}");
}

#[test]
fn the_same_group_runs_on_this_machine() {
    let scratch = tempfile::tempdir().unwrap();
    let logs = scratch.path().to_str().unwrap();
    let said = varve(&format!(
        "jobs run examples/group1.toml --live --quick --logs {logs}"
    ))
    .well();
    assert!(
        !said.out.contains("57.6"),
        "what was published is of another machine"
    );
    for program in ["freqmine", "ocean_cp", "streamcluster"] {
        assert!(said.out.contains(program), "{}", said.out);
        let log = fs::read_to_string(scratch.path().join(format!("{program}-all.log"))).unwrap();
        assert!(log.contains("accesses in"), "{log}");
    }
}

#[test]
fn commands_run_in_order_with_their_variables_and_logs() {
    let scratch = tempfile::tempdir().unwrap();
    let left = scratch.path().join("left");
    let left = left.display();
    // The first is slow to leave its word, so that a second one that did not wait for it would find none.
    let text = format!(
        "[[program]]\nname = \"second\"\ncommand = [\"sh\", \"-c\", \"cat {left}; echo $OMP_NUM_THREADS $WHERE $GOMP_CPU_AFFINITY\"]\n\
        threads = 3\nafter = [\"first\"]\nenv = {{ WHERE = \"in {{memory}} with {{threads}}\" }}\n\
        [[program]]\nname = \"first\"\ncommand = [\"sh\", \"-c\", \"sleep 0.2; echo left > {left}; echo done >&2\"]\n"
    );
    let said = live(scratch.path(), &text, &["--strategy", "linux", "--json"]).well();
    assert_eq!(
        log(scratch.path(), "second-linux").trim(),
        "left\n3 in any with 3"
    );
    assert_eq!(log(scratch.path(), "first-linux"), "done\n");
    let (first_end, second_start) = (
        number(&said, 0, "/programs/1/end_s"),
        number(&said, 0, "/programs/0/start_s"),
    );
    assert!(second_start >= first_end, "{}", said.out);
}

/// One fails, one takes too long: each is told, and the third goes on, or not, as the group says.
#[test]
fn failures_are_told_and_the_others_go_on_or_stop() {
    let text = "[[program]]\nname = \"fails\"\ncommand = [\"sh\", \"-c\", \"exit 7\"]\n\
        [[program]]\nname = \"late\"\ncommand = [\"sh\", \"-c\", \"sleep 100; echo slept on\"]\ntime_limit = \"200ms\"\n\
        [[program]]\nname = \"well\"\ncommand = [\"sh\", \"-c\", \"sleep 0.3; echo well\"]\n";
    let scratch = tempfile::tempdir().unwrap();
    let said = live(scratch.path(), text, &["--strategy", "linux"]);
    assert_eq!(said.code, 1, "{}", said.err);
    for words in [
        "fails ended with exit code 7; see ",
        "late took longer than its time limit of 0.2 s",
    ] {
        assert!(said.out.contains(words), "no `{words}` in: {}", said.out);
    }
    assert_eq!(log(scratch.path(), "well-linux"), "well\n");
    assert_eq!(log(scratch.path(), "late-linux"), "");
    let of_well = scratch.path().join("logs/well-linux.log");
    fs::remove_file(&of_well).unwrap();
    let stop = live(
        scratch.path(),
        &format!("on_failure = \"stop\"\n{}", text.replace("0.3", "50")),
        &["--strategy", "linux"],
    );
    assert_eq!(stop.code, 1);
    // It was ended before it said anything, or never begun.
    assert_eq!(fs::read_to_string(&of_well).unwrap_or_default(), "");
}

#[test]
fn a_group_whose_programs_never_started_has_no_time() {
    // It is there, and what is to run it is not.
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, executable).unwrap();
    let text = &format!(
        "[[program]]\nname = \"a\"\nbytes = \"1MiB\"\nclass = \"cpu-bound\"\ncommand = [\"{}\"]\n",
        script.display()
    );
    let strategies = ["--strategy", "linux", "--strategy", "placement"];
    let said = live(scratch.path(), text, &strategies);
    assert_eq!(said.code, 1, "{}", said.err);
    let rows = said.out.lines().filter(|l| {
        let name = l.split_whitespace().next();
        name == Some("linux") || name == Some("placement")
    });
    for row in rows {
        let cells: Vec<&str> = row.split_whitespace().skip(1).collect();
        assert_eq!(cells[..2], ["-", "-"], "{row}");
    }
    assert!(!said.out.contains('★'), "nothing is best: {}", said.out);
    let json = live(
        scratch.path(),
        text,
        &[&strategies[..], &["--json"]].concat(),
    )
    .json();
    let program = &json["runs"][0]["programs"][0];
    assert!(
        program["start_s"].is_null() && program["end_s"].is_null(),
        "{program}"
    );
    assert!(program["failure"].is_string(), "{program}");
}

/// All that is missing is named, and nothing is started.
#[test]
fn commands_are_looked_for_before_anything_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let begun = scratch.path().join("begun");
    let text = format!(
        "[[program]]\nname = \"first\"\ncommand = [\"touch\", \"{}\"]\n\
        [[program]]\nname = \"missing\"\ncommand = [\"no-such-program\"]\nafter = [\"first\"]\n\
        [[program]]\nname = \"lost\"\nmanaged = \"/no/such.wasm\"\n",
        begun.display()
    );
    let said = live(scratch.path(), &text, &[]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
    for line in [
        "group.toml:4: program `missing`, command: `no-such-program` is not found; give a path",
        "group.toml:8: program `lost`, managed: /no/such.wasm is not found",
    ] {
        assert!(said.err.contains(line), "no `{line}` in: {}", said.err);
    }
    assert!(!begun.exists());
}

/// A shell starts the program that has the memory; what was measured is kept, and measured again when the program changes.
#[test]
fn a_jobs_memory_is_that_of_its_children_and_demands_are_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let (count, kept) = (
        scratch.path().join("count"),
        scratch.path().join("kept.json"),
    );
    let inner = scratch.path().join("inner");
    let script = "x=$(head -c $1 /dev/zero | tr '\\0' x)\nsleep 0.3\n: $x\n";
    fs::write(&inner, script).unwrap();
    let text = |mib: u32| {
        format!(
            "cores = 1\n[[program]]\nname = \"a\"\nthreads = 1\n\
            command = [\"sh\", \"-c\", \"echo {{threads}} >> {}; sh {} {}; true\"]\n",
            count.display(),
            inner.display(),
            mib << 20
        )
    };
    let file = scratch.path().join("group.toml");
    let jobs = |what: &str, mib: u32| {
        fs::write(&file, text(mib)).unwrap();
        let logs = scratch.path().join("logs");
        let words = format!("jobs {what} {} --live --json --demands", file.display());
        let words = typed(&words);
        let more = [kept.to_str().unwrap(), "--logs", logs.to_str().unwrap()];
        varve(&[&words[..], &more].concat()).well()
    };
    let times = || {
        fs::read_to_string(&count)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let said = jobs("plan", 24);
    let bytes = said.json()["demands"][0]["bytes"].as_u64().unwrap();
    assert!(bytes > 24 << 20, "{bytes}");
    let measured = times();
    assert!(measured > 0 && fs::read_to_string(&count).unwrap().starts_with("1\n"));
    assert_eq!(jobs("plan", 24).json()["demands"], said.json()["demands"]);
    assert_eq!(times(), measured, "nothing was measured again");
    assert!(
        jobs("plan", 48).json()["demands"][0]["bytes"]
            .as_u64()
            .unwrap()
            > 48 << 20
    );
    assert!(times() > measured, "it is another program");
    let before = times();
    jobs("profile", 48);
    assert!(times() > before, "`profile` measures anew");
    fs::write(&kept, "nonsense").unwrap();
    let words = format!("jobs plan {} --live --demands", file.display());
    let words = typed(&words);
    varve(&[&words[..], &[kept.to_str().unwrap()]].concat())
        .refuses(2, &["--demands", "no file of demands"]);
}

/// A group that is wrong starts nothing.
#[test]
fn a_wrong_group_is_one_line_for_each_problem() {
    let scratch = tempfile::tempdir().unwrap();
    let said = live(
        scratch.path(),
        "[[program]]\nname = \"a\"\ncomand = [\"true\"]\nworkload = \"gups\"\n",
        &[],
    );
    said.refuses(
        2,
        &["group.toml:3: program.comand: unknown key; did you mean `command`?"],
    );
    let said = varve(&["jobs", "run", "no-such-group.toml"]);
    said.refuses(2, &["no-such-group.toml", "give a group's TOML file"]);
    let one = varve("jobs plan examples/group1.toml --machine haswell-2620v3");
    one.refuses(2, &["haswell-2620v3", "has no slow memory"]);
    let name = varve("jobs run examples/group1.toml --strategy placment");
    assert_eq!(name.code, 2);
    assert!(
        name.err.contains("no strategy is called `placment`"),
        "{}",
        name.err
    );
}

/// The machine has 192 GiB of fast and 256 GiB of slow memory.
#[test]
fn a_program_that_is_too_large_is_named_and_one_that_fits_slow_memory_alone_is_planned() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = |bytes: &str| {
        let file = scratch.path().join("group.toml");
        let workload = format!("npb_mg:bytes={bytes},passes=1");
        let text = format!("[[program]]\nname = \"a\"\nworkload = \"{workload}\"\n");
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        varve(&["jobs", "plan", file, "--scale", "16384", "--keep", "none"])
    };
    plan("900GiB").refuses(
        2,
        &["group.toml:1: program `a`, workload: needs more memory than either kind of optane-6230n has; make it smaller"],
    );
    let said = plan("220GiB").well();
    assert!(said.out.contains("a starts"), "{}", said.out);
}

#[test]
fn options_of_the_model_are_refused_on_this_machine() {
    for option in [["--keep", "none"], ["--jobs", "1"]] {
        let words = ["jobs", "plan", "examples/group1.toml", "--live"];
        let said = varve(&[&words[..], &option].concat());
        assert_eq!(said.code, 2, "{}", said.out);
        for words in ["cannot be used with", "--live", option[0]] {
            assert!(said.err.contains(words), "no `{words}` in: {}", said.err);
        }
    }
}

/// Ctrl-C ends the programs and all that they started: each has a pipe open, which ends when all of them have.
#[test]
fn ctrl_c_ends_all_children() {
    let scratch = tempfile::tempdir().unwrap();
    let pipe = scratch.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let shell = format!(
        "exec 3>{}; (echo begun >&3; sleep 1000; echo slept on >&3) & echo begun >&3; wait",
        pipe.display()
    );
    let program = |name: &str| {
        format!("[[program]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", \"{shell}\"]\n")
    };
    let file = scratch.path().join("group.toml");
    fs::write(&file, program("a") + &program("b")).unwrap();
    let logs = scratch.path().join("logs");
    let words = format!(
        "jobs run {} --live --strategy linux --logs {}",
        file.display(),
        logs.display()
    );
    let child = command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let ended = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            let said = Said::of(child.wait_with_output().unwrap());
            // A reader that still waits for a program to open the pipe is released.
            let _ = fs::File::options().read(true).write(true).open(pipe);
            said
        })
    };
    let mut lines = BufReader::new(fs::File::open(&pipe).unwrap()).lines();
    for _ in 0..4 {
        let line = lines.next().map(|line| line.unwrap());
        assert_eq!(line.as_deref(), Some("begun"));
    }
    let done = Command::new("kill").args(["-INT", &pid]).status();
    assert!(done.unwrap().success());
    let said = ended.join().unwrap();
    assert_eq!(said.code, 130, "{}", said.err);
    // One that was killed needs a processor to end.
    let more: Vec<String> = lines.map(|line| line.unwrap()).collect();
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn what_one_memory_cannot_do_is_said() {
    if !skip_unless_two_kinds() {
        return varve_skip::skip!("this machine has two kinds of memory");
    }
    let scratch = tempfile::tempdir().unwrap();
    let said = live(
        scratch.path(),
        "[[program]]\nname = \"a\"\ncommand = [\"true\"]\n",
        &[],
    )
    .well();
    assert!(
        said.out
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("programs are not placed, only threads and order are"),
        "{}",
        said.out
    );
}

/// On nodes of two kinds programs are where the plan says, as the kernel tells.
#[test]
fn programs_are_placed_on_nodes() {
    if skip_unless_two_kinds() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let program = |name: &str, memory: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nworkload = \"npb_mg:bytes=4MiB,passes=100\"\nmemory = \"{memory}\"\n\
             class = \"cpu-bound\"\nbytes = \"4MiB\"\nthreads = 1\n"
        )
    };
    let text = program("a", "slow") + &program("b", "fast");
    let said = live(
        scratch.path(),
        &text,
        &["--scale", "1", "--strategy", "placement"],
    )
    .well();
    let share = |name: &str, memory: &str| {
        let words: Vec<&str> = said.out.split_whitespace().collect();
        let out = words.join(" ");
        let after = out
            .split(&format!("{name}: "))
            .nth(1)
            .unwrap_or_else(|| panic!("{out}"));
        assert!(
            after.split(" were in ").nth(1).unwrap().starts_with(memory),
            "{out}"
        );
        after.split(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert!(share("a", "slow") >= 90, "{}", said.out);
    assert!(share("b", "fast") >= 90, "{}", said.out);
}

/// Where no strategy places, the kernel does: the table and the picture are of where programs were, and a limit that was not kept is
/// told.
#[test]
fn programs_that_linux_places_are_drawn_where_they_were() {
    if skip_unless_two_kinds() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let Some(tiered) = crate::tier::tiered(scratch.path()) else {
        return;
    };
    let program = |name: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\ncommand = [\"{}\", \"total=40\", \"hot=1\", \"budget=0\", \"seconds=6\"]\n\
             class = \"cpu-bound\"\nbytes = \"40MiB\"\nthreads = 1\n",
            tiered.display()
        )
    };
    let text = format!("fast = \"60MiB\"\n{}{}", program("a"), program("b"));
    let said = live(
        scratch.path(),
        &text,
        &["--strategy", "linux,placement", "--json"],
    )
    .well();
    let json = said.json();
    let memory = |run: usize| -> Vec<&str> {
        let programs = json["runs"][run]["programs"].as_array().unwrap().iter();
        let mut all: Vec<&str> = programs.map(|p| p["memory"].as_str().unwrap()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(memory(0), ["fast", "fast"], "{json}");
    assert_eq!(memory(1), ["fast", "slow"], "{json}");
    let notes = |run: usize| json["runs"][run]["notes"].to_string();
    assert!(notes(0).contains("the group's limit is 60 MiB"), "{json}");
    assert!(!notes(1).contains("the group's limit"), "{json}");
}

/// The paper's first group on nodes of two kinds: whatever was placed was where the plan had it.
#[test]
fn placement_of_the_papers_first_group_on_nodes() {
    if skip_unless_two_kinds() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let words = typed("jobs run examples/group1.toml --live --quick --json");
    let logs = format!(
        "--strategy linux,placement --logs {}",
        scratch.path().display()
    );
    let logs = typed(&logs);
    let said = varve(&[&words[..], &logs].concat()).well();
    let json = said.json();
    let notes = json["runs"][1]["notes"].as_array().unwrap();
    // Such as: ocean_cp: 97 % of its 2.1 MiB were in slow memory
    let placed: Vec<(&str, u32)> = (notes.iter())
        .filter_map(|note| note.as_str()?.split_once(": "))
        .filter(|(_, rest)| rest.contains(" were in "))
        .filter_map(|(name, rest)| Some((name, rest.split(' ').next()?.parse().ok()?)))
        .collect();
    assert!(placed.len() >= 3, "{notes:?}");
    assert!(placed.iter().all(|(_, share)| *share >= 80), "{notes:?}");
}

/// A program that needs bandwidth comes later: the pages of one that runs move out of its way.
#[test]
fn pages_of_a_running_program_make_room() {
    if skip_unless_two_kinds() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    // 12 MiB of fast memory: the first takes 8, and the newcomer needs 8.
    let program = |name: &str, passes: u32, class: &str, after: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nworkload = \"npb_mg:bytes=8MiB,passes={passes}\"\nclass = \"{class}\"\n\
             bytes = \"8MiB\"\nthreads = 1\nafter = [{after}]\n"
        )
    };
    let before = "[[program]]\nname = \"before\"\ncommand = [\"sleep\", \"1\"]\nbytes = 4096\nclass = \"cpu-bound\"\nthreads = 1\n";
    let text = "fast = \"12MiB\"\n".to_string()
        + &program("holds", 400, "cpu-bound", "")
        + before
        + &program("needs", 1, "bandwidth-sensitive", "\"before\"");
    let said = live(
        scratch.path(),
        &text,
        &["--scale", "1", "--strategy", "placement", "--json"],
    )
    .well();
    let moved = number(&said, 0, "/moved_bytes");
    assert!(
        moved >= 0.8 * 8388608.0,
        "{moved} bytes moved: {}",
        said.out
    );
}

/// A job whose pages moved away, by a control group: what its child allocates afterwards comes from slow memory, too. In a guest, where
/// control groups are mounted for it.
#[test]
fn programs_that_made_room_get_later_memory_from_slow_nodes() {
    if !Path::new("/.guest").exists() || skip_unless_two_kinds() {
        return varve_skip::skip!("needs a guest with two kinds of memory");
    }
    let groups = Path::new("/sys/fs/cgroup");
    if !groups.join("cgroup.controllers").exists() {
        let mut mount = Command::new("mount");
        mount.args(["-t", "cgroup2", "none"]).arg(groups);
        assert!(mount.status().unwrap().success());
    }
    let scratch = tempfile::tempdir().unwrap();
    let (inner, evicted) = (scratch.path().join("inner"), scratch.path().join("evicted"));
    // It goes on when the newcomer has begun, for which it made room.
    let script = format!(
        "x=$(head -c 8388608 /dev/zero | tr '\\0' x)\nuntil [ -e {} ]; do sleep 0.2; done\n\
        y=$(head -c 4194304 /dev/zero | tr '\\0' y)\ncat /proc/$$/numa_maps\n: $x $y\n",
        evicted.display()
    );
    fs::write(&inner, script).unwrap();
    let program = |name: &str, command: String, bytes: &str, class: &str, after: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\nclass = \"{class}\"\n\
             bytes = \"{bytes}\"\nthreads = 1\nafter = [{after}]\n"
        )
    };
    let text = "fast = \"12MiB\"\n".to_string()
        + &program(
            "holds",
            format!("sh {}; true", inner.display()),
            "8MiB",
            "cpu-bound",
            "",
        )
        + &program("before", "sleep 8".into(), "4KiB", "cpu-bound", "")
        + &program(
            "needs",
            format!("touch {}", evicted.display()),
            "8MiB",
            "bandwidth-sensitive",
            "\"before\"",
        );
    let options = ["--strategy", "placement", "--json"];
    let said = live(scratch.path(), &text, &options).well();
    assert!(
        number(&said, 0, "/moved_bytes") >= 0.8 * 8388608.0,
        "{}",
        said.out
    );
    assert!(said.out.contains("has a control group"), "{}", said.out);
    // Pages without files by node, of mappings as large as what it allocated.
    let maps = log(scratch.path(), "holds-placement");
    let large = maps.lines().filter(|line| !line.contains("file="));
    let pages = |line: &str, node: &str| -> u64 {
        let words = line.split(' ').find_map(|word| word.strip_prefix(node));
        words.and_then(|count| count.parse().ok()).unwrap_or(0)
    };
    let on = |node: &str| -> u64 { large.clone().map(|line| pages(line, node)).sum() };
    assert!(on("N1=") + on("N2=") >= 3000 && on("N0=") < 200, "{maps}");
    let left = fs::read_dir(groups).unwrap().flatten();
    assert!(
        left.into_iter()
            .all(|e| !e.file_name().to_string_lossy().starts_with("varve-jobs"))
    );
}

#[test]
fn the_matrix_of_interference_is_drawn() {
    let said = varve(&["machine", "interference", "here", "--quick"]);
    // A host with one processor cannot.
    if said.code == 0 {
        assert!(said.out.contains("SR fast 1"), "{}", said.out);
    } else {
        said.refuses(1, &["one processor"]);
    }
    let none = varve(&["machine", "interference", "haswell-2620v3"]);
    none.refuses(2, &["has no slow memory"]);
}

#[test]
fn the_example_is_where_the_book_says() {
    assert!(home().join("examples/group1.toml").is_file());
}

/// A plan as a file: it is printed alone, and what it cannot express is said beside it.
#[test]
fn a_plan_is_emitted_for_a_scheduler() {
    let of = |options: &[&str]| {
        let begin = typed("jobs plan examples/group1.toml --quick --keep none");
        varve(&[&begin[..], options].concat())
    };
    for (target, words) in [
        (
            "slurm",
            ["#SBATCH --exclusive", "--mem-bind=prefer,map_mem:2"],
        ),
        ("systemd", ["AllowedMemoryNodes=2", "NUMAMask=0"]),
    ] {
        let said = of(&["--emit", target, "--nodes", "fast=0,slow=2"]).well();
        for word in words {
            assert!(said.out.contains(word), "no `{word}` in: {}", said.out);
        }
        let told = said
            .err
            .lines()
            .filter(|l| l.starts_with("varve: note: not as planned: "));
        assert!(told.count() > 0, "{}", said.err);
    }
    of(&["--emit", "slurm"]).refuses(2, &["optane-6230n", "--nodes fast=0,slow=1"]);
    of(&["--emit", "slurm", "--nodes", "fast=x"]).refuses(2, &["fast=0,slow=1"]);
    let two = of(&[
        "--emit",
        "slurm",
        "--nodes",
        "fast=0,slow=2",
        "--strategy",
        "linux,all",
    ]);
    two.refuses(2, &["--emit writes one schedule", "2 strategies"]);
    assert_eq!(of(&["--nodes", "fast=0,slow=2"]).code, 2);
    assert_eq!(of(&["--emit", "slurm", "--json"]).code, 2);
}
