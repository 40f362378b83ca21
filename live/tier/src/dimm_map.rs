//! Files that say which physical addresses are on which DIMM.
//!
//! ```toml
//! [[dimm]]
//! name = "A1"
//! ranges = ["0+3GiB", "0x100000000+1GiB"]
//! ```

use serde::Deserialize;
use std::fs;
use std::path::Path;
use varve_live::tier::DimmRange;
use varve_spec::Bytes;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    dimm: Vec<One>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    name: String,
    ranges: Vec<String>,
}

/// The DIMMs of a file, in the order in which they are to be used.
///
/// # Errors
/// One line that names the file and what is wrong in it.
pub fn read(file: &Path) -> Result<Vec<DimmRange>, String> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|e| format!("--dimm-map {name}: {e}"))?;
    parse(&text).map_err(|why| format!("--dimm-map {name}: {why}"))
}

/// A file that says this.
pub fn text(dimms: &[DimmRange]) -> String {
    let range = |(from, to): &(u64, u64)| format!("\"{from:#x}+{}\"", Bytes(to - from));
    let one = |dimm: &DimmRange| {
        let ranges: Vec<String> = dimm.ranges.iter().map(range).collect();
        format!(
            "[[dimm]]\nname = \"{}\"\nranges = [{}]\n",
            dimm.name,
            ranges.join(", ")
        )
    };
    dimms.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn parse(text: &str) -> Result<Vec<DimmRange>, String> {
    let file: File = toml::from_str(text).map_err(|e| crate::line_of(text, &e))?;
    let mut all: Vec<DimmRange> = Vec::new();
    for one in file.dimm {
        if all.iter().any(|known| known.name == one.name) {
            return Err(format!(
                "DIMM {} is listed twice: give it several ranges",
                one.name
            ));
        }
        let ranges: Option<Vec<(u64, u64)>> = one.ranges.iter().map(|text| range(text)).collect();
        match ranges {
            Some(ranges) if !ranges.is_empty() => all.push(DimmRange {
                name: one.name,
                ranges,
            }),
            _ => {
                return Err(format!(
                    "DIMM {}: ranges are BASE+BYTES of physical addresses, such as \"0x100000000+4GiB\"",
                    one.name
                ));
            }
        }
    }
    match all.is_empty() {
        true => Err("no [[dimm]] in it".into()),
        false => Ok(all),
    }
}

/// `0x100000000+4GiB`: from, to.
fn range(text: &str) -> Option<(u64, u64)> {
    let (base, bytes) = text.split_once('+')?;
    let base = match base.trim().strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => base.trim().parse::<Bytes>().ok()?.0,
    };
    let bytes = bytes.trim().parse::<Bytes>().ok()?.0;
    (bytes > 0).then_some(())?;
    Some((base, base.checked_add(bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_what_is_wrong_is_named() {
        let good = "[[dimm]]\nname = \"A1\"\nranges = [\"0+3GiB\", \"0x100000000+1GiB\"]\n";
        let gib = 1 << 30;
        let expected = DimmRange {
            name: "A1".into(),
            ranges: vec![(0, 3 * gib), (4 * gib, 5 * gib)],
        };
        assert_eq!(parse(good).unwrap(), [expected]);
        let says = |text: &str| parse(text).unwrap_err();
        assert!(says("[[dimm]]\nname = \"A1\"\nrange = 1\n").starts_with("line 3: "));
        assert!(says(&good.repeat(2)).contains("is listed twice"));
        assert!(says("dimm = []").contains("no [[dimm]]"));
        for wrong in ["1GiB", "0+0", "x+1GiB", "0x+4", "0xffffffffffffffff+4KiB"] {
            let text = good.replace("0+3GiB", wrong);
            assert!(says(&text).contains("BASE+BYTES"), "{wrong}");
        }
        let missing = read(Path::new("/no/such.toml")).unwrap_err();
        assert!(missing.starts_with("--dimm-map /no/such.toml: "));
    }
}
