//! All that this crate knows of the processor: how to have a line brought near, `fetch`. It makes collections faster and changes nothing,
//! so that processors without a file of their own do without (`other.rs`).

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub use x86_64::fetch;

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod other;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub use other::fetch;
