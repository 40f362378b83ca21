//! Source lines of a WebAssembly module, from the source map beside it (ECMA-426, which compilers to WebAssembly write, too): TeaVM does with
//! `sourceMapsGenerated`, Kotlin and Dart by themselves.
//!
//! A map's columns are offsets in the module, all in its first line.

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Where code of a module comes from.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// Names of files, without folders.
    files: Vec<String>,
    /// From which offset on what comes from which file and line, counted from 1; none where nobody knows. In order.
    places: Vec<(u64, Option<(u32, u32)>)>,
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
        let named = named(module).and_then(|name| Some(file.parent()?.join(name)));
        for path in named.into_iter().chain([PathBuf::from(beside)]) {
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let map = SourceMap::parse(&text);
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
    /// What is wrong with it.
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

    /// File and line of what is at an offset of the module, such as `Engine.java:88`.
    pub fn line(&self, offset: u64) -> Option<String> {
        let after = self.places.partition_point(|p| p.0 <= offset);
        let (file, line) = self.places.get(after.checked_sub(1)?)?.1?;
        Some(format!("{}:{line}", self.files[file as usize]))
    }
}

/// What a module's `sourceMappingURL` says: a name, not a place on the net or data.
fn named(module: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"\x10sourceMappingURL";
    let mut rest = module.get(8..)?;
    while let Some((&id, after)) = rest.split_first() {
        let (bytes, after) = size(after)?;
        let section = after.get(..bytes)?;
        rest = &after[bytes..];
        if id == 0
            && let Some(text) = section.strip_prefix(NAME)
        {
            let (bytes, text) = size(text)?;
            let name = std::str::from_utf8(text.get(..bytes)?).ok()?;
            return (!name.contains(':')).then(|| name.to_string());
        }
    }
    None
}

/// A number of seven bits in a byte, and what is after it.
fn size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().take(5).position(|b| b & 0x80 == 0)?;
    let number = bytes[..=end].iter().rev();
    let number = number.fold(0u64, |n, b| n << 7 | u64::from(b & 0x7f));
    Some((usize::try_from(number).ok()?, &bytes[end + 1..]))
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
    fn a_module_names_its_map() {
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        assert_eq!(named(&module), None);
        // Another section before it.
        module.extend([1, 2, 7, 7]);
        let mut content = b"\x10sourceMappingURL".to_vec();
        content.extend(b"\x05x.map");
        module.push(0);
        module.push(content.len() as u8);
        module.extend(&content);
        assert_eq!(named(&module).as_deref(), Some("x.map"));
        for cut in 0..module.len() {
            assert_eq!(named(&module[..cut]), None, "{cut}");
        }
    }
}
