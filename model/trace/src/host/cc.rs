//! `varve cc` and `varve c++`: the user's own compiler, with the probe in its output.
//!
//! Sources are compiled with `-fsanitize=thread`; the probe implements its calls before every access. When linking,
//! that option is left away, since it would bring the sanitizer's own runtime; sources on a linking command line are
//! therefore compiled to temporary objects first.

use super::command::MARK;
use super::error::RecordError;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

const PROBE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tsan.o"));

/// Which compiler is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `$CC`, or `cc`.
    C,
    /// `$CXX`, or `c++`.
    Cpp,
}

/// Functions whose calls go through the probe; see `probe/tsan/library.rs`.
const WRAPPED: &[&str] = &[
    "memcpy",
    "memmove",
    "mempcpy",
    "memset",
    "memcmp",
    "memchr",
    "strlen",
    "strnlen",
    "strcmp",
    "strncmp",
    "strcpy",
    "strncpy",
    "strcat",
    "strchr",
    "strrchr",
    "strdup",
    "mmap",
    "munmap",
    "madvise",
    "pthread_join",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_barrier_wait",
    "sem_wait",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "read",
    "poll",
    "epoll_wait",
    "accept",
    "recv",
    "nanosleep",
    "usleep",
    "sleep",
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "free",
    "execve",
    "execv",
    "execvp",
    "execvpe",
    "execl",
    "execlp",
    "execle",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "popen",
    "wait",
    "waitpid",
    "_Znwm",
    "_Znam",
    "_ZnwmSt11align_val_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
];

/// Options of a compiler that take the next word as their value.
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
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
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
];

const SOURCES: &[&str] = &[
    "c", "i", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii", "m", "mm",
];

/// Contents of a compiler command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    /// Places of the source files.
    sources: Vec<usize>,
    /// It stops before linking (`-c`, `-S`, `-E` and the like).
    compiles_only: bool,
    /// It makes a shared library, which gets the probe from the program that loads it.
    shared: bool,
    /// It only asks the compiler something.
    asks: bool,
    /// An option of `-o`, the language or the linker for which compiling sources one by one needs care.
    output: Option<usize>,
    link_time: bool,
}

fn parse(args: &[OsString]) -> Line {
    let mut line = Line::default();
    let mut at = 0;
    while at < args.len() {
        let word = args[at].to_string_lossy();
        match &*word {
            "-c" | "-S" | "-E" | "-M" | "-MM" | "-fsyntax-only" => line.compiles_only = true,
            "-shared" => line.shared = true,
            "-r" => line.shared = true,
            "-o" => line.output = Some(at),
            "--version" | "-v" | "--help" | "-dumpversion" | "-dumpmachine" | "-###" => {
                line.asks = true
            }
            _ if word.starts_with("-print-") => line.asks = true,
            _ if word.starts_with("-flto") => line.link_time = true,
            "-fno-lto" => line.link_time = false,
            _ if !word.starts_with('-')
                && Path::new(&*word)
                    .extension()
                    .is_some_and(|end| SOURCES.iter().any(|source| end == *source)) =>
            {
                line.sources.push(at);
            }
            _ => {}
        }
        at += if WITH_VALUE.contains(&&*word) { 2 } else { 1 };
    }
    line
}

/// Runs the compiler with `args`, as the user would have run it.
///
/// # Errors
/// The compiler does not exist, or the command line asks for link-time optimization, which drops the probe's calls.
/// Errors in the program are the compiler's to report: they come back in its exit status.
pub fn compile(language: Language, args: &[OsString]) -> Result<ExitStatus, RecordError> {
    if PROBE.is_empty() {
        return Err(RecordError::Host);
    }
    let compiler = Compiler::find(language)?;
    let line = parse(args);
    if line.link_time {
        return Err(RecordError::Compiler(
            "link-time optimization (-flto) would lose the recorded accesses; leave it away".into(),
        ));
    }
    let nothing_to_link = line.sources.is_empty() && !args.iter().any(|arg| is_link_input(arg));
    if line.compiles_only {
        return compiler.run(
            compiler
                .instrument
                .iter()
                .map(OsString::from)
                .chain(args.iter().cloned()),
        );
    }
    if nothing_to_link || (line.asks && line.sources.is_empty()) {
        return compiler.run(args.iter().cloned());
    }
    let io = |source| RecordError::Io {
        path: std::env::temp_dir(),
        source,
    };
    let folder = tempfile::Builder::new()
        .prefix("varve-cc-")
        .tempdir()
        .map_err(io)?;
    let mut link_args = args.to_vec();
    for (number, &place) in line.sources.iter().enumerate() {
        let object = folder.path().join(format!("{number}.o"));
        let status = compiler.run(compile_args(&compiler, args, &line, place, &object))?;
        if !status.success() {
            return Ok(status);
        }
        link_args[place] = object.into();
    }
    let probe = folder.path().join("varve-probe.o");
    std::fs::write(&probe, PROBE).map_err(io)?;
    compiler.run(link_line(link_args, &probe, line.shared))
}

/// The words that compile one source of a linking command line to an object.
fn compile_args(
    compiler: &Compiler,
    args: &[OsString],
    line: &Line,
    source: usize,
    object: &Path,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = compiler.instrument.iter().map(OsString::from).collect();
    for (at, word) in args.iter().enumerate() {
        let is_output = line
            .output
            .is_some_and(|output| at == output || at == output + 1);
        let other_input = at != source
            && (line.sources.contains(&at) || is_link_input(word) || is_link_option(args, at));
        if !is_output && !other_input {
            words.push(word.clone());
        }
    }
    words.extend(["-c".into(), "-o".into(), object.into()]);
    words
}

/// Objects and libraries.
fn is_link_input(word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    !text.starts_with('-') && (text.ends_with(".o") || text.ends_with(".a") || text.contains(".so"))
}

/// Options of the linker, of which a compiler that only compiles would complain.
fn is_link_option(args: &[OsString], at: usize) -> bool {
    let text = args[at].to_string_lossy();
    let value_of_one = at > 0
        && matches!(
            &*args[at - 1].to_string_lossy(),
            "-l" | "-L" | "-Xlinker" | "-T" | "-z" | "-u"
        );
    let takes_value = matches!(
        &*text,
        "-l" | "-L" | "-Xlinker" | "-T" | "-z" | "-u" | "-shared" | "-static" | "-rdynamic" | "-r"
    );
    value_of_one
        || takes_value
        || text.starts_with("-l")
        || text.starts_with("-L")
        || text.starts_with("-Wl,")
}

/// The linking words, with the probe and the wrapped functions.
fn link_line(mut args: Vec<OsString>, probe: &Path, shared: bool) -> Vec<OsString> {
    if shared {
        return args;
    }
    // the language of later inputs is the linker's again
    args.extend(["-x".into(), "none".into(), probe.into()]);
    args.extend(
        WRAPPED
            .iter()
            .map(|name| OsString::from(format!("-Wl,--wrap={name}"))),
    );
    args.push("-Wl,--export-dynamic-symbol=__tsan_*".into());
    args.push("-pthread".into());
    args
}

struct Compiler {
    command: PathBuf,
    /// Words before the others in the variable, such as `ccache gcc` or `gcc -m64`.
    own_args: Vec<OsString>,
    /// Options that make it call the probe before every access.
    instrument: Vec<&'static str>,
}

impl Compiler {
    fn find(language: Language) -> Result<Compiler, RecordError> {
        let (variable, standard) = match language {
            Language::C => ("CC", "cc"),
            Language::Cpp => ("CXX", "c++"),
        };
        let value = std::env::var(variable).unwrap_or_default();
        let mut words = value.split_whitespace();
        let command = words.next().unwrap_or(standard);
        let own_args: Vec<OsString> = words.map(OsString::from).collect();
        let version = Command::new(command)
            .args(&own_args)
            .arg("--version")
            .output()
            .map_err(|_| {
                RecordError::Compiler(format!(
                    "there is no compiler `{command}`; install gcc or clang, or set {variable}"
                ))
            })?;
        let is_clang = String::from_utf8_lossy(&version.stdout).contains("clang");
        let mut instrument = vec!["-fsanitize=thread"];
        if is_clang {
            // by default it leaves out the read of a place that is written just after
            instrument.extend(["-mllvm", "-tsan-instrument-read-before-write"]);
        }
        Ok(Compiler {
            command: command.into(),
            own_args,
            instrument,
        })
    }

    fn run(&self, args: impl IntoIterator<Item = OsString>) -> Result<ExitStatus, RecordError> {
        Command::new(&self.command)
            .args(&self.own_args)
            .args(args)
            .status()
            .map_err(|source| RecordError::Io {
                path: self.command.clone(),
                source,
            })
    }
}

const _: () = assert!(MARK.len() > 1);

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn sources_are_told_from_values_of_options() {
        let line = parse(&words(
            "-O2 -include first.c -o out.c main.c part.cpp lib.o -lm",
        ));
        assert_eq!(line.sources, [5, 6]);
        assert_eq!(line.output, Some(3));
        assert!(!line.compiles_only);
    }

    #[test]
    fn one_source_of_a_linking_line_is_compiled_without_the_others_and_the_linkers_words() {
        let args = words("-O2 a.c b.c -L . -lm -Wl,-s lib.a -o prog");
        let compiler = Compiler {
            command: "cc".into(),
            own_args: vec![],
            instrument: vec!["-fsanitize=thread"],
        };
        let words_of_b = compile_args(&compiler, &args, &parse(&args), 2, Path::new("t/1.o"));
        assert_eq!(words_of_b, words("-fsanitize=thread -O2 b.c -c -o t/1.o"));
    }

    #[test]
    fn shared_libraries_get_the_probe_from_their_program() {
        assert_eq!(
            link_line(words("-shared 0.o"), Path::new("probe.o"), true),
            words("-shared 0.o")
        );
        let linked = link_line(words("0.o"), Path::new("probe.o"), false);
        assert!(linked.contains(&"-Wl,--wrap=malloc".into()) && linked.contains(&"probe.o".into()));
    }
}
