//! Profiled code: counts each access to an object in counters beside it.
//!
//! | operator | counts as |
//! |---|---|
//! | `struct.get`, `array.get`, `array.len` | a read |
//! | `struct.set`, `array.set` | a write |
//! | `array.fill`, `array.init_data`, `array.init_elem` | as many writes as elements |
//! | `array.copy` | as many reads of one array, and writes to the other |
//! | the initial values of an object, the length that a bounds check reads, type tests | nothing |
//! | accesses of the host | nothing |
//!
//! Operators are counted and not machine instructions, so that all compilers count the same: a load that the optimizer leaves out
//! counts all the same. An access that traps does not count.

use super::alias::Region;
use super::isa::Level;
use super::translate::Translator;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use varve_heap::record::{READS, WRITES};

/// The kind of a counted access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counted {
    Read,
    Write,
}

impl Translator<'_, '_> {
    /// Reads once for all of the function, at its beginning, where counters are.
    pub(super) fn keep_counters(&mut self) {
        if self.job.level == Level::Optimizing
            && let Some(distance) = self.env.counters
        {
            let base = self.base();
            self.counters = Some(self.ins().iadd_imm_s(base, distance));
        }
    }

    /// Counts accesses to an object that was just accessed: `times` (an i32), or one.
    pub(super) fn count_access(&mut self, what: Counted, reference: Value, times: Option<Value>) {
        let Some(distance) = self.env.counters else {
            return;
        };
        let counters = match self.counters {
            Some(counters) => counters,
            None => {
                let base = self.base();
                self.ins().iadd_imm_s(base, distance)
            }
        };
        let address = self.object_at(counters, reference);
        let at = match what {
            Counted::Read => READS,
            Counted::Write => WRITES,
        } as i32;
        let flags = self.trusted(Region::Counters);
        let count = self.ins().load(types::I64, flags, address, at);
        let count = match times {
            None => self.ins().iadd_imm_s(count, 1),
            Some(times) => {
                let times = self.ins().uextend(types::I64, times);
                self.ins().iadd(count, times)
            }
        };
        self.ins().store(flags, count, address, at);
    }
}
