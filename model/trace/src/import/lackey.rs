//! valgrind's lackey: `I  addr,size`, ` L addr,size`, ` S addr,size`, ` M addr,size` (load and store), addresses in
//! hexadecimal; lines that start with `==` or `--` are valgrind's own messages.

use super::{ImportError, Sink, address, each_line};
use std::io::{BufReader, Read};
use std::path::Path;
use varve_access::{Kind, Op};

pub(super) fn read<R: Read>(
    input: &mut BufReader<R>,
    path: &Path,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    each_line(input, path, |line| {
        if line.is_empty() || line.starts_with("==") || line.starts_with("--") {
            return Ok(Ok(()));
        }
        let Some((kind, addr, size)) = parse(line) else {
            return Ok(Err(format!(
                "`{line}` is no line of lackey (`I  addr,size`, ` L addr,size`, ` S ...`, ` M ...`)"
            )));
        };
        match kind {
            None => sink.instruction(),
            Some(kind) => sink.access(Op::new(kind, addr, size, 0))?,
        }
        Ok(Ok(()))
    })
}

/// Kind (none for an instruction), address, size.
fn parse(line: &str) -> Option<(Option<Kind>, u64, u16)> {
    let mut words = line.split_ascii_whitespace();
    let kind = match words.next()? {
        "I" => None,
        "L" => Some(Kind::Read),
        "S" => Some(Kind::Write),
        "M" => Some(Kind::Update),
        _ => return None,
    };
    let (addr, size) = words.next()?.split_once(',')?;
    Some((kind, address(addr)?, size.parse().ok()?))
}
