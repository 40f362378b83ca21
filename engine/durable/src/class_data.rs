//! Class data that programs make while they run, which durable objects came to refer to.
//!
//! Most class data are constants: the program makes them when it begins, each at its place, and the file has their names. Some it makes on
//! demand, such as those of arrays of a class. The file says how to make them again before the program runs: their values, and the field of other
//! class data in which the program will look for each.

use serde::{Deserialize, Serialize};

/// The value of a field of class data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// A number, as its bits.
    Bits(u64),
    /// Other class data, by their offset in constants.
    Class(u32),
    /// A function, by its name, and its number in the module.
    Func(String, u32),
    /// Nothing, or an object of this run that the program makes again when it needs it.
    Null,
}

/// Class data that the program makes while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// Their offset in constants.
    pub offset: u32,
    /// Their type, by number.
    #[serde(rename = "type")]
    pub ty: u32,
    /// The class data that refer to them, by offset, and the offset of the field in those.
    pub link: Option<(u32, u32)>,
    /// The values of their fields when they became durable, in the order of the type's fields.
    pub held: Vec<Held>,
    /// The name they would have if the program made them when it begins, as another version of it may; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}
