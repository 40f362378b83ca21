//! What a line of `perf script` is.
//!
//! ```text
//! my app:x   812/815   [003]     7.510000:          1 cpu/mem-loads,ldlat=30/P:   7f8a2c0010   68100142 |OP LOAD|... 33  401136 main+0x16 (/bin/p)
//!             401136 main+0x16 (/bin/p)
//! ```
//!
//! The command's name is of any letters. What stands before the event is looked at for the time alone, which no name is taken for.

use super::event::{Kind, kind};
use super::source::{Access, Source};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Empty, a comment, or of the stack of the sample before.
    Nothing,
    /// A sample of another event.
    Other(&'a str),
    /// The address of a memory sample, and what it says.
    Sample(u64, Source),
}

#[derive(Default)]
pub(super) struct Reader {
    /// Whether a line of a stack may follow.
    has_sample: bool,
}

impl Reader {
    pub fn line<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(Line::Nothing);
        }
        if self.has_sample && is_of_stack(line) {
            return Ok(Line::Nothing);
        }
        let read = sample(line)?;
        self.has_sample = true;
        Ok(read)
    }
}

/// A word, and where it begins.
type Word<'a> = (usize, &'a str);

fn words(text: &str) -> Vec<Word<'_>> {
    let words = text.split_ascii_whitespace();
    words
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .collect()
}

/// `  401136 main+0x16 (/bin/p)`, `  401136 f(int)`, `  7f00 f (inlined)`, or a line of source code, `  p.c:12`. perf begins the first
/// ones with a tab, and a sample never.
fn is_of_stack(line: &str) -> bool {
    if !line.starts_with([' ', '\t']) {
        return false;
    }
    let all = words(line);
    if event(&all).is_some_and(|(at, name)| is_memory(&all, at, name)) || time(&all).is_some() {
        return false;
    }
    let has_tab = line.starts_with('\t');
    // A process or a processor is no part of a function's name.
    if !has_tab && all.iter().skip(1).any(|(_, word)| is_of_process(word)) {
        return false;
    }
    match all[..] {
        [] => false,
        [(_, word)] => is_hex(word) || is_source_line(word),
        [(_, first), .., (_, last)] => is_hex(first) || has_tab && last.ends_with(')'),
    }
}

fn is_hex(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `812`, `812/815` or `[003]`.
fn is_of_process(word: &str) -> bool {
    let word = word
        .strip_prefix('[')
        .and_then(|word| word.strip_suffix(']'))
        .unwrap_or(word);
    let mut parts = word.split('/');
    parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_source_line(word: &str) -> bool {
    let line = word.rsplit_once(':').map(|(_, line)| line);
    line.is_some_and(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The place of the last time, `7.510000:`, before all that an event has.
fn time(all: &[Word]) -> Option<usize> {
    let is_time = |word: &str| {
        let Some((seconds, part)) = word.strip_suffix(':').and_then(|word| word.split_once('.'))
        else {
            return false;
        };
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number(seconds) && is_number(part)
    };
    let is_source = |word: &str| word == "|OP" || word.contains("|SNP");
    let end = all.iter().position(|(_, word)| is_source(word));
    let end = end.unwrap_or(all.len());
    all[..end].iter().rposition(|(_, word)| is_time(word))
}

/// The place and name of the event. With a time before it, it is the first word with a colon behind; else a name may be such a word
/// too, and the event is the first of memory with an address behind, or the first of all.
fn event<'a>(all: &[Word<'a>]) -> Option<(usize, &'a str)> {
    let named = |at: usize| {
        let name = all.get(at)?.1.strip_suffix(':')?;
        (!name.bytes().all(|byte| byte.is_ascii_digit())).then_some((at, name))
    };
    if let Some(time) = time(all) {
        return (time + 1..all.len()).find_map(named);
    }
    let mut candidates = (0..all.len()).filter_map(named);
    let memory = candidates
        .clone()
        .find(|(at, name)| is_memory(all, *at, name));
    memory.or_else(|| candidates.next())
}

/// An event of memory with something behind that may be its address, or nothing at all.
fn is_memory(all: &[Word], at: usize, name: &str) -> bool {
    let next = all.get(at + 1).map(|(_, word)| *word);
    !matches!(kind(name), Kind::Other | Kind::Unknown) && next.is_none_or(is_address)
}

fn is_address(word: &str) -> bool {
    is_hex(word.trim_start_matches("0x"))
}

fn sample(line: &str) -> Result<Line<'_>, String> {
    let all = words(line);
    let record = all
        .iter()
        .find(|(_, word)| word.starts_with("PERF_RECORD_"));
    if let Some((_, record)) = record {
        return Ok(Line::Other(record));
    }
    let Some((at, name)) = event(&all) else {
        return Err("no sample: no event such as `cpu/mem-loads/:` (Intel), `ibs_op//:` (AMD) or `memory:` (Arm's SPE)".into());
    };
    let kind = kind(name);
    if kind == Kind::Other {
        return Ok(Line::Other(name));
    }
    let behind = &all[at + 1..];
    let no_address = "no address; ask perf script for the field addr";
    let Some(&(from, address)) = behind.first() else {
        return match kind {
            Kind::Unknown => Ok(Line::Other(name)),
            _ => Err(no_address.into()),
        };
    };
    let source = data_src(line, behind, from)?;
    let says = source.map_or(Source::of_event(kind), |one| {
        Source::read(kind, one.number, one.decoded)
    });
    if kind == Kind::Unknown && (source.is_none() || says.access == Access::NoData) {
        return Ok(Line::Other(name));
    }
    if source.is_some_and(|one| one.is_first) {
        return Err(no_address.into());
    }
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)
        .map_err(|_| format!("`{address}` is no hexadecimal address"))?;
    Ok(Line::Sample(address, says))
}

/// The field `data_src`: a number, and what it says.
#[derive(Clone, Copy)]
struct DataSrc<'a> {
    number: &'a str,
    decoded: &'a str,
    /// There is no address before it.
    is_first: bool,
}

/// The number stands right before `|OP`. In old versions it is the second word, before the level and `|SNP`.
fn data_src<'a>(
    line: &'a str,
    behind: &[Word<'a>],
    from: usize,
) -> Result<Option<DataSrc<'a>>, String> {
    let text = &line[from..];
    let (place, number) = match (text.find("|OP "), text.find("|SNP ")) {
        (Some(bar), _) => {
            let before = behind.iter().rposition(|(at, _)| *at < from + bar);
            (before, before.map(|at| behind[at]))
        }
        (None, Some(_)) => (Some(1), behind.get(1).copied()),
        (None, None) => return Ok(None),
    };
    let number = number.filter(|(_, word)| is_address(word));
    let (at, number) = number.ok_or(
        "no address, or no number of data_src behind it; ask perf script for the fields addr and data_src",
    )?;
    Ok(Some(DataSrc {
        number,
        decoded: line[at + number.len()..].trim_start(),
        is_first: place == Some(0),
    }))
}
