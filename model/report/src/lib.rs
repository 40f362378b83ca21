//! Tables, charts, JSON, Parquet and HTML; knows results, not how they were made.
//!
//! - [`StudyResult`] and [`Claim`]: published beside ours; [`RunTable`]: one row per run.
//! - [`Chart`]: lines, points, bars, heat maps and Gantt charts as data.
//! - [`table`], [`plot`]: for a terminal of 80 columns.
//! - [`pictures`]: flame graphs, heat maps, timelines for viewers that people know.
//! - [`columnar`]: the same as Parquet columns, with units; [`html`]: one self-contained page.
//!
//! ```
//! use varve_report::{Claim, Look, StudyResult, table};
//! let mut result = StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
//! result.claims.push(Claim::new("D5", "JC-static, clustered", 85.0, 82.5, "% of DRAM"));
//! println!("{}", table::claims(&result, Look::stdout()));
//! println!("{}", result.to_json());
//! ```

mod axis;
mod chart;
pub mod columnar;
mod file;
pub mod fmt;
pub mod html;
pub mod markdown;
mod markup;
mod origin;
pub mod pictures;
pub mod plot;
mod run_table;
mod save;
mod study;
mod svg;
pub mod table;
mod term;
mod value;

pub use axis::{Axis, Scale};
pub use chart::{Bars, Chart, Data, GanttSpan, HeatRow, Level, Series};
pub use file::{Error, write_atomically};
pub use origin::{Origin, RunReport};
pub use run_table::{Better, Column, Row, RunTable};
pub use study::{Claim, Kind, Sensitivity, StudyResult};
pub use term::{Look, WIDTH, shown};
pub use value::{AIM, Agreement, FAR, Value};
