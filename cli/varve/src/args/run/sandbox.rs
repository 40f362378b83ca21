//! Options for the access of a WebAssembly program to the host, and for its run time.

use clap::Args;
use std::ffi::OsString;
use std::time::Duration;
use varve_observed::Folder;

/// The options.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "What the program may see")]
pub struct Sandbox {
    /// Give a WebAssembly program this folder and all below it, as GUEST if given; :ro makes it read-only. May be repeated
    /// [default: the current folder, as `.`]
    #[arg(long, value_name = "HOST[::GUEST][:ro]")]
    pub dir: Vec<Folder>,
    /// Give a WebAssembly program no folder
    #[arg(long, conflicts_with = "dir")]
    pub no_dir: bool,
    /// Give a WebAssembly program this environment variable, with VALUE or its current value. The program sees no others
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Give a WebAssembly program all environment variables
    #[arg(long)]
    pub inherit_env: bool,
    /// End a WebAssembly program with exit code 124 after this time, such as 500ms, 5s or 2m
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub timeout: Option<Duration>,
}

/// The longest time that is accepted: a year.
const LONGEST: f64 = 365.0 * 86_400.0;

pub fn time(text: &str) -> Result<Duration, String> {
    match varve_spec::written::seconds(text) {
        Some(s) if (1e-3..=LONGEST).contains(&s) => Ok(Duration::from_secs_f64(s)),
        Some(_) => Err("a time is 1ms to a year".into()),
        None => Err(format!(
            "`{text}` is not a time such as 500ms, 5s, 2m or 1h"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::time;
    use std::time::Duration;

    #[test]
    fn times_have_units() {
        for (text, ms) in [
            ("500ms", 500),
            ("5s", 5000),
            ("5 s", 5000),
            ("2", 2000),
            ("1.5m", 90_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "5d", "-5s", "0", "1us", "1e99s", "NaN", "inf"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
