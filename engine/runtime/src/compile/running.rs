//! For the sampler: code says in one word of the store's context which function it belongs to, when it is entered and in each
//! iteration of a loop; of a loop in which no other function runs, once before it. A sampler reads that word at any time; the program is neither
//! stopped nor notified.

use super::alias::Region;
use super::translate::Translator;
use crate::store::region::{CONTEXT, Context, displacement};
use std::mem::offset_of;

impl Translator<'_, '_> {
    /// From here on this function runs. Functions that were inlined count as it.
    pub(super) fn note_running(&mut self) {
        if !self.env.samples {
            return;
        }
        let func = self.i32(i64::from(self.job.func_id) + 1);
        let base = self.base();
        let at = displacement(CONTEXT) + offset_of!(Context, running) as i32;
        let flags = self.trusted(Region::Context);
        self.ins().store(flags, func, base, at);
    }
}
