//! Charts as data: named axes with units, and series, bars, cells or spans. [`crate::html`] draws them.

use crate::{Axis, Error};
use serde::{Deserialize, Serialize};

/// Points of one line; a value that is not finite is a gap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The line's name, written beside it.
    pub name: String,
    /// Where, in the base unit of the x axis.
    #[serde(with = "gaps")]
    pub x: Vec<f64>,
    /// How much, in the base unit of the y axis; one value for each of `x`.
    #[serde(with = "gaps")]
    pub y: Vec<f64>,
    /// The values are published ones: drawn dashed, beside ours.
    #[serde(default)]
    pub published: bool,
}

impl Series {
    /// A line of our own.
    pub fn new(name: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Series {
        Series {
            name: name.into(),
            x,
            y,
            published: false,
        }
    }

    /// The same line, marked as published.
    pub fn published(mut self) -> Series {
        self.published = true;
        self
    }

    /// The line's name; published ones say so.
    pub(crate) fn shown_name(&self) -> String {
        let published = if self.published { ", published" } else { "" };
        format!("{}{published}", self.name)
    }

    /// The points that are there.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let finite = |p: &(f64, f64)| p.0.is_finite() && p.1.is_finite();
        self.x
            .iter()
            .copied()
            .zip(self.y.iter().copied())
            .filter(finite)
    }
}

/// The bars of one colour: one value for each group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Meaning of the colour.
    pub name: String,
    /// One value for each group; values that are not finite are left out.
    #[serde(with = "gaps")]
    pub values: Vec<f64>,
}

impl Bars {
    /// Bars of one colour.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Bars {
        Bars {
            name: name.into(),
            values,
        }
    }
}

/// One row of a heat map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatRow {
    /// The row's name.
    pub name: String,
    /// One value for each column, in the base unit of the y axis.
    #[serde(with = "gaps")]
    pub cells: Vec<f64>,
}

/// Something that lasts, in a lane of a Gantt chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GanttSpan {
    /// The lane: an index into the lanes.
    pub lane: usize,
    /// The span's own name, written in it where it fits.
    pub name: String,
    /// Its kind: spans of a kind share a colour.
    pub kind: String,
    /// When it begins, in the base unit of the x axis.
    pub start: f64,
    /// When it ends.
    pub end: f64,
}

/// Contents of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Lines, such as throughput over time.
    Lines(Vec<Series>),
    /// Points with their names, such as runs in a trade-off; the frontier may be a [`Data::Lines`] of its own.
    Points(Vec<Series>),
    /// Groups of bars side by side, or stacked on each other. The x axis names the groups.
    #[allow(missing_docs)]
    Bars {
        groups: Vec<String>,
        bars: Vec<Bars>,
        stacked: bool,
    },
    /// A matrix of cells, darker for more. The y axis has the quantity of a cell; the x axis that of a column.
    #[allow(missing_docs)]
    HeatMap {
        columns: Vec<String>,
        rows: Vec<HeatRow>,
    },
    /// Lanes of spans over time. The y axis has the meaning of a lane.
    #[allow(missing_docs)]
    Gantt {
        lanes: Vec<String>,
        spans: Vec<GanttSpan>,
    },
}

/// A level of interest: a line across the chart at a value of the y axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Name of the level, such as `all hot in DRAM`.
    pub name: String,
    /// Where, in the base unit of the y axis.
    pub value: f64,
}

/// A chart.
///
/// ```
/// use varve_report::{Axis, Chart, Data, Series, fmt::Format};
/// let time = Axis::new("time", "", Format::DurationNs);
/// let speed = Axis::new("throughput", "updates", Format::PerSecond);
/// let line = Series::new("static", vec![0.0, 1e9], vec![1e6, 25e6]);
/// let chart = Chart::new("gups", "GUPS over time", time, speed, Data::Lines(vec![line]));
/// assert!(chart.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// A short name of letters, digits and dashes: the file `chart-ID.parquet` and the anchor in the page.
    pub id: String,
    /// Its subject, above the chart.
    pub title: String,
    /// How to read it, below the chart. May be empty.
    #[serde(default)]
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; of a heat map the cells' meaning, of a Gantt chart the lanes'.
    pub y: Axis,
    /// Levels of the y axis that are drawn as lines.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// Its contents.
    pub data: Data,
}

impl Chart {
    /// A chart without levels or note.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        data: Data,
    ) -> Chart {
        let (id, title) = (id.into(), title.into());
        Chart {
            id,
            title,
            note: String::new(),
            x,
            y,
            levels: Vec::new(),
            data,
        }
    }

    /// The same chart with a note on how to read it.
    pub fn with_note(mut self, note: impl Into<String>) -> Chart {
        self.note = note.into();
        self
    }

    /// The same chart with a level of the y axis drawn as a line.
    pub fn with_level(mut self, name: impl Into<String>, value: f64) -> Chart {
        self.levels.push(Level {
            name: name.into(),
            value,
        });
        self
    }

    /// Whether its parts fit together: equal lengths, lanes that exist, an id that can name a file.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |why: String| {
            Err(Error::Inconsistent {
                what: format!("chart \"{}\"", self.id),
                why,
            })
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.id.is_empty() || !self.id.chars().all(plain) {
            return wrong("its id must be of letters, digits and dashes".into());
        }
        match &self.data {
            Data::Lines(series) | Data::Points(series) => {
                if let Some(s) = series.iter().find(|s| s.x.len() != s.y.len()) {
                    let (x, y) = (s.x.len(), s.y.len());
                    return wrong(format!("series \"{}\" has {x} x and {y} y values", s.name));
                }
            }
            Data::Bars {
                groups,
                bars,
                stacked,
            } => {
                if let Some(b) = bars.iter().find(|b| b.values.len() != groups.len()) {
                    let (have, want) = (b.values.len(), groups.len());
                    return wrong(format!(
                        "bars \"{}\" have {have} values for {want} groups",
                        b.name
                    ));
                }
                let negative = |b: &&Bars| b.values.iter().any(|v| *v < 0.0);
                if let Some(b) = bars.iter().find(negative).filter(|_| *stacked) {
                    return wrong(format!("bars \"{}\" are stacked and negative", b.name));
                }
            }
            Data::HeatMap { columns, rows } => {
                if let Some(r) = rows.iter().find(|r| r.cells.len() != columns.len()) {
                    let (have, want) = (r.cells.len(), columns.len());
                    return wrong(format!(
                        "row \"{}\" has {have} cells for {want} columns",
                        r.name
                    ));
                }
            }
            Data::Gantt { lanes, spans } => {
                for s in spans {
                    if s.lane >= lanes.len() {
                        return wrong(format!(
                            "span \"{}\" is in lane {} of {}",
                            s.name,
                            s.lane,
                            lanes.len()
                        ));
                    }
                    if !(s.start.is_finite() && s.end.is_finite() && s.start <= s.end) {
                        return wrong(format!("span \"{}\" ends before it begins", s.name));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Numbers of which some may be absent: `null` in JSON, NaN in memory.
mod gaps {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(values: &[f64], s: S) -> Result<S::Ok, S::Error> {
        let some: Vec<Option<f64>> = values.iter().map(|v| v.is_finite().then_some(*v)).collect();
        some.serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
        let some = Vec::<Option<f64>>::deserialize(d)?;
        Ok(some.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(data: Data) -> Chart {
        Chart::new("c", "t", Axis::default(), Axis::default(), data)
    }

    #[test]
    fn gaps_survive_json() {
        let c = chart(Data::Lines(vec![Series::new(
            "s",
            vec![0.0, 1.0],
            vec![f64::NAN, 2.0],
        )]));
        let text = serde_json::to_string(&c).unwrap();
        assert!(text.contains("[null,2.0]"), "{text}");
        let back: Chart = serde_json::from_str(&text).unwrap();
        let Data::Lines(series) = back.data else {
            panic!()
        };
        assert!(series[0].y[0].is_nan());
        assert_eq!(series[0].points().collect::<Vec<_>>(), [(1.0, 2.0)]);
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let span = |lane, start, end| GanttSpan {
            lane,
            name: "s".into(),
            kind: "k".into(),
            start,
            end,
        };
        let cases = [
            (
                Data::Lines(vec![Series::new("a", vec![1.0], vec![])]),
                "series \"a\" has 1 x and 0 y values",
            ),
            (
                Data::Bars {
                    groups: vec!["g".into()],
                    bars: vec![Bars::new("b", vec![])],
                    stacked: false,
                },
                "bars \"b\" have 0 values for 1 groups",
            ),
            (
                Data::Bars {
                    groups: vec!["g".into()],
                    bars: vec![Bars::new("b", vec![-1.0])],
                    stacked: true,
                },
                "bars \"b\" are stacked and negative",
            ),
            (
                Data::HeatMap {
                    columns: vec![],
                    rows: vec![HeatRow {
                        name: "r".into(),
                        cells: vec![1.0],
                    }],
                },
                "row \"r\" has 1 cells for 0 columns",
            ),
            (
                Data::Gantt {
                    lanes: vec![],
                    spans: vec![span(0, 0.0, 1.0)],
                },
                "span \"s\" is in lane 0 of 0",
            ),
            (
                Data::Gantt {
                    lanes: vec!["l".into()],
                    spans: vec![span(0, 2.0, 1.0)],
                },
                "span \"s\" ends before it begins",
            ),
        ];
        for (data, why) in cases {
            assert_eq!(
                chart(data).check().unwrap_err().to_string(),
                format!("chart \"c\": {why}")
            );
        }
        let mut c = chart(Data::Lines(vec![]));
        c.id = "../c".into();
        assert!(c.check().is_err(), "an id is part of a file's name");
    }
}
