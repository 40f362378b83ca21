//! Sweeps: points that are kept, resumed, shared out, merged; and a run with several seeds.

use crate::common::{Said, TINY, command, home, typed, varve, varve_in};
use crate::stop::{signal, works};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Four points, in a folder of their own.
fn four(folder: &Path) {
    let text = format!(
        "about = \"two policies\"\nwork = \"{TINY}\"\nmachine = \"optane-6230\"\npolicy = [\"first-touch\", \"interleave\"]\nseed = [1, 2]\n\
         [picture]\nx = \"seed\"\nlines = \"policy\"\nover = \"first-touch\"\n"
    );
    fs::write(folder.join("four.toml"), text).unwrap();
}

fn sweep(folder: &Path, words: &[&str]) -> Said {
    varve_in(folder, &[&["sweep", "four.toml"], words].concat())
}

fn points(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("four/points")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn left(folder: &Path) -> u64 {
    let list: Value =
        serde_json::from_str(&sweep(folder, &["--list", "--json"]).well().out).unwrap();
    list["left"].as_u64().unwrap()
}

/// A plan that has no room in a share of fast memory has failed there. The run that it is compared with is not its result.
#[test]
fn a_plan_that_was_not_run_has_no_row_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let graph = home().join("programs/dist/graph.wasm");
    let text = format!(
        "work = \"{}\"\narguments = \"pagerank --scale 10 --iterations 2 --top 1\"\nmachine = \"optane-6242\"\nfast = [\"5%\", \"40%\"]\nplan = [\"dram\", \"kg-w\"]\n",
        graph.display()
    );
    fs::write(folder.path().join("four.toml"), text).unwrap();
    let said = sweep(folder.path(), &[]);
    assert_eq!(said.code, 1, "{}", said.err);
    for word in ["1 of 4 points failed", "fast=5% plan=kg-w", "fast memory"] {
        assert!(said.err.contains(word), "{}", said.err);
    }
    // The run by itself says the same.
    let run = format!(
        "run {} --machine optane-6242 --fast 5% --plan kg-w -- pagerank --scale 10 --iterations 2",
        graph.display()
    );
    let said = varve(&run);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("fast memory"), "{}", said.err);
}

#[test]
fn shards_and_one_process_make_the_same_files_byte_for_byte() {
    let merged = |folder: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        sweep(folder, &["--merge"]).well();
        let files = [
            "runs.parquet",
            "table.parquet",
            "results.json",
            "index.html",
            "chart-sweep.svg",
        ];
        let read = |name: &str| {
            (
                name.into(),
                fs::read(folder.join("four").join(name)).unwrap(),
            )
        };
        files.iter().map(|name| read(name)).collect()
    };
    let whole = tempfile::tempdir().unwrap();
    four(whole.path());
    let said = sweep(whole.path(), &[]).well();
    assert!(
        said.out.contains("first-touch") && said.out.contains("spread"),
        "{}",
        said.out
    );
    let expected = merged(whole.path());

    let shared = tempfile::tempdir().unwrap();
    four(shared.path());
    for shard in ["2/3", "0/3", "1/3"] {
        let before = sweep(shared.path(), &["--merge"]);
        before.refuses(1, &["points are missing", "--partial"]);
        let said = sweep(shared.path(), &["--shard", shard]).well();
        assert_eq!(said.out, "");
    }
    // Two that merge at the same time write the same.
    let merge = || {
        let mut merge = command(&["sweep", "four.toml", "--merge"]);
        merge
            .current_dir(shared.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        merge.spawn().unwrap()
    };
    let both = [merge(), merge()];
    for mut one in both {
        assert!(one.wait().unwrap().success());
    }
    assert!(merged(shared.path()) == expected);

    // And by the script that is printed, with the binary on the path.
    let scripted = tempfile::tempdir().unwrap();
    four(scripted.path());
    let script = sweep(scripted.path(), &["--emit", "shell", "--shards", "2"])
        .well()
        .out;
    let mut path = PathBuf::from(env!("CARGO_BIN_EXE_varve"))
        .parent()
        .unwrap()
        .as_os_str()
        .to_owned();
    path.push(":/usr/bin:/bin");
    let done = Command::new("sh")
        .args(["-c", &script])
        .current_dir(scripted.path())
        .env("PATH", path)
        .output()
        .unwrap();
    Said::of(done).well();
    assert!(merged(scripted.path()) == expected);
}

#[test]
fn a_sweep_goes_on_where_it_was_and_takes_nothing_half() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    four(folder);
    assert_eq!(left(folder), 4);
    sweep(folder, &[]).well();
    assert_eq!(left(folder), 0);
    let all = points(folder);
    let untouched = fs::metadata(&all[0]).unwrap().modified().unwrap();
    // One is gone, one is half, one is of another build.
    fs::remove_file(&all[1]).unwrap();
    let text = fs::read_to_string(&all[2]).unwrap();
    fs::write(&all[2], &text[..text.len() / 2]).unwrap();
    let other = fs::read_to_string(&all[3]).unwrap();
    let (_, maker_gone) = other.split_once(",\"key\":").unwrap();
    fs::write(
        &all[3],
        format!("{{\"maker\":\"0.0.9\",\"key\":{maker_gone}"),
    )
    .unwrap();
    assert_eq!(left(folder), 3);
    sweep(folder, &["--merge"])
        .refuses(1, &["3 of 4 points", "1 of them exist, from another build"]);
    let partial = sweep(folder, &["--merge", "--partial"]).well();
    assert!(
        partial.out.contains("3 of 4 points are missing"),
        "{}",
        partial.out
    );
    let said = sweep(folder, &[]).well();
    assert!(
        said.err.contains("1 results are of another build"),
        "{}",
        said.err
    );
    assert_eq!(points(folder).len(), 4);
    assert_eq!(
        fs::metadata(&all[0]).unwrap().modified().unwrap(),
        untouched
    );
}

#[test]
fn points_that_fail_are_named_and_the_others_kept() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "work = \"{TINY}\"\nmachine = [\"optane-6230\", \"lab\"]\npolicy = \"first-touch\"\n"
    );
    fs::write(folder.path().join("four.toml"), text).unwrap();
    let said = sweep(folder.path(), &[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("1 of 2 points failed"), "{}", said.err);
    assert!(
        said.err.contains("machine=lab: no machine is called `lab`"),
        "{}",
        said.err
    );
    assert_eq!(left(folder.path()), 1);
}

#[test]
fn bad_sweeps_are_one_line_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (text, said) in [
        (
            "work = \"gups\"\npolicy = [\"static\"]\nsede = 1\n",
            "four.toml:3: sede: is not an option of `varve run`; did you mean `seed`?",
        ),
        ("work = \"gups\"\nplan = \"kg-n\"\n", "--plan is for"),
        ("", "needs something to run"),
    ] {
        fs::write(folder.join("four.toml"), text).unwrap();
        sweep(folder, &[]).refuses(2, &[said]);
        assert_eq!(
            fs::read_dir(folder).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }
    four(folder);
    sweep(folder, &["--shard", "4/4"]).refuses(2, &["write a share such as 3/16"]);
    sweep(folder, &["--shard", "auto"]).refuses(2, &["not a task of a job array"]);
    varve(&["sweep", "/nowhere.toml"]).refuses(2, &["/nowhere.toml", "examples/budget.toml"]);
}

/// A task of a job array takes its share from Slurm's variables.
#[test]
fn a_share_may_come_from_the_job_array() {
    let folder = tempfile::tempdir().unwrap();
    four(folder.path());
    let task = |id: &str| {
        let mut command = command(&["sweep", "four.toml", "--shard", "auto"]);
        command.current_dir(folder.path());
        command.envs([
            ("SLURM_ARRAY_TASK_ID", id),
            ("SLURM_ARRAY_TASK_MIN", "5"),
            ("SLURM_ARRAY_TASK_COUNT", "2"),
        ]);
        Said::of(command.output().unwrap()).well();
    };
    task("5");
    assert_eq!(left(folder.path()), 2);
    task("6");
    assert_eq!(left(folder.path()), 0);
    let script = sweep(folder.path(), &["--emit", "slurm", "--shards", "16"])
        .well()
        .out;
    assert!(script.starts_with("#!/bin/bash\n#SBATCH"), "{script}");
    // Slurm makes no folder for what a task says.
    assert!(script.contains("--output=four-%a.log"), "{script}");
    assert!(
        script.contains("--array=0-15") && script.contains("--merge"),
        "{script}"
    );
    let job = sweep(folder.path(), &["--emit", "k8s", "--shards", "3"])
        .well()
        .out;
    assert!(
        job.contains("completionMode: Indexed") && job.contains("completions: 3"),
        "{job}"
    );
    assert!(job.contains("  name: four\n"), "{job}");
    // The image has no shell: its entry point gets words, in which Kubernetes puts the index.
    assert!(!job.contains("command:"), "{job}");
    let args = job
        .lines()
        .find_map(|line| line.strip_prefix("        args: "));
    let args: Vec<String> = serde_json::from_str(args.unwrap()).unwrap();
    let results = folder.path().join("four");
    std::fs::remove_dir_all(&results).unwrap();
    for index in 0..3 {
        let index = index.to_string();
        let put_in = |word: &String| word.replace("$(JOB_COMPLETION_INDEX)", &index);
        let args: Vec<String> = args.iter().map(put_in).collect();
        let args: Vec<&str> = args.iter().map(|word| &**word).collect();
        varve_in(folder.path(), &args).well();
    }
    assert_eq!(left(folder.path()), 0);
}

#[test]
fn several_seeds_are_medians_with_their_spread() {
    let words = format!("run {TINY} --machine optane-6230 --policy first-touch --set core.ipc=1.5");
    let words = typed(&words);
    let all = varve(&[&words[..], &["--seeds", "3", "--json"]].concat()).well();
    let all: Value = serde_json::from_str(&all.out).unwrap();
    let columns: Vec<&str> = all["table"]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns[..2], ["time", "spread"]);
    assert_eq!(all["machine"], "optane-6230:core.ipc=1.5");
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    let mut times: Vec<f64> = runs
        .iter()
        .map(|run| run["seconds"].as_f64().unwrap() * 1e9)
        .collect();
    times.sort_by(f64::total_cmp);
    let shown = all["table"]["rows"][0]["values"][0].as_f64().unwrap();
    assert!(
        (shown - times[1]).abs() < 1e-6 * times[1],
        "{shown} of {times:?}"
    );
}

/// A sweep of minutes is stopped: its runs end with it, and the line says how to go on.
#[test]
fn a_sweep_that_is_stopped_says_what_is_left_and_leaves_no_run_behind() {
    let folder = tempfile::tempdir().unwrap();
    let text = "work = \"gups:bytes=1GiB,updates=4000M\"\nmachine = \"optane-6230\"\npolicy = \"first-touch\"\nseed = [1, 2]\n";
    fs::write(folder.path().join("four.toml"), text).unwrap();
    let mut command = command(&["sweep", "four.toml", "--jobs", "2"]);
    let mut child = command
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let runs = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let children = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
        let all: String = tasks.flatten().filter_map(|t| children(t).ok()).collect();
        let numbers = all.split_whitespace().filter_map(|n| n.parse().ok());
        numbers.collect::<Vec<u32>>()
    };
    while runs().iter().filter(|run| works(**run)).count() < 2 {
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let started = runs();
    signal(&child.id().to_string(), "TERM");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert!(
        said.contains("interrupted; 2 of 2 points are left"),
        "{said}"
    );
    for run in started {
        assert!(
            !Path::new(&format!("/proc/{run}")).exists(),
            "{run} runs on"
        );
    }
    assert_eq!(left(folder.path()), 2);
}

/// A scheduler that takes scripts, and says of the tasks of its only job what a file says.
struct Pretended {
    folder: tempfile::TempDir,
}

impl Pretended {
    fn new() -> Pretended {
        let pretended = Pretended {
            folder: tempfile::tempdir().unwrap(),
        };
        four(pretended.path());
        let bin = pretended.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let tool = |name: &str, text: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        tool(
            "sbatch",
            "echo \"$@\" >>given; test ! -e full || { echo 'sbatch: error: the queue is full' >&2; exit 1; }; echo 17",
        );
        tool("squeue", "cat queue");
        pretended
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets the scheduler's list of tasks.
    fn queue(&self, tasks: &[&str]) {
        let line = |(place, word): (usize, &&str)| format!("17|{place}|{word}\n");
        let lines: String = tasks.iter().enumerate().map(line).collect();
        fs::write(self.path().join("queue"), lines).unwrap();
    }

    fn varve(&self, words: &[&str]) -> Said {
        let mut command = command(words);
        let path = format!("{}:/usr/bin:/bin", self.path().join("bin").display());
        command.current_dir(self.path()).env("PATH", path);
        Said::of(command.output().unwrap())
    }

    fn submit(&self) -> Value {
        let words = typed("sweep submit four.toml --array 2 --json -- --time=5");
        self.varve(&words).well().json()
    }

    /// The counts of `status`, as it orders them.
    fn counts(&self) -> [u64; 5] {
        let status = self
            .varve(&["sweep", "status", "four.toml", "--json"])
            .well()
            .json();
        ["done", "running", "waiting", "failed", "missing"]
            .map(|word| status["counts"][word].as_u64().unwrap())
    }

    /// Runs a task of the first job as a node would.
    fn task(&self, place: &str) -> Said {
        self.task_of("four/jobs/1.sh", place)
    }

    fn task_of(&self, script: &str, place: &str) -> Said {
        let words = [script];
        let mut script = Command::new("/bin/bash");
        script
            .args(words)
            .current_dir(self.path())
            .env("SLURM_ARRAY_TASK_ID", place);
        Said::of(script.env("SLURMD_NODENAME", "n3").output().unwrap())
    }
}

#[test]
fn only_what_no_task_has_is_submitted_again_and_all_of_it_is_told() {
    let slurm = Pretended::new();
    assert_eq!(slurm.counts(), [0, 0, 0, 0, 4]);
    let said = slurm.submit();
    assert_eq!(
        (&said["job"], &said["points"], &said["tasks"]),
        (&"17".into(), &4.into(), &2.into())
    );
    let given = fs::read_to_string(slurm.path().join("given")).unwrap();
    assert!(given.starts_with("--parsable --time=5 "), "{given}");
    slurm.queue(&["RUNNING", "PENDING"]);
    assert_eq!(slurm.counts(), [0, 2, 2, 0, 0]);
    let said = slurm.varve(&["sweep", "submit", "four.toml"]).well();
    assert_eq!(
        said.out,
        "nothing to submit: 4 of 4 points wait or run, and the others are done\n"
    );
    slurm.task("0").well();
    slurm.queue(&["COMPLETED", "PENDING"]);
    assert_eq!(slurm.counts(), [2, 0, 2, 0, 0]);
    // The other one was killed for its memory, and said nothing.
    slurm.queue(&["COMPLETED", "OUT_OF_MEMORY"]);
    assert_eq!(slurm.counts(), [2, 0, 0, 2, 0]);
    let status = slurm.varve(&["sweep", "status", "four.toml"]).well();
    assert!(
        status
            .out
            .contains("task 1 of job 17 ended as OUT_OF_MEMORY: see"),
        "{}",
        status.out
    );
    assert_eq!(slurm.submit()["points"], 2);
    slurm.task("1").well();
    let said = slurm.varve(&["sweep", "submit", "four.toml"]).well();
    assert_eq!(said.out, "nothing to submit: all 4 points are done\n");
    slurm.varve(&["sweep", "four.toml", "--merge"]).well();
}

#[test]
fn a_node_that_differs_runs_nothing_and_says_why() {
    let slurm = Pretended::new();
    let text = "work = \"a.trace\"\nmachine = \"optane-6230\"\npolicy = \"first-touch\"\n";
    fs::write(slurm.path().join("four.toml"), text).unwrap();
    let trace = slurm.path().join("a.trace");
    fs::write(&trace, "no trace").unwrap();
    slurm.submit();
    // What fails is told with its reason, also where no scheduler is.
    let said = slurm.task("0");
    assert_eq!(said.code, 1, "{}", said.err);
    slurm.queue(&["FAILED"]);
    assert_eq!(slurm.counts(), [0, 0, 0, 1, 0]);
    let mut alone = command(&["sweep", "status", "four.toml"]);
    let alone = Said::of(
        alone
            .current_dir(slurm.path())
            .env("PATH", "/nowhere")
            .output()
            .unwrap(),
    )
    .well();
    assert!(
        alone.out.contains("failed: the only point: a.trace: "),
        "{}",
        alone.out
    );
    assert!(
        alone
            .err
            .contains("no scheduler was found: `squeue` is not installed here"),
        "{}",
        alone.err
    );
    fs::write(&trace, "another").unwrap();
    slurm
        .task("0")
        .refuses(1, &["a.trace: has other content on n3"]);
    fs::remove_file(&trace).unwrap();
    slurm.task("0").refuses(1, &["a.trace: is not there on n3"]);
    let submission = slurm.path().join("four/jobs/1.json");
    let submitted = fs::read_to_string(&submission).unwrap();
    fs::write(&trace, "no trace").unwrap();
    fs::write(
        slurm.path().join("four.toml"),
        text.replace("first-touch", "hotset"),
    )
    .unwrap();
    slurm
        .task("0")
        .refuses(1, &["1 of 1 points are no longer those of the sweep"]);
    fs::write(
        &submission,
        submitted.replace("\"maker\": \"", "\"maker\": \"0"),
    )
    .unwrap();
    slurm
        .task("0")
        .refuses(1, &["varve on n3 is another build"]);
    fs::write(&submission, &submitted[..submitted.len() / 2]).unwrap();
    slurm.task("0").refuses(
        1,
        &["1.json: is not what was written when it was submitted"],
    );
    slurm
        .varve(&["sweep", "submit", "four.toml"])
        .refuses(1, &["1.json: is not what"]);
}

#[test]
fn without_a_scheduler_nothing_is_left_behind() {
    let slurm = Pretended::new();
    let mut alone = command(&["sweep", "submit", "four.toml"]);
    let alone = alone
        .current_dir(slurm.path())
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    Said::of(alone).refuses(
        1,
        &[
            "no scheduler was found: `sbatch` is not installed here",
            "--emit",
        ],
    );
    fs::write(slurm.path().join("full"), "").unwrap();
    let said = slurm.varve(&["sweep", "submit", "four.toml"]);
    said.refuses(1, &["sbatch: the queue is full"]);
    let left: Vec<_> = fs::read_dir(slurm.path().join("four/jobs"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "the lock alone: {left:?}");
    // Another process holds it.
    let lock = fs::File::open(slurm.path().join("four/jobs/lock")).unwrap();
    lock.lock().unwrap();
    let said = slurm.varve(&["sweep", "submit", "four.toml"]);
    said.refuses(1, &["four: another process submits its points now"]);
}

#[track_caller]
fn prints(said: &Said, words: &str) {
    assert!(said.out.contains(words), "no `{words}` in: {}", said.out);
}

/// The same scheduler takes the runs of a study, told by the same words.
#[test]
fn a_study_is_submitted_and_told_as_a_sweep_is() {
    let slurm = Pretended::new();
    let study = |action: &str, more: &[&str]| {
        let words = ["study", action, "app-aware", "--quick", "--only", "E5"];
        slurm.varve(&[&words, &["--keep", "runs"][..], more].concat())
    };
    let counts = || {
        let status = study("status", &["--json"]).well().json();
        ["done", "running", "waiting", "failed", "missing"]
            .map(|word| status["counts"][word].as_u64().unwrap())
    };
    assert_eq!(counts(), [0, 0, 0, 0, 18]);
    let submit = ["--array", "3", "--json", "--", "--time=5"];
    let said = study("submit", &submit).well().json();
    assert_eq!(
        (&said["job"], &said["points"], &said["tasks"]),
        (&"17".into(), &18.into(), &3.into())
    );
    let given = fs::read_to_string(slurm.path().join("given")).unwrap();
    assert!(
        given.contains("--parsable --time=5 runs/jobs/1.sh"),
        "{given}"
    );
    slurm.queue(&["RUNNING", "PENDING", "PENDING"]);
    assert_eq!(counts(), [0, 6, 12, 0, 0]);
    prints(
        &study("submit", &[]).well(),
        "nothing to submit: 18 of 18 points wait or run",
    );
    for place in ["0", "2"] {
        slurm.task_of("runs/jobs/1.sh", place).well();
    }
    slurm.queue(&["COMPLETED", "OUT_OF_MEMORY", "COMPLETED"]);
    assert_eq!(counts(), [12, 0, 0, 6, 0]);
    let status = study("status", &[]).well();
    prints(&status, "task 1 of job 17 ended as OUT_OF_MEMORY");
    let merge = typed("study app-aware --quick --only E5 --keep runs --merge");
    slurm.varve(&merge).refuses(1, &["6 of 18 runs"]);
    // Only what failed goes there again.
    assert_eq!(study("submit", &submit).well().json()["points"], 6);
    for place in ["0", "1", "2"] {
        slurm.task_of("runs/jobs/2.sh", place).well();
    }
    prints(
        &study("submit", &[]).well(),
        "nothing to submit: all 18 points are done",
    );
    prints(&slurm.varve(&merge).well(), "E5");
    // A sweep's points in the same folder are none of a study's business.
    let status = study("status", &["--json", "--seed", "2"]).well().json();
    assert_eq!(
        (&status["points"], &status["jobs"]),
        (&18.into(), &serde_json::json!([]))
    );
    slurm
        .varve(&["study", "submit", "app-aware", "--keep", "none"])
        .refuses(2, &["need a place for what they make"]);
}

/// Shares of a study keep their runs in one folder; the answer is refused while some are missing.
#[test]
fn a_study_is_shared_out_as_a_sweep_is() {
    let folder = tempfile::tempdir().unwrap();
    let study = |words: &[&str]| {
        let all = typed("study app-aware --quick --only E5 --keep runs");
        varve_in(folder.path(), &[&all, words].concat())
    };
    let script = study(&["--emit", "slurm", "--shards", "2"]).well().out;
    let command = "varve study app-aware --quick --only=E5 --seed=1 --keep=runs";
    let share = format!("exec {command} --shard \"$SLURM_ARRAY_TASK_ID/2\"");
    assert!(script.contains(&share), "{script}");
    assert!(
        script.contains("give it to the scheduler 2 times"),
        "{script}"
    );
    study(&["--merge"]).refuses(
        1,
        &[
            "18 of 18 runs that are known are missing: what ",
            "run all shares",
        ],
    );
    for shard in ["0/2", "1/2"] {
        assert_eq!(study(&["--shard", shard]).well().out, "");
    }
    let merged = study(&["--merge", "--json"]).well().json();
    assert!(merged["claims"][0]["ours"].is_number(), "{merged}");
    // What is half written is no run.
    let mut runs = fs::read_dir(folder.path().join("runs")).unwrap();
    let file = runs.next().unwrap().unwrap().path();
    let text = fs::read(&file).unwrap();
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    study(&["--merge"]).refuses(1, &["1 of 18 runs"]);
    study(&["--merge", "--partial"]).refuses(1, &["no answer without them"]);
}
