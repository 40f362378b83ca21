//! Compiles with the probe: `cargo run --release --example cc -- -O2 -o prog prog.c`
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let status = varve_trace::host::compile(varve_trace::host::Language::C, &args)?;
    std::process::exit(status.code().unwrap_or(1));
}
