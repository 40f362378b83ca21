//! Heap plans that go by what a program says of itself: marks at allocation sites, intervals.

use crate::common::{Said, TINY, typed, varve};

const GRAPH: &str = "programs/dist/graph.wasm";

/// PageRank of a small graph.
fn graph(options: &[&str]) -> Said {
    let words = ["--", "pagerank", "--scale", "9", "--iterations", "4"];
    varve(&[&["run", GRAPH, "--nursery", "512KiB"], options, &words].concat())
}

/// The log of phases in a run's standard error, without the times.
fn phases(err: &str) -> Vec<&str> {
    err.lines()
        .filter(|line| line.contains(" at ") && line.contains(" s: "))
        .filter_map(|line| line.split_once(" s: "))
        .map(|(_, phase)| phase.split(':').next().unwrap_or_default())
        .collect()
}

#[test]
fn a_graph_under_pima_decides_again_and_again_and_prints_the_same() {
    let plain = graph(&[]).well();
    let said = graph(&["--plan", "pima:hold-off=0s,alpha=1", "--pima-log"]).well();
    assert_eq!(said.out, plain.out);
    let phases = phases(&said.err);
    assert_eq!(
        phases[..4],
        [
            "default, old objects in slow memory",
            "prepare",
            "sample slow memory",
            "sample fast memory"
        ],
        "{}",
        said.err
    );
    // 32 intervals; one in five or six ends a sample.
    let decisions = phases.iter().filter(|p| p.starts_with("cleanup, choose "));
    assert!(decisions.count() >= 3, "{}", said.err);
    for pair in phases.windows(2) {
        let fits = match pair[0].split([' ', ',']).next().unwrap() {
            "default" | "hold" => pair[1] == "prepare",
            "prepare" => pair[1].starts_with("sample"),
            "sample" => pair[1].starts_with("sample") || pair[1].starts_with("cleanup"),
            "cleanup" => pair[1].starts_with("hold off"),
            _ => false,
        };
        assert!(fits, "{pair:?}: {}", said.err);
    }
}

#[test]
fn on_the_model_the_log_is_the_same_every_time_and_names_the_plan() {
    let run = || {
        graph(&[
            "--machine",
            "optane-6242",
            "--plan",
            "kg-n,pima:hold-off=1ms,hints+pima",
            "--pima-log",
        ])
        .well()
    };
    let one = run();
    let lines = |said: &Said, plan: &str| -> Vec<String> {
        let lines = said.err.lines().filter(|line| line.starts_with(plan));
        lines.map(String::from).collect()
    };
    let pima = lines(&one, "pima:hold-off=1ms at ");
    assert!(pima.len() > 6, "{}", one.err);
    assert!(
        pima.iter()
            .any(|l| l.contains("cleanup, choose ") && l.contains("alpha 1.5")),
        "{}",
        one.err
    );
    assert!(lines(&one, "hints+pima at ").len() > 4, "{}", one.err);
    assert!(lines(&one, "kg-n at ").is_empty());
    assert_eq!(pima, lines(&run(), "pima:hold-off=1ms at "));
}

/// Neither what ran before in the same process nor what runs beside is in the numbers.
#[test]
fn a_plan_gives_the_same_numbers_in_any_company() {
    let of = |plans: &str, jobs: &str, plan: &str| {
        let options = ["--machine", "optane-6242", "--instances", "16", "--json"];
        let said = graph(&[&options[..], &["--plan", plans, "--jobs", jobs]].concat());
        let json = said.well().json();
        let runs = json["runs"].as_array().expect("a list").clone();
        let run = runs.into_iter().find(|r| r["plan"] == plan);
        run.expect("the plan was asked for")
    };
    for plan in ["pima", "kg-w"] {
        let alone = of(plan, "1", plan);
        let others = format!("slow,slow-scan,hints+pima,{plan}");
        assert_eq!(of(&others, "1", plan), alone, "{plan} after others");
        assert_eq!(of(&others, "2", plan), alone, "{plan} beside others");
    }
}

#[test]
fn hints_put_marked_objects_into_fast_memory() {
    let of = |plan: &str| {
        let said = graph(&["--plan", plan, "--gc-stats"]).well();
        let spaces = said.err.lines().filter(|l| l.starts_with("mature 0"));
        let used: Vec<f64> = spaces
            .filter_map(|l| l.split_whitespace().nth(3)?.parse().ok())
            .collect();
        assert_eq!(used.len(), 1, "{}", said.err);
        assert!(!said.err.contains("did what"), "{}", said.err);
        used[0]
    };
    assert!(of("hints") > 0.0);
    assert_eq!(of("kg-n"), 0.0);
}

#[test]
fn a_program_that_says_nothing_of_itself_is_told_about() {
    let hello =
        |options: &[&str]| varve(&[&["run", "programs/dist/hello.wasm"], options].concat()).well();
    for (plan, lacks) in [
        ("hints", "the program marked no allocation site"),
        ("pima", "the program reported no intervals"),
        (
            "hints+pima",
            "the program marked no allocation site and reported no intervals",
        ),
    ] {
        let said = hello(&["--plan", plan]);
        let note = format!("note: heap plan `{plan}` did what `kg-n` does: {lacks}");
        // Before it, where memory is all alike, stands that this is so.
        assert_eq!(said.err.lines().last(), Some(&*note));
        let said = hello(&["--plan", plan, "--machine", "optane-6242"]);
        let words: Vec<&str> = said.out.split_whitespace().collect();
        assert!(words.join(" ").contains(&note[6..]), "{}", said.out);
    }
    assert!(!hello(&["--plan", "kg-w"]).err.contains("did what"));
}

#[test]
fn all_plans_that_need_no_profile_are_run() {
    let said = varve("run programs/dist/hello.wasm --machine optane-6242 --plan all --json").well();
    for plan in ["kg-w", "hints", "pima", "hints+pima"] {
        assert!(said.out.contains(&format!("\"{plan}\"")), "{plan}");
    }
}

#[test]
fn a_limit_of_fast_memory_changes_the_choice_and_is_told() {
    let said = graph(&["--plan", "pima:alpha=1", "--pima-log", "--fast", "600KiB"]).well();
    assert!(
        said.err.contains("do not fit into 0.0 MiB of fast memory"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("sample fast memory"), "{}", said.err);
}

#[test]
fn what_makes_no_sense_is_one_line() {
    for (options, parts) in [
        (
            &["--plan", "pima:alpha=0.9"][..],
            &["alpha is 0.9", "at least 1"][..],
        ),
        (&["--plan", "pima:intervals=0"], &["from 1 on"]),
        (&["--plan", "hints:alpha=2"], &["no parameter `alpha`"]),
        (
            &["--plan", "kg-n", "--pima-log"],
            &["--pima-log", "none of these heap plans samples"],
        ),
        (&["--pima-log"], &["--pima-log", "without a plan"]),
        (
            &["--plan", "pima", "--pima-log=/no/such/folder/log"],
            &["/no/such/folder/log", "can be written for --pima-log"],
        ),
        (&["--fast", "1MiB"], &["--fast", "--plan"]),
        (
            &["--plan", "hints", "--fast", "25%"],
            &["--fast 25%", "--fast 64MiB", "--machine"],
        ),
        (
            &["--plan", "hints", "--fast-max", "1KiB"],
            &["1 KiB", "make the nursery smaller"],
        ),
    ] {
        graph(options).refuses(2, parts);
    }
    varve(&["run", TINY, "--pima-log"]).refuses(2, &["--pima-log", "WebAssembly"]);
    varve(&["run", TINY, "--fast-max", "1MiB"]).refuses(2, &["--fast", "WebAssembly"]);
}

#[test]
fn a_program_that_fails_is_compared_with_nothing() {
    let words = typed("--machine optane-6242 --plan kg-n -- nonsense");
    let said = varve(&[&["run", GRAPH], &words[..]].concat());
    assert_eq!((said.code, &*said.out), (2, ""), "{}", said.err);
    assert!(
        said.err.contains("unknown argument nonsense"),
        "{}",
        said.err
    );
    assert!(said.err.contains("ended with exit code 2"), "{}", said.err);
}

/// Phases are asked for most of all when something goes wrong.
#[test]
fn a_program_that_fails_on_the_model_leaves_its_phases() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("phases");
    let to = format!("--pima-log={}", log.display());
    let said = graph(&[
        "--machine",
        "optane-6242",
        "--plan",
        "pima:hold-off=0s",
        &to,
        "--heap-max",
        "1500KiB",
    ]);
    assert_eq!((said.code, &*said.out), (1, ""), "{}", said.err);
    assert!(said.err.contains("(see --heap-max)"), "{}", said.err);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("default, old objects in slow memory"), "{log}");
    assert!(log.contains("sample fast memory"), "{log}");
}

#[test]
fn instances_share_a_machine_one_for_all_or_each_by_itself() {
    let of = |options: &[&str]| {
        let words = ["--machine", "optane-6242", "--plan", "dram,slow", "--json"];
        let said = graph(&[&words[..], options].concat()).well();
        let all = said.json();
        let number = |run: usize, key: &str| all["runs"][run][key].as_f64().unwrap();
        (number(1, "seconds") / number(0, "seconds"), all)
    };
    let (one, _) = of(&["--instances", "4"]);
    let (each, all) = of(&["--instances", "4", "--co-run"]);
    assert_eq!(
        all["runs"][0]["instance_seconds"].as_array().unwrap().len(),
        4
    );
    assert!((one / each - 1.0).abs() < 0.15, "{one} {each}");
}

#[test]
fn a_heap_beyond_the_machine_or_its_references_is_one_line() {
    let hello = |options: &[&str]| varve(&[&["run", "programs/dist/hello.wasm"], options].concat());
    hello(&["--machine", "optane-6242", "--heap-max", "4TiB"])
        .refuses(2, &["--heap-max 4TiB", "1896GiB", "`optane-6242`"]);
    hello(&["--heap-max", "1TiB"]).refuses(2, &["a heap of 1 TiB", "too large"]);
    hello(&["--nursery", "2MiB", "--nursery-max", "1MiB"])
        .refuses(2, &["--nursery 2MiB", "--nursery-max 1MiB"]);
    hello(&["--machine", "here", "--plan", "dram,kg-n"])
        .refuses(2, &["`here`", "no slow memory of its own"]);
}

#[test]
fn a_plan_that_cannot_run_does_not_lose_the_others() {
    let said = varve(
        "run programs/dist/hello.wasm --machine optane-6242 --plan dram,kg-w,kg-n \
         --nursery 256KiB --fast-max 1MiB",
    );
    // It was asked for by name, which a script has to notice.
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.contains("Not run: kg-w:"), "{}", said.out);
    assert!(said.out.contains("kg-n  "), "{}", said.out);
}

/// The share is of what the program takes in fast memory alone, and holds for all plans but that one.
#[test]
fn a_share_of_fast_memory_is_of_what_the_program_takes() {
    let on_model = |options: &[&str]| graph(&[&["--machine", "optane-6242"], options].concat());
    let said = on_model(&["--plan", "hints,kg-n", "--fast", "50%"]).well();
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("--fast 50% is "), "{text}");
    assert!(
        text.contains("that the program takes with everything in fast memory"),
        "{text}"
    );
    let json = |options: &[&str]| on_model(&[options, &["--json"]].concat()).well().json();
    let all = json(&["--plan", "hints,kg-n", "--fast", "50%"]);
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(
        runs[0]["plan"], "dram",
        "the baseline comes first, asked for or not"
    );
    assert_eq!(runs[0]["slow_bytes"], 0, "and has no limit");
    let most = runs[0]["most_bytes"].as_u64().unwrap();
    assert!(most >= runs[0]["fast_bytes"].as_u64().unwrap());
    // The same limit in bytes gives the same runs.
    let bytes = format!("{}", (most as f64 * 0.5) as u64);
    let same = json(&["--plan", "dram,hints,kg-n", "--fast-max", &bytes]);
    assert_eq!(all["runs"], same["runs"]);
    let without = json(&["--plan", "dram,hints,kg-n"]);
    assert_eq!(runs[0], without["runs"][0], "the baseline has no limit");
    assert_ne!(runs[2], without["runs"][2], "and kg-n has one");
    // A share that leaves no room for the nursery that was asked for is refused plan by plan.
    let said = on_model(&["--plan", "slow,kg-n", "--fast", "1%"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Not run: kg-n:"), "{text}");
    assert!(text.contains("make the nursery smaller"), "{text}");
    // The baseline is no answer where nothing else was run.
    let said = on_model(&["--plan", "kg-n", "--fast", "1%"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("make the nursery smaller"),
        "{}",
        said.err
    );
    for wrong in ["0%", "101%", "much"] {
        let said = on_model(&["--fast", wrong]);
        assert_eq!(said.code, 2);
        assert!(said.err.contains("--fast"), "{}", said.err);
    }
}

#[test]
fn several_shares_of_fast_memory_are_compared_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let options = typed("--machine optane-6242 --plan slow,kg-n --fast 60%,90%");
    let said = graph(&[&options[..], &["--out", out, "--json"]].concat()).well();
    let names: Vec<String> = said.json()["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["plan"].as_str().unwrap().to_string())
        .collect();
    let wanted = [
        "dram",
        "slow at 60%",
        "kg-n at 60%",
        "slow at 90%",
        "kg-n at 90%",
    ];
    assert_eq!(names, wanted);
    let picture = std::fs::read_to_string(folder.path().join("chart-slowdown.svg")).unwrap();
    assert!(picture.starts_with("<svg xmlns=") && picture.trim_end().ends_with("</svg>"));
    assert!(
        picture.contains(">kg-n<") && picture.contains("--paper"),
        "{picture}"
    );
}

/// Without a name, the few plans that tell most run, and the table says that there are more.
#[test]
fn a_few_plans_run_where_none_is_named() {
    let said = graph(&["--machine", "optane-6242"]).well();
    for plan in ["dram", "slow", "first-touch", "kg-n", "kg-w", "pima"] {
        assert!(
            said.out.contains(&format!(" {plan} ")),
            "{plan}: {}",
            said.out
        );
    }
    assert!(!said.out.contains(" slow-scan "), "{}", said.out);
    assert!(said.out.contains("`--plan all` compares"), "{}", said.out);
}

#[test]
fn plans_are_listed_with_their_parameters() {
    let all = varve(&["plan"]).well();
    for plan in ["dram", "kg-w", "cgz+pima"] {
        assert!(all.out.contains(plan), "{plan}");
    }
    let one = varve(&["plan", "pima"]).well();
    assert!(one.out.contains("hold-off=50s"), "{}", one.out);
    varve(&["plan", "nothing"]).refuses(2, &["plan is called `nothing`", "dram"]);
}
