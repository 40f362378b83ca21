//! Builds the preloaded shim with the same compiler, so that the library can carry it inside.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=src/arch");
    println!("cargo:rerun-if-changed=src/place");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(varve_live_shim)");
    let var = |name: &str| {
        env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
    };
    let out = PathBuf::from(var("OUT_DIR")).join("libvarve_live_shim.so");
    let source = PathBuf::from(var("CARGO_MANIFEST_DIR")).join("shim/lib.rs");
    if var("CARGO_CFG_TARGET_OS") != "linux" {
        panic!("varve-live needs Linux: page maps, userfaultfd and preloading are Linux's");
    }

    let mut rustc = Command::new(var("RUSTC"));
    rustc
        .arg("--crate-name=varve_live_shim")
        .arg("--crate-type=cdylib")
        .arg("--edition=2024");
    rustc.args(["--cfg", "varve_live_shim"]);
    rustc.arg(format!("--target={}", var("TARGET")));
    // The shim lives in other people's processes: small, no unwinding through C, no debugger's ballast.
    rustc.args([
        "-Copt-level=2",
        "-Cpanic=abort",
        "-Cstrip=symbols",
        "-Ccodegen-units=1",
    ]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.arg("-o").arg(&out).arg(&source).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("rustc could not build {}: {status}", source.display()),
        Err(e) => panic!("cannot start {}: {e}", var("RUSTC")),
    }
    println!("cargo:rustc-env=VARVE_LIVE_SHIM={}", out.display());
}
