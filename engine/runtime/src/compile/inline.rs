//! Which calls are inlined, and how.

use super::facts::{Fact, meet};
use super::feedback::Feedback;
use super::isa::Level;
use super::resume::Why;
use super::translate::{Activation, Translator};
use crate::code::link::Native;
use crate::error::Result;
use crate::store::region::TargetCounters;
use crate::store::{FuncKind, Inline, Leaf};
use crate::types::{TypeIndex, ValType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value, types};
use cranelift_codegen::isa::CallConv;

/// Bytes of bytecode that are inlined wherever they are called.
const TINY: usize = 16;
/// Bytes that are inlined unless the counters say that the call is rare, or there are none.
const SMALL: usize = 40;
/// Bytes that are inlined where the call is frequent.
const LARGE: usize = 250;
/// Bytes that are inlined into one function.
const MOST: usize = 2500;
/// Functions around each other.
const DEPTH: usize = 9;
/// Times that a function is inlined into itself. Observed code keeps recursive calls, whose frames are memory too.
const RECURSIVE: usize = 1;
/// A call is frequent, or rare, if it happens this many times less often than the most frequent operator of the function that is
/// compiled.
const FREQUENT: f64 = 64.0;
const RARE: f64 = 1000.0;
/// Values that a guard's failure stores at most: with more the call is made after all, which is less code.
const MOST_STATE: usize = 16;
/// The same of a persistence check's failure, instead of which all that follows would have to expect that objects have moved.
const MOST_STATE_AT_CHECK: usize = 40;
/// The same of a call that made the first object durable.
const MOST_STATE_AFTER_CALL: usize = 100;
/// A target is worth a guard if it takes at least this share of the calls, in percent.
const SHARE: u64 = 12;

impl Translator<'_, '_> {
    /// How often the operator ran, if that was counted.
    fn frequency(&self) -> Option<u64> {
        let f = self.env.feedback.get(&self.activation().func_id)?;
        f.count(self.env.region, self.offset)
    }

    /// How often something happens in the function that is compiled that happened `calls` times in the innermost activation's
    /// function, from wherever that was called.
    fn weight(&self, calls: u64) -> f64 {
        let a = self.activation();
        if self.activations.len() == 1 {
            return calls as f64;
        }
        let entries = self.env.feedback.get(&a.func_id);
        let entries = entries.map_or(0, |f| f.entries(self.env.region));
        a.weight * calls as f64 / f64::from(entries.max(1))
    }

    /// Whether the operator runs about as often as the most frequent one, as far as that was counted.
    pub(super) fn is_frequent(&self) -> bool {
        let Some(times) = self.frequency() else {
            return true;
        };
        self.weight(times) * FREQUENT >= self.peak()
    }

    /// How often the most frequent operator ran of the function that is compiled.
    fn peak(&self) -> f64 {
        *self.peak.get_or_init(|| {
            let root = self.env.feedback.get(&self.job.func_id);
            root.map_or(0, |f| f.peak(self.env.region)) as f64
        })
    }

    /// How often the operator runs when its function is called once, if that was counted.
    pub(super) fn times_in_call(&self) -> Option<f64> {
        let f = self.env.feedback.get(&self.activation().func_id)?;
        let times = f.count(self.env.region, self.offset)?;
        Some(times as f64 / f64::from(f.entries(self.env.region).max(1)))
    }

    fn targets(&self) -> Option<TargetCounters> {
        if self.counts() {
            return None;
        }
        let f = self.env.feedback.get(&self.activation().func_id)?;
        f.targets(self.env.region, self.offset)
    }

    /// Whether a function is worth inlining at a call that happened so often.
    fn worth_inlining(&self, index: u32, calls: Option<u64>) -> bool {
        if self.counts() || self.activations.len() >= DEPTH {
            return false;
        }
        let id = self.env.func_at(self.env.instance.funcs[index as usize]);
        let around = self.activations.iter().filter(|a| a.func_id == id).count();
        if around > RECURSIVE {
            return false;
        }
        let module = self.env.module;
        let bytes = module.bodies[(index - module.imported_funcs) as usize].len();
        if self.inlined_bytes + bytes > MOST {
            return false;
        }
        let most = match calls {
            None => SMALL,
            Some(n) => {
                let peak = self.peak();
                match self.weight(n) {
                    w if w * FREQUENT >= peak => LARGE,
                    w if w * RARE >= peak => SMALL,
                    _ => TINY,
                }
            }
        };
        bytes <= most
    }

    /// Calls function `index` of this module.
    pub(super) fn call_direct(&mut self, index: u32, returns: bool) -> Result<()> {
        if index < self.env.module.imported_funcs {
            let id = self.env.func_at(self.env.instance.funcs[index as usize]);
            match self.env.funcs[id as usize].kind {
                FuncKind::Host(_, Some(Inline::Leaf(leaf))) => {
                    self.call_leaf(leaf);
                    return Ok(());
                }
                FuncKind::Host(_, Some(Inline::Mark)) => {
                    self.mark();
                    return Ok(());
                }
                _ => {}
            }
        }
        if self.leave_if_never() {
            return Ok(());
        }
        self.count();
        if !returns && self.makes(index) {
            return self.inline_maker(index);
        }
        let calls = self.frequency();
        self.call_known(index, calls, returns)
    }

    /// Whether a function that is called here makes an object in its caller's name.
    fn makes(&self, index: u32) -> bool {
        if !self.env.attributes() {
            return false;
        }
        let mut around: Vec<u32> = Vec::new();
        for a in self.activations.iter().rev() {
            if let FuncKind::Wasm { index, .. } = self.env.funcs[a.func_id as usize].kind {
                around.push(index);
            }
            if !a.makes {
                break;
            }
        }
        self.env.module.is_made_by(index, &around, self.env.types)
    }

    /// Translates a maker in the place of a call of it, whatever the code's level is, so that its sites are the call's.
    fn inline_maker(&mut self, index: u32) -> Result<()> {
        let calls = self.frequency();
        let weight = self.weight(calls.unwrap_or(0));
        let bytes = self.inlined_bytes;
        self.prepare_counts(index)?;
        self.inline(index, weight, false, true)?;
        // Functions that must be inlined do not use up the budget of the others.
        self.inlined_bytes = bytes;
        Ok(())
    }

    /// Has a function counted that has no code of its own.
    fn prepare_counts(&mut self, index: u32) -> Result<()> {
        if !self.counts() {
            return Ok(());
        }
        let id = self.env.func_at(self.env.instance.funcs[index as usize]);
        if !self.env.feedback.contains_key(&id) {
            let hot = self.env.module.engine.config().hot;
            let feedback = Feedback::new(self.env.region, hot)?;
            self.env.feedback.insert(id, feedback);
        }
        self.count_call_of(id);
        Ok(())
    }

    fn call_known(&mut self, index: u32, calls: Option<u64>, returns: bool) -> Result<()> {
        if index >= self.env.module.imported_funcs && self.worth_inlining(index, calls) {
            let weight = self.weight(calls.unwrap_or(0));
            return self.inline(index, weight, returns, false);
        }
        self.call_record(index);
        Ok(())
    }

    /// Calls the reference on the stack.
    pub(super) fn call_reference(&mut self, ty: TypeIndex, returns: bool) -> Result<()> {
        if self.leave_if_never() {
            return Ok(());
        }
        let func = self.stack.last().expect("validated").value;
        let known = self.function_of(func);
        if let Some(index) = known.and_then(|place| self.own_function(place)) {
            // A call before this one found out.
            self.pop();
            let calls = self.frequency();
            return self.call_known(index, calls, returns);
        }
        let Some(t) = self.targets() else {
            self.call_unknown(ty);
            return Ok(());
        };
        let total = t.total();
        let mut known: Vec<(u32, u64)> = (0..t.targets.len())
            .filter(|&i| t.targets[i] != 0 && 100 * u64::from(t.hits[i]) >= SHARE * total)
            .filter_map(|i| Some((self.own_function(t.targets[i])?, t.hits[i].into())))
            .collect();
        // The most frequent one first.
        known.sort_by_key(|&(_, hits)| std::cmp::Reverse(hits));
        if known.is_empty() {
            self.call_unknown(ty);
            return Ok(());
        }
        let results = self.env.types.func(ty).results.clone();
        let done = self.block_for(&results);
        let bottom = self.stack.len() - 1 - self.env.types.func(ty).params.len();
        let operands = self.stack[bottom..].to_vec();
        // The facts after the call, if that is reached.
        let mut facts = None;
        for &(index, hits) in &known {
            let place = self.env.instance.funcs[index as usize];
            self.execute_guard();
            let same = self.ins().icmp_imm_s(IntCC::Equal, func, place as i64);
            let (yes, no) = (self.b.create_block(), self.b.create_block());
            self.ins().brif(same, yes, &[], no, &[]);
            self.b.seal_block(yes);
            self.b.seal_block(no);
            self.b.switch_to_block(yes);
            self.fresh.clear();
            let known = self.facts.clone();
            self.learn(Fact::Function(func, place));
            self.pop();
            self.call_known(index, Some(hits), returns)?;
            self.join_truth();
            if self.is_reachable() {
                let args = self.branch_args(results.len());
                self.ins().jump(done, &args);
                meet(&mut facts, &self.facts);
            }
            self.set_reachable(true);
            self.stack.truncate(bottom);
            self.stack.extend(operands.iter().copied());
            self.b.switch_to_block(no);
            self.fresh.clear();
            self.facts = known;
        }
        let rest = total - known.iter().map(|k| k.1).sum::<u64>();
        if rest == 0 && self.speculates() && self.locals.len() + self.stack.len() <= MOST_STATE {
            let here = self.b.current_block().expect("in a block");
            self.b.set_cold_block(here);
            let point = self.point(self.offset, self.stack.len(), 0);
            self.leave_for(point, super::resume::Why::Guard);
        } else {
            self.call_unknown(ty);
            let args = self.branch_args(results.len());
            self.ins().jump(done, &args);
            meet(&mut facts, &self.facts);
        }
        self.stack.truncate(bottom);
        self.b.seal_block(done);
        match facts {
            Some(facts) => {
                self.continue_in(done, &results);
                self.facts = facts;
            }
            None => self.dead(),
        }
        Ok(())
    }

    /// Whether guards may leave for baseline code. A maker's rest, which would be code of its own, does not know who called it.
    fn speculates(&self) -> bool {
        self.job.speculates && !self.activations.iter().any(|a| a.makes)
    }

    /// Whether code that has never run may be left out.
    pub(super) fn may_leave(&mut self) -> bool {
        self.may_leave_with(MOST_STATE)
    }

    /// Whether a check's action may be left to baseline code.
    pub(super) fn may_leave_at_check(&mut self) -> bool {
        self.may_leave_with(MOST_STATE_AT_CHECK)
    }

    /// Whether all that follows a call may be left to other code.
    pub(super) fn may_leave_after_call(&mut self) -> bool {
        self.may_leave_with(MOST_STATE_AFTER_CALL)
    }

    fn may_leave_with(&mut self, most: usize) -> bool {
        self.speculates()
            && self.job.level == Level::Optimizing
            && self.fits_state()
            && self.state_size() <= most
    }

    /// Leaves for baseline code, at a place that was never reached there.
    fn leave_cold(&mut self) {
        if let Some(here) = self.b.current_block()
            && self.b.func.layout.entry_block() != Some(here)
        {
            self.b.set_cold_block(here);
        }
        let point = self.point(self.offset, self.stack.len(), 0);
        self.leave_for(point, Why::Guard);
    }

    /// Leaves for baseline code at a loop that is about to begin, with its parameters on the stack.
    pub(super) fn leave_at_loop(&mut self, params: usize) {
        let point = self.point(self.offset, self.stack.len(), params);
        self.leave_for(point, Why::Guard);
    }

    /// Leaves for baseline code if the operator has never run, by its counter: then the code after it is not translated.
    pub(super) fn leave_if_never(&mut self) -> bool {
        self.frequency() == Some(0) && self.leave_here()
    }

    /// Leaves for baseline code at an operator that is not worth translating, if that may be.
    pub(super) fn leave_here(&mut self) -> bool {
        if !self.may_leave() {
            return false;
        }
        self.leave_cold();
        self.dead();
        true
    }

    /// The index of the function at a place, if it is this instance's own.
    fn own_function(&self, place: u32) -> Option<u32> {
        let id = self.env.func_at(place);
        match self.env.funcs[id as usize].kind {
            FuncKind::Wasm { instance, index } if instance == self.env.instance_id => Some(index),
            _ => None,
        }
    }

    /// Translates a function in the place of a call of it.
    fn inline(&mut self, index: u32, weight: f64, returns: bool, makes: bool) -> Result<()> {
        let body = self.env.body(index);
        let ty = self.env.func_type(index);
        self.inlined_bytes += body.range().end as usize - body.range().start as usize;
        let first = self.stack.len() - ty.params.len();
        let operands = self.stack.split_off(first);
        for o in &operands {
            self.learn_type(o.value, o.ty);
        }
        let call_location = self.location();
        let (offset, next_offset) = (self.offset, self.next_offset);
        self.activations.push(Activation {
            func_id: self.env.func_at(self.env.instance.funcs[index as usize]),
            ty: ty.clone(),
            locals: self.locals.len(),
            control: self.control.len(),
            stack: self.stack.len(),
            handlers: self.handlers.len(),
            weight,
            call_location,
            call_offset: offset,
            next_offset,
            returns,
            makes,
        });
        for (o, &t) in operands.into_iter().zip(&ty.params) {
            self.declare_local(t, o.value);
        }
        self.declare_zeroed(&body)?;
        self.find_tests(&body)?;
        self.open_function();
        let reader = body
            .get_operators_reader()
            .map_err(super::translate::broken)?;
        self.operators(reader)?;
        let a = self.activations.pop().expect("inlined");
        self.locals.truncate(a.locals);
        self.offset = offset;
        self.next_offset = next_offset;
        self.locate();
        Ok(())
    }

    /// A function of the host that is as good as an instruction.
    fn call_leaf(&mut self, leaf: Leaf) {
        let result = match leaf {
            Leaf::Sqrt | Leaf::Abs | Leaf::Floor | Leaf::Ceil => {
                let x = self.pop();
                match leaf {
                    Leaf::Sqrt => self.ins().sqrt(x),
                    Leaf::Abs => self.ins().fabs(x),
                    Leaf::Floor => self.ins().floor(x),
                    _ => self.ins().ceil(x),
                }
            }
            Leaf::Unary(f) => self.call_leaf_at(f as usize, 1),
            Leaf::Binary(f) => self.call_leaf_at(f as usize, 2),
        };
        self.push(result, ValType::F64);
    }

    fn call_leaf_at(&mut self, address: usize, count: usize) -> Value {
        let operands = self.pop_n(count);
        let signature = || {
            let mut sig = ir::Signature::new(CallConv::SystemV);
            sig.params
                .extend(std::iter::repeat_n(ir::AbiParam::new(types::F64), count));
            sig.returns.push(ir::AbiParam::new(types::F64));
            sig
        };
        let inst = self.call_native(Native::Leaf(address), signature, &operands);
        self.forget_base();
        self.b.inst_results(inst)[0]
    }
}
