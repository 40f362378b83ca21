//! Sizes as people write them.

use crate::written;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A number of bytes, written `64GiB`, `16 KB` or `256`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let bytes = written::bytes(text.trim()).map(Bytes);
        bytes.ok_or_else(|| format!("`{text}` is not a size; write it like 48GiB, 2MiB or 4096"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Quarters keep capacities such as 27.5 MiB readable.
        for (suffix, unit) in &UNITS {
            if self.0 >= *unit && self.0.is_multiple_of(unit / 4) {
                return write!(f, "{}{suffix}", self.0 as f64 / *unit as f64);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(d)? {
            Written::Number(n) => Ok(Bytes(n)),
            Written::Text(t) => t.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn sizes_read_back_as_they_are_written() {
        for text in ["48GiB", "2MiB", "27.5MiB", "4KiB", "100", "0"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
        assert_eq!("16 KB".parse::<Bytes>().unwrap(), Bytes(16_000));
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in [
            "",
            "GiB",
            "-1GiB",
            "1.0000001B",
            "99999999999TiB",
            "1e400",
            "12 apples",
        ] {
            assert!(
                text.parse::<Bytes>().unwrap_err().contains("48GiB"),
                "{text}"
            );
        }
    }
}
