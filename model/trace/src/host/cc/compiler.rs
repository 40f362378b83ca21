//! The compiler that stands behind `varve cc`.

use super::super::error::RecordError;
use super::super::record::IgnoreInterrupt;
use super::Language;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::{fs, io};

pub(super) type Words = Vec<OsString>;

/// Set for the compilers that we start: one that has it and is `varve cc` says [`ITSELF`] and ends.
const STARTED: &str = "VARVE_CC";
const ITSELF: &str = "varve cc, started by varve cc";

/// An archive with nothing in it.
const EMPTY: &[u8] = b"!<arch>\n";

pub(super) struct Compiler {
    /// The command, and words before all others, such as those of `ccache gcc` or `gcc -m64`.
    command: OsString,
    own_args: Words,
    is_clang: bool,
}

impl Compiler {
    /// The compiler that the environment names, or the usual one where that is `varve cc` itself.
    pub fn find(language: Language) -> Result<Compiler, RecordError> {
        if std::env::var_os(STARTED).is_some() {
            println!("{ITSELF}");
            return Err(RecordError::Compiler(format!("this is {ITSELF}")));
        }
        let (variable, usual) = match language {
            Language::C => ("CC", "cc"),
            Language::Cpp => ("CXX", "c++"),
        };
        let value = std::env::var(variable).unwrap_or_default();
        let chosen: Vec<&str> = value.split_whitespace().collect();
        for words in [&chosen[..], &[usual]] {
            let Some((command, own_args)) = words.split_first() else {
                continue;
            };
            let version = Command::new(command)
                .args(own_args)
                .arg("--version")
                .env(STARTED, "1")
                .stdin(Stdio::null())
                .output()
                .map_err(|_| {
                    RecordError::Compiler(format!(
                        "there is no compiler `{command}`; install gcc or clang, or set {variable}"
                    ))
                })?;
            let version = String::from_utf8_lossy(&version.stdout);
            // CMake sets the variable to our command without the word after it.
            let itself = version.contains(ITSELF) || version.starts_with("varve ");
            if !itself {
                return Ok(Compiler {
                    command: command.into(),
                    own_args: own_args.iter().map(OsString::from).collect(),
                    is_clang: version.contains("clang"),
                });
            }
        }
        Err(RecordError::Compiler(format!(
            "`{usual}` is varve cc itself; set {variable} to the compiler that it is to start"
        )))
    }

    pub fn own_args(&self) -> &[OsString] {
        &self.own_args
    }

    /// Words that make it call the probe before every access.
    pub fn instrumented(&self) -> Words {
        let words: &[&str] = match self.is_clang {
            // By default it leaves out the read of a place that is written just after.
            true => &[
                "-fsanitize=thread",
                "-mllvm",
                "-tsan-instrument-read-before-write",
            ],
            false => &["-fsanitize=thread"],
        };
        words.iter().map(OsString::from).collect()
    }

    /// Words that keep the sanitizer's runtime out of what is linked.
    pub fn without_runtime(&self, folder: &Path) -> io::Result<Words> {
        if self.is_clang {
            return Ok(vec!["-fno-sanitize-link-runtime".into()]);
        }
        for name in ["libtsan.a", "libtsan_preinit.o"] {
            fs::write(folder.join(name), EMPTY)?;
        }
        Ok(vec!["-B".into(), folder.into()])
    }

    /// Words for a shared library that may have no undefined functions (`-z defs`): a library with functions of these names, under
    /// the name of one that comes with every C library. It cannot be the C library's own name: the linker would take it for that.
    pub fn stub(&self, folder: &Path, names: &[String]) -> Words {
        let [source, stub] = ["varve-probe.s", "libvarve-probe.so"].map(|name| folder.join(name));
        let function = |name: &String| format!(".globl {name}\n.type {name}, @function\n{name}:\n");
        let text: String = names.iter().map(function).collect();
        let made = fs::write(&source, text).and_then(|()| {
            Command::new(&self.command)
                .args(&self.own_args)
                .args(["-shared", "-nostdlib", "-Wl,-soname,libdl.so.2", "-o"])
                .args([&stub, &source])
                .env(STARTED, "1")
                .stderr(Stdio::null())
                .status()
        });
        match made {
            Ok(status) if status.success() => vec!["-x".into(), "none".into(), stub.into()],
            // The linker says what it misses, if it does.
            _ => Words::new(),
        }
    }

    pub fn run(&self, args: Words) -> Result<ExitStatus, RecordError> {
        let error = |source| RecordError::Io {
            path: self.command.clone().into(),
            source,
        };
        let mut child = Command::new(&self.command)
            .args(&self.own_args)
            .args(args)
            .env(STARTED, "1")
            .spawn()
            .map_err(error)?;
        // Ctrl-C ends the compiler; our files go after it.
        let _quiet = IgnoreInterrupt::new();
        child.wait().map_err(error)
    }
}
