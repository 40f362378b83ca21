//! Times decoding and encoding of a trace in memory: `cargo run --release --example throughput -- TRACE`
use varve_access::Op;
use varve_trace::format::{OpDecoder, OpEncoder, PADDING};
use varve_trace::{BLOCK_OPS, TraceReader, TraceWriter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: throughput TRACE")?;
    let reader = TraceReader::open(path.as_ref())?;
    // at most 32 M ops, so that it fits into memory
    let mut ops: Vec<Op> = Vec::new();
    let start = cpu_seconds();
    for block in reader.iter_from(0).take(512) {
        ops.extend_from_slice(&block?.ops);
    }
    report("read file, decompress, decode, copy", ops.len(), start);

    let mut coded = Vec::new();
    let mut encoder = OpEncoder::default();
    let start = cpu_seconds();
    for block in ops.chunks(BLOCK_OPS) {
        let mut bytes = Vec::new();
        encoder.encode(block, &mut bytes);
        coded.push(bytes);
    }
    report("encode", ops.len(), start);
    let bytes: usize = coded.iter().map(Vec::len).sum();
    println!(
        "{:.2} bytes/op before compression",
        bytes as f64 / ops.len() as f64
    );

    let start = cpu_seconds();
    let mut packed = vec![0; 16 << 20];
    let mut packed_bytes = 0;
    for bytes in &coded {
        packed_bytes += lz4_flex::block::compress_into(bytes, &mut packed)?;
    }
    report("compress", ops.len(), start);
    println!(
        "{:.2} bytes/op after compression",
        packed_bytes as f64 / ops.len() as f64
    );

    let start = cpu_seconds();
    let mut decoder = OpDecoder::default();
    let mut back = Vec::new();
    for (bytes, block) in coded.iter_mut().zip(ops.chunks(BLOCK_OPS)) {
        bytes.extend_from_slice(&[0; PADDING]);
        back.clear();
        decoder
            .decode(bytes, block.len(), &mut back)
            .map_err(|_| "cannot decode")?;
    }
    report("decode", ops.len(), start);

    let start = cpu_seconds();
    let mut writer = TraceWriter::new(std::io::sink(), "sink".as_ref(), reader.header())?;
    writer.push(0, &ops)?;
    writer.finish(Default::default())?;
    report("write whole trace", ops.len(), start);

    let start = cpu_seconds();
    let mut block = Default::default();
    let mut count = 0;
    for number in 0..reader.blocks().len().min(512) {
        reader.read_block(number, &mut decoder, &mut block)?;
        count += block.ops.len();
    }
    report("read whole trace", count, start);
    Ok(())
}

/// Processor time of all threads: other programs on the machine do not count.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call only writes the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn report(what: &str, ops: usize, start: f64) {
    println!(
        "{what}: {:.0} M ops/s",
        ops as f64 / (cpu_seconds() - start) / 1e6
    );
}
