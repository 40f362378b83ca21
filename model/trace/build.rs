//! Builds the probes, the small libraries that run inside recorded programs, so that they can be embedded.
//!
//! They need nothing but the Rust compiler that builds this crate. On hosts that cannot record (anything but 64-bit
//! x86 Linux) empty files are embedded, and recording says so when it is asked for.

use std::env;
use std::path::Path;
use std::process::Command;

/// Name of the embedded file, source, and compiler options.
const PROBES: [(&str, &str, &[&str]); 4] = [
    ("qemu.so", "probe/qemu/lib.rs", &["--crate-type", "cdylib"]),
    ("shim.so", "probe/shim/lib.rs", &["--crate-type", "cdylib"]),
    (
        "agent.so",
        "probe/agent/lib.rs",
        &["--crate-type", "cdylib"],
    ),
    // one object file, since it needs nothing of Rust's own libraries
    (
        "tsan.o",
        "probe/tsan/lib.rs",
        &[
            "--crate-type",
            "lib",
            "--emit",
            "obj",
            "-C",
            "codegen-units=1",
        ],
    ),
];

fn main() {
    println!("cargo::rerun-if-changed=probe");
    println!("cargo::rerun-if-changed=src/arch");
    println!("cargo::rerun-if-changed=src/format/heap.rs");
    println!("cargo::rerun-if-changed=../../base/symbols/walk");
    let out_dir = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let can_record = target.starts_with("x86_64-") && target.contains("-linux-");
    for (name, source, kind) in PROBES {
        let output = Path::new(&out_dir).join(name);
        if can_record {
            build(source, kind, &target, &output);
        } else {
            std::fs::write(&output, []).expect("OUT_DIR is writable");
        }
    }
}

fn build(source: &str, kind: &[&str], target: &str, output: &Path) {
    let compiler = env::var("RUSTC").expect("cargo sets RUSTC");
    let status = Command::new(&compiler)
        .args([
            "--edition",
            "2024",
            "-O",
            "-C",
            "panic=abort",
            "-C",
            "strip=symbols",
            "--crate-name",
            "varve_probe",
        ])
        .args(kind)
        .args(["--target", target, "-o"])
        .arg(output)
        .arg(source)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("{compiler} could not build {source}"),
        Err(error) => panic!("{compiler} could not be started: {error}"),
    }
}
