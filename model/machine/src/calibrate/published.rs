//! Published measurements, from `data/*.csv`: one file per machine, each figure with its source.

use super::Point;
use serde::{Deserialize, Serialize};

/// One published curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedCurve {
    /// Id of the curve that it stands beside.
    pub curve: String,
    /// Publication that the figure is from.
    pub source: String,
    /// The machine's description was made from it, so that it proves nothing.
    pub is_input: bool,
    /// The points.
    pub points: Vec<Point>,
}

/// Machine and text of its file.
const FILES: [(&str, &str); 5] = [
    ("optane-8260", include_str!("../../data/optane-8260.csv")),
    ("optane-6230", include_str!("../../data/optane-6230.csv")),
    (
        "optane-6230-memory-mode",
        include_str!("../../data/optane-6230-memory-mode.csv"),
    ),
    ("optane-6230n", include_str!("../../data/optane-6230n.csv")),
    ("cxl-spr", include_str!("../../data/cxl-spr.csv")),
];

/// The published curves of a machine; empty if we know of none.
pub fn published(machine: &str) -> Vec<PublishedCurve> {
    FILES
        .iter()
        .filter(|(name, _)| *name == machine)
        .flat_map(|(_, text)| parse(text))
        .collect()
}

/// Reads a file: `# KEY: SOURCE` lines, then `curve,at,value,key` lines; a key that ends in `!` marks an input.
/// The files are part of the program, and a test reads them all: lines that do not fit are not possible.
fn parse(text: &str) -> Vec<PublishedCurve> {
    let mut sources: Vec<(&str, &str)> = Vec::new();
    let mut out: Vec<PublishedCurve> = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            sources.extend(comment.split_once(": "));
            continue;
        }
        let Some((curve, at, value, key)) = fields(line) else {
            continue;
        };
        let (key, is_input) = match key.strip_suffix('!') {
            Some(key) => (key, true),
            None => (key, false),
        };
        let source = sources
            .iter()
            .find(|s| s.0 == key)
            .map_or(key, |s| s.1)
            .to_string();
        let same =
            |p: &PublishedCurve| p.curve == curve && p.source == source && p.is_input == is_input;
        let place = out.iter().position(same).unwrap_or_else(|| {
            out.push(PublishedCurve {
                curve: curve.to_string(),
                source: source.clone(),
                is_input,
                points: Vec::new(),
            });
            out.len() - 1
        });
        let points = &mut out[place].points;
        points.push(Point {
            x: at.parse().unwrap_or(points.len() as f64),
            at: at.to_string(),
            value,
        });
    }
    out
}

/// `curve,at,value,key`; a name in the second place may have commas of its own.
fn fields(line: &str) -> Option<(&str, &str, f64, &str)> {
    let (curve, rest) = line.split_once(',')?;
    let (rest, key) = rest.rsplit_once(',')?;
    let (at, value) = rest.rsplit_once(',')?;
    Some((curve, at, value.parse().ok()?, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;

    #[test]
    fn every_line_of_every_file_is_a_figure_with_a_source() {
        for (machine, text) in FILES {
            Machine::load(machine).unwrap();
            let lines: Vec<&str> = text
                .lines()
                .filter(|l| !l.starts_with("# ") && *l != "curve,at,value,source")
                .collect();
            let parsed = parse(text);
            let points: usize = parsed.iter().map(|p| p.points.len()).sum();
            assert_eq!(points, lines.len(), "{machine}");
            for p in parsed {
                assert!(
                    p.source.contains(' '),
                    "{machine}: {}: no line `# {}: ...`",
                    p.curve,
                    p.source
                );
                assert!(p.points.iter().all(|q| q.value > 0.0));
            }
        }
    }

    #[test]
    fn names_may_have_commas_and_inputs_are_marked() {
        let p = parse("# a: A paper, 2020\nidle-latency,DRAM read, random,96,a!\nt,4,2.5,a\n");
        assert_eq!(p[0].points[0].at, "DRAM read, random");
        assert!(p[0].is_input && !p[1].is_input);
        assert_eq!((p[1].points[0].x, p[1].points[0].value), (4.0, 2.5));
        assert_eq!(p[1].source, "A paper, 2020");
    }
}
