//! Traces of other tools, turned into ours.
//!
//! | tool | input | instructions |
//! |---|---|---|
//! | valgrind | text of `--tool=lackey --trace-mem=yes` | every `I` line is one |
//! | ChampSim | binary records of 64 bytes (`input_instr`), uncompressed | every record is one |
//! | DynamoRIO | the text that its `memtrace_simple` sample writes | every line with an opcode is one; without such lines, one per access |
//!
//! | DynamoRIO | binary records of 12 bytes (`trace_entry_t`) of its offline traces, unpacked | instruction records |
//!
//! The `.raw` files of DynamoRIO's tracer hold no instructions: its own post-processing, which needs the modules of the
//! traced process, comes first. Threads of a file are kept apart; the ones of other files need an import each.

mod champsim;
mod drmemtrace;
mod lackey;
mod memtrace;

use crate::TraceError;
use crate::format::FileHeader;
use crate::writer::{End, TraceWriter};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use varve_access::Op;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// valgrind's lackey, text.
    Lackey,
    /// ChampSim, binary.
    ChampSim,
    /// DynamoRIO's memtrace_simple sample, text.
    Memtrace,
    /// DynamoRIO's offline traces, binary.
    DrMemtrace,
}

impl Format {
    /// Every format, by the name that the command line knows.
    pub const ALL: [(&'static str, Format); 4] = [
        ("lackey", Format::Lackey),
        ("champsim", Format::ChampSim),
        ("memtrace", Format::Memtrace),
        ("drmemtrace", Format::DrMemtrace),
    ];
}

/// Why a trace of another tool cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file is compressed.
    #[error("{path}: is compressed; `{tool} {path}` first")]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The tool that unpacks it.
        tool: &'static str,
    },
    /// A line of text is not understood.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The problem.
        what: String,
    },
    /// A record is not understood.
    #[error("{path}: at byte {offset}: {what}")]
    Record {
        /// The file.
        path: PathBuf,
        /// Offset of the record.
        offset: u64,
        /// The problem.
        what: String,
    },
    /// Our own trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Reads `from` in the given format and writes our trace to `to`.
///
/// # Errors
/// A line or record is not understood (with its place), or a file cannot be read or written.
pub fn import(format: Format, from: &Path, to: &Path) -> Result<End, ImportError> {
    let mut input = BufReader::with_capacity(1 << 20, open(from)?);
    refuse_compressed(&mut input, from)?;
    let (source, instructions) = match format {
        Format::Lackey => ("lackey", "counted: lackey's I lines"),
        Format::ChampSim => ("champsim", "counted: ChampSim's records"),
        Format::Memtrace => (
            "memtrace",
            "counted: instruction lines; one per access where there are none",
        ),
        Format::DrMemtrace => ("drmemtrace", "counted: drmemtrace's instruction records"),
    };
    let header = FileHeader {
        command: vec![
            from.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        ],
        source: source.into(),
        instructions: instructions.into(),
        ..FileHeader::default()
    };
    let mut sink = Sink {
        writer: TraceWriter::create(to, &header)?,
        buffer: Vec::with_capacity(BUFFER_OPS),
        carried: 0,
        current: 0,
        threads: Vec::new(),
    };
    match format {
        Format::Lackey => lackey::read(&mut input, from, &mut sink)?,
        Format::ChampSim => champsim::read(&mut input, from, &mut sink)?,
        Format::Memtrace => memtrace::read(&mut input, from, &mut sink)?,
        Format::DrMemtrace => drmemtrace::read(&mut input, from, &mut sink)?,
    }
    sink.flush()?;
    Ok(sink.writer.finish(End::default())?.1)
}

fn open(path: &Path) -> Result<File, ImportError> {
    File::open(path).map_err(|source| ImportError::Io {
        path: path.into(),
        source,
    })
}

fn refuse_compressed<R: Read>(input: &mut BufReader<R>, path: &Path) -> Result<(), ImportError> {
    let start = input.fill_buf().map_err(|source| ImportError::Io {
        path: path.into(),
        source,
    })?;
    let tool = match start {
        [0x1f, 0x8b, ..] => "gunzip",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "unxz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "unzstd",
        [b'B', b'Z', b'h', ..] => "bunzip2",
        [b'P', b'K', 3, 4, ..] => "unzip -p",
        _ => return Ok(()),
    };
    Err(ImportError::Compressed {
        path: path.into(),
        tool,
    })
}

const BUFFER_OPS: usize = 4096;

/// Where importers put ops, in pieces.
struct Sink {
    writer: TraceWriter<std::io::BufWriter<File>>,
    buffer: Vec<Op>,
    /// Instructions since the last op.
    carried: u32,
    /// The thread that ops are of, and for each thread that has had a name: the name and its instructions since its
    /// last op.
    current: usize,
    threads: Vec<(u64, u32)>,
}

impl Sink {
    fn instruction(&mut self) {
        self.carried = self.carried.saturating_add(1);
    }

    /// Appends an access; it takes the instructions since the last one.
    fn access(&mut self, mut op: Op) -> Result<(), TraceError> {
        op.instructions = std::mem::take(&mut self.carried);
        self.buffer.push(op);
        if self.buffer.len() == BUFFER_OPS {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Continues with the thread of this name.
    fn thread(&mut self, name: u64) -> Result<(), TraceError> {
        self.flush()?;
        if let Some(last) = self.threads.get_mut(self.current) {
            last.1 = self.carried;
        }
        let known = self.threads.iter().position(|thread| thread.0 == name);
        self.current = known.unwrap_or_else(|| {
            // records before the first name are the first thread's
            let carried = if self.threads.is_empty() {
                self.carried
            } else {
                0
            };
            self.threads.push((name, carried));
            self.threads.len() - 1
        });
        self.carried = self.threads[self.current].1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        self.writer.push(self.current as u32, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Reads until the record is full or the input ends.
fn fill<R: Read>(input: &mut R, record: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < record.len() {
        match input.read(&mut record[got..]) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Calls `line` with every line of a text and its number. Bytes that are no text are an error of that line.
fn each_line<R: Read>(
    input: &mut BufReader<R>,
    path: &Path,
    mut line: impl FnMut(&str) -> Result<Result<(), String>, TraceError>,
) -> Result<(), ImportError> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let io = |source| ImportError::Io {
            path: path.into(),
            source,
        };
        if input
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut bytes)
            .map_err(io)?
            == 0
        {
            break;
        }
        let wrong = |what: String| ImportError::Line {
            path: path.into(),
            line: number,
            what,
        };
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| wrong("is no text; is this a binary trace?".into()))?;
        line(text.trim_end_matches(['\n', '\r']))?.map_err(wrong)?;
    }
    Ok(())
}

/// No format has longer lines; a binary file without line ends must not be read at once.
const MAX_LINE_BYTES: u64 = 4096;

/// An address in hexadecimal, with or without `0x`.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceReader;
    use proptest::prelude::*;
    use varve_access::Kind;

    fn import_bytes(format: Format, bytes: &[u8]) -> Result<Vec<Op>, ImportError> {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, bytes).unwrap();
        import(format, &from, &to)?;
        let reader = TraceReader::open(&to).unwrap();
        Ok(reader
            .iter_from(0)
            .flat_map(|block| block.unwrap().ops)
            .collect())
    }

    #[test]
    fn lackey_lines_become_ops_and_its_messages_are_passed_over() {
        let text = "==12== Lackey, an example Valgrind tool\nI  0023C790,2\n L 1fff000120,8\nI  0023C792,3\nI  0023C795,3\n S be80199c,4\n M 0421c7cc,1\n";
        let ops = import_bytes(Format::Lackey, text.as_bytes()).unwrap();
        let expected = [
            Op::read(0x1f_ff00_0120, 8, 1),
            Op::write(0xbe80_199c, 4, 2),
            Op::new(Kind::Update, 0x421_c7cc, 1, 0),
        ];
        assert_eq!(ops, expected);
    }

    #[test]
    fn champsim_records_become_ops() {
        let mut record = [0u8; 64];
        record[16..24].copy_from_slice(&0x1000u64.to_le_bytes()); // first destination
        record[32..40].copy_from_slice(&0x2000u64.to_le_bytes()); // first source
        let ops = import_bytes(Format::ChampSim, &[[0u8; 64], record].concat()).unwrap();
        assert_eq!(ops, [Op::read(0x2000, 8, 2), Op::write(0x1000, 8, 0)]);
    }

    #[test]
    fn memtrace_lines_become_ops() {
        let text = "Format: <data address>: <data size>, <(r)ead/(w)rite/opcode>\n0x7f001000:  3, mov\n0x7ffc10: 8, r\n0x7ffc20: 4, w\n";
        let ops = import_bytes(Format::Memtrace, text.as_bytes()).unwrap();
        assert_eq!(ops, [Op::read(0x7f_fc10, 8, 1), Op::write(0x7f_fc20, 4, 0)]);
    }

    #[test]
    fn drmemtrace_records_become_ops_of_their_threads() {
        let record = |kind: u16, size: u16, address: u64| {
            [
                &kind.to_le_bytes()[..],
                &size.to_le_bytes(),
                &address.to_le_bytes(),
            ]
            .concat()
        };
        let trace = [
            record(25, 0, 5),         // header
            record(28, 12, 5),        // marker: version
            record(22, 4, 77),        // thread
            record(24, 4, 70),        // process
            record(47, 3, 0x90),      // encoding
            record(10, 3, 0x40_0000), // instruction
            record(11, 2, 0x40_0003), // jump
            record(0, 8, 0x1000),
            record(22, 4, 78),
            record(10, 3, 0x40_0000),
            record(1, 4, 0x2000),
            record(22, 4, 77),
            record(48, 2, 0x40_0005), // taken jump
            record(1, 16, 0x3000),
            record(26, 0, 0), // footer
        ]
        .concat();
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, &trace).unwrap();
        import(Format::DrMemtrace, &from, &to).unwrap();
        let reader = TraceReader::open(&to).unwrap();
        let thread = |number| -> Vec<Op> {
            reader
                .thread(number)
                .flat_map(|block| block.unwrap().ops)
                .collect()
        };
        assert_eq!(
            thread(0),
            [Op::read(0x1000, 8, 2), Op::write(0x3000, 16, 1)]
        );
        assert_eq!(thread(1), [Op::write(0x2000, 4, 1)]);
    }

    #[test]
    fn errors_name_the_line_or_byte_and_what_to_do() {
        let wrong = |format, bytes: &[u8]| import_bytes(format, bytes).unwrap_err().to_string();
        assert!(wrong(Format::Lackey, b"I  1,2\n L zz,8\n").contains("from:2: "));
        assert!(wrong(Format::Memtrace, b"0x10: 8, r\n0x10 8\n").contains("from:2: "));
        assert!(wrong(Format::ChampSim, &[0; 100]).contains("byte 64"));
        assert!(wrong(Format::DrMemtrace, &[0; 24]).contains("byte 0"));
        assert!(wrong(Format::DrMemtrace, b"PK\x03\x04").contains("unzip -p"));
        assert!(wrong(Format::ChampSim, &[0xfd, b'7', b'z', b'X', b'Z', 0]).contains("unxz"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_imported_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), format in 0usize..Format::ALL.len()) {
            let _ = import_bytes(Format::ALL[format].1, &bytes);
        }
    }
}
