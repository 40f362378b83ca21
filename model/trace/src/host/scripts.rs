//! Code of scripts, by the numbers under which the probe reports it, and calls made of its lines.

use crate::CallSite;
use std::collections::HashMap;

/// A function of a script.
struct Code {
    file: String,
    name: String,
    first_line: u32,
}

/// A file of a script.
#[derive(Clone)]
struct Source {
    /// Its name, with as much of the folder as tells it apart.
    name: String,
    /// Stands for the build: lines mean the same as long as the text does. Empty if there is no such file.
    build_id: String,
}

/// See the module.
#[derive(Default)]
pub(super) struct Scripts {
    codes: HashMap<u64, Code>,
    /// By path.
    sources: HashMap<String, Source>,
}

/// Folders below which libraries of Python are.
const LIBRARIES: [&str; 2] = ["/site-packages/", "/dist-packages/"];
/// How the functions begin in which CPython interprets.
const INTERPRETERS: [&str; 5] = [
    "_PyEval_",
    "PyEval_",
    "_TAIL_CALL_",
    "_PyFunction_Vectorcall",
    "gen_send_ex",
];

/// What a line of the probe's text says about `what`, behind the number of the process; without its end. Lines of /proc/PID/maps have
/// an address there.
pub(super) fn about<'a>(line: &'a str, what: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(' ')?;
    let rest = rest.strip_prefix(what)?.strip_prefix('\t')?;
    Some(rest.trim_end_matches('\n'))
}

/// Is this call made by an interpreter of scripts for the script?
pub(super) fn interprets(call: &CallSite) -> bool {
    let name = call.symbol.as_deref().unwrap_or_default();
    INTERPRETERS.iter().any(|start| name.starts_with(start))
}

impl Scripts {
    /// Reads a line of the probe's text. `false` if it is about something else.
    pub fn line(&mut self, line: &str) -> bool {
        let code = about(line, "code");
        if let Some(words) = code {
            let _ = self.code(words.splitn(4, '\t'));
        }
        code.is_some()
    }

    fn code<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) -> Option<()> {
        let number = u64::from_str_radix(words.next()?, 16).ok()?;
        let first_line = words.next()?.parse().ok()?;
        let (name, file) = (words.next()?.into(), words.next()?.into());
        self.codes.insert(
            number,
            Code {
                file,
                name,
                first_line,
            },
        );
        Some(())
    }

    /// Calls made of lines, up to the first that is of no code.
    pub fn calls(&mut self, lines: &[(u64, u32)]) -> Vec<CallSite> {
        let call = |&(number, line): &(u64, u32)| {
            let code = self.codes.get(&number)?;
            let source = match self.sources.get(&code.file) {
                Some(source) => source,
                None => {
                    let source = Source::of(&code.file);
                    self.sources.entry(code.file.clone()).or_insert(source)
                }
            };
            let within = line.saturating_sub(code.first_line);
            Some(CallSite {
                module: code.file.clone(),
                offset: line.into(),
                symbol: Some(format!("{}+{within:#x}", code.name)),
                build_id: source.build_id.clone(),
                line: Some(format!("{}:{line}", source.name)),
                ..CallSite::default()
            })
        };
        lines.iter().map_while(call).collect()
    }
}

impl Source {
    fn of(path: &str) -> Source {
        let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
        let text = std::fs::read(path).ok().filter(|_| is_file);
        Source {
            name: name(path).into(),
            build_id: text.map_or(String::new(), |text| format!("{:016x}", hash(&text))),
        }
    }
}

/// What tells a file of Python from others: of a library, its path from the folder of libraries on, and at least one folder; of
/// others just its name.
fn name(path: &str) -> &str {
    let in_packages = LIBRARIES
        .iter()
        .filter_map(|folder| Some(path.rfind(folder)? + folder.len()));
    let in_standard = path.rfind("/lib/python3").and_then(|at| {
        // lib, python3 or python3.11, and the rest
        let folder = path[at + 1..].match_indices('/').nth(1)?.0;
        Some(at + 1 + folder + 1)
    });
    let file = path.rfind('/').map_or(0, |at| at + 1);
    let start = match in_packages.max().or(in_standard) {
        Some(start) if start == file => path[..start - 1].rfind('/').map_or(0, |at| at + 1),
        Some(start) => start,
        None => file,
    };
    &path[start..]
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_libraries_keep_their_package() {
        for (path, expected) in [
            ("/home/me/np.py", "np.py"),
            ("/usr/lib/python3.11/json/decoder.py", "json/decoder.py"),
            (
                "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
                "numpy/core/numeric.py",
            ),
            ("/usr/lib/python3.11/pathlib.py", "python3.11/pathlib.py"),
            (
                "/v/lib/python3.12/site-packages/six.py",
                "site-packages/six.py",
            ),
            ("/site-packages/six.py", "site-packages/six.py"),
            ("/site-packages/", "site-packages/"),
            (
                "/opt/lib/python3.12/site-packages/a/__init__.py",
                "a/__init__.py",
            ),
            (
                "<frozen importlib._bootstrap>",
                "<frozen importlib._bootstrap>",
            ),
            ("/lib/python3", "python3"),
            ("", ""),
        ] {
            assert_eq!(name(path), expected);
        }
    }

    #[test]
    fn a_line_is_a_call_in_its_file_and_damaged_text_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("a.py");
        std::fs::write(&script, "x = 1\n").unwrap();
        let mut scripts = Scripts::default();
        let text = format!("0 code\tab\t3\tC.load\t{}\n", script.display());
        assert!(scripts.line(&text));
        assert!(scripts.line("0 code\tnothing\n") && scripts.line("0 code\t\n"));
        assert!(!scripts.line("0 1000-3000 r-xp 00000000 00:00 5 /a code\tb\n"));
        let calls = scripts.calls(&[(0xab, 5), (0xab, 1), (0xcd, 9), (0xab, 6)]);
        assert_eq!(calls.len(), 2, "what is behind unknown code is not known");
        let frame = calls[0].frame();
        assert_eq!(
            (&*frame.module, frame.offset, frame.within),
            ("a.py", 5, Some(2))
        );
        assert_eq!(frame.function.as_deref(), Some("C.load"));
        assert_eq!(frame.line.as_deref(), Some("a.py:5"));
        assert_eq!(frame.build_id.len(), 16, "of the text");
        assert!(interprets(&CallSite {
            symbol: Some("_PyEval_EvalFrameDefault+0x12".into()),
            ..CallSite::default()
        }));
    }
}
