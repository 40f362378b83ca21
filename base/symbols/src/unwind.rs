//! How to find the callers in code without frame pointers: tables from `.eh_frame`, made before a program runs and
//! searched while it runs, as Linux does with ORC.
//!
//! [`table_for`] makes the table of a program or library; [`Table::bytes`] is its file, which a shim maps. The walker
//! itself is `base/symbols/walk/walk.rs`, one file that needs only `core`: probes include it with `#[path]`, others use
//! it as [`walk`].

#[path = "../walk/walk.rs"]
#[allow(missing_docs)] // `walk.rs` says in its comments what probes need
pub mod walk;

use std::path::{Path, PathBuf};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, NativeEndian, Operation, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection, X86_64,
};
use object::{Object, ObjectSection, ObjectSegment};

use crate::{SymbolsError, elf};
use walk::{
    AT_FP, FP_AT_FP, FROM_FP, FROM_SP, Header, MAGIC, MOST_WORDS, Row, Rule, Segment, UNKNOWN,
    VERSION,
};

type Slice<'a> = gimli::EndianSlice<'a, NativeEndian>;

/// The rules of one program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Build id in hexadecimal digits; empty if there is none.
    pub build_id: String,
    start: u64,
    segments: Vec<Segment>,
    rows: Vec<Row>,
}

/// Makes the table of a program or library for 64-bit x86.
///
/// # Errors
/// It cannot be read or is no ELF file. Where `.eh_frame` is missing or damaged, rules are unknown.
pub fn table_for(path: &Path) -> Result<Table, SymbolsError> {
    let bytes = elf::read(path)?;
    let file = elf::parse(path, &bytes)?;
    let segments: Vec<Segment> = file
        .segments()
        .map(|segment| Segment {
            offset: segment.file_range().0,
            bytes: segment.file_range().1,
            address: segment.address(),
        })
        .collect();
    let start = segments.iter().map(|s| s.address).min().unwrap_or(0);
    let mut table = Table {
        build_id: elf::build_id(&file),
        start,
        segments,
        rows: Vec::new(),
    };
    if file.architecture() == object::Architecture::X86_64 {
        table.rows = rows(&file, start);
    }
    Ok(table)
}

impl Table {
    /// The rule for the frame of a return address (link-time).
    pub fn rule_at(&self, return_address: u64) -> Rule {
        let distance = return_address.wrapping_sub(1).wrapping_sub(self.start);
        walk::rule_at(&self.rows, distance)
    }

    /// Rows, each a place where the rule changes.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The table as a file, for [`walk::open`].
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(
            size_of::<Header>() + 24 * self.segments.len() + 8 * self.rows.len(),
        );
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.segments.len() as u32).to_le_bytes());
        bytes.extend(self.start.to_le_bytes());
        bytes.extend((self.rows.len() as u64).to_le_bytes());
        for segment in &self.segments {
            for number in [segment.offset, segment.bytes, segment.address] {
                bytes.extend(number.to_le_bytes());
            }
        }
        for row in &self.rows {
            bytes.extend(row.address.to_le_bytes());
            bytes.extend(row.rule.0.to_le_bytes());
        }
        bytes
    }
}

/// The libraries that a program begins with, as its own dynamic loader resolves them; none for static programs and
/// where the loader cannot be asked. Libraries that the program loads later are not among them.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let Ok(bytes) = elf::read(program) else {
        return Vec::new();
    };
    let interpreter = object::File::parse(&*bytes).ok().and_then(|file| {
        let section = file.section_by_name(".interp")?;
        let name = section.data().ok()?.strip_suffix(b"\0")?.to_vec();
        String::from_utf8(name).ok()
    });
    let Some(interpreter) = interpreter else {
        return Vec::new();
    };
    let listed = std::process::Command::new(&interpreter)
        .arg("--list")
        .arg(program)
        .output();
    let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
    // `libc.so.6 => /lib/libc.so.6 (0x7f...)`, `/lib64/ld-linux-x86-64.so.2 (0x7f...)`
    let path = |line: &str| {
        let found = line.split_once("=>").map_or(line, |(_, found)| found);
        let path = found.rsplit_once(" (0x")?.0.trim();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.unwrap_or_default().lines().filter_map(path).collect()
}

/// Rows by address, one wherever the rule changes.
fn rows(file: &object::File, start: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let Some(section) = file.section_by_name(".eh_frame") else {
        return rows;
    };
    let Ok(data) = section.data() else {
        return rows;
    };
    let frames = EhFrame::new(data, NativeEndian);
    let address = |name| {
        file.section_by_name(name)
            .map_or(0, |section| section.address())
    };
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut context = UnwindContext::new();
    // Pieces of functions: from, to, rule.
    let mut pieces: Vec<(u64, u64, Rule)> = Vec::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
            continue;
        };
        let Ok(mut table) = fde.rows(&frames, &bases, &mut context) else {
            continue;
        };
        while let Ok(Some(row)) = table.next_row() {
            let is_signal = fde.is_signal_trampoline();
            let rule = if is_signal {
                None
            } else {
                rule(row, &frames, fde.cie().encoding())
            };
            pieces.push((
                row.start_address(),
                row.end_address(),
                rule.unwrap_or(UNKNOWN),
            ));
        }
    }
    pieces.sort_unstable_by_key(|piece| piece.0);
    let mut end = start;
    let mut push = |address: u64, rule: Rule| {
        let Ok(address) = u32::try_from(address.wrapping_sub(start)) else {
            return;
        };
        match rows.last_mut() {
            Some(Row {
                address: last,
                rule: before,
            }) if *last == address => *before = rule,
            Some(Row { rule: before, .. }) if *before == rule => {}
            _ => rows.push(Row { address, rule }),
        }
    };
    for (from, to, rule) in pieces {
        // of pieces that overlap the first has the place
        if to <= end || to <= from {
            continue;
        }
        if from > end {
            push(end, UNKNOWN);
        }
        push(from.max(end), rule);
        end = to;
    }
    push(end, UNKNOWN);
    rows
}

/// A row of `.eh_frame` as a rule of ours, if it can be one.
fn rule(
    row: &gimli::UnwindTableRow<usize>,
    frames: &EhFrame<Slice>,
    encoding: gimli::Encoding,
) -> Option<Rule> {
    // Where the stack ends, there is no return address.
    if row.register(X86_64::RA) != Some(RegisterRule::Offset(-8)) {
        return None;
    }
    let (from, distance) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let from = match *register {
                X86_64::RSP => FROM_SP,
                X86_64::RBP => FROM_FP,
                _ => return None,
            };
            (from, words(*offset)?)
        }
        CfaRule::Expression(expression) => (
            AT_FP,
            words(-word_at_fp(expression, frames, encoding, true)?)?,
        ),
    };
    let saved = match row.register(X86_64::RBP) {
        Some(RegisterRule::Offset(offset)) if offset < 0 => words(-offset)?,
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => 0,
        Some(RegisterRule::Expression(expression))
            if word_at_fp(&expression, frames, encoding, false)? == 0 =>
        {
            FP_AT_FP
        }
        _ => return None,
    };
    Some(Rule::new(from, distance, saved))
}

fn words(bytes: i64) -> Option<u32> {
    let words = u32::try_from(bytes).ok().filter(|bytes| bytes % 8 == 0)? / 8;
    (words < MOST_WORDS).then_some(words)
}

/// The distance in an expression `rbp + distance`, of which the word is loaded at the end or not.
fn word_at_fp(
    expression: &UnwindExpression<usize>,
    frames: &EhFrame<Slice>,
    encoding: gimli::Encoding,
    loads: bool,
) -> Option<i64> {
    let mut operations = expression.get(frames).ok()?.operations(encoding);
    let Ok(Some(Operation::RegisterOffset {
        register: X86_64::RBP,
        offset,
        ..
    })) = operations.next()
    else {
        return None;
    };
    let is_load = match operations.next().ok()? {
        None => false,
        Some(Operation::Deref { .. }) => operations.next().ok()?.is_none(),
        Some(_) => return None,
    };
    (is_load == loads).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use walk::{Frame, open, rule_at, step, walk};

    /// The output of `readelf --debug-dump=frames-interp` for a file, as rules by address: the slow reference.
    fn reference(path: &Path) -> Option<Vec<(u64, Rule)>> {
        let text = std::process::Command::new("readelf")
            .arg("-wF")
            .arg(path)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let (mut rules, mut columns) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match &words[..] {
                ["LOC", "CFA", rest @ ..] => columns = rest.to_vec(),
                [address, cfa, rest @ ..] if address.len() == 16 && rest.len() == columns.len() => {
                    let of = |name: &str| {
                        columns
                            .iter()
                            .position(|column| *column == name)
                            .map(|at| rest[at])
                    };
                    let from = [("rsp+", FROM_SP), ("rbp+", FROM_FP)];
                    let found = from.iter().find_map(|(name, from)| {
                        Some((cfa.strip_prefix(name)?.parse::<u32>().ok()?, *from))
                    });
                    let saved = match of("rbp") {
                        None | Some("u") => Some(0),
                        Some(at) => at.strip_prefix("c-").and_then(|at| at.parse().ok()),
                    };
                    let rule = match (found, saved, of("ra")) {
                        (Some((bytes, from)), Some(saved), Some("c-8")) => {
                            Rule::new(from, bytes / 8, saved / 8)
                        }
                        _ => continue,
                    };
                    // what stands before all functions has address 0
                    let address = u64::from_str_radix(address, 16).ok()?;
                    if address > 0 {
                        rules.push((address, rule));
                    }
                }
                _ => {}
            }
        }
        (!rules.is_empty()).then_some(rules)
    }

    #[test]
    fn tables_say_what_readelf_says() {
        let me = std::env::current_exe().unwrap();
        let mut all = libraries(&me);
        assert!(
            all.iter()
                .any(|path| path.display().to_string().contains("libc")),
            "{all:?}"
        );
        all.push(me);
        let mut compared = 0;
        for path in all {
            let Some(expected) = reference(&path) else {
                continue;
            };
            let table = table_for(&path).unwrap();
            for (address, rule) in &expected {
                // a return address is behind its call
                assert_eq!(
                    table.rule_at(address + 1),
                    *rule,
                    "{} {address:#x}",
                    path.display()
                );
            }
            compared += expected.len();
            assert_eq!(table.rule_at(0), UNKNOWN);
            assert_eq!(table.rule_at(u64::MAX), UNKNOWN);
        }
        if compared == 0 {
            varve_skip::skip!("needs readelf");
        }
    }

    #[test]
    fn a_table_is_read_from_its_file_as_it_was() {
        let table = table_for(&std::env::current_exe().unwrap()).unwrap();
        assert!(table.rows() > 1000);
        let bytes = table.bytes();
        // a file is mapped at a multiple of a page
        let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
        for (word, piece) in aligned.iter_mut().zip(bytes.chunks(8)) {
            *word = u64::from_le_bytes(piece.try_into().unwrap());
        }
        // SAFETY: as many bytes as the words have.
        let mapped =
            unsafe { std::slice::from_raw_parts(aligned.as_ptr().cast::<u8>(), bytes.len()) };
        let (start, segments, rows) = open(mapped).unwrap();
        assert_eq!(
            (start, segments, rows),
            (table.start, &table.segments[..], &table.rows[..])
        );
        assert_eq!(open(&mapped[..mapped.len() - 8]), None);
        assert_eq!(open(&[]), None);
    }

    /// Functions on a made-up stack, each with a frame of the given number of words, of which some keep rbp.
    fn any_stack() -> impl Strategy<Value = Vec<(u32, Option<u32>, bool)>> {
        // words of the frame, where rbp is saved, whether the CFA is found from rbp
        prop::collection::vec((2u32..40, prop::option::of(2u32..40), any::<bool>()), 1..20)
    }

    proptest! {
        #[test]
        fn any_calls_are_found_again(calls in any_stack()) {
            const BASE: usize = 0x1000;
            let mut memory = vec![0usize; 2000];
            let (mut sp, mut fp) = (BASE, BASE);
            // rbp of each function, decided from the outermost: here each keeps the one of its caller or uses it
            let mut frames = Vec::new();
            for (number, &(words, saved, from_fp)) in calls.iter().enumerate() {
                let saved = saved.filter(|&at| at <= words).unwrap_or(0);
                let from_fp = from_fp && saved > 0;
                frames.push((number + 100, sp, words, saved, from_fp));
                sp += words as usize * 8;
            }
            // from the outermost in: memory holds the caller's rbp where the rule says
            let mut expected_fp = fp;
            let mut fps = vec![0; frames.len() + 1];
            for (number, &(_, sp, words, saved, _)) in frames.iter().enumerate().rev() {
                let cfa = sp + words as usize * 8;
                memory[(cfa - BASE) / 8 - 1] = if number + 1 < frames.len() { number + 101 } else { 0 };
                fps[number + 1] = expected_fp;
                if saved > 0 {
                    // the return address has its own word
                    memory[(cfa - BASE) / 8 - saved as usize] = expected_fp;
                    expected_fp = sp + 8;
                }
            }
            fps[0] = expected_fp;
            fp = expected_fp;
            let rule = |address: usize| {
                let &(_, sp, words, saved, from_fp) = frames.get(address.checked_sub(100)?)?;
                let distance = if from_fp { (sp + words as usize * 8 - fps[address - 100]) / 8 } else { words as usize };
                Some(Rule::new(if from_fp { FROM_FP } else { FROM_SP }, distance as u32, saved))
            };
            let mut found = [0; 32];
            let first = Frame { return_address: 100, sp: BASE, fp };
            let count = walk(first, &mut found, rule, |at| memory.get(at.checked_sub(BASE)? / 8).copied());
            let expected: Vec<usize> = (100..100 + calls.len()).collect();
            prop_assert_eq!(&found[..count], &expected[..]);
        }

        /// Whatever is on the stack and in the registers, a step goes up or ends.
        #[test]
        fn any_memory_is_walked_upwards_or_not_at_all(rule in any::<u32>(), sp in any::<usize>(), fp in any::<usize>(), word in any::<usize>()) {
            let frame = Frame { return_address: 1, sp, fp };
            if let Some(next) = step(Rule(rule), frame, &mut |_| Some(word)) {
                prop_assert!(next.sp > sp);
            }
        }
    }

    #[test]
    fn before_the_first_row_nothing_is_known() {
        let rows = [
            Row {
                address: 8,
                rule: Rule(9),
            },
            Row {
                address: 16,
                rule: UNKNOWN,
            },
        ];
        let seen = [7, 8, 15, 16, u64::MAX].map(|at| rule_at(&rows, at).0);
        assert_eq!(seen, [0, 9, 9, 0, 0]);
    }
}
