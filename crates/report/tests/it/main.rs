//! What the crate promises, seen from outside.

mod golden;
mod json;
mod sample;
mod tables;
