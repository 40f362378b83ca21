//! One file per command.

pub mod advice;
pub mod calibrate;
pub mod calibrate_here;
pub mod cc;
pub mod durable;
pub mod files;
pub mod here;
pub mod jobs;
pub mod list;
pub mod live;
pub mod machine;
mod managed;
mod nodes;
mod phases;
mod plan_table;
mod plans;
pub mod profile;
pub mod run;
pub mod serve;
pub mod sites;
pub mod start;
pub mod study;
pub mod table;
pub mod trace;
mod tray_table;
pub mod wasm;
pub mod ycsb;
