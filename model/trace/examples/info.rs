//! Prints a trace in numbers: `cargo run --release --example info -- TRACE`
use varve_trace::{TraceInfo, TraceReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: info TRACE")?;
    let mut info = TraceInfo::read(&TraceReader::open(path.as_ref())?)?;
    info.sites.truncate(10);
    println!("{}", serde_json::to_string_pretty(&info)?);
    println!(
        "{:.2} bytes/op, footprint {:.1} MiB",
        info.bytes_per_op(),
        info.footprint_bytes() as f64 / (1 << 20) as f64
    );
    Ok(())
}
