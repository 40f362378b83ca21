//! Records a command: `cargo run --release --example record -- OUT COMMAND...`. With `ASK_ALL` in the environment, QEMU is
//! asked for every access; with `MARKED`, the program says when it is recorded.
use std::ffi::OsString;
use varve_trace::host::{Recorder, RecorderOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let out = args.next().ok_or("usage: record OUT COMMAND...")?;
    let command: Vec<OsString> = args.collect();
    let start = std::time::Instant::now();
    let options = RecorderOptions {
        ask_all: std::env::var_os("ASK_ALL").is_some(),
        marked: std::env::var_os("MARKED").is_some(),
        ..RecorderOptions::default()
    };
    let end = Recorder::start(&command, options)?.record_to(out.as_ref())?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(&out)?.len();
    eprintln!("{end:?}");
    eprintln!(
        "{:.1} M ops, {:.1} M instructions, {seconds:.2} s, {:.1} M ops/s, {:.2} bytes/op",
        end.ops as f64 / 1e6,
        end.instructions as f64 / 1e6,
        end.ops as f64 / seconds / 1e6,
        bytes as f64 / end.ops as f64
    );
    eprintln!(
        "processor time: recorder {:.2} s, program and probe {:.2} s",
        cpu_seconds(libc::RUSAGE_SELF),
        cpu_seconds(libc::RUSAGE_CHILDREN)
    );
    Ok(())
}

/// User and system time in seconds.
fn cpu_seconds(who: i32) -> f64 {
    // SAFETY: all zeros is a valid value, and the call only writes it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
