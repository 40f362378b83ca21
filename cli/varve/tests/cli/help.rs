//! Texts for a reader who does not know Varve yet.

use crate::common::{Said, varve};

/// Every command with every one below it, found in the help texts themselves.
fn all_commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut at = 0;
    while at < found.len() {
        let words: Vec<String> = found[at].clone();
        let said = help(&words);
        let list = said.out.split("\nCommands:\n").nth(1).unwrap_or("");
        for line in list.lines().take_while(|l| !l.is_empty()) {
            let name = line.split_whitespace().next().unwrap_or("help");
            if line.starts_with("  ") && !line.starts_with("   ") && name != "help" {
                found.push([&words[..], &[name.to_string()]].concat());
            }
        }
        at += 1;
    }
    found
}

fn help(words: &[String]) -> Said {
    varve(&[words, &["--help".to_string()]].concat()).well()
}

#[test]
fn varve_alone_says_what_to_try() {
    let said = varve("").well();
    assert!(
        said.out.contains("varve run traces/sqlite-join.trace"),
        "{}",
        said.out
    );
    assert!(said.out.contains("--help"), "{}", said.out);
}

#[test]
fn every_command_explains_itself_in_80_columns() {
    let all = all_commands();
    assert!(
        all.len() >= 14,
        "commands and their commands were found: {all:?}"
    );
    for words in all {
        let said = help(&words);
        assert!(said.out.contains("Usage: varve"), "{words:?}: {}", said.out);
        for line in said.out.lines() {
            assert!(
                line.chars().count() <= 80,
                "{words:?}: wider than 80 columns: {line}"
            );
        }
    }
}

#[test]
fn every_flag_has_a_sentence() {
    for words in all_commands() {
        let said = help(&words);
        let options = said.out.split("Options:\n").nth(1).unwrap_or("");
        let mut lines = options.lines().take_while(|l| !l.is_empty()).peekable();
        while let Some(line) = lines.next() {
            let flag = line.trim_start().starts_with('-');
            let alone = line.trim().split("  ").count() == 1
                && !lines.peek().is_some_and(|l| l.starts_with("      "));
            assert!(!(flag && alone), "{words:?}: nothing is said about {line}");
        }
    }
}

#[test]
fn help_of_run_is_short_and_says_how_to_get_the_rest() {
    let run = |words: &[&str]| varve(&[&["run"], words].concat()).well().out;
    let short = run(&["--help"]);
    assert!(short.lines().count() <= 45, "{short}");
    for word in [
        "--machine",
        "--policy",
        "--plan",
        "--fast",
        "--live",
        "--json",
        "--out",
        "--help=all",
    ] {
        assert!(short.contains(word), "{word}: {short}");
    }
    assert!(
        !short.contains("--gc-log") && !short.contains("--scale"),
        "{short}"
    );
    let all = run(&["--help=all"]);
    for (words, has, lacks) in [
        (
            &["gups", "--help"][..],
            &["--scale", "--policy"][..],
            &["--plan ", "--gc-log", "--bins"][..],
        ),
        (
            &["x.wasm", "-h"],
            &["--gc-log", "--durable", "--sync"],
            &["--policy", "--instances", "--plan "],
        ),
        (
            &["x.wasm", "--machine", "cxl-spr", "--help"],
            &["--plan ", "--instances"],
            &["--policy", "--sync"],
        ),
        (
            &["x.wasm", "--plan", "kg-n", "--help"],
            &["--nodes", "--live"],
            &["--instances", "--json"],
        ),
        (
            &["--live", "--help", "--", "true"],
            &["--bins", "--ways"],
            &["--policy", "--nodes"],
        ),
    ] {
        let shown = run(words);
        for word in has {
            assert!(
                shown.contains(word) && all.contains(word),
                "{words:?} {word}: {shown}"
            );
        }
        for word in lacks {
            let options = shown.split("options:").nth(1).unwrap_or(&shown);
            let options = options.lines().filter(|l| l.trim_start().starts_with('-'));
            assert!(
                !options.clone().any(|l| l.contains(word)),
                "{words:?} {word}: {shown}"
            );
        }
    }
}

#[test]
fn things_are_explained_with_a_picture() {
    let plan = varve(&["explain", "plan", "kg-n"]).well().out;
    assert_eq!(plan, varve(&["plan", "kg-n"]).well().out);
    let rows: Vec<&str> = plan.lines().filter(|l| l.starts_with('│')).collect();
    let halves = |row: &str| {
        let middle = row.char_indices().nth(39).map_or(row.len(), |c| c.0);
        (row[..middle].to_string(), row[middle..].to_string())
    };
    let (fast, slow): (Vec<String>, Vec<String>) = rows.iter().map(|r| halves(r)).unzip();
    assert!(fast.concat().contains("young objects"), "{plan}");
    assert!(slow.concat().contains("survivors"), "{plan}");
    for words in [
        ["policy", "static"],
        ["machine", "cxl-spr"],
        ["workload", "gups"],
    ] {
        let shown = varve(&["explain", words[0], words[1]]).well().out;
        assert!(shown.contains(words[1]), "{shown}");
        varve(&["explain", words[0], "nothing"]).refuses(2, &["nothing"]);
    }
}

#[test]
fn the_version_is_told() {
    assert_eq!(
        varve(&["--version"]).well().out.trim(),
        format!("varve {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn wrong_usage_ends_with_2_and_points_to_help() {
    for words in [
        &["rum"][..],
        &["run"],
        &["run", "gups", "--nothing"],
        &["run", "gups", "--bins", "1GiB"],
    ] {
        let said = varve(words);
        assert_eq!(said.code, 2, "{words:?}");
        assert!(said.err.contains("--help"), "{words:?}: {}", said.err);
        assert_eq!(said.out, "", "{words:?}");
    }
}

/// What a package installs is made from the same definition.
#[test]
fn shells_complete_commands_and_each_command_has_a_manual_page() {
    for (shell, part) in [
        ("bash", "complete -F _varve"),
        ("zsh", "#compdef varve"),
        ("fish", "complete -c varve"),
    ] {
        let said = varve(&["completions", shell]).well();
        assert!(said.out.contains(part), "{shell}");
        assert!(said.out.contains("cgroup"), "{shell}: options of `tier`");
    }
    let wrong = varve(&["completions", "cmd"]);
    assert!(
        wrong.code == 2 && wrong.err.contains("bash"),
        "{}",
        wrong.err
    );
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("man1");
    varve(&["man", made.to_str().unwrap()]).well();
    let page = |name: &str| std::fs::read_to_string(made.join(name)).unwrap();
    assert!(page("varve.1").contains("varve\\-tier(1)"));
    assert!(page("varve-tier.1").contains("cgroup"));
    assert!(page("varve-durable-check.1").starts_with(".ie"));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("man1");
    varve(&["man", below.to_str().unwrap()]).refuses(1, &["man1"]);
}
