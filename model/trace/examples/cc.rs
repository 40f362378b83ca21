//! Compiles with the probe: `cargo run --release --example cc -- c -O2 -o prog prog.c` (or `c++`).
use varve_trace::host::{Language, compile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let language = match args.next() {
        Some(word) if word == "c++" => Language::Cpp,
        Some(word) if word == "c" => Language::C,
        _ => return Err("usage: cc c|c++ WORDS...".into()),
    };
    let words: Vec<_> = args.collect();
    std::process::exit(compile(language, &words)?.code().unwrap_or(1));
}
