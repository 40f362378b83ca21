//! How much fast memory a program's objects may have, as a user writes it.

use std::fmt;
use std::str::FromStr;
use varve_spec::Bytes;
use varve_spec::written;

/// A limit of fast memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Fast {
    /// Bytes.
    Size(Bytes),
    /// Shares of the program's memory with everything in fast memory, in %: one after the other.
    Percent(Vec<f64>),
}

impl FromStr for Fast {
    type Err = String;

    fn from_str(text: &str) -> Result<Fast, String> {
        if !text.contains('%') {
            let size = text.parse().ok().filter(|bytes: &Bytes| bytes.0 > 0);
            return match size {
                // A limit below a page is useless, so the unit is probably missing.
                Some(Bytes(bytes)) if bytes < 4096 && written::is_bare(text) => Err(format!(
                    "`{text}` has no unit: write {text}%, {text}MiB or {text}GiB"
                )),
                Some(size) => Ok(Fast::Size(size)),
                None => Err(format!(
                    "`{text}` is neither a size such as 64MiB nor a share such as 25%"
                )),
            };
        }
        let percent = |text: &str| {
            let number = text.trim().strip_suffix('%').map(str::trim);
            let number = number.and_then(|n| n.parse::<f64>().ok());
            number
                .filter(|&n| n > 0.0 && n <= 100.0)
                .ok_or_else(|| format!("`{text}` is no share from above 0% to 100%"))
        };
        let all = text.split(',').map(percent);
        Ok(Fast::Percent(all.collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Fast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fast::Size(bytes) => write!(f, "{bytes}"),
            Fast::Percent(all) => {
                let all: Vec<String> = all.iter().map(|percent| format!("{percent}%")).collect();
                f.write_str(&all.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_memory_is_a_size_or_a_share() {
        for (text, fast) in [
            ("64MiB", Fast::Size(Bytes(64 << 20))),
            ("4096", Fast::Size(Bytes(4096))),
            ("8G", Fast::Size(Bytes(8 << 30))),
            ("25%", Fast::Percent(vec![25.0])),
            ("12.5 %", Fast::Percent(vec![12.5])),
            ("100%", Fast::Percent(vec![100.0])),
            ("10%,25%", Fast::Percent(vec![10.0, 25.0])),
        ] {
            assert_eq!(text.parse(), Ok(fast), "{text}");
        }
        for text in [
            "", "%", "10%,", "10%,1MiB", "0%", "101%", "-5%", "NaN%", "half", "0", "25",
        ] {
            assert!(text.parse::<Fast>().is_err(), "{text}");
        }
    }
}
