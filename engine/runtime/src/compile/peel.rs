//! Loops whose body is in the code more than once.
//!
//! ```text
//! first:  body                  <- its facts hold in the loop, as far as that changes nothing of them
//! head:   forget, read ahead
//!         body                  <- the loop
//!         body
//!         back to head
//! ```
//!
//! The first iteration of an innermost loop is code of its own: checks that it makes of values that the loop does not change are not made
//! again. A short body is repeated in the loop too: each copy has the facts of the one before, no paths but its own lead to it, and
//! branches at more places say better than those at one when the loop will end.
//!
//! If a copy decides by constants that the loop goes on, and a counter is close to its limit, the next copy is apart too: a loop from 0 to 3
//! becomes its iterations, one after the other, and there is no head. Whether that is so shows only in the last one. Until then it is likely.

use super::alias::Region;
use super::control::{Copies, Copy, FrameKind};
use super::effects::Effects;
use super::facts::{Fact, Facts, meet};
use super::isa::Level;
use super::translate::Translator;
use crate::error::Result;
use crate::types::ValType;
use cranelift_codegen::ir::{Block, InstBuilder, Value};

/// Bytes of bytecode of the longest loop with a first iteration of its own.
const PEELED: usize = 600;
/// Iterations per call of the function from which a loop with calls is worth peeling, for each `MANY_BYTES` bytes of its body, as calls may be
/// inlined.
const MANY: f64 = 8.0;
const MANY_BYTES: usize = 160;
/// Bytes of the longest body that is repeated in the loop.
const REPEATED: usize = 64;
/// How often it is.
const TIMES: usize = 4;
/// First iterations of a loop, after the first of all, that are apart if constants say that there are no more.
const FEW: usize = 8;
/// Bytes of bytecode of all of these.
const UNROLLED: usize = 800;

impl Translator<'_, '_> {
    /// Opens the loop at the operator.
    pub(super) fn begin_loop(&mut self, params: Vec<ValType>, results: Vec<ValType>) -> Result<()> {
        let after = self.block_for(&results);
        let copies = self.copies()?;
        let label = match copies {
            Some(_) => {
                self.note_running();
                self.learn(Fact::Uncalled(self.offset));
                self.block_for(&params)
            }
            None => self.begin_head(&params, None)?.0,
        };
        self.open(FrameKind::Loop, label, after, params, results);
        self.control.last_mut().expect("just opened").copies = copies;
        Ok(())
    }

    /// The head of the loop at the operator, with its parameters on the stack: translation goes on there. `first` are the regions that the first
    /// iteration stored into, if that was before. Also returns the facts that must hold whenever the head is reached.
    fn begin_head(
        &mut self,
        params: &[ValType],
        first: Option<&[Option<Region>]>,
    ) -> Result<(Block, Facts)> {
        let (kept, assumed) = self.before_loop(params.len(), first)?;
        let head = self.block_for(params);
        let others_run = self.others_run_in_loop()?;
        if !others_run {
            self.note_running();
        }
        let args = self.branch_args(params.len());
        self.ins().jump(head, &args);
        self.stack.truncate(self.stack.len() - params.len());
        self.continue_in(head, params);
        for (variable, value) in kept {
            self.b.def_var(variable, value);
        }
        self.count_loop(params.len());
        if others_run {
            self.note_running();
        }
        self.tell_long_loop();
        self.look_for_interrupt();
        Ok((head, assumed))
    }

    /// The copies that are worth making of the loop at the operator.
    fn copies(&mut self) -> Result<Option<Copies>> {
        // A copy in a first iteration would be hardly used.
        let in_first = |c: &Copies| c.head.is_none();
        if self.job.level != Level::Optimizing
            || self
                .control
                .iter()
                .filter_map(|f| f.copies.as_ref())
                .any(in_first)
        {
            return Ok(None);
        }
        let effects = self.loop_effects()?;
        if !is_peeled(&effects) || !self.is_frequent() {
            return Ok(None);
        }
        let many = MANY * effects.bytes.div_ceil(MANY_BYTES) as f64;
        if effects.calls_any && self.times_in_call().is_some_and(|times| times < many) {
            return Ok(None);
        }
        let in_loop = match !effects.calls_any && effects.bytes <= REPEATED {
            true => TIMES,
            false => 1,
        };
        let apart = match effects.calls_any {
            true => 0,
            false => (UNROLLED / effects.bytes.max(1)).min(FEW),
        };
        Ok(Some(Copies {
            offset: self.offset,
            left: in_loop,
            apart,
            distance: None,
            facts: None,
            head: None,
            assumed: vec![],
            inlined_bytes: self.inlined_bytes,
            stored: self.stored.len(),
        }))
    }

    /// Whether the loop that has just been opened, `around` other blocks being open, has copies.
    pub(super) fn has_copies(&self, around: usize) -> bool {
        let last = self.control.last();
        self.control.len() > around && last.is_some_and(|f| f.copies.is_some())
    }

    /// A branch back to the loop in the list of open blocks.
    pub(super) fn branch_back(&mut self, i: usize) {
        match &mut self.control[i].copies {
            Some(copies) if copies.left > 0 => return meet(&mut copies.facts, &self.facts),
            Some(copies) if !copies.assumed.iter().all(|f| self.facts.contains(f)) => {
                self.changing.insert(copies.offset);
            }
            _ => {}
        }
        self.repeat(i);
    }

    /// Whether the first iteration of the loop at the operator, of which this is the end, called no code, and others are taken to be like it.
    pub(super) fn is_calm(&self) -> bool {
        self.facts.contains(&Fact::Uncalled(self.offset))
            && !self.env.assumed.changing.contains(&self.offset)
    }

    /// At the end of a copy of the innermost block's body, if that is a loop: goes on in the next copy, if there is one.
    pub(super) fn next_copy(&mut self) -> Result<bool> {
        let frame = self.control.last_mut().expect("open block");
        let Some(copies) = &mut frame.copies else {
            return Ok(false);
        };
        let next = copies.facts.take();
        let distance = copies.distance.take();
        let Some(facts) = next.filter(|_| copies.left > 0) else {
            self.copy = Some(Copy::Last);
            return Ok(false);
        };
        let is_apart = copies.head.is_none()
            && copies.apart > 0
            && distance.is_some_and(|distance| distance as usize <= copies.apart);
        if is_apart {
            copies.apart -= 1;
        } else {
            copies.left -= 1;
        }
        let (offset, left, head) = (copies.offset, copies.left, copies.head);
        let (inlined, stored) = (copies.inlined_bytes, copies.stored);
        let (label, height, params) = (frame.label, frame.height, frame.params.clone());
        self.b.seal_block(label);
        self.stack.truncate(height);
        self.continue_in(label, &params);
        self.facts = facts;
        self.offset = offset;
        self.locate();
        let head = match head {
            _ if is_apart => None,
            Some(head) => Some(head),
            None => {
                // Functions inlined in the first iteration do not use up the loop's budget.
                self.inlined_bytes = inlined;
                let stored = self.stored.split_off(stored);
                let (head, assumed) = self.begin_head(&params, Some(&stored))?;
                let entry = self.facts.clone();
                let frame = self.control.last_mut().expect("open block");
                frame.entry = entry;
                frame.copies.as_mut().expect("the loop's").assumed = assumed;
                Some(head)
            }
        };
        let label = match head.filter(|_| left == 0) {
            Some(head) => head,
            None => self.block_for(&params),
        };
        let frame = self.control.last_mut().expect("open block");
        frame.label = label;
        frame.copies.as_mut().expect("the loop's").head = head;
        self.copy = Some(Copy::Next);
        Ok(true)
    }

    /// Records how far a loop's counter is from its limit if the condition, which has been decided by constants, says whether the loop goes on.
    pub(super) fn note_distance(&mut self, condition: Value, depth: u32) {
        let Some((_, distance)) = self.distance.filter(|&(decided, _)| decided == condition) else {
            return;
        };
        let target = self.control.len() - 1 - depth as usize;
        let inside = self.control[target..].iter_mut();
        if let Some(copies) = inside.rev().find_map(|f| f.copies.as_mut()) {
            copies.distance = Some(copies.distance.map_or(distance, |d| d.min(distance)));
        }
    }

    /// At the end of a loop: no more ways lead to where it begins.
    pub(super) fn end_copies(&mut self, label: Block, copies: Option<&Copies>) {
        self.b.seal_block(label);
        if let Some(head) = copies.and_then(|c| c.head).filter(|&head| head != label) {
            self.b.seal_block(head);
        }
    }
}

fn is_peeled(effects: &Effects) -> bool {
    !effects.loops && !effects.catches && effects.bytes <= PEELED
}
