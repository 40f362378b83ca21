//! Builds the preloaded libraries with the same compiler, so that this library can carry them inside: the shim that places
//! pages, and the allocator that places objects.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=src/arch");
    println!("cargo:rerun-if-changed=src/place");
    println!("cargo:rerun-if-changed=objects");
    println!("cargo:rerun-if-changed=src/objects/format.rs");
    println!("cargo:rerun-if-changed=src/objects/ledger.rs");
    println!("cargo:rerun-if-changed=src/sampled/format.rs");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(varve_live_shim)");
    if var("CARGO_CFG_TARGET_OS") != "linux" {
        panic!("varve-live needs Linux: page maps, userfaultfd and preloading are Linux's");
    }
    let out = PathBuf::from(var("OUT_DIR"));
    let here = PathBuf::from(var("CARGO_MANIFEST_DIR"));
    let shim = out.join("libvarve_live_shim.so");
    library("varve_live_shim", &here.join("shim/lib.rs"), &shim);
    println!("cargo:rustc-env=VARVE_LIVE_SHIM={}", shim.display());
    // The agent inside Java virtual machines is that of recordings.
    println!("cargo:rerun-if-changed=../../model/trace/probe/agent");
    println!("cargo:rerun-if-changed=../../model/trace/src/format/heap.rs");
    println!("cargo:rerun-if-changed=sites");
    println!("cargo:rerun-if-changed=src/sampled/used.rs");
    let agents = [
        (
            "VARVE_LIVE_AGENT",
            "agent",
            "../../model/trace/probe/agent/lib.rs",
        ),
        ("VARVE_LIVE_SITES", "sites", "sites/lib.rs"),
    ];
    for (variable, name, source) in agents {
        let name = format!("varve_live_{name}");
        let file = out.join(format!("lib{name}.so"));
        println!("cargo:rustc-env={variable}={}", file.display());
        match &*var("CARGO_CFG_TARGET_ARCH") {
            "x86_64" => library(&name, &here.join(source), &file),
            // Never loaded: a run says that virtual machines are placed, and sampled, on x86-64 alone.
            _ => std::fs::write(&file, []).expect("OUT_DIR is writable"),
        }
    }
    objects(Path::new(&var("OUT_DIR")));
}

/// A shared library of one crate without dependencies.
fn library(name: &str, source: &Path, out: &Path) {
    let mut rustc = Command::new(var("RUSTC"));
    rustc.arg(format!("--crate-name={name}"));
    rustc.args(["--crate-type=cdylib", "--edition=2024"]);
    rustc.args(["--cfg", "varve_live_shim"]);
    rustc.arg(format!("--target={}", var("TARGET")));
    // It lives in other people's processes: small, no unwinding through C, no debugger's ballast.
    rustc.args([
        "-Copt-level=2",
        "-Cpanic=abort",
        "-Cstrip=symbols",
        "-Ccodegen-units=1",
    ]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.arg("-o").arg(out).arg(source).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("rustc could not build {}: {status}", source.display()),
        Err(e) => panic!("cannot start {}: {e}", var("RUSTC")),
    }
}

/// The allocator: a package of its own, since a shared library with dependencies is cargo's to build.
fn objects(out: &Path) {
    let target = out.join("objects");
    let library = target
        .join(var("TARGET"))
        .join("release/libvarve_live_objects.so");
    println!("cargo:rustc-env=VARVE_LIVE_OBJECTS={}", library.display());
    if var("CARGO_CFG_TARGET_ARCH") != "x86_64" {
        // Never preloaded: a run says that objects are placed on x86-64 alone.
        std::fs::create_dir_all(library.parent().expect("a folder was joined"))
            .and_then(|()| std::fs::write(&library, []))
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", library.display()));
        return;
    }
    let mut cargo = Command::new(var("CARGO"));
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--target",
        &var("TARGET"),
    ]);
    cargo.args(["--manifest-path", "objects/Cargo.toml"]);
    cargo.arg("--target-dir").arg(&target);
    // Flags, wrappers and features of the build around this one are not meant for it.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
    ] {
        cargo.env_remove(name);
    }
    // As in a mimalloc library that is preloaded: what the process has at its end is not given back piece by piece.
    let flags = env::var("CFLAGS").unwrap_or_default();
    cargo.env(
        "CFLAGS",
        format!("{flags} -DMI_SHARED_LIB=1 -DMI_SKIP_COLLECT_ON_EXIT=1"),
    );
    match cargo.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("cargo could not build objects/Cargo.toml: {status}"),
        Err(e) => panic!("cannot start {}: {e}", var("CARGO")),
    }
}
