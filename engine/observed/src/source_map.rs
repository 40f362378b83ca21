//! Source lines of a WebAssembly module, from the source map beside it (ECMA-426, which compilers to WebAssembly write, too): TeaVM does with
//! `sourceMapsGenerated`, Kotlin and Dart by themselves.
//!
//! A map's columns are offsets in the module, all in its first line.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use wasmparser::{Parser, Payload};

/// Where code of a module comes from.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// Names of files, without folders.
    files: Vec<String>,
    /// The offset from which code belongs to a file and line (from 1); none if the source is unknown. In order.
    places: Vec<(u64, Option<(u32, u32)>)>,
    /// Where functions begin, ascending. Generated code without a source must not inherit the source of the function before it.
    functions: Vec<u64>,
}

#[derive(Deserialize)]
struct File {
    version: u32,
    sources: Vec<Option<String>>,
    mappings: String,
}

impl SourceMap {
    /// The map of the module in `file`: the one that the module names, if it is a file, or else `FILE.map`. `None` if there is none.
    ///
    /// # Errors
    /// It is damaged, in a line that names it.
    pub fn of(file: &Path, module: &[u8]) -> Result<Option<SourceMap>, String> {
        let mut beside = file.as_os_str().to_owned();
        beside.push(".map");
        let (name, functions) = look_into(module);
        let named = name.and_then(|name| Some(file.parent()?.join(name)));
        for path in named.into_iter().chain([PathBuf::from(beside)]) {
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let map = SourceMap::parse(&text);
                    let map = map.map(|map| SourceMap { functions, ..map });
                    return map.map(Some).map_err(|e| {
                        format!(
                            "{}: not a source map of a module: {e}; remove it, or build the module anew",
                            path.display()
                        )
                    });
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(format!("{}: {e}", path.display())),
            }
        }
        Ok(None)
    }

    /// Reads a map.
    ///
    /// # Errors
    /// A message.
    pub fn parse(text: &str) -> Result<SourceMap, String> {
        let file: File = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if file.version != 3 {
            return Err(format!("version {} and not 3", file.version));
        }
        let without_folders = |source: &Option<String>| {
            let source = source.as_deref().unwrap_or("");
            source.rsplit('/').next().unwrap_or(source).to_string()
        };
        let mut map = SourceMap {
            files: file.sources.iter().map(without_folders).collect(),
            places: Vec::new(),
            functions: Vec::new(),
        };
        // Offset, file, line: each as the difference to the one before.
        let (mut at, mut source, mut line) = (0i64, 0i64, 0i64);
        let code = file.mappings.split(';').next().unwrap_or("");
        for segment in code.split(',').filter(|s| !s.is_empty()) {
            let numbers = numbers(segment).ok_or_else(|| format!("`{segment}` in `mappings`"))?;
            let step = |i: usize| numbers.get(i).copied().unwrap_or(0);
            (at, source, line) = (at + step(0), source + step(1), line + step(2));
            let known = numbers.len() >= 4;
            let number = |n: i64| u32::try_from(n).map_err(|_| format!("{n} in `{segment}`"));
            let (file, line) = (number(source)?, number(line)?);
            let is_file = map
                .files
                .get(file as usize)
                .is_some_and(|f| f.contains('.'));
            if known && file as usize >= map.files.len() {
                return Err(format!("source {file} of {}", map.files.len()));
            }
            let at = u64::try_from(at).map_err(|_| format!("offset {at}"))?;
            map.places.push((
                at,
                (known && is_file).then_some((file, line.saturating_add(1))),
            ));
        }
        map.places.sort_by_key(|p| p.0);
        Ok(map)
    }

    /// File and line of the code at an offset of the module, such as `Engine.java:88`.
    pub fn line(&self, offset: u64) -> Option<String> {
        let before = self.functions.partition_point(|f| *f <= offset);
        let function = before.checked_sub(1).map_or(0, |i| self.functions[i]);
        let after = self.places.partition_point(|p| p.0 <= offset);
        let &(at, place) = self.places.get(after.checked_sub(1)?)?;
        let (file, line) = place.filter(|_| at >= function)?;
        Some(format!("{}:{line}", self.files[file as usize]))
    }
}

/// A module's `sourceMappingURL`, if that is a file name and no URL of a server or of data, and where its functions begin. Of a damaged module, those
/// before the damage.
fn look_into(module: &[u8]) -> (Option<String>, Vec<u64>) {
    let (mut name, mut functions) = (None, Vec::new());
    for payload in Parser::new(0).parse_all(module).map_while(Result::ok) {
        match payload {
            Payload::CodeSectionEntry(body) => functions.push(body.range().start),
            Payload::CustomSection(section) if section.name() == "sourceMappingURL" => {
                let mut text = wasmparser::BinaryReader::new(section.data(), 0);
                let text = text.read_string().ok().filter(|text| !text.contains(':'));
                name = name.or(text.map(String::from));
            }
            _ => {}
        }
    }
    (name, functions)
}

/// Numbers with signs of five bits in a letter.
fn numbers(segment: &str) -> Option<Vec<i64>> {
    let (mut all, mut number, mut shift) = (Vec::new(), 0u64, 0);
    for letter in segment.bytes() {
        let five = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        if shift > 30 {
            return None;
        }
        number |= u64::from(five & 31) << shift;
        shift += 5;
        if five & 32 == 0 {
            let value = (number >> 1) as i64;
            all.push(if number & 1 == 0 { value } else { -value });
            (number, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(mappings: &str) -> Result<SourceMap, String> {
        SourceMap::parse(&format!(
            r#"{{"version":3,"sources":["a/b/One.java","__ignore__","Two.kt",null],"names":[],"mappings":"{mappings}"}}"#
        ))
    }

    #[test]
    fn lines_hold_until_the_next_place() {
        // 10: One.java:5; 16: not known; 26: Two.kt:4; 27: ignored.
        let map = map("UAIA,M,UEDA,CDAA").unwrap();
        let line = |at| map.line(at);
        assert_eq!(line(9), None);
        assert_eq!(line(10).as_deref(), Some("One.java:5"));
        assert_eq!(line(15).as_deref(), Some("One.java:5"));
        assert_eq!(line(16), None);
        assert_eq!(line(26).as_deref(), Some("Two.kt:4"));
        assert_eq!(line(27), None);
        assert_eq!(line(u64::MAX), None);
    }

    #[test]
    fn numbers_have_signs_and_any_length() {
        assert_eq!(numbers("A"), Some(vec![0]));
        assert_eq!(numbers("CDgBhB"), Some(vec![1, -1, 16, -16]));
        assert_eq!(numbers("+/////D"), Some(vec![i64::from(i32::MAX)]));
    }

    #[test]
    fn what_is_no_map_is_refused() {
        assert!(SourceMap::parse("").is_err());
        assert!(SourceMap::parse("{\"version\":2,\"sources\":[],\"mappings\":\"\"}").is_err());
        for bad in [
            "g",
            "!",
            "UAIA,DDDDg",
            "AZAA",
            "DAAA",
            "AADA",
            "AIAA",
            "ggggggggggggggA",
        ] {
            assert!(map(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_compiler_made_up_is_on_no_line() {
        let mut map = map("UAIA,UEDA").unwrap();
        map.functions = vec![8, 14, 20];
        assert_eq!(map.line(13).as_deref(), Some("One.java:5"));
        assert_eq!(map.line(14), None, "another function began");
        assert_eq!(map.line(19), None);
        assert_eq!(map.line(20).as_deref(), Some("Two.kt:4"));
    }

    #[test]
    fn a_module_names_its_map_and_has_functions() {
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        assert_eq!(look_into(&module), (None, vec![]));
        // A type, a function of it, and its code, which does nothing.
        module.extend([1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 4, 1, 2, 0, 0x0b]);
        let code = module.len() as u64 - 2;
        module.push(0);
        let mut content = b"\x10sourceMappingURL".to_vec();
        content.extend(b"\x05x.map");
        module.push(content.len() as u8);
        module.extend(&content);
        assert_eq!(look_into(&module), (Some("x.map".into()), vec![code]));
        for cut in 0..module.len() {
            assert_eq!(look_into(&module[..cut]).0, None, "{cut}");
        }
    }
}
