//! The notation in which users choose and configure things: `name:key=value,...`, lists of that, and numbers with units.
//!
//! Page policies, heap plans, workloads and trays declare their parameters as [`Param`]s. [`Values`] reads what a user gave
//! against them. Whatever is wrong is one [`Error`], whose line names the kind of thing, the place and the remedy.
//!
//! ```
//! use varve_spec::{Param, Values, Want, split};
//!
//! const PARAMS: &[Param] = &[
//!     Param::new("n", Want::Count { min: 1, max: 255 }, "8", "how many"),
//!     Param::new("period", Want::Time, "10ms", "time between two of them"),
//! ];
//! let (name, given) = split("bell:period=1.5s");
//! let values = Values::parse("toy", name, PARAMS, &[], given)?;
//! assert_eq!((values.count("n"), values.count("period")), (8, 1_500_000_000));
//!
//! let error = Values::parse("toy", name, PARAMS, &[], "n=0").unwrap_err();
//! assert_eq!(error.to_string(), "toy `bell`: `n=0`: must be a whole number from 1 to 255");
//! # Ok::<(), varve_spec::Error>(())
//! ```
//!
//! | file | job |
//! |---|---|
//! | `written` | numbers with units: bytes, counts, times |
//! | `units` | [`Bytes`]: a size, as files and options have it |
//! | `want` | kinds of values, how each is read, and what is said if it cannot be |
//! | `values` | all parameters of one thing, given or default |
//! | `names` | names of things, lists of them, the nearest name |
//! | `shell` | words as shells take them |
//! | `error` | what can be wrong |

mod error;
mod names;
mod shell;
mod shown;
mod units;
mod values;
mod want;
pub mod written;

pub use error::{Error, Why};
pub use names::{ALL, expand, find, gives, list, nearest, split, with};
pub use shell::quoted;
pub use shown::{shown, shown_name};
pub use units::Bytes;
pub use values::{Values, all_params};
pub use want::{Param, Want};
