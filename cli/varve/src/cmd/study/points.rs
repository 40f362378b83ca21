//! The runs of studies as points that a scheduler can be given.

use super::{asked_of, options, words};
use crate::args::StudyOf;
use crate::cmd::cluster::{self, Point};
use crate::sweep::emit::line;
use crate::sweep::standing::Known;
use crate::ui::{self, Failure, failed};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use varve_run::{Error, Keep};
use varve_studies::Study;

/// Some studies, and where their runs are.
pub struct StudyRuns<'a> {
    pub name: &'a str,
    pub chosen: Vec<&'a Study>,
    pub of: &'a StudyOf,
    pub folder: &'a Path,
    pub keep: Keep,
}

impl cluster::ClusterWork for StudyRuns<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn out(&self) -> &Path {
        self.folder
    }

    fn keep(&self) -> &Keep {
        &self.keep
    }

    /// The runs that studies ask for, without making any. Dependent runs are known once their inputs exist.
    fn points(&self) -> Result<Vec<Point>, Failure> {
        let keep = self.keep.only_kept();
        let stop = ui::stop_flag();
        for study in &self.chosen {
            let asked = study.run_with(
                &options(self.name, self.of, &keep, 1),
                asked_of(self.of),
                &|_| !stop.load(Ordering::Relaxed),
            );
            match asked {
                // A run that is missing, or that failed, ends a study; what it asked for is known all the same.
                Ok(_) | Err(Error::Elsewhere(_) | Error::Asked(_)) => {}
                Err(e) => return Err(ui::of_run(&e)),
            }
        }
        let points = keep.asked().into_iter().map(|(name, point)| Point {
            known: Known {
                state: point.state,
                name,
                failed: point.failed,
            },
            shown: point.what,
            command: None,
        });
        Ok(points.collect())
    }

    /// All that they are made of is in the program, or in the names of results.
    fn files(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn command(&self) -> Result<String, Failure> {
        let folder = std::path::absolute(self.folder).map_err(failed)?;
        Ok(line(&words(self.name, self.of, &folder)))
    }
}
