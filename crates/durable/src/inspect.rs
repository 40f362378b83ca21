//! Looks at a region without changing it: its bytes are copied, and recovered in the copy.

use crate::class_data::{self, Late};
use crate::error::{Error, Result};
use crate::file::read_file;
use crate::header::{self, Commit};
use crate::image::Image;
use crate::layout::*;
use crate::log;
use crate::roots::{self, Root};
use crate::space::unreadable;
use crate::types::{Info, Tables};
use crate::walk::{Walk, Walker};
use std::path::Path;

/// A region as it would be after opening it.
pub struct Inspection {
    /// Its bytes.
    pub image: Image,
    /// The commit record that counts.
    pub commit: Commit,
    /// Types and constants.
    pub tables: Tables,
    /// Class data that programs made while they ran.
    pub late: Vec<Late>,
    /// Roots that stand for something.
    pub roots: Vec<Root>,
    /// Cache lines of a region that was not over, which opening takes back.
    pub taken_back: u64,
    /// What is reachable.
    pub walk: Walk,
    pub(crate) infos: Vec<Info>,
    path: String,
}

impl Inspection {
    /// Looks at a file.
    ///
    /// # Errors
    /// If it cannot be read, or its header is damaged so that nothing can be known of the rest.
    pub fn of_file(path: &Path) -> Result<Inspection> {
        Inspection::of(read_file(path)?, &path.display().to_string())
    }

    /// Looks at bytes.
    ///
    /// # Errors
    /// As [`Inspection::of_file`].
    pub fn of(mut image: Image, path: &str) -> Result<Inspection> {
        let (commit, tables) = header::read(&image).map_err(|e| unreadable(path, e))?;
        let taken_back = log::take_back(&mut image).len() as u64;
        let (late, _) = class_data::all(&image);
        let mut roots = roots::all(&image);
        roots.retain(|r| !r.object.is_null());
        let infos = tables.infos();
        let first = objects_after(commit.tables);
        let walk = Walker::new(&image, &tables, &infos, &late, first).run(&roots, &[]);
        Ok(Inspection {
            image,
            commit,
            tables,
            late,
            roots,
            taken_back,
            walk,
            infos,
            path: path.into(),
        })
    }

    /// The same, if nothing is wrong.
    ///
    /// # Errors
    /// With the first damage.
    pub fn whole(self) -> Result<Inspection> {
        match self.walk.damages.first() {
            None => Ok(self),
            Some(damage) => Err(Error::Damaged {
                path: self.path.clone(),
                what: damage.to_string(),
            }),
        }
    }

    /// The file's name.
    pub fn path(&self) -> &str {
        &self.path
    }
}
