//! What the crate promises, seen from outside.

mod columnar;
mod golden;
mod json;
mod pages;
mod pictures;
mod plots;
mod sample;
mod tables;
