//! The hand-written modules of `bench/modules` are what their text says, and run.
//!
//! After a change of a text: `VARVE_ACCEPT=1 cargo test --release -p varve --test modules`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bench/modules")
}

#[test]
fn every_module_is_what_its_text_says() {
    let accept = std::env::var_os("VARVE_ACCEPT").is_some();
    let mut texts = 0;
    for entry in fs::read_dir(folder()).expect("the modules are there") {
        let text = entry.expect("the folder is readable").path();
        if text.extension().is_none_or(|e| e != "wat") {
            continue;
        }
        texts += 1;
        let module = text.with_extension("wasm");
        let assembled = wat::parse_file(&text).expect("the text is right");
        if accept {
            fs::write(&module, &assembled).expect("the module is writable");
        }
        let committed = fs::read(&module).unwrap_or_default();
        assert!(
            committed == assembled,
            "{} is not what {} gives",
            module.display(),
            text.display()
        );
    }
    assert!(texts > 0, "there is no text in {}", folder().display());
}

/// 2^6 - 1 nodes to begin with, 2^5 - 1 that live on, and 16 trees of 2^5 - 1.
#[test]
fn trees_counts_its_nodes_and_says_how_long_each_round_took() {
    let output = Command::new(env!("CARGO_BIN_EXE_varve"))
        .arg("run")
        .arg(folder().join("trees.wasm"))
        .args(["--", "4", "2"])
        .output()
        .expect("varve starts");
    assert!(output.status.success(), "{output:?}");
    let nodes = 63 + 31 + 16 * 31;
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("nodes: {nodes}\n").repeat(2)
    );
    let said = String::from_utf8_lossy(&output.stderr);
    let rounds: Vec<&str> = said.lines().collect();
    assert_eq!(rounds.len(), 2, "{said}");
    for round in rounds {
        let number = round
            .strip_prefix("round: ")
            .and_then(|r| r.strip_suffix(" us"));
        assert!(number.is_some_and(|n| n.parse::<u64>().is_ok()), "{round}");
    }
}
