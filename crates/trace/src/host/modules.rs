//! Which file an instruction's address belongs to, and the name of the function there.

use crate::{CallSite, arch};
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::HashMap;
use std::os::unix::fs::FileExt;

/// A file mapped into the program.
struct Module {
    start: u64,
    end: u64,
    /// Offset in the file of the byte at `start`.
    offset: u64,
    path: String,
}

/// Functions of a file, sorted by address.
struct Symbols {
    file: std::fs::File,
    functions: Vec<(u64, u64, String)>,
    /// Loaded segments: offset in the file, length there, virtual address.
    segments: Vec<(u64, u64, u64)>,
}

/// Names return addresses. Reads each file once, when one of its addresses is first asked for.
#[derive(Default)]
pub(super) struct Modules {
    text_read: usize,
    /// By process; what was mapped last comes last.
    modules: HashMap<u32, Vec<Module>>,
    symbols: HashMap<String, Option<Symbols>>,
}

impl Modules {
    /// Takes in the text that the probe has written, in the form of /proc/PID/maps with the number of the process before
    /// each line; what was read before is skipped.
    pub fn update(&mut self, text: &str) {
        for line in text.get(self.text_read..).unwrap_or_default().lines() {
            let mut words = line.split_ascii_whitespace();
            let process = words.next().and_then(|word| word.parse().ok());
            let range = words.next().and_then(|range| range.split_once('-'));
            let (Some((start, end)), Some(offset)) = (range, words.nth(1)) else {
                continue;
            };
            let path: Vec<&str> = words.skip(2).collect();
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            if let (Some(process), Some(start), Some(end), Some(offset)) =
                (process, number(start), number(end), number(offset))
            {
                self.modules.entry(process).or_default().push(Module {
                    start,
                    end,
                    offset,
                    path: path.join(" "),
                });
            }
        }
        self.text_read = text.len();
    }

    /// Bytes of text that were taken in.
    pub fn text_read(&self) -> usize {
        self.text_read
    }

    fn find(&self, process: u32, address: u64) -> Option<&Module> {
        // the newest mapping wins where several were at the same place
        let mut newest = self.modules.get(&process)?.iter().rev();
        newest.find(|module| (module.start..module.end).contains(&address))
    }

    fn symbols(&mut self, path: &str) -> Option<&Symbols> {
        if !self.symbols.contains_key(path) {
            self.symbols.insert(path.into(), Symbols::read(path));
        }
        self.symbols.get(path)?.as_ref()
    }

    /// The place of a call in its file, and of the calls that led there, the innermost first: as many as return
    /// addresses that follow a call instruction.
    pub fn site(&mut self, process: u32, callers: &[u64]) -> CallSite {
        let (&first, others) = callers.split_first().unwrap_or((&0, &[]));
        let mut site = self.one(process, first).unwrap_or(CallSite {
            offset: first,
            ..CallSite::default()
        });
        for &address in others {
            match self.one(process, address) {
                Some(caller) if self.follows_call(&caller) => site.callers.push(caller),
                _ => break,
            }
        }
        site
    }

    /// The place of an address in its file.
    fn one(&mut self, process: u32, address: u64) -> Option<CallSite> {
        let module = self.find(process, address)?;
        let (path, offset) = (module.path.clone(), address - module.start + module.offset);
        let symbol = self.symbols(&path).and_then(|symbols| symbols.name(offset));
        Some(CallSite {
            module: path,
            offset,
            symbol,
            callers: Vec::new(),
        })
    }

    /// Is there a call instruction just before?
    fn follows_call(&mut self, site: &CallSite) -> bool {
        let Some(symbols) = self.symbols(&site.module) else {
            return false;
        };
        let mut before = [0; arch::CALL_BYTES];
        let Some(start) = site.offset.checked_sub(before.len() as u64) else {
            return false;
        };
        if symbols.file.read_exact_at(&mut before, start).is_err() {
            return false;
        }
        arch::ends_in_call(&before)
    }
}

impl Symbols {
    fn read(path: &str) -> Option<Symbols> {
        let opened = std::fs::File::open(path).ok()?;
        // devices and the like have no bytes to wait for
        opened.metadata().ok().filter(|meta| meta.is_file())?;
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let mut functions: Vec<(u64, u64, String)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| {
                Some((
                    symbol.address(),
                    symbol.size(),
                    symbol.name().ok()?.to_string(),
                ))
            })
            .collect();
        functions.sort_unstable();
        let segments = file
            .segments()
            .map(|segment| {
                (
                    segment.file_range().0,
                    segment.file_range().1,
                    segment.address(),
                )
            })
            .collect();
        Some(Symbols {
            file: opened,
            functions,
            segments,
        })
    }

    fn name(&self, offset: u64) -> Option<String> {
        let (start, _, address) = self
            .segments
            .iter()
            .find(|(start, length, _)| (*start..start + length).contains(&offset))?;
        let address = offset - start + address;
        let after = self
            .functions
            .partition_point(|function| function.0 <= address);
        let (from, size, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < from + (*size).max(1)).then(|| format!("{name}+{:#x}", address - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_mapping_at_an_address_names_it() {
        let mut modules = Modules::default();
        modules.update(
            "0 1000-3000 r-xp 00000000 00:00 5 /old file\n0 2000-3000 r-xp 00004000 00:00 6 /new\n",
        );
        assert_eq!(modules.site(0, &[0x2010]).to_string(), "new+0x4010");
        assert_eq!(modules.site(0, &[0x1010]).module, "/old file");
        assert_eq!(modules.site(0, &[0x9000]).to_string(), "0x9000");
    }

    #[test]
    fn an_address_in_this_test_has_its_name() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut modules = Modules::default();
        modules.update(
            &maps
                .lines()
                .filter(|line| line.contains('/'))
                .map(|line| format!("0 {line}\n"))
                .collect::<String>(),
        );
        let site = modules.site(
            0,
            &[an_address_in_this_test_has_its_name as *const () as usize as u64],
        );
        assert!(site.to_string().contains("has_its_name"), "{site}");
    }
}
