//! Native programs, object by object: compared on a model, profiled, shown, placed on this machine, refused.

use crate::common::{Said, can_trace, typed, varve};
use std::path::{Path, PathBuf};
use std::process::Command;

const TRACE: &str = "traces/sqlite-join.trace";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A profile of the recorded program.
fn profiled(folder: &Path) -> PathBuf {
    let file = folder.join("sqlite.sites");
    varve(&format!(
        "profile {TRACE} -o {} --machine optane-6230",
        file.display()
    ))
    .well();
    file
}

#[test]
fn plans_for_objects_and_pages_stand_in_one_table() {
    let said = varve(&["run", TRACE, "--machine", "optane-6230", "--json"]);
    let json = said.well().json();
    let runs = json["runs"].as_array().unwrap();
    let seconds = |plan: &str| {
        let run = runs.iter().find(|r| r["plan"] == plan);
        let run = run.unwrap_or_else(|| panic!("no {plan}"));
        run["seconds"].as_f64().unwrap()
    };
    let names = [
        "dram",
        "slow",
        "first-touch",
        "interleave",
        "hotset",
        "hot-sites",
        "knapsack",
        "cgz-f",
        "cgz-d",
        "oracle",
        "arenas",
    ];
    assert_eq!(runs.len(), names.len());
    // The layout's own effect may go either way.
    for name in &names[..names.len() - 1] {
        assert!(seconds("dram") <= seconds(name), "{name}");
    }
    // Plans by site differ from it in the memory of lines alone, and move nothing.
    for name in &names[5..names.len() - 1] {
        assert!(seconds(name) <= 1.005 * seconds("slow"), "{name}");
    }
    for run in runs {
        let bytes = |key: &str| {
            run[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key} in {run}"))
        };
        let all = bytes("fast_bytes") + bytes("slow_bytes");
        assert!(all > 0);
        if !["dram", "slow", "arenas"].contains(&run["plan"].as_str().unwrap()) {
            // Each DIMM has whole pages.
            assert!(bytes("fast_bytes") <= all / 4 + 16 * 4096, "{run}");
        }
        bytes("slow_read_bytes");
    }
    let table = varve(&format!(
        "run {TRACE} --machine optane-6230 --plan dram,slow,knapsack"
    ));
    let table = table.well().out;
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    for word in ["Allocation sites", "slowdown", "--fast 25% is", "knapsack"] {
        assert!(table.contains(word), "no `{word}` in {table}");
    }
}

#[test]
fn more_fast_memory_is_a_row_more() {
    let words = typed("--plan dram,hot-sites --fast 10%,50%,100% --json");
    let json = varve(&[&["run", TRACE, "--machine", "optane-6230"], &words[..]].concat());
    let json = json.well().json();
    let runs = json["runs"].as_array().unwrap();
    let name = |run: &serde_json::Value| run["plan"].as_str().unwrap().to_string();
    let names: Vec<String> = runs.iter().map(name).collect();
    let rows = [
        "dram",
        "hot-sites at 10%",
        "hot-sites at 50%",
        "hot-sites at 100%",
    ];
    assert_eq!(names, rows);
    let slow = |i: usize| runs[i]["slow_share"].as_f64().unwrap();
    assert!(
        slow(1) > slow(2) && slow(2) > slow(3),
        "{} {} {}",
        slow(1),
        slow(2),
        slow(3)
    );
}

#[test]
fn a_profile_is_made_shown_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    let table = varve(&["sites", text(&file), "--fast", "10%"]).well().out;
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    assert!(
        table.contains("knapsack") && table.contains("of fast memory of"),
        "{table}"
    );
    let json = varve(&["sites", text(&file), "--fast", "10%", "--json"])
        .well()
        .json();
    let sites = json["sites"].as_array().unwrap();
    let sum = |key: &str| -> u64 {
        sites
            .iter()
            .map(|s| s["fast_bytes"][key].as_u64().unwrap())
            .sum()
    };
    assert!(sum("knapsack") > 0 && sum("knapsack") <= json["budget_bytes"].as_u64().unwrap());
    let words = format!("run {TRACE} --machine optane-6230 --plan dram,knapsack --json");
    let words = typed(&words);
    let own = varve(&words).well().json();
    let by_profile = varve(&[&words[..], &["--sites", text(&file)]].concat())
        .well()
        .json();
    // It is a profile of this very run.
    assert_eq!(own["runs"][1]["seconds"], by_profile["runs"][1]["seconds"]);
    // Twice as much of everything, and the same sites.
    varve(&format!(
        "profile {TRACE} -o {} --machine optane-6230 --add",
        file.display()
    ))
    .well();
    let twice = varve(&["sites", text(&file), "--json"]).well().json();
    assert_eq!(twice["sites"].as_array().unwrap().len(), sites.len());
    assert_eq!(
        twice["sites"][0]["objects"].as_u64().unwrap(),
        2 * sites[0]["objects"].as_u64().unwrap()
    );
}

#[test]
fn sites_have_colours_where_channels_are_not_interleaved() {
    let run = format!("run {TRACE} --machine haswell-2620v3 --plan all,trays:capacity=20%");
    let run = typed(&run);
    let table = varve(&run).well().out;
    for word in ["DIMMs of the first", "DRAM", "energy", "Advice", "hot (%)"] {
        assert!(table.contains(word), "no `{word}` in {table}");
    }
    let json = varve(&[&run[..], &["--json"]].concat()).well().json();
    let runs = json["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|r| r["plan"].as_str().unwrap()).collect();
    assert_eq!(names, ["dram", "trays", "trays:capacity=20%"]);
    let energy = |run: usize| runs[run]["energy_j"].as_f64().unwrap();
    let cold = |run: usize| runs[run]["slow_bytes"].as_u64().unwrap();
    assert_eq!(cold(0), 0);
    assert!(0 < cold(1) && cold(1) <= cold(2), "{} {}", cold(1), cold(2));
    assert!(energy(1) < energy(0) && energy(2) < energy(0));
    let dimms = |run: usize| runs[run]["trays"]["dimms"].as_array().unwrap();
    let hot = |run: usize| {
        let hot = dimms(run).iter().map(|d| d["hot_bytes"].as_u64().unwrap());
        hot.filter(|&bytes| bytes > 0).count()
    };
    assert_eq!((hot(0), hot(1)), (4, 1));
    assert!(runs[1]["cpu_j"].as_f64().unwrap() > 0.0);
    assert!(!runs[1]["power"].as_array().unwrap().is_empty());
    for (words, said) in [
        (&["plan", "trays"][..], "capacity=0.05"),
        (&["explain", "plan", "trays"], "hot DIMMs"),
        (&["explain", "plan", "hotset"], "Page policy hotset"),
        (&["plan"], "trays"),
    ] {
        let shown = varve(words).well().out;
        assert!(shown.contains(said), "{words:?}: {shown}");
    }
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    let cut = folder.path().join("cut.sites");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let other = folder.path().join("other.sites");
    std::fs::write(&other, whole.replace("\"offset\": ", "\"offset\": 9")).unwrap();
    let refused: &[(&str, &[&str])] = &[
        ("run $trace --plan knapsak", &["did you mean `knapsack`?"]),
        ("run $trace --sites $cut", &["cut.sites", "damaged"]),
        (
            "run $trace --plan dram --sites $other",
            &["does not know who allocated", "another program"],
        ),
        (
            "run $trace --sites none.sites",
            &["none.sites", "varve profile"],
        ),
        (
            "run $trace --plan knapsack --machine haswell-2620v3",
            &["haswell-2620v3", "no slow memory", "dram and trays"],
        ),
        (
            "run $trace --plan trays",
            &["cxl-spr", "has slow memory", "such as haswell-2620v3"],
        ),
        (
            "run $trace --trays hot=2",
            &["cxl-spr", "has slow memory", "such as haswell-2620v3"],
        ),
        (
            "run $trace --machine haswell-2620v3 --plan trays:capacity=0",
            &["`trays`: `capacity=0`", "above 0"],
        ),
        (
            "run $trace --machine haswell-2620v3 --plan trays --fast 10%",
            &["--fast 10%", "no budget", "capacity"],
        ),
        (
            "run $trace --machine haswell-2620v3 --trays hot=5",
            &["5 hot DIMMs", "has 4"],
        ),
        (
            "run $trace --machine haswell-2620v3 --plan trayz",
            &["did you mean `trays`?"],
        ),
        ("run $trace --plan dram --policy slow", &["--plan"]),
        ("profile -o x.sites", &["nothing to profile"]),
        ("profile $trace -o x.sites --nursery 1MiB", &["--nursery"]),
        ("profile $trace -o $sites", &["there already", "--add"]),
        (
            "profile $trace -o x.sites --machine optane-6230-memory-mode",
            &["slow memory"],
        ),
        ("sites $sites --fast 10%,20%", &["one budget"]),
        (
            "sites $sites --heuristic hotset",
            &["does not divide a budget"],
        ),
        ("run --live --sites $sites -- true", &["--fast 8GiB"]),
        (
            "run --live --sites $sites --fast 25% -- true",
            &["give a size"],
        ),
        (
            "run --live --sites $sites --fast 1MiB --plan hotset -- true",
            &["hotset"],
        ),
    ];
    for (line, said) in refused {
        let line = line.replace("$trace", TRACE).replace("$sites", text(&file));
        let line = line.replace("$cut", text(&cut));
        varve(&line.replace("$other", text(&other))).refuses(2, said);
    }
    assert!(!Path::new("x.sites").exists());
}

#[test]
fn a_command_is_placed_on_this_machine_by_its_profile() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sort.sites");
    let words = folder.path().join("words");
    let text_of: String = (0..20_000u32)
        .map(|i| format!("{}\n", i.wrapping_mul(40_503)))
        .collect();
    std::fs::write(&words, text_of).unwrap();
    varve(&["profile", "-o", text(&file), "--", "sort", text(&words)]).well();
    // One node is enough to see that objects have two arenas.
    let live = |command: &[&str]| -> Said {
        let run = format!(
            "run --live --nodes fast=0,slow=0 --sites {} --fast",
            file.display()
        );
        let run = typed(&run);
        varve(&[&run[..], &["64MiB", "--"], command].concat())
    };
    let plain = varve(&format!(
        "run --live --nodes fast=0,slow=0 --sites {} --fast 64MiB --json \
         -- sort -o /dev/null {}",
        file.display(),
        words.display()
    ));
    let json = plain.well().json();
    let sites = json["sites"].as_array().unwrap();
    assert!(!sites.is_empty(), "{json}");
    assert_eq!(json["exit_code"], 0);
    let more = format!(
        "run --live --nodes fast=0,slow=0 --fast 900TiB --sites {} -- true",
        file.display()
    );
    let said = varve(&more).well();
    assert!(said.err.contains("TiB is more than the "), "{}", said.err);
    let said = live(&["sort", text(&words)]).well();
    assert_eq!(
        said.out.lines().count(),
        20_000,
        "the program's own output is whole"
    );
    assert!(
        said.err.contains("Objects by allocation site"),
        "{}",
        said.err
    );
    let failed = live(&["sort", "/nowhere"]);
    assert_eq!(failed.code, 2, "the program's own exit code");
}

/// A program whose functions are the same in each build, and are elsewhere.
const REBUILT: &str = r#"
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline, noclone))
#ifdef MORE
volatile int sink;
APART int more(int n) { int s = 0; for (int i = 0; i < n; i++) sink = s += i * (s ^ n); return s | 1; }
#endif
APART char *hot(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
APART char *cold(size_t n) { char *p = malloc(n); memset(p, 2, n); return p; }
int main(void) {
#ifdef MORE
    if (more(17) == 0) return 3;
#endif
    char *a[16], *b[16];
    unsigned long s = 0;
    for (int i = 0; i < 16; i++) { a[i] = hot(300000); b[i] = cold(100000); }
    for (int r = 0; r < 9; r++) for (int i = 0; i < 16; i++) for (int k = 0; k < 300000; k += 64) s += a[i][k];
    return s + b[3][9] == 5;
}
"#;

/// A profile is of one build. Another one is placed by the names of functions, if it has any, and if that is asked for.
#[test]
fn a_profile_of_another_build_is_taken_by_the_names_of_functions() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    std::fs::write(&source, REBUILT).unwrap();
    let built = |name: &str, options: &[&str]| -> Option<PathBuf> {
        let file = folder.path().join(name).join("program");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        let usual = ["-O1", "-Wl,--build-id", "-o", text(&file), text(&source)];
        let done = Command::new("cc").args(usual).args(options).status();
        done.is_ok_and(|status| status.success()).then_some(file)
    };
    let Some(first) = built("first", &[]) else {
        varve_skip::skip!("no C compiler");
        return;
    };
    let second = built("second", &["-DMORE"]).unwrap();
    let stripped = built("stripped", &["-DMORE", "-s"]).unwrap();
    let file = folder.path().join("program.sites");
    let profile = ["profile", "-o", text(&file), "--machine", "cxl-spr", "--"];
    varve(&[&profile[..], &[text(&first)]].concat()).well();

    let model = |options: &[&str], program: &Path| {
        let run = ["run", "--plan", "dram,knapsack", "--sites", text(&file)];
        varve(&[&run[..], options, &["--", text(program)]].concat())
    };
    model(&[], &second).refuses(2, &["another build", "--stale"]);
    let said = model(&["--stale"], &second).well();
    let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("by its functions' names"), "{}", said.out);
    assert!(said.out.contains("program!hot"), "{}", said.out);
    model(&["--stale"], &stripped).refuses(2, &["program has no function names", "stripped"]);

    let live = |options: &[&str], program: &Path| {
        let run = typed("run --live --nodes fast=0,slow=0 --fast 8MiB");
        let run = [&run[..], &["--json", "--sites", text(&file)]].concat();
        varve(&[&run[..], options, &["--", text(program)]].concat())
    };
    let fast_bytes = |said: &Said, site: &str| {
        let json = said.json();
        let sites = json["sites"].as_array().unwrap().clone();
        let of = |s: &&serde_json::Value| s["site"].as_str().unwrap().contains(site);
        let site = sites.iter().find(of);
        site.map(|site| site["fast_bytes"].as_i64().unwrap())
    };
    let said = live(&[], &second).well();
    assert_eq!(fast_bytes(&said, "program!hot"), None, "{}", said.out);
    assert!(said.out.contains("--stale"), "{}", said.out);
    let said = live(&["--stale"], &second).well();
    assert!(
        fast_bytes(&said, "program!hot") >= Some(16 * 300_000),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("100.0 % of the bytes of its sites are found"),
        "{}",
        said.out
    );
    let said = live(&["--stale"], &stripped).well();
    assert!(
        said.out.contains("program has no function names"),
        "{}",
        said.out
    );
    varve(&["run", "--live", "--stale", "--", "true"]).refuses(2, &["--sites"]);
    varve(&["run", "--stale", "--", "true"]).refuses(2, &["name it with --sites"]);
}

#[test]
fn files_of_other_tools_become_profiles() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("raw");
    let lines = [
        "v 10400 3",
        "x 7 /none/p",
        "X ./p -x",
        "I 1000 5e298f",
        "m 1 -",
        "m 1 x 1000 0 9b0 1000 5c1",
        "t 2133 0",
        "t 2294 1",
        "+ 100 2 aa0",
        "+ 40 2 bb0",
        "- aa0",
    ];
    std::fs::write(&raw, lines.join("\n") + "\n").unwrap();
    let file = folder.path().join("p.sites");
    let said = varve(&format!(
        "profile --from heaptrack {} -o {}",
        raw.display(),
        file.display()
    ))
    .well();
    assert!(
        said.err.contains("note:"),
        "what heaptrack does not know is said: {}",
        said.err
    );
    let json = varve(&["sites", text(&file), "--json"]).well().json();
    let sites = json["sites"].as_array().unwrap();
    assert_eq!((sites.len(), sites[0]["bytes"].as_u64()), (1, Some(0x140)));
    let bad = folder.path().join("bad");
    std::fs::write(&bad, "v 10400 3\n+ zz\n").unwrap();
    let out = folder.path().join("bad.sites");
    let words = format!(
        "profile --from heaptrack {} -o {}",
        bad.display(),
        out.display()
    );
    varve(&words).refuses(2, &["bad", "bad:2: "]);
    assert!(!out.exists());
}

/// A record of DAMON, with and without a map of the process's addresses, which may lie beside it as damo writes it.
#[test]
fn records_of_damon_become_a_profile_of_what_a_map_tells() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("damon.data");
    let line = |range: &str, uses: u32| {
        format!(
            "kdamond.0 44 [000] 1.5: damon:damon_aggregated: target_id=0 nr_regions=2 {range}: {uses} 0\n"
        )
    };
    let lines = line("16384-81920", 5) + &line("1048576-1114112", 20);
    std::fs::write(&record, &lines).unwrap();
    let import = |name: &str, options: &[&str]| {
        let file = folder.path().join(name);
        let words = format!(
            "profile --from damon {} -o {}",
            record.display(),
            file.display()
        );
        let words = typed(&words);
        let said = varve(&[&words[..], options].concat()).well();
        let json = varve(&["sites", text(&file), "--json"]).well().json();
        let sites = json["sites"].as_array().unwrap().iter().map(|site| {
            let number = |key: &str| site[key].as_u64().unwrap();
            (
                site["site"].as_str().unwrap().to_owned(),
                number("peak_bytes"),
                number("misses"),
            )
        });
        let mut sites: Vec<_> = sites.collect();
        sites.sort();
        (said.err, sites)
    };
    let (said, sites) = import("none.sites", &[]);
    assert!(said.contains("/proc/PID/maps"), "{said}");
    // 16 pages a quarter of the time, and 16 all of it.
    assert_eq!(sites, [("(all other memory)".into(), 131_072, 20)]);
    let maps = folder.path().join("copy");
    std::fs::write(
        &maps,
        "00004000-00014000 rw-p 00000000 00:00 0  [heap]\n00100000-00110000 rw-p 00000000 00:00 0  [stack]\n",
    )
    .unwrap();
    let placed = [
        ("(all other memory)".into(), 65_536, 4),
        ("(stacks)".into(), 65_536, 16),
    ];
    assert_eq!(import("map.sites", &["--maps", text(&maps)]).1, placed);
    std::fs::copy(&maps, folder.path().join("damon.data.maps")).unwrap();
    let (said, sites) = import("beside.sites", &[]);
    assert!(
        said.contains("damon.data.maps") && sites == placed,
        "{said}"
    );
    std::fs::write(&record, "nothing of the kind\n").unwrap();
    let out = folder.path().join("bad.sites");
    varve(&format!(
        "profile --from damon {} -o {}",
        record.display(),
        out.display()
    ))
    .refuses(2, &["no records of DAMON"]);
    assert!(!out.exists());
}

/// Commands that lack something, or are written as they should not be: one line has the remedy.
#[test]
fn commands_that_are_nearly_right_are_told_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    let script = text(&script);
    let own = env!("CARGO_BIN_EXE_varve");
    for program in [script, own] {
        let remedy = format!("`varve run -- {program}`");
        varve(&["run", program]).refuses(2, &["is a program", &remedy]);
    }
    let make = format!("--sites FILE.sites: make it with `varve profile -o FILE.sites -- {own}`");
    for option in [["--fast", "64MiB"], ["--nodes", "fast=0,slow=0"]] {
        let said = varve(&[&["run", "--live"], &option[..], &["--", own]].concat());
        said.refuses(2, &[&format!("--live {}", option[0]), &make]);
        assert!(said.err.len() < 160 + 2 * own.len(), "{}", said.err);
    }
    for before in ["run", "run --live --bins 48GiB", "profile -o x.sites"] {
        let with = |program| [&typed(before)[..], &["--", program]].concat();
        let path = varve(&with("./no-such-program"));
        path.refuses(2, &["./no-such-program: no such program"]);
        assert!(!path.err.contains("PATH"), "{}", path.err);
        varve(&with("no-such-program")).refuses(2, &["no-such-program: no such command on PATH"]);
    }
    varve("explain hotset").well();
}
