//! The dependencies of compiled code: all that the translator reads of a store, and writes into code.
//!
//! Kept code is code for every store with the same digest. So whatever is added to [`Env`](crate::compile::env::Env) and gets into code
//! must be in the digest, or else keep code from being kept.

use super::super::Vm;
use super::super::func::{FuncKind, Inline, Leaf};
use crate::code::link::{self, Native};
use crate::engine::Tier;
use sha2::{Digest, Sha256};
use std::fmt::Write;

impl Vm {
    /// Whether code depends on nothing that [`Vm::digest`] does not know.
    pub(super) fn may_keep(&self) -> bool {
        let heap = self.heap();
        self.engine.config().tier == Tier::Auto
            && self.recording.is_none()
            && self.counters.is_none()
            && self.check_counters.is_none()
            && self.sampling.is_none()
            && self.durable.is_none()
            && self.engine.checks().is_none()
            && !heap.asks_about_sites()
    }

    /// A digest of all that compiled code depends on; none where that cannot be said.
    pub(super) fn digest(&self) -> Option<String> {
        let config = self.engine.config();
        let heap = self.heap();
        let mut hash = Sha256::new();
        add(&mut hash, link::build()?);
        let isa = &self.code.isa;
        let features = isa.isa_flags().into_iter().map(|f| format!("{f} "));
        let features = features.collect::<String>();
        let generator = format!("{} {} {features}", isa.triple(), isa.flags());
        add(&mut hash, generator);
        let settings = format!(
            "{:?} {:?} {} {} {} {}",
            config.plan,
            self.align,
            config.interruptible,
            heap.monitors(),
            heap.plan().takes_hints(),
            heap.marked()
        );
        add(&mut hash, settings);
        // Places are where they are because of all that was made before.
        let mut words = String::new();
        for f in &self.funcs {
            let kind = match &f.kind {
                FuncKind::Wasm { instance, index } => format!("{instance} {index}"),
                FuncKind::Host(_, None) => "host".into(),
                FuncKind::Host(_, Some(Inline::Leaf(leaf))) => name_of(*leaf)?,
                FuncKind::Host(_, Some(Inline::Mark)) => "mark".into(),
            };
            let _ = write!(words, "{} {} {kind},", f.place, f.ty);
        }
        for g in &self.globals {
            // Code has the values of those that never change in it.
            let value = match g.ty.mutable || g.ty.ty.is_managed() {
                true => 0,
                false => self.global_bits(g.place),
            };
            let _ = write!(words, "{} {:?} {value},", g.place, g.ty);
        }
        for t in &self.tables {
            let _ = write!(words, "{} {:?},", t.place, t.ty);
        }
        for m in &self.memories {
            let _ = write!(words, "{} {:?},", m.place, m.ty);
        }
        let types = self.engine.types();
        let _ = write!(
            words,
            "{:?} {} {}",
            self.tags,
            types.len(),
            self.region.next()
        );
        add(&mut hash, words);
        for instance in &self.instances {
            let module = &instance.module;
            let indices = format!(
                "{:?} {:?} {:?} {:?} {:?} {:?}",
                module.types,
                instance.funcs,
                instance.tables,
                instance.memories,
                instance.globals,
                instance.tags
            );
            add(&mut hash, indices);
            add(&mut hash, &module.bytes);
        }
        let mut name = String::new();
        for byte in hash.finalize() {
            let _ = write!(name, "{byte:02x}");
        }
        Some(name)
    }
}

/// Adds bytes to a digest so that it is clear where they end.
fn add(hash: &mut Sha256, bytes: impl AsRef<[u8]>) {
    hash.update(bytes.as_ref().len().to_le_bytes());
    hash.update(bytes);
}

/// The name of a function whose code is inline, if it is the same in all processes of a build.
fn name_of(leaf: Leaf) -> Option<String> {
    let at = |address| Native::Leaf(address).distance_in_file();
    Some(match leaf {
        Leaf::Sqrt | Leaf::Abs | Leaf::Floor | Leaf::Ceil => format!("{leaf:?}"),
        Leaf::Unary(f) => format!("unary {}", at(f as usize)?),
        Leaf::Binary(f) => format!("binary {}", at(f as usize)?),
    })
}
