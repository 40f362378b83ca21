//! DynamoRIO's `memtrace_simple` sample: a first line `Format: ...`, then `0xaddr: size, r`, `0xaddr: size, w`, or an
//! opcode instead of the letter for the instruction itself.

use super::{ImportError, Sink, address, each_line};
use std::io::{BufReader, Read};
use std::path::Path;
use varve_access::Op;

pub(super) fn read<R: Read>(
    input: &mut BufReader<R>,
    path: &Path,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut instructions = false;
    each_line(input, path, |line| {
        if line.trim().is_empty() || line.starts_with("Format:") {
            return Ok(Ok(()));
        }
        let Some((addr, size, what)) = parse(line) else {
            return Ok(Err(format!(
                "`{line}` is no line of memtrace_simple (`0xaddr: size, r|w|opcode`)"
            )));
        };
        if what != "r" && what != "w" {
            instructions = true;
            sink.instruction();
            return Ok(Ok(()));
        }
        if !instructions {
            sink.instruction();
        }
        let op = if what == "r" {
            Op::read(addr, size, 0)
        } else {
            Op::write(addr, size, 0)
        };
        sink.access(op).map(Ok)
    })
}

fn parse(line: &str) -> Option<(u64, u16, &str)> {
    let (addr, rest) = line.split_once(':')?;
    let (size, what) = rest.split_once(',')?;
    Some((
        address(addr.trim())?,
        size.trim().parse().ok()?,
        what.trim(),
    ))
}
