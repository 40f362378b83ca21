//! From WebAssembly to Cranelift's intermediate form: the state of the translation and structured control.
//!
//! The state at each byte offset is explicit, as the typed operand stack, the locals and the open blocks: all that the rest of an activation needs to
//! go on elsewhere.

use super::alias::Region;
use super::control::{Copy, Exits, Frame, FrameKind, Truth};
use super::effects::Effects;
use super::env::{Assumptions, Env};
use super::facts::{Condition, Facts};
use super::isa::Level;
use super::live::Liveness;
use super::observe::COMPARISON;
use super::resume::Point;
use super::shared::Shared;
use super::signatures::{clif_type, signature};
use super::traps::trap_code;
use crate::code::link::Native;
use crate::code::map::{INLINED, Inlined};
use crate::error::{Error, Result, TrapKind};
use crate::helpers::Helper;
use crate::module::Convert;
use crate::store::region::{CONTEXT, Context, Place, displacement};
use crate::types::*;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, Block, BlockArg, InstBuilder, MemFlagsData, SourceLoc, Value, types,
};
use cranelift_frontend::{FunctionBuilder, Variable};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::mem::offset_of;
use std::rc::Rc;
use wasmparser as wp;

/// A value on the operand stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub value: Value,
    pub ty: ValType,
}

#[derive(Clone, Copy)]
pub(super) struct Local {
    pub variable: Variable,
    pub ty: ValType,
}

/// Where code begins.
#[derive(Clone)]
pub(crate) enum Start {
    /// Where its function does.
    Function,
    /// At a point: it is the rest of the function.
    Rest(Rc<Point>),
    /// At the call before a throw that other code leaves out, by its offset. It ends with the throw.
    Throw(u32),
}

/// A compilation job.
pub(crate) struct Job {
    /// The function, by its numbers in the store and in its module.
    pub func_id: u32,
    pub index: u32,
    pub level: Level,
    pub start: Start,
    /// Whether hot code asks for better code.
    pub tiers_up: bool,
    /// Whether guards may leave for baseline code.
    pub speculates: bool,
}

/// A function that is being translated: the one that is compiled, or one that is inlined into it.
pub(super) struct Activation {
    pub func_id: u32,
    pub ty: FuncType,
    /// Where its part of the translator's lists begins.
    pub locals: usize,
    pub control: usize,
    pub stack: usize,
    pub handlers: usize,
    /// How often it happens in the function that is compiled, for an inlined one whose calls are counted.
    pub weight: f64,
    /// For an inlined one, the location of the call in the function around it, and where that goes on.
    pub call_location: u32,
    pub call_offset: u32,
    pub next_offset: u32,
    /// Whether the call was in the place of its caller's return.
    pub returns: bool,
    /// Whether its objects count as made by the call.
    pub makes: bool,
}

pub(crate) struct Translator<'a, 'e> {
    pub(super) b: FunctionBuilder<'a>,
    /// Whether this code is to be there soon, and need not be fast.
    pub(super) soon: bool,
    pub(super) maps: &'e mut Maps,
    pub(super) env: Env<'e>,
    pub(super) job: &'e Job,
    /// The function that is compiled, and those inlined into it around the operator that is translated.
    pub(super) activations: Vec<Activation>,
    pub(super) stack: Vec<Operand>,
    pub(super) locals: Vec<Local>,
    pub(super) control: Vec<Frame>,
    /// Blocks that take exceptions here, outermost first.
    pub(super) handlers: Vec<Block>,
    pub(super) reachable: bool,
    /// Blocks opened since the code became unreachable.
    pub(super) dead_depth: u32,
    /// Of the operator that is translated.
    pub(super) offset: u32,
    /// Of the next one.
    pub(super) next_offset: u32,
    /// Values that have to be found where they live across calls that may collect.
    references: EntitySet<Value>,
    /// Helpers that never do.
    pub(super) harmless: EntitySet<ir::FuncRef>,
    /// Locals that hold such values.
    managed_locals: EntitySet<Variable>,
    pub(super) regions: HashMap<Region, u32>,
    /// Live locals of functions that code leaves.
    pub(super) live: HashMap<u32, Rc<Liveness>>,
    /// The heap's base, in optimized code.
    heap_base: Option<Value>,
    /// The same in baseline code, as far as no call follows in the block.
    base_here: Option<(Block, Value)>,
    /// An object's address there: that base, the reference, the address.
    pub(super) address_here: Option<(Value, Value, Value)>,
    /// An array and an index in baseline code that was found to be within it, in the block.
    pub(super) within_here: Option<(Block, Value, Value)>,
    /// The counter of all operators from here on that run as often, and the function that has it.
    pub(super) counted: Option<(u32, Place)>,
    /// How often the most frequent operator of the function ran, computed on demand.
    pub(super) peak: OnceCell<f64>,
    /// The heap's base and the distance to counters, in optimized code that counts accesses.
    pub(super) counters: Option<Value>,
    /// Objects allocated since anything last collected or paths met: stores into them need no barrier.
    pub(super) fresh: Vec<Value>,
    /// Objects that are allocated in this code, as far as marks may concern them.
    pub(super) births: Vec<super::hints::Birth>,
    /// The effects of loops of functions whose code is in this one, by the loops' offsets.
    pub(super) loops: HashMap<u32, Rc<Effects>>,
    /// The effects of functions that are called in loops, by their numbers in the module, the depth to which calls were followed, and whether their
    /// exceptions are caught.
    pub(super) callees: HashMap<(u32, u32, bool), Rc<Effects>>,
    /// The facts here, latest last.
    pub(super) facts: Facts,
    /// Whether it was known where a loop begins that nothing is durable, and not where it begins again.
    pub(super) lost_nothing_durable: bool,
    /// Loops that store more than their first iterations do, by their offsets.
    pub(super) changing: HashSet<u32>,
    /// The regions stored into so far, in order; none for all arrays.
    pub(super) stored: Vec<Option<Region>>,
    /// Values that are kept elsewhere while this code is left.
    pub(super) parked: super::resume::Parked,
    /// The meaning of conditions.
    pub(super) conditions: HashMap<Value, Condition>,
    /// Locals that are asked after the ends of blocks, by the blocks' offsets, of functions whose code is in this one.
    pub(super) tests: HashMap<u32, u32>,
    /// The truth value that is the topmost operand or the next one, as long as paths with it have not met.
    pub(super) truth: Option<Truth>,
    /// Whether the next comparison with a length is also to say that the index is not negative.
    pub(super) unsigned: bool,
    /// Whether the operators after the cast that is translated ask whether its value is null.
    pub(super) null_is_asked: bool,
    /// Where code goes on with a value that a cast found to be null, and the facts there: the next operators test for null.
    pub(super) null_path: Option<(Block, Facts)>,
    /// The last comparison of two constants, and how far they are from each other.
    pub(super) distance: Option<(Value, u32)>,
    /// At the end of a copy of a loop's body: the part to translate next.
    pub(super) copy: Option<Copy>,
    /// Places in inlined functions, for the code's map.
    pub(super) inlined: Vec<Inlined>,
    /// Bytes of bytecode that were inlined.
    pub(super) inlined_bytes: usize,
    /// The state of recorded accesses, in observed code.
    pub(super) recorded: super::observe::Recorded,
    /// The constant that encodes the fetch of this code.
    pub(super) fetched: Option<Value>,
    /// Throws that this code leaves out, by the locations of the calls before them.
    pub(super) left_out: Vec<u32>,
    /// Functions of the module that this code calls by their records, in order, and how many were called where control last came from
    /// elsewhere.
    pub(super) called: Vec<u32>,
    pub(super) called_before: usize,
}

/// Declarations of the function being translated. The memory is reused for the next one.
#[derive(Default)]
pub(crate) struct Maps {
    pub(super) shared: Shared,
    /// Cranelift's handles of these, which are slow to look up.
    pub(super) flags: HashMap<MemFlagsData, ir::MemFlags>,
    pub(super) signatures: HashMap<TypeIndex, ir::SigRef>,
    pub(super) helpers: HashMap<Helper, ir::FuncRef>,
    /// The host's own functions.
    pub(super) natives: HashMap<Native, ir::FuncRef>,
}

impl Maps {
    fn clear(&mut self) {
        self.shared.take_all();
        self.flags.clear();
        self.signatures.clear();
        self.helpers.clear();
        self.natives.clear();
    }
}

/// The results of a translation, besides the function itself.
pub(crate) struct Translated {
    /// Places in inlined functions.
    pub inlined: Vec<Inlined>,
    /// Throws that are left out, by their locations.
    pub left_out: Vec<u32>,
    /// References to objects.
    pub references: EntitySet<Value>,
    /// Instructions without a place.
    pub shared: Vec<ir::Inst>,
    /// Helpers that never collect.
    pub harmless: EntitySet<ir::FuncRef>,
    /// Functions of the store that are called, in order, but for those of paths that end in an exception.
    pub called: Vec<u32>,
}

/// Operands or results: seldom more than a few.
pub(super) type Values = SmallVec<[Value; 6]>;

pub(super) fn args(values: &[Value]) -> SmallVec<[BlockArg; 4]> {
    values.iter().map(|&v| BlockArg::Value(v)).collect()
}

pub(super) fn broken(e: wp::Error) -> Error {
    Error::Internal(format!("validated code does not decode: {e}"))
}

/// Whether control may come to an operator, or go from it, otherwise than in order.
pub(super) fn may_branch(op: &wp::Operator<'_>) -> bool {
    use wp::Operator::*;
    matches!(
        op,
        Loop { .. }
            | If { .. }
            | Else
            | End
            | Br { .. }
            | BrIf { .. }
            | BrTable { .. }
            | Return
            | BrOnNull { .. }
            | BrOnNonNull { .. }
            | BrOnCast { .. }
            | BrOnCastFail { .. }
            | Try { .. }
            | TryTable { .. }
            | Catch { .. }
            | CatchAll
            | Delegate { .. }
    )
}

/// Whether the next operators are the check of the topmost operand as compilers of Java make it: a block that is left if it is not null.
fn asks_for_null(mut reader: wp::OperatorsReader<'_>) -> bool {
    let block = matches!(reader.read(), Ok(wp::Operator::Block { .. }));
    let next = reader.read();
    block && matches!(next, Ok(wp::Operator::BrOnNonNull { relative_depth: 0 }))
}

impl<'a, 'e> Translator<'a, 'e> {
    pub fn new(
        b: FunctionBuilder<'a>,
        env: Env<'e>,
        job: &'e Job,
        soon: bool,
        maps: &'e mut Maps,
    ) -> Self {
        maps.clear();

        Translator {
            b,
            soon,
            maps,
            env,
            job,
            activations: vec![],
            stack: vec![],
            locals: vec![],
            control: vec![],
            handlers: vec![],
            reachable: true,
            dead_depth: 0,
            offset: 0,
            next_offset: 0,
            references: EntitySet::new(),
            harmless: EntitySet::new(),
            base_here: None,
            address_here: None,
            within_here: None,
            counted: None,
            peak: OnceCell::new(),
            managed_locals: EntitySet::new(),
            regions: HashMap::default(),
            live: HashMap::default(),
            heap_base: None,
            counters: None,
            fresh: vec![],
            births: vec![],
            loops: HashMap::default(),
            callees: HashMap::default(),
            facts: vec![],
            lost_nothing_durable: false,
            changing: HashSet::default(),
            stored: vec![],
            parked: Default::default(),
            conditions: HashMap::default(),
            tests: HashMap::default(),
            truth: None,
            unsigned: false,
            null_is_asked: false,
            null_path: None,
            distance: None,
            copy: None,
            inlined: vec![],
            inlined_bytes: 0,
            recorded: Default::default(),
            fetched: None,
            left_out: vec![],
            called: vec![],
            called_before: 0,
        }
    }

    /// Translates the whole function, or the rest of it; or returns the weaker assumptions that hold, if the given ones do not.
    pub fn run(
        mut self,
        config: cranelift_codegen::isa::TargetFrontendConfig,
    ) -> Result<std::result::Result<Translated, Assumptions>> {
        let body = self.env.body(self.job.index);
        let ty = self.env.func_type(self.job.index);
        self.begin_regions();
        self.activations.push(Activation {
            func_id: self.job.func_id,
            ty,
            locals: 0,
            control: 0,
            stack: 0,
            handlers: 0,
            weight: 0.0,
            call_location: 0,
            call_offset: 0,
            next_offset: 0,
            returns: false,
            makes: false,
        });
        self.find_tests(&body)?;
        let mut reader = body.get_operators_reader().map_err(broken)?;
        match self.job.start.clone() {
            Start::Function => self.prologue(&body)?,
            Start::Rest(point) => self.resume(&body, &mut reader, &point)?,
            Start::Throw(at) => self.begin_throw(&mut reader, at)?,
        }
        match self.job.start {
            Start::Throw(_) => self.end_throw(reader)?,
            _ => self.operators(reader)?,
        }
        self.set_fetched();
        self.b.seal_all_blocks();
        self.b.finalize(config);
        if !self.lost_nothing_durable && self.changing.is_empty() {
            let called = self.called.iter();
            let called = called.map(|&f| self.env.func_at(self.env.instance.funcs[f as usize]));
            return Ok(Ok(Translated {
                called: called.collect(),
                inlined: self.inlined,
                left_out: self.left_out,
                references: self.references,
                shared: self.maps.shared.take_all(),
                harmless: self.harmless,
            }));
        }
        let mut less = self.env.assumed.clone();
        less.nothing_durable &= !self.lost_nothing_durable;
        less.changing.extend(self.changing);
        Ok(Err(less))
    }

    /// Translates the operators of the innermost activation.
    pub(super) fn operators(&mut self, mut reader: wp::OperatorsReader<'_>) -> Result<()> {
        // Where the bodies of loops begin that are translated more than once, from the outermost loop on.
        let mut bodies = Vec::new();
        while !reader.eof() {
            self.offset = reader.original_position() as u32;
            let op = reader.read().map_err(broken)?;
            self.next_offset = reader.original_position() as u32;
            self.locate();
            if may_branch(&op) {
                self.counted = None;
                self.called_before = self.called.len();
            }
            if self.reachable && (self.decide(&op) || self.leave_out(&op, &mut reader)?) {
                continue;
            }
            if self.begins_range_check(&op, &reader) {
                // One comparison without sign says both.
                self.not_executed(COMPARISON);
                self.pop();
                self.unsigned = true;
                continue;
            }
            self.null_is_asked =
                matches!(op, wp::Operator::RefCastNullable { .. }) && asks_for_null(reader.clone());
            let around = self.control.len();
            self.step(&op)?;
            match op {
                wp::Operator::Loop { .. } if self.has_copies(around) => bodies.push(reader.clone()),
                wp::Operator::End => match self.copy.take() {
                    Some(Copy::Next) => reader.clone_from(bodies.last().expect("a loop's body")),
                    Some(Copy::Last) => drop(bodies.pop()),
                    None => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// The function that the operator belongs to.
    pub(super) fn activation(&self) -> &Activation {
        self.activations.last().expect("the function itself")
    }

    /// Whether this code has counters.
    pub(super) fn counts(&self) -> bool {
        self.job.level == Level::Baseline
    }

    /// The location of the operator in the code's map.
    pub(super) fn location(&mut self) -> u32 {
        let a = self.activation();
        if self.activations.len() == 1 {
            return self.offset;
        }
        let (func, caller) = (a.func_id, a.call_location);
        self.inlined.push(Inlined {
            func,
            offset: self.offset,
            caller,
        });
        INLINED | (self.inlined.len() - 1) as u32
    }

    /// Instructions emitted from here on belong to the operator.
    pub(super) fn locate(&mut self) {
        let location = self.location();
        self.b.set_srcloc(SourceLoc::new(location));
    }

    fn prologue(&mut self, body: &wp::FunctionBody<'_>) -> Result<()> {
        self.offset = body.range().start as u32;
        self.locate();
        let entry = self.b.create_block();
        self.b.append_block_params_for_function_params(entry);
        self.b.switch_to_block(entry);
        self.b.seal_block(entry);
        self.keep_base();
        self.check_stack();
        self.note_running();
        let params = self.b.block_params(entry).to_vec();
        for (value, ty) in params.iter().zip(self.activation().ty.params.clone()) {
            self.declare_local(ty, *value);
        }
        self.fetch_code();
        self.count_entry();
        self.declare_zeroed(body)?;
        self.begin_unchecked();
        self.open_function();
        Ok(())
    }

    /// The locals that begin as zero.
    pub(super) fn declare_zeroed(&mut self, body: &wp::FunctionBody<'_>) -> Result<()> {
        for group in body.get_locals_reader().map_err(broken)? {
            let (count, ty) = group.map_err(broken)?;
            let ty = self.val_type(ty);
            let zero = self.zero(ty);
            for _ in 0..count {
                self.declare_local(ty, zero);
            }
        }
        Ok(())
    }

    /// Opens the block that is the innermost activation's body.
    pub(super) fn open_function(&mut self) {
        let (results, height) = (
            self.activation().ty.results.clone(),
            self.activation().stack,
        );
        let after = self.block_for(&results);
        self.control.push(Frame {
            tested: None,
            kind: FrameKind::Block,
            label: after,
            after,
            params: vec![],
            results,
            height,
            handlers: self.handlers.len(),
            entry: self.facts.clone(),
            exits: Exits::default(),
            copies: None,
        });
    }

    pub(super) fn check_stack(&mut self) {
        let sp = self.ins().get_stack_pointer(types::I64);
        let limit = self.load_context(offset_of!(Context, stack_limit));
        let low = self.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
        self.ins().trapnz(low, trap_code(TrapKind::StackOverflow));
    }

    /// In a loop: checks for an interrupt, which raises the stack's limit.
    pub(super) fn look_for_interrupt(&mut self) {
        if !self.env.interruptible {
            return;
        }
        self.check_stack();
        let (flags, base) = (self.trusted(Region::Context), self.base());
        let zero = self.ins().iconst(types::I64, 0);
        let at = displacement(CONTEXT) + offset_of!(Context, looked) as i32;
        self.ins().store(flags, zero, base, at);
    }

    pub(super) fn declare_local(&mut self, ty: ValType, value: Value) {
        let variable = self.b.declare_var(clif_type(ty));
        if ty.is_managed() {
            self.managed_locals.insert(variable);
            self.track(value);
        }
        self.b.def_var(variable, value);
        self.locals.push(Local { variable, ty });
    }

    // ---- values -----------------------------------------------------------------------------------------------------------------

    pub(super) fn convert(&self) -> Convert<'_> {
        Convert {
            types: &self.env.module.types,
            kinds: &self.env.module.kinds,
        }
    }

    pub(super) fn val_type(&self, ty: wp::ValType) -> ValType {
        self.convert()
            .val(ty)
            .expect("loading refused types that are not supported")
    }

    pub(super) fn heap_type(&self, ty: wp::HeapType) -> HeapType {
        self.convert()
            .heap(ty)
            .expect("loading refused types that are not supported")
    }

    pub(super) fn ref_type(&self, ty: wp::RefType) -> RefType {
        self.convert()
            .reference(ty)
            .expect("loading refused types that are not supported")
    }

    /// The concrete reference type of a type index of the module.
    pub(super) fn concrete(&self, index: u32, nullable: bool) -> ValType {
        let heap = HeapType::Concrete(
            self.env.module.types[index as usize],
            self.env.module.kinds[index as usize],
        );
        ValType::Ref(RefType { nullable, heap })
    }

    /// The value of a local here. Where paths meet that did not change it, it is the one from before: facts are about that.
    pub(super) fn value_of(&mut self, local: Variable) -> Value {
        let value = self.read_local(local);
        self.b.func.dfg.resolve_aliases(value)
    }

    /// Has the collector find the value wherever it lives across a call.
    pub(super) fn track(&mut self, value: Value) {
        self.references.insert(value);
    }

    /// Reads a local.
    pub(super) fn read_local(&mut self, local: Variable) -> Value {
        let value = self.b.use_var(local);
        if self.managed_locals.contains(local) {
            self.track(value);
        }
        value
    }

    pub(super) fn push(&mut self, value: Value, ty: ValType) {
        if ty.is_managed() {
            self.track(value);
        }
        self.stack.push(Operand { value, ty });
    }

    pub(super) fn pop(&mut self) -> Value {
        self.pop_operand().value
    }

    pub(super) fn pop_operand(&mut self) -> Operand {
        self.stack
            .pop()
            .expect("validated code never pops an empty stack")
    }

    pub(super) fn pop_n(&mut self, n: usize) -> Values {
        let at = self.stack.len() - n;
        self.stack.drain(at..).map(|o| o.value).collect()
    }

    pub(super) fn zero(&mut self, ty: ValType) -> Value {
        match ty {
            ValType::I32 => self.ins().iconst(types::I32, 0),
            ValType::I64 | ValType::Ref(_) => self.ins().iconst(types::I64, 0),
            ValType::F32 => self.ins().f32const(0.0),
            ValType::F64 => self.ins().f64const(0.0),
            ValType::V128 => self.vector(&[0; 16]),
        }
    }

    pub(super) fn i32(&mut self, v: i64) -> Value {
        self.ins().iconst(types::I32, v & 0xffff_ffff)
    }

    pub(super) fn i64(&mut self, v: i64) -> Value {
        self.ins().iconst(types::I64, v)
    }

    pub(super) fn base(&mut self) -> Value {
        if let Some(base) = self.heap_base {
            return base;
        }
        let block = self.b.current_block().expect("code is added to a block");
        match self.base_here {
            Some((here, base)) if here == block => base,
            _ => {
                let base = self.ins().get_pinned_reg(types::I64);
                self.address_here = None;
                self.base_here = Some((block, base));
                base
            }
        }
    }

    /// After a call it is quicker to read the base again than to have kept it.
    pub(super) fn forget_base(&mut self) {
        self.base_here = None;
    }

    /// Reads the heap's base once for all of the function, at its beginning.
    pub(super) fn keep_base(&mut self) {
        if self.job.level == Level::Optimizing {
            self.heap_base = Some(self.ins().get_pinned_reg(types::I64));
        }
        self.keep_counters();
    }

    pub(super) fn load_context(&mut self, offset: usize) -> Value {
        let base = self.base();
        let flags = self.trusted(Region::Context);
        self.ins().load(
            types::I64,
            flags,
            base,
            displacement(CONTEXT) + offset as i32,
        )
    }

    /// A word of the store's region that never changes while code runs.
    pub(super) fn constant_word(&mut self, place: Place, offset: usize) -> Value {
        let base = self.base();
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.ins()
            .load(types::I64, flags, base, displacement(place) + offset as i32)
    }

    pub(super) fn word(&mut self, place: Place, offset: usize) -> Value {
        let base = self.base();
        self.ins().load(
            types::I64,
            MemFlagsData::trusted(),
            base,
            displacement(place) + offset as i32,
        )
    }

    pub(super) fn trap_if(&mut self, condition: Value, kind: TrapKind) {
        self.ins().trapnz(condition, trap_code(kind));
    }

    /// A block with parameters of these types.
    pub(super) fn block_for(&mut self, types: &[ValType]) -> Block {
        let block = self.b.create_block();
        for &ty in types {
            let value = self.b.append_block_param(block, clif_type(ty));
            if ty.is_managed() {
                self.track(value);
            }
        }
        block
    }

    /// Goes on in a block whose parameters become operands of these types.
    pub(super) fn continue_in(&mut self, block: Block, types: &[ValType]) {
        self.b.switch_to_block(block);
        self.fresh.clear();
        let params = self.b.block_params(block).to_vec();
        for (value, &ty) in params.into_iter().zip(types) {
            self.stack.push(Operand { value, ty });
        }
        self.reachable = true;
    }

    pub(super) fn signature(&mut self, ty: TypeIndex) -> ir::SigRef {
        if let Some(&s) = self.maps.signatures.get(&ty) {
            return s;
        }
        let sig = signature(self.env.types.func(ty));
        let s = self.b.import_signature(sig);
        self.maps.signatures.insert(ty, s);
        s
    }
}
