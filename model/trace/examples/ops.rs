//! Prints events and ops of a thread of a trace: `cargo run --release --example ops -- TRACE THREAD FIRST COUNT`
use varve_trace::TraceReader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, path, thread, first, count] = &words[..] else {
        return Err("usage: ops TRACE THREAD FIRST COUNT".into());
    };
    let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
    let reader = TraceReader::open(path.as_ref())?;
    let mut number = 0;
    for block in reader.thread(thread.parse()?) {
        let block = block?;
        let mut events = block.events.iter().peekable();
        for (at, op) in block.ops.iter().enumerate() {
            let shown = (first..first + count).contains(&number);
            number += 1;
            while let Some(event) = events.next_if(|event| event.at as usize <= at) {
                if shown {
                    println!("{:?}", event.event);
                }
            }
            if shown {
                println!(
                    "{:#x} {} {:?} +{} {}",
                    op.addr, op.size, op.kind, op.instructions, op.dependent
                );
            }
        }
    }
    Ok(())
}
