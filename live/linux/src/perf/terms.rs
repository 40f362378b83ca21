//! Terms of events, as files of /sys have them: `events/NAME` has terms such as `event=0xcd,umask=0x1,ldlat=3`, and `format/TERM`
//! says which bits of the attribute a term is, such as `config:0-7`.

use std::fs;
use std::path::Path;

/// The text of a file, without the line's end.
pub fn word(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// A value, decimal or `0x` hexadecimal.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `config`, `config1`, `config2` for listed terms of the device in `folder`; `None` if it has one of them not.
pub fn config(folder: &Path, listed: &str) -> Option<[u64; 3]> {
    let mut config = [0; 3];
    for term in listed.split(',') {
        let (term, value) = term.split_once('=').unwrap_or((term, "1"));
        set(folder, &mut config, term, number(value)?)?;
    }
    Some(config)
}

/// Puts a value into the bits of a term: `config:0-7,32-35` has the lower ones first.
pub fn set(folder: &Path, config: &mut [u64; 3], term: &str, value: u64) -> Option<()> {
    let format = word(&folder.join("format").join(term))?;
    let (which, ranges) = format.split_once(':')?;
    let which = ["config", "config1", "config2"]
        .iter()
        .position(|w| *w == which)?;
    let mut left = value;
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        let bits = high.checked_sub(low).filter(|_| high < 64)? + 1;
        let mask = u64::MAX >> (64 - bits);
        config[which] |= (left & mask) << low;
        left = left.checked_shr(bits).unwrap_or(0);
    }
    (left == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_in_several_places_and_values_that_do_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("format")).unwrap();
        fs::write(folder.path().join("format/event"), "config:0-7,32-35\n").unwrap();
        fs::write(folder.path().join("format/odd"), "x:1\n").unwrap();
        let mut words = [0; 3];
        assert!(set(folder.path(), &mut words, "event", 0xabc).is_some());
        assert_eq!(words, [0xa_0000_00bc, 0, 0]);
        assert!(set(folder.path(), &mut words, "event", 0x1abc).is_none());
        assert!(set(folder.path(), &mut words, "odd", 1).is_none());
        assert_eq!(config(folder.path(), "event=7"), Some([7, 0, 0]));
        assert_eq!(config(folder.path(), "event"), Some([1, 0, 0]));
        assert_eq!(config(folder.path(), "event=7,other=1"), None);
    }
}
