//! Groups that are wrong, each with its line and what to do.

use varve_jobs::group::parse;

/// The messages of a group's problems.
fn problems(text: &str) -> Vec<String> {
    match parse(text, "g.toml") {
        Ok(_) => Vec::new(),
        Err(all) => all.iter().map(ToString::to_string).collect(),
    }
}

const OK: &str = "[[program]]\nname = \"a\"\nworkload = \"gups\"\n";

#[test]
fn a_group_of_one_program_is_enough() {
    assert_eq!(problems(OK), [""; 0]);
}

#[test]
fn every_problem_is_told_at_once_with_its_line() {
    let text = "at_onc = 1\ncores = 0\n\n[[program]]\nname = \"a\"\nworkload = \"gupps\"\nthreads = \"8\"\n";
    let all = problems(text);
    assert_eq!(
        all[0],
        "g.toml:1: at_onc: unknown key; did you mean `at_once`?"
    );
    assert_eq!(
        all[1],
        "g.toml:2: cores: 0 is not possible; write a whole number from 1 to 1024"
    );
    assert!(
        all[2].starts_with("g.toml:6: program.workload: no workload is called `gupps`"),
        "{}",
        all[2]
    );
    assert_eq!(
        all[3],
        "g.toml:7: program.threads: is a string; write a whole number from 1 to 1024"
    );
    assert_eq!(all.len(), 4);
}

#[test]
fn orders_must_be_possible() {
    let program = |name: &str, after: &str| {
        format!("[[program]]\nname = \"{name}\"\ncommand = [\"true\"]\nafter = [{after}]\n")
    };
    let cycle = [
        program("a", "\"c\""),
        program("b", "\"a\""),
        program("c", "\"b\""),
    ]
    .concat();
    assert_eq!(
        problems(&cycle),
        [
            "g.toml:1: program `a`, after: none of these ever starts: a waits for c waits for b waits for a; take one `after` out"
        ]
    );
    let own = program("a", "\"a\"");
    assert!(
        problems(&own)[0].contains("a waits for a"),
        "{:?}",
        problems(&own)
    );
    let unknown = [program("solver", ""), program("b", "\"solve\"")].concat();
    assert!(
        problems(&unknown)[0].ends_with("did you mean `solver`?"),
        "{:?}",
        problems(&unknown)
    );
}

#[test]
fn a_program_is_something_and_not_two_things() {
    let all = |rest: &str| problems(&format!("[[program]]\nname = \"a\"\n{rest}\n")).join("\n");
    assert!(all("").contains("has nothing to run"));
    assert!(
        all("workload = \"gups\"\ntrace = \"x.trace\"")
            .contains("is given together with `workload`")
    );
    assert!(
        all("command = [\"x\"]\nmanaged = \"x.wasm\"").contains("is given together with `command`")
    );
    assert!(all("command = []").contains("is empty"));
    assert!(
        all("command = [\"x\"]\nenv = { A = \"{thread}\" }").contains("`{thread}` is not known")
    );
    assert!(all("command = [\"x\"]\ntime_limit = \"5\"").contains("`5` is not a time"));
    assert!(all("command = [\"x\"]\nclass = \"cpu\"").contains("write \"cpu-bound\" or"));
    assert!(all("command = [\"x\"]\nmemory = \"dram\"").contains("write \"fast\" or \"slow\""));
}

#[test]
fn a_group_needs_programs_with_names_of_their_own() {
    assert!(
        problems("name = \"g\"")[0]
            .contains("there is none; begin each program with `[[program]]`")
    );
    let twice = format!("{OK}{OK}");
    assert_eq!(
        problems(&twice),
        ["g.toml:4: program `a`, name: the program in line 1 has the same name; give each its own"]
    );
    assert!(problems("not toml")[0].starts_with("g.toml:1:"));
}

#[test]
fn an_impossible_number_of_threads_is_told() {
    let text = format!("cores = 4\n{OK}threads = 5\n");
    assert_eq!(
        problems(&text),
        [
            "g.toml:2: program `a`, threads: 5 threads, and the group has 4 cores; lower `threads`, or raise `cores`"
        ]
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = parse(&text, "g.toml");
    }

    #[test]
    fn no_damaged_group_makes_it_panic(at in 0usize..400, with in "\\PC{0,3}") {
        let whole = include_str!("../../../examples/group1.toml");
        let at = (0..=at.min(whole.len())).rev().find(|&i| whole.is_char_boundary(i)).unwrap_or(0);
        let _ = parse(&format!("{}{with}{}", &whole[..at], &whole[at..]), "g.toml");
    }
}

/// How a program's own memory is placed: each kind has its keys.
#[test]
fn placement_inside_a_program_is_of_its_kind() {
    let all = |rest: &str| problems(&format!("[[program]]\nname = \"a\"\n{rest}\n")).join("\n");
    for good in [
        "command = [\"./solver\"]\nsites = \"solver.sites\"\nfast = \"2GiB\"",
        "command = [\"./solver\"]\nsites = \"solver.sites\"\nplan = \"knapsack\"",
        "command = [\"java\", \"Api\"]\nplan = \"kg-n:outside=slow\"",
        "managed = \"x.wasm\"\nplan = \"kg-w\"",
        "managed = \"x.wasm\"\nplan = \"hot-sites\"\nsites = \"x.sites\"",
        "trace = \"x.trace\"\nplan = \"slow-scan\"",
        "workload = \"gups\"\ncommand = [\"java\", \"Api\"]\nplan = \"kg-n\"",
    ] {
        assert_eq!(all(good), "", "{good}");
    }
    for (bad, said) in [
        (
            "command = [\"x\"]\nfast = \"2GiB\"",
            "program.fast: belongs to nothing",
        ),
        (
            "workload = \"gups\"\nplan = \"kg-n\"",
            "a workload has neither objects nor generations",
        ),
        (
            "command = [\"/usr/bin/java\"]\nsites = \"x.sites\"",
            "write plan = \"kg-n\"",
        ),
        ("command = [\"java\"]\nplan = \"kg-m\"", "kg-n"),
        (
            "command = [\"java\"]\nplan = \"pima\"",
            "takes whatever fast memory it finds",
        ),
        ("command = [\"java\"]\nplan = \"hotset\"", "places by page"),
        (
            "command = [\"java\"]\nplan = \"slow\"",
            "which is what `memory` is for",
        ),
        (
            "command = [\"x\"]\nsites = \"x.sites\"\nplan = \"kg-n\"",
            "no plan for native programs is called `kg-n`",
        ),
        (
            "command = [\"x\"]\nsites = \"x.sites\"\nplan = \"dram\"",
            "take hot-sites or knapsack",
        ),
        (
            "managed = \"x.wasm\"\nsites = \"x.sites\"",
            "is given without `plan`",
        ),
        (
            "command = [\"java\"]\nplan = \"kg-n\"\nmemory = \"fast\"",
            "`memory` says that all of it is in fast memory; take one of both out",
        ),
    ] {
        let found = all(bad);
        assert!(
            found.contains(said) && found.starts_with("g.toml:") && found.lines().count() == 1,
            "{bad}: {found}"
        );
    }
}
