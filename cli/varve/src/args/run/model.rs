//! Options for the modelled machine.

use super::MAIN;
use clap::Args;
use varve_trace::host::{Amount, Extent};

/// The machine, and how the runs are made.
#[derive(Args, Debug)]
#[command(next_help_heading = "The model")]
pub struct Model {
    /// Machine model: a name from `varve machine list`, or a file [default: optane-6230-memory-mode; a WebAssembly program runs
    /// on this machine by default]
    #[arg(short, long, help_heading = MAIN)]
    pub machine: Option<String>,
    /// Override keys of the machine, such as cxl.link_ns=300 (`varve machine show NAME --toml` lists the keys)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub set: Vec<String>,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run with N seeds, starting at --seed, and print medians and their spread. A command is recorded again for each seed:
    /// `varve trace` records it once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Concurrent runs; 0: one per core of this host
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
}

impl Model {
    /// The machine's name, with the overridden keys.
    pub fn machine_or(&self, default: &str) -> String {
        let name = self.machine.as_deref().unwrap_or(default);
        varve_machine::load::changed(name, &self.set)
    }
}

/// Marks that limit the recording of a command.
#[derive(Args, Debug)]
#[command(next_help_heading = "The model")]
pub struct Marked {
    /// Replay only accesses between the command's own marks: from its lookup of the file `/varve/record/begin` to its lookup of
    /// `/varve/record/end`. Neither file needs to exist
    #[arg(long)]
    pub marked: bool,
}

/// Which part of a run of a command is recorded.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "The model")]
pub struct Windows {
    /// Record windows spread over the run, this share of it in total, such as 1%, and print estimates for the whole run with
    /// their error bounds
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["marked", "skip", "length"])]
    pub sample: Option<f64>,
    /// Start recording after this many instructions, such as 500M or 2G, or after this time, such as 10s, under emulation
    #[arg(long, value_name = "WORK", value_parser = amount, conflicts_with = "marked")]
    pub skip: Option<Amount>,
    /// Record at most this much, counted as for --skip; the program itself runs to its end
    #[arg(long = "for", value_name = "WORK", value_parser = amount, conflicts_with = "marked")]
    pub length: Option<Amount>,
}

impl Windows {
    /// The extent of the recording.
    pub fn extent(&self) -> Extent {
        match (self.sample, self.skip, self.length) {
            (Some(share), ..) => Extent::Sample(share),
            (None, None, None) => Extent::Whole,
            (None, skip, length) => Extent::Window {
                skip: skip.unwrap_or(Amount::Work(0)),
                length,
            },
        }
    }
}

/// Whether a long run is recorded whole.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "The model")]
pub struct Whole {
    /// Record and replay the whole of a run, however long it is. Otherwise a run of more than 200 million instructions is answered by its
    /// beginning and by windows of the rest, with error bounds
    #[arg(long, conflicts_with_all = ["marked", "sample", "skip", "length"])]
    pub whole: bool,
}

/// Instructions at the beginning of a run that are recorded whole: some 70 million accesses, whose replay under the usual plans takes most
/// of a minute on two cores.
const WHOLE: u64 = 200_000_000;

/// The extent of a recording that is answered in time, however long the run is.
pub fn in_time() -> Extent {
    Extent::Thinning(WHOLE)
}

impl Whole {
    /// The extent of the recording, where nothing else limits it.
    pub fn extent(&self, windows: &Windows, marked: &Marked) -> Extent {
        match windows.extent() {
            Extent::Whole if !self.whole && !marked.marked => in_time(),
            extent => extent,
        }
    }
}

/// A part of a run.
pub fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').map(str::trim);
    let number = match percent {
        Some(percent) => percent.parse::<f64>().map(|p| p / 100.0),
        None => text.trim().parse::<f64>(),
    };
    let share = number.map_err(|_| format!("`{text}` is not a share such as 1%"))?;
    match (1e-5..=0.9).contains(&share) {
        true => Ok(share),
        false => Err("a sample is 0.001% to 90% of a run".into()),
    }
}

/// Instructions or time.
fn amount(text: &str) -> Result<Amount, String> {
    let bad =
        || format!("`{text}` is neither instructions such as 500M or 2G nor a time such as 10s");
    let trimmed = text.trim();
    let (number, unit) = match trimmed.char_indices().last() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 1e3),
        Some((at, 'M')) => (&trimmed[..at], 1e6),
        Some((at, 'G')) => (&trimmed[..at], 1e9),
        Some((at, 'T')) => (&trimmed[..at], 1e12),
        Some((_, '0'..='9')) => (trimmed, 1.0),
        _ => {
            return super::sandbox::time(text)
                .map(Amount::Time)
                .map_err(|_| bad());
        }
    };
    let number: f64 = number.trim().parse().map_err(|_| bad())?;
    match number * unit {
        work if (0.0..=1e18).contains(&work) => Ok(Amount::Work(work as u64)),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn work_is_instructions_or_time() {
        for (text, expected) in [
            ("500M", Amount::Work(500_000_000)),
            ("1.5G", Amount::Work(1_500_000_000)),
            ("20000", Amount::Work(20_000)),
            ("10s", Amount::Time(Duration::from_secs(10))),
            ("250ms", Amount::Time(Duration::from_millis(250))),
        ] {
            assert_eq!(amount(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "-5M", "ten", "5d", "NaN", "1e99G"] {
            assert!(amount(text).is_err(), "{text}");
        }
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        for text in ["", "%", "0", "100%", "x%", "-1%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
