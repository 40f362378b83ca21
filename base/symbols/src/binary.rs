//! A program or library: its functions, and the names of frames in it.

use std::path::Path;
use std::sync::Arc;

use gimli::{EndianArcSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::elf::{build_id, name, parse, read};
use crate::{SymbolsError, debug, demangle};
use varve_sites::native::{Frame, Inlined};

/// A function of the symbol table.
struct Function {
    start: u64,
    bytes: u64,
    /// As the linker knows it.
    name: String,
}

/// A loaded piece of a file: bytes of the file, and the address of the first.
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
    is_code: bool,
}

/// A program or library, read once for all its frames.
pub struct Binary {
    name: String,
    build_id: String,
    segments: Vec<Segment>,
    /// By address.
    functions: Vec<Function>,
    lines: Option<addr2line::Context<EndianArcSlice<RunTimeEndian>>>,
}

impl Binary {
    /// Reads a program or library, and its separate debug file if there is one.
    ///
    /// # Errors
    /// It cannot be read or is no ELF file. Without symbols or DWARF it is read all the same.
    pub fn read(path: &Path) -> Result<Binary, SymbolsError> {
        let bytes = read(path)?;
        let file = parse(path, &bytes)?;
        let (mut functions, mut lines) = (functions(&file), lines(&file));
        if lines.is_none()
            && let Some(bytes) = debug::find(path, &file)
            && let Ok(debug) = object::File::parse(&*bytes)
        {
            functions.extend(self::functions(&debug));
            lines = self::lines(&debug);
        }
        // of several names at one place the last is taken
        functions
            .sort_unstable_by(|a, b| (a.start, a.bytes, &a.name).cmp(&(b.start, b.bytes, &b.name)));
        let segments = file.segments().map(|segment| Segment {
            offset: segment.file_range().0,
            bytes: segment.file_range().1,
            address: segment.address(),
            is_code: matches!(segment.flags(), object::SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0),
        });
        Ok(Binary {
            name: name(path),
            build_id: build_id(&file),
            segments: segments.collect(),
            functions,
            lines,
        })
    }

    /// The build id in hexadecimal digits; empty if there is none.
    pub fn build_id(&self) -> &str {
        &self.build_id
    }

    /// The address (link-time) of a byte of the file, if it is loaded.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let holds = |s: &&Segment| offset >= s.offset && offset - s.offset < s.bytes;
        let segment = self.segments.iter().find(holds)?;
        Some(offset - segment.offset + segment.address)
    }

    /// The functions of this name (demangled): where each begins, and its bytes. Several names of one place are one.
    pub fn functions_named(&self, name: &str) -> Vec<(u64, u64)> {
        let named = self.functions.iter().filter(|f| demangle(&f.name) == name);
        let mut all: Vec<(u64, u64)> = named.map(|f| (f.start, f.bytes)).collect();
        all.dedup_by_key(|f| f.0);
        all
    }

    /// Does it lack function names?
    pub fn is_stripped(&self) -> bool {
        self.functions.is_empty() && self.lines.is_none()
    }

    /// The offset to add to link-time addresses where the file is mapped at `start`, from `offset` in the file on. `None` if
    /// this mapping does not determine it: code does, and so does the file's beginning.
    pub fn base(&self, start: u64, offset: u64) -> Option<u64> {
        let page = |at: u64| at & !0xfff;
        let begins = |s: &&Segment| page(s.offset) == offset && (s.is_code || offset == 0);
        let segment = self.segments.iter().find(begins)?;
        Some(start.wrapping_sub(page(segment.address)))
    }

    /// The function of the symbol table at an address (link-time), as the linker knows it, and where it begins.
    pub fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.functions.partition_point(|f| f.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (address - function.start < function.bytes.max(1))
            .then_some((&function.name, function.start))
    }

    /// The frame of a return address (link-time). The call is just before it, perhaps in another line and even in
    /// another function.
    pub fn frame(&self, return_address: u64) -> Frame {
        let call = return_address.saturating_sub(1);
        let mut inlined = self.inlined(call);
        // the last one has the others inside
        let outer = inlined.pop().unwrap_or_default();
        let symbol = self.symbol(call);
        let within = symbol.map(|(_, start)| return_address - start);
        let symbol = symbol.map(|(name, _)| demangle(name));
        let function = symbol.or((!outer.function.is_empty()).then_some(outer.function));
        Frame {
            module: self.name.clone(),
            build_id: self.build_id.clone(),
            offset: return_address,
            function,
            within,
            line: outer.line,
            inlined,
        }
    }

    /// The functions at an address, the innermost first, as DWARF tells them.
    fn inlined(&self, address: u64) -> Vec<Inlined> {
        let mut found = Vec::new();
        let Some(Ok(mut frames)) = self
            .lines
            .as_ref()
            .map(|lines| lines.find_frames(address).skip_all_loads())
        else {
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame
                .function
                .as_ref()
                .and_then(|f| f.raw_name().ok().map(|name| demangle(&name)));
            let line = frame.location.and_then(|location| {
                let file = location.file?.rsplit('/').next()?;
                Some(format!(
                    "{file}:{}",
                    location.line.filter(|&line| line > 0)?
                ))
            });
            found.push(Inlined {
                function: function.unwrap_or_default(),
                line,
            });
        }
        // functions without a name say nothing, unless it is the one that has the others inside
        let last = found.len().saturating_sub(1);
        let mut number = 0;
        found.retain(|frame| {
            number += 1;
            number > last || !frame.function.is_empty()
        });
        found
    }
}

fn functions(file: &object::File) -> Vec<Function> {
    let all = file.symbols().chain(file.dynamic_symbols());
    all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            Some(Function {
                start: symbol.address(),
                bytes: symbol.size(),
                name: symbol.name().ok()?.into(),
            })
        })
        .collect()
}

fn lines(file: &object::File) -> Option<addr2line::Context<EndianArcSlice<RunTimeEndian>>> {
    file.section_by_name(".debug_info")
        .filter(|section| section.size() > 0)?;
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let section = file.section_by_name(id.name());
        // one that is compressed or not there is empty
        let bytes = section.and_then(|section| section.uncompressed_data().ok());
        Ok(EndianArcSlice::new(
            Arc::from(&*bytes.unwrap_or_default()),
            endian,
        ))
    };
    addr2line::Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles a program; `None`, and says so, where there is no compiler.
    pub(crate) fn compile(
        compiler: &str,
        options: &[&str],
        source: &str,
        ending: &str,
    ) -> Option<(tempfile::TempDir, std::path::PathBuf)> {
        let folder = tempfile::tempdir().unwrap();
        let (text, program) = (
            folder.path().join(format!("program{ending}")),
            folder.path().join("program"),
        );
        std::fs::write(&text, source).unwrap();
        let compiled = std::process::Command::new(compiler)
            .args(options)
            .arg("-o")
            .arg(&program)
            .arg(&text)
            .status();
        match compiled {
            Ok(status) => {
                assert!(status.success());
                Some((folder, program))
            }
            Err(_) => {
                varve_skip::skip!("needs {compiler}");
                None
            }
        }
    }

    const SOURCE: &str = "
#include <cstdlib>
namespace shop {
struct Row { long cells[8]; };
__attribute__((noinline)) void *take(std::size_t bytes) { return std::malloc(bytes); }
static inline void *twice(int rows) {
    return take(2 * rows * sizeof(Row)); // line 7
}
__attribute__((noinline)) void *order(int rows) {
    void *all = twice(rows);             // line 10
    static_cast<Row *>(all)->cells[0] = 1;
    return all;
}
}
char table[40000], small[100];
int main(int argc, char **) { return shop::order(argc) == nullptr; }
";

    /// The return address behind the first call in a function.
    fn first_call(program: &Path, function: &str) -> u64 {
        let text = std::process::Command::new("objdump")
            .args(["-d", "--no-show-raw-insn"])
            .arg(program)
            .output()
            .unwrap();
        let text = String::from_utf8(text.stdout).unwrap();
        let mut lines = text
            .lines()
            .skip_while(|line| !line.contains(&format!("<{function}>:")));
        lines.find(|line| line.contains("call")).expect("a call");
        let next = lines.next().unwrap();
        u64::from_str_radix(next.split(':').next().unwrap().trim(), 16).unwrap()
    }

    #[test]
    fn a_call_in_an_inlined_function_has_both_functions_and_both_lines() {
        // Distributions pack their debug information.
        for options in [&["-O2", "-g"][..], &["-O2", "-g", "-gz"]] {
            let Some((_folder, program)) = compile("g++", options, SOURCE, ".cc") else {
                return;
            };
            let binary = Binary::read(&program).unwrap();
            let frame = binary.frame(first_call(&program, "_ZN4shop5orderEi"));
            assert_eq!(frame.function.as_deref(), Some("shop::order(int)"));
            assert_eq!(frame.line.as_deref(), Some("program.cc:10"), "{options:?}");
            assert_eq!(frame.inlined.len(), 1, "{frame:?}");
            assert_eq!(
                varve_sites::native::names::bare(&frame.inlined[0].function),
                "twice"
            );
            assert_eq!(frame.inlined[0].line.as_deref(), Some("program.cc:7"));
            assert_eq!((&frame.module[..], frame.build_id.len()), ("program", 40));
        }
    }

    #[test]
    fn without_dwarf_the_symbol_table_names_functions_and_without_that_nobody_does() {
        let Some((_folder, program)) = compile("g++", &["-O2"], SOURCE, ".cc") else {
            return;
        };
        let at = first_call(&program, "_ZN4shop5orderEi");
        let frame = Binary::read(&program).unwrap().frame(at);
        assert_eq!(frame.function.as_deref(), Some("shop::order(int)"));
        assert_eq!((frame.line, frame.inlined), (None, Vec::new()));
        assert!(
            std::process::Command::new("strip")
                .arg(&program)
                .status()
                .unwrap()
                .success()
        );
        let frame = Binary::read(&program).unwrap().frame(at);
        assert_eq!((frame.function, frame.offset), (None, at));
    }

    #[test]
    fn a_debug_file_that_the_program_names_has_the_lines() {
        let Some((folder, program)) = compile("g++", &["-O2", "-g"], SOURCE, ".cc") else {
            return;
        };
        let at = first_call(&program, "_ZN4shop5orderEi");
        let whole = Binary::read(&program).unwrap().frame(at);
        let run = |words: &[&str]| {
            let status = std::process::Command::new("objcopy")
                .current_dir(folder.path())
                .args(words)
                .status();
            assert!(status.unwrap().success());
        };
        run(&["--only-keep-debug", "program", "program.debug"]);
        run(&[
            "--strip-all",
            "--add-gnu-debuglink=program.debug",
            "program",
        ]);
        let frame = Binary::read(&program).unwrap().frame(at);
        assert_eq!(
            (&frame.function, &frame.line),
            (&whole.function, &whole.line)
        );
        assert_eq!(frame.inlined, whole.inlined);
        // one that is of another build is not taken
        std::fs::write(folder.path().join("program.debug"), "other").unwrap();
        assert_eq!(Binary::read(&program).unwrap().frame(at).line, None);
    }

    #[test]
    fn large_static_variables_are_told_with_their_place_and_size() {
        let Some((_folder, program)) = compile("g++", &["-O2"], SOURCE, ".cc") else {
            return;
        };
        let all = crate::statics(&program).unwrap();
        let table: Vec<_> = all.iter().filter(|s| s.symbol == "table").collect();
        assert_eq!(table.len(), 1);
        assert!(table[0].bytes == 40000 && table[0].address > 0);
        assert!(all.iter().all(|s| s.symbol != "small"));
    }

    #[test]
    fn what_is_no_program_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        std::fs::write(&text, "hello").unwrap();
        for path in [
            &text,
            &folder.path().join("none"),
            &folder.path().to_path_buf(),
        ] {
            let error = Binary::read(path).err().expect("no program").to_string();
            assert!(
                error.starts_with(&path.display().to_string()) && !error.contains('\n'),
                "{error}"
            );
        }
    }
}
