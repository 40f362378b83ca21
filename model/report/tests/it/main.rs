//! The crate's interface, tested from outside.

mod columnar;
mod golden;
mod json;
mod pages;
mod pictures;
mod plots;
mod sample;
mod tables;
