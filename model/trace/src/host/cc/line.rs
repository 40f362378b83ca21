//! The command line of a compiler, as far as it says whether a program is linked.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Options that take the next word as their value.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-x",
    "-T",
    "-u",
    "-z",
    "-e",
    "-A",
    "-B",
    "-F",
    "-G",
    "-b",
    "-h",
    "-V",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-imultilib",
    "--sysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-mllvm",
    "-target",
    "--param",
    "-aux-info",
    "-framework",
    "-arch",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-wrapper",
    "-Tbss",
    "-Tdata",
    "-Ttext",
    "-rpath",
    "-include-pch",
    "-ivfsoverlay",
    "-resource-dir",
];

/// Names of headers: a compiler that gets one precompiles it, and links nothing.
const HEADERS: &[&str] = &["h", "hh", "H", "hp", "hxx", "hpp", "HPP", "h++", "tcc"];

/// How deep response files may name each other.
const DEEPEST: usize = 16;

/// What a command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// It names something to compile or to link.
    pub inputs: bool,
    /// All that it names are headers.
    pub headers_only: bool,
    /// It stops before linking (`-c`, `-S`, `-E` and the like).
    pub compiles_only: bool,
    /// It makes a shared library, which gets the probe from the program that loads it.
    pub shared: bool,
    /// It links objects to an object.
    pub relocatable: bool,
    /// Why the probe cannot be in the result.
    pub refused: Option<&'static str>,
}

impl Line {
    pub fn of<'a>(words: impl IntoIterator<Item = &'a OsString>) -> Line {
        let mut all = Vec::new();
        for word in words {
            expand(word, DEEPEST, &mut all);
        }
        Line::parse(&all)
    }

    fn parse(words: &[String]) -> Line {
        let mut line = Line::default();
        let (mut link_time, mut fixed, mut narrow, mut checked) = (false, false, false, false);
        let mut language_is_header = false;
        let mut others = false;
        let mut at = 0;
        while at < words.len() {
            let word = &*words[at];
            match word {
                "-c" | "-S" | "-E" | "-M" | "-MM" | "-fsyntax-only" => line.compiles_only = true,
                "-shared" | "--shared" => line.shared = true,
                "-r" => line.relocatable = true,
                "-static" | "--static" | "-static-pie" => fixed = true,
                "-m32" | "-mx32" => narrow = true,
                "-m64" => narrow = false,
                "-fno-lto" => link_time = false,
                "-x" => {
                    let language = words.get(at + 1).map_or("", String::as_str);
                    language_is_header = language.ends_with("-header");
                }
                "-l" => (line.inputs, others) = (true, true),
                _ if word.starts_with("-flto") => link_time = true,
                _ => {
                    if let Some(kinds) = word.strip_prefix("-fsanitize=") {
                        let own = ["address", "hwaddress", "memory", "leak"];
                        checked |= kinds.split(',').any(|kind| own.contains(&kind));
                    } else if let Some(language) = word.strip_prefix("-x") {
                        language_is_header = language.ends_with("-header");
                    } else if word.starts_with("-l") {
                        (line.inputs, others) = (true, true);
                    } else if word == "-" || !word.starts_with('-') {
                        line.inputs = true;
                        let end = Path::new(word).extension().and_then(OsStr::to_str);
                        let header = end.is_some_and(|end| HEADERS.contains(&end));
                        others |= !(header || language_is_header);
                    }
                }
            }
            at += if WITH_VALUE.contains(&word) { 2 } else { 1 };
        }
        line.headers_only = line.inputs && !others;
        let links = !line.compiles_only && !line.headers_only;
        line.refused = if link_time {
            Some("link-time optimization (-flto) would lose the recorded accesses; leave it away")
        } else if checked {
            Some("a sanitizer of its own (-fsanitize) is before each access already; leave it away")
        } else if narrow {
            Some("the probe is for 64-bit programs; leave -m32 away")
        } else if fixed && links && !line.shared {
            Some(
                "a static program (-static) would call the probe before its C library is ready; leave it away",
            )
        } else {
            None
        };
        line
    }
}

/// Adds a word, or the words of the response file that it names (`@file`).
fn expand(word: &OsStr, depth: usize, all: &mut Vec<String>) {
    let text = word.to_string_lossy();
    let file = text.strip_prefix('@').filter(|_| depth > 0);
    // A word whose file cannot be read stands for itself, as it does for compilers.
    match file.and_then(|file| std::fs::read(file).ok()) {
        Some(bytes) => {
            for word in split(&String::from_utf8_lossy(&bytes)) {
                expand(OsStr::new(&word), depth - 1, all);
            }
        }
        None => all.push(text.into_owned()),
    }
}

/// The words of a response file: between blanks, with quotes, and a backslash before what is meant as it is.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', _) => word.get_or_insert_default().extend(letters.next()),
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(letter),
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, None) if letter.is_whitespace() => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        Line::of(&words)
    }

    #[test]
    fn inputs_are_told_from_values_of_options() {
        assert!(!line("-O2 -include first.c -o out.c -I dir").inputs);
        assert!(line("-O2 -o out main.c").inputs);
        assert!(line("-x c -").inputs);
        assert!(line("-o out -lm").inputs);
        assert!(!line("--version").inputs);
    }

    #[test]
    fn headers_alone_are_precompiled_and_not_linked() {
        assert!(line("-o all.h.gch all.h").headers_only);
        assert!(line("-x c++-header all -o all.gch").headers_only);
        assert!(line("-xc-header all").headers_only);
        assert!(!line("all.h main.c").headers_only);
        assert!(!line("-x c-header all.h -x c main").headers_only);
    }

    #[test]
    fn what_cannot_have_the_probe_is_refused_where_it_matters() {
        let refused = |text| line(text).refused.is_some();
        assert!(refused("-flto=auto -c a.c") && !refused("-flto -fno-lto -c a.c"));
        assert!(refused("-static a.o") && !refused("-static -c a.c"));
        assert!(!refused("-static-libgcc a.o"));
        assert!(
            refused("-fsanitize=undefined,address -c a.c") && !refused("-fsanitize=undefined a.c")
        );
        assert!(refused("-m32 a.c") && !refused("-m32 -m64 a.c"));
    }

    #[test]
    fn response_files_say_it_as_the_line_does() {
        let folder = tempfile::tempdir().unwrap();
        let [inner, outer] = ["inner", "outer"].map(|name| folder.path().join(name));
        std::fs::write(&inner, "-c \"a file.c\"\n-o 'it''s.o' b\\ c.c").unwrap();
        std::fs::write(&outer, format!("-O2 @{}", inner.display())).unwrap();
        let mut all = Vec::new();
        expand(
            OsStr::new(&format!("@{}", outer.display())),
            DEEPEST,
            &mut all,
        );
        assert_eq!(all, ["-O2", "-c", "a file.c", "-o", "its.o", "b c.c"]);
        assert!(line(&format!("@{}", outer.display())).compiles_only);
        // One that names itself comes to an end.
        std::fs::write(&inner, format!("@{}", inner.display())).unwrap();
        assert!(line(&format!("@{}", inner.display())).inputs);
    }
}
