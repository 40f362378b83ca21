//! Adds records.

use super::Space;
use crate::class_data::Late;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::header::record;
use crate::layout::DIRECTORY;
use crate::records::{Named, Record};

/// Where records of objects end that the program can do without: what must be recorded has room behind it.
const NAMED_END: u64 = DIRECTORY - (20 << 10);

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
        for (at, of) in std::mem::take(&mut self.new_named) {
            if of.is_some() && self.records.end > NAMED_END {
                continue;
            }
            let object = self.addresses.reference(at);
            self.add_record(&Record::Named {
                named: object.0,
                of: of.clone(),
            })?;
            self.records.named.push(Named { object, of });
        }
        Ok(())
    }
}
