//! What a workload tells of itself.

use crate::params::{Error, Param, Values};
use varve_machine::Program;

/// One workload: what it is called, what it takes, how it is made.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in a specification, such as `gups`.
    pub name: &'static str,
    /// One line: what it does and what real program it stands for.
    pub about: &'static str,
    /// Its own parameters; [`crate::params::COMMON`] come on top.
    pub params: &'static [Param],
    /// Makes it, ready to run.
    pub build: fn(&Values) -> Result<Box<dyn Program>, Error>,
}
