//! What the crate promises, seen from outside.

mod columnar;
mod golden;
mod json;
mod sample;
mod tables;
