//! Throws that code leaves out, and that are executed after all.
//!
//! Code has a trap in their place (`compile/left_out.rs`). Nothing of the activation is needed any more there. So its frame is dropped, and
//! code runs in its place that has the throw alone, which appears from outside as if the function had thrown. From then on the function's own
//! code has its throws.

use super::super::Vm;
use crate::code::map::CodeInfo;
use crate::compile::isa::Level;
use crate::compile::translate::{Job, Start};
use crate::error::Result;
use std::sync::Arc;

impl Vm {
    /// The code that goes on where code was interrupted, if that leaves a throw out there. It takes no arguments, and its caller is the
    /// interrupted function's.
    pub(crate) fn left_out(&mut self, pc: usize) -> Option<Result<*const u8>> {
        let info = self.code.map.find(pc)?;
        let location = info.left_out(pc)?;
        let info = Arc::clone(info);
        Some(self.throw_at(&info, pc, location))
    }

    fn throw_at(&mut self, info: &CodeInfo, pc: usize, location: u32) -> Result<*const u8> {
        self.code.tiers.stats.throws += 1;
        let (func, offset) = info.places_of(location)[0];
        let code = match self.code.tiers.throws.get(&pc) {
            Some(&code) => code,
            None => {
                let code = self.code_of_throw(info, location, func, offset)?;
                self.code.tiers.throws.insert(pc, code);
                code
            }
        };
        // An activation may still be in code that was made anew, or given up, since.
        let mut in_use = self.code.tiers.in_use();
        let is_optimized = in_use
            .any(|(_, level, code)| (level, code as usize) == (Level::Optimizing, info.start));
        drop(in_use);
        if is_optimized {
            self.guard_failed(info.func.expect("a function's code"))?;
        }
        self.leave_nothing_out(func)?;
        Ok(code)
    }

    fn code_of_throw(
        &mut self,
        info: &CodeInfo,
        location: u32,
        func: u32,
        offset: u32,
    ) -> Result<*const u8> {
        self.prepare_feedback(func)?;
        let job = Job {
            start: Start::Throw(offset),
            ..self.job(func, Level::Baseline)
        };
        let (unit, isa) = self.translate(job)?;
        let mut generated = unit.generate(&*isa, &mut self.code.scratch)?;
        // A stack trace shows the interrupted function, with all that it is inlined into.
        generated.info.func = info.func;
        generated.info.inlined = info.inlined.clone();
        generated.info.offsets = vec![(0, location)];
        self.add_code(generated, Level::Baseline)
    }

    /// Has baseline code of a function made anew, with its throws.
    fn leave_nothing_out(&mut self, func: u32) -> Result<()> {
        let tiers = &mut self.code.tiers;
        let Some(feedback) = tiers.feedback.get_mut(&func) else {
            return Ok(());
        };
        if std::mem::replace(&mut feedback.throws, true) {
            return Ok(());
        }
        tiers.keeping.forget_baseline(func);
        let versions = tiers.of(func);
        let is_in_use = versions.baseline.take().is_some() && versions.optimized.is_none();
        if is_in_use {
            let code = self.baseline(func)?;
            self.install(func, code);
        }
        Ok(())
    }
}
