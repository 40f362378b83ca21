//! Records that a region gets while it is in use, one after the other: class data that programs made while they ran, and objects that the
//! program makes anew in each run and means the same ones. None is ever changed.
//!
//! The commit record says up to where all of them are whole; after that, the first that is not ends them.

use crate::class_data::Late;
use crate::header::read_record;
use crate::image::Image;
use crate::layout::*;
use crate::types::Info;
use serde::{Deserialize, Serialize};
use varve_heap::Ref;

/// The contents of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Record {
    /// How to make class data again.
    Late(Late),
    /// An object that the program makes anew in each run but treats as the same one: its reference, and [its name](Named::of).
    Named {
        named: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<String>,
        /// More objects that are the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        more: Vec<u32>,
    },
}

/// An object that the program makes in each run and means the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where it is.
    pub object: Ref,
    /// The object's name in the program, such as the static field that holds it. None if its type determines it: see
    /// [`Type::named_by`](crate::Type::named_by).
    pub of: Option<String>,
}

impl Named {
    /// The name of every literal of the program: its text says which one.
    pub const LITERAL: &str = "literal";
}

/// All records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    pub late: Vec<Late>,
    pub named: Vec<Named>,
    /// The offset after the last one.
    pub end: u64,
}

impl Records {
    /// Those of an image.
    pub fn read(image: &Image) -> Records {
        let mut all = Records {
            end: CLASS_DATA,
            ..Records::default()
        };
        while let Some(bytes) = read_record(image, all.end, DIRECTORY.saturating_sub(all.end)) {
            match serde_json::from_slice(&bytes) {
                Ok(Record::Late(late)) => all.late.push(late),
                Ok(Record::Named { named, of, more }) => {
                    all.named
                        .extend([named].into_iter().chain(more).map(|r| Named {
                            object: Ref(r),
                            of: of.clone(),
                        }));
                }
                Err(_) => break,
            }
            all.end = (all.end + 8 + bytes.len() as u64).next_multiple_of(8);
        }
        all
    }

    /// The first error in the records of objects that are the same in each run.
    pub fn wrong_named(
        &self,
        image: &Image,
        infos: &[Info],
        addresses: Addresses,
        first: u64,
    ) -> Option<String> {
        let wrong = |n: &&Named| {
            let Place::File(at) = addresses.place(n.object) else {
                return true;
            };
            let inside = at >= first && at.is_multiple_of(8) && at < image.len() - 8;
            let ty = || varve_heap::Header(image.u64(at)).type_index() as usize;
            let right = |i: &Info| i.named || n.of.is_some();
            !(inside && infos.get(ty()).is_some_and(right))
        };
        let wrong = self.named.iter().find(wrong)?.object;
        Some(format!("the record of {wrong:?} is of no such object"))
    }

    /// The first error, if records must be whole up to an offset.
    pub fn damage(&self, whole: u64) -> Option<String> {
        let missing = self.end < whole;
        missing.then(|| format!("the record at {:#x} is damaged", self.end))
    }
}
