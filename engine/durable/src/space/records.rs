//! Adds records.

use super::Space;
use crate::class_data::Late;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::header::record;
use crate::layout::DIRECTORY;
use crate::records::{Named, Record};
use varve_heap::Ref;

/// Where records of literals end: the room after them is kept for more important records.
const LITERALS_END: u64 = DIRECTORY - (24 << 10);
/// Where records of other objects end that the program can do without: records that are required have the rest.
const NAMED_END: u64 = DIRECTORY - (8 << 10);

impl Space {
    /// Class data that programs made while they ran, to be made again before they run.
    pub fn late(&self) -> &[Late] {
        &self.records.late
    }

    /// Adds class data. They are in the medium before anything that is published later.
    ///
    /// # Errors
    /// If there is no room for them.
    pub fn add_late(&mut self, late: Late) -> Result<()> {
        self.add_record(&Record::Late(late.clone()))?;
        self.records.late.push(late);
        Ok(())
    }

    /// Adds a record, which is in the medium then.
    pub(crate) fn add_record(&mut self, what: &Record) -> Result<()> {
        let bytes = record(&serde_json::to_vec(what).expect("a record is plain data"));
        let at = self.records.end;
        if at + bytes.len() as u64 + 8 > DIRECTORY {
            return Err(Error::Usage(format!(
                "{}: no room for more class data and constants that the program makes while it runs",
                self.path
            )));
        }
        self.image.write(at, &bytes);
        self.flush(at, bytes.len() as u64);
        self.fence(Fence::Copied)?;
        self.records.end = (at + bytes.len() as u64).next_multiple_of(8);
        Ok(())
    }

    /// Records objects that are the same in each run, which became durable.
    pub(crate) fn add_named(&mut self) -> Result<()> {
        let all = std::mem::take(&mut self.new_named);
        for alike in all.chunk_by(|a, b| a.1.is_some() && a.1 == b.1) {
            let of = alike[0].1.clone();
            let objects: Vec<Ref> = alike
                .iter()
                .map(|(at, _)| self.addresses.reference(*at))
                .collect();
            let bytes =
                64 + 12 * objects.len() as u64 + of.as_ref().map_or(0, |of| of.len() as u64);
            let end = match of.as_deref() {
                Some(Named::LITERAL) => LITERALS_END,
                _ => NAMED_END,
            };
            if of.is_some() && self.records.end + bytes > end {
                continue;
            }
            self.add_record(&Record::Named {
                named: objects[0].0,
                of: of.clone(),
                more: objects[1..].iter().map(|r| r.0).collect(),
            })?;
            let named = objects.into_iter().map(|object| Named {
                object,
                of: of.clone(),
            });
            self.records.named.extend(named);
        }
        Ok(())
    }
}
