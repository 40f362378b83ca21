//! Prints ops of a trace: `cargo run --release --example ops -- TRACE FIRST COUNT`
use varve_trace::TraceReader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, path, first, count] = &words[..] else { return Err("usage: ops TRACE FIRST COUNT".into()) };
    let reader = TraceReader::open(path.as_ref())?;
    let ops = reader.thread(0).flat_map(|block| block.map(|block| block.ops).unwrap_or_default());
    for op in ops.skip(first.parse()?).take(count.parse()?) {
        println!("{:#x} {} {:?} +{} {}", op.addr, op.size, op.kind, op.instructions, op.dependent);
    }
    Ok(())
}
