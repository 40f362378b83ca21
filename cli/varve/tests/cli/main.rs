//! Stories of the command line, told through the binary.

mod bad_input;
mod build;
mod common;
mod doctor;
mod durable;
mod durable_files;
mod durable_model;
mod durable_refused;
mod durable_torture;
mod durable_types;
mod generated;
mod help;
mod java_sites;
mod jobs;
mod jobs_managed;
mod jobs_parts;
mod jvm;
mod jvm_live;
mod jvm_programs;
mod kept;
mod known;
#[path = "../../../../live/linux/tests/common/machine_files.rs"]
mod machine_files;
mod machines;
mod native;
mod nodes;
mod output;
mod pictures;
mod pipeline;
mod placement;
mod profile;
mod registries;
mod sampled;
mod sandbox;
#[path = "../shared/small_disk.rs"]
mod small_disk;
mod stop;
mod sweep;
mod tier;
mod tier_frames;
mod top;
mod traced;
mod trays;
mod versions;
mod wasm;
mod windows;
