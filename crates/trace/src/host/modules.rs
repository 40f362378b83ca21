//! Which file an instruction's address belongs to, and the name of the function there.

use crate::CallSite;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::HashMap;

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
    functions: Vec<(u64, u64, String)>,
    /// Loaded segments: offset in the file, length there, virtual address.
    segments: Vec<(u64, u64, u64)>,
}

/// Names return addresses. Reads each file once, when one of its addresses is first asked for.
#[derive(Default)]
pub(super) struct Modules {
    text_read: usize,
    modules: Vec<Module>,
    symbols: HashMap<String, Option<Symbols>>,
}

impl Modules {
    /// Takes in the text that the probe has written, in the form of /proc/PID/maps; what was read before is skipped.
    pub fn update(&mut self, text: &str) {
        for line in text.get(self.text_read..).unwrap_or_default().lines() {
            let mut words = line.split_ascii_whitespace();
            let range = words.next().and_then(|range| range.split_once('-'));
            let (Some((start, end)), Some(offset)) = (range, words.nth(1)) else {
                continue;
            };
            let path: Vec<&str> = words.skip(2).collect();
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            if let (Some(start), Some(end), Some(offset)) =
                (number(start), number(end), number(offset))
            {
                self.modules.push(Module {
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

    fn find(&self, address: u64) -> Option<&Module> {
        // the newest mapping wins where several were at the same place
        self.modules
            .iter()
            .rev()
            .find(|module| (module.start..module.end).contains(&address))
    }

    /// The place of an address in its file.
    pub fn site(&mut self, address: u64) -> CallSite {
        let Some(module) = self.find(address) else {
            return CallSite {
                module: String::new(),
                offset: address,
                symbol: None,
            };
        };
        let (path, offset) = (module.path.clone(), address - module.start + module.offset);
        let symbols = self
            .symbols
            .entry(path.clone())
            .or_insert_with(|| Symbols::read(&path));
        let symbol = symbols.as_ref().and_then(|symbols| symbols.name(offset));
        CallSite {
            module: path,
            offset,
            symbol,
        }
    }
}

impl Symbols {
    fn read(path: &str) -> Option<Symbols> {
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
            "1000-3000 r-xp 00000000 00:00 5 /old file\n2000-3000 r-xp 00004000 00:00 6 /new\n",
        );
        assert_eq!(modules.site(0x2010).to_string(), "new+0x4010");
        assert_eq!(modules.site(0x1010).module, "/old file");
        assert_eq!(modules.site(0x9000).to_string(), "0x9000");
    }

    #[test]
    fn an_address_in_this_test_has_its_name() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut modules = Modules::default();
        modules.update(
            &maps
                .lines()
                .filter(|line| line.contains('/'))
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        );
        let site = modules.site(an_address_in_this_test_has_its_name as *const () as usize as u64);
        assert!(site.to_string().contains("has_its_name"), "{site}");
    }
}
