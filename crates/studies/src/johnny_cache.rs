//! stub
use crate::*;
pub fn run(o: &StudyOptions, _w: Watch) -> Result<StudyResult, Error> { Ok(StudyResult::new("johnny-cache", "m", o.seed, "")) }
