//! From WebAssembly to Cranelift's intermediate form: the state of the translation and structured control.
//!
//! The state at each byte offset is explicit, as the typed operand stack, the locals and the open blocks: what the rest of an
//! activation needs to go on elsewhere.

use super::env::{Env, clif_type, signature};
use crate::error::{Error, Result, TrapKind};
use crate::module::Convert;
use crate::store::region::{CONTEXT, Context, displacement};
use crate::types::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, Block, BlockArg, InstBuilder, MemFlagsData, SourceLoc, TrapCode, Value, types,
};
use cranelift_frontend::{FunctionBuilder, Variable};
use std::collections::HashMap;
use std::mem::offset_of;
use wasmparser as wp;
use wasmparser::Operator;

/// A value on the operand stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub value: Value,
    pub ty: ValType,
}

pub(super) struct Local {
    pub variable: Variable,
    pub ty: ValType,
}

enum FrameKind {
    Block,
    Loop,
    /// With the block that the false branch goes to, and the parameters, until `else` was seen.
    If(Option<(Block, Vec<Operand>)>),
    /// With the block that takes exceptions, and its catch clauses.
    Try(Block, Vec<wp::Catch>),
}

pub(super) struct Frame {
    kind: FrameKind,
    /// Where branches to this frame go.
    label: Block,
    /// What follows its end.
    after: Block,
    params: Vec<ValType>,
    results: Vec<ValType>,
    /// Operands below its parameters.
    height: usize,
    /// Whether anything reaches `after` other than by falling off the end.
    branched: bool,
}

impl Frame {
    fn label_types(&self) -> &[ValType] {
        match self.kind {
            FrameKind::Loop => &self.params,
            _ => &self.results,
        }
    }
}

pub(crate) struct Translator<'a, 'e> {
    pub(super) b: FunctionBuilder<'a>,
    pub(super) env: Env<'e>,
    pub(super) ty: FuncType,
    pub(super) stack: Vec<Operand>,
    pub(super) locals: Vec<Local>,
    pub(super) control: Vec<Frame>,
    /// Blocks that take exceptions here, outermost first.
    pub(super) handlers: Vec<Block>,
    reachable: bool,
    /// Blocks opened since the code became unreachable.
    dead_depth: u32,
    pub(super) offset: u32,
    kinds: Vec<Kind>,
    pub(super) signatures: HashMap<TypeIndex, ir::SigRef>,
    pub(super) helpers: HashMap<crate::helpers::Helper, ir::FuncRef>,
}

/// The trap code that stands for a trap of ours.
pub(crate) fn trap_code(kind: TrapKind) -> TrapCode {
    match kind {
        TrapKind::MemoryOutOfBounds => TrapCode::HEAP_OUT_OF_BOUNDS,
        TrapKind::StackOverflow => TrapCode::STACK_OVERFLOW,
        TrapKind::IntegerOverflow => TrapCode::INTEGER_OVERFLOW,
        TrapKind::IntegerDivisionByZero => TrapCode::INTEGER_DIVISION_BY_ZERO,
        TrapKind::BadConversion => TrapCode::BAD_CONVERSION_TO_INTEGER,
        other => TrapCode::unwrap_user(other as u8),
    }
}

/// The trap that a trap code stands for.
pub(crate) fn trap_kind(code: TrapCode) -> Option<TrapKind> {
    TrapKind::ALL.into_iter().find(|&k| trap_code(k) == code)
}

pub(super) fn args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|&v| BlockArg::Value(v)).collect()
}

impl<'a, 'e> Translator<'a, 'e> {
    pub fn new(b: FunctionBuilder<'a>, env: Env<'e>, ty: FuncType) -> Self {
        let kinds = env
            .module
            .types
            .iter()
            .map(|&t| env.types.get(t).ty.kind())
            .collect();
        Translator {
            b,
            env,
            ty,
            stack: vec![],
            locals: vec![],
            control: vec![],
            handlers: vec![],
            reachable: true,
            dead_depth: 0,
            offset: 0,
            kinds,
            signatures: HashMap::new(),
            helpers: HashMap::new(),
        }
    }

    /// Translates the whole body.
    pub fn run(
        mut self,
        body: &wp::FunctionBody<'_>,
        config: cranelift_codegen::isa::TargetFrontendConfig,
    ) -> Result<()> {
        let broken = |e: wp::Error| Error::Internal(format!("validated code does not decode: {e}"));
        self.prologue(body).map_err(broken)?;
        let mut reader = body.get_operators_reader().map_err(broken)?;
        while !reader.eof() {
            self.offset = reader.original_position() as u32;
            let op = reader.read().map_err(broken)?;
            self.b.set_srcloc(SourceLoc::new(self.offset));
            self.step(&op)?;
        }
        self.b.seal_all_blocks();
        self.b.finalize(config);
        Ok(())
    }

    fn prologue(&mut self, body: &wp::FunctionBody<'_>) -> Result<(), wp::Error> {
        self.offset = body.range().start as u32;
        self.b.set_srcloc(SourceLoc::new(self.offset));
        let entry = self.b.create_block();
        self.b.append_block_params_for_function_params(entry);
        self.b.switch_to_block(entry);
        self.b.seal_block(entry);
        self.check_stack();
        let params = self.b.block_params(entry).to_vec();
        for (value, ty) in params.into_iter().zip(self.ty.params.clone()) {
            self.declare_local(ty, value);
        }
        for group in body.get_locals_reader()? {
            let (count, ty) = group?;
            let ty = self.val_type(ty);
            let zero = self.zero(ty);
            for _ in 0..count {
                self.declare_local(ty, zero);
            }
        }
        let after = self.block_for(&self.ty.results.clone());
        self.control.push(Frame {
            kind: FrameKind::Block,
            label: after,
            after,
            params: vec![],
            results: self.ty.results.clone(),
            height: 0,
            branched: false,
        });
        Ok(())
    }

    fn check_stack(&mut self) {
        let sp = self.b.ins().get_stack_pointer(types::I64);
        let limit = self.load_context(offset_of!(Context, stack_limit));
        let low = self.b.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
        self.b.ins().trapnz(low, trap_code(TrapKind::StackOverflow));
    }

    fn declare_local(&mut self, ty: ValType, value: Value) {
        let variable = self.b.declare_var(clif_type(ty));
        if ty.is_managed() {
            self.b.declare_var_needs_stack_map(variable);
            self.b.declare_value_needs_stack_map(value);
        }
        self.b.def_var(variable, value);
        self.locals.push(Local { variable, ty });
    }

    // ---- values -----------------------------------------------------------------------------------------------------------------

    pub(super) fn convert(&self) -> Convert<'_> {
        Convert {
            types: &self.env.module.types,
            kinds: &self.kinds,
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
            self.kinds[index as usize],
        );
        ValType::Ref(RefType { nullable, heap })
    }

    pub(super) fn push(&mut self, value: Value, ty: ValType) {
        if ty.is_managed() {
            self.b.declare_value_needs_stack_map(value);
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

    pub(super) fn pop_n(&mut self, n: usize) -> Vec<Value> {
        let at = self.stack.len() - n;
        self.stack
            .split_off(at)
            .into_iter()
            .map(|o| o.value)
            .collect()
    }

    pub(super) fn zero(&mut self, ty: ValType) -> Value {
        match ty {
            ValType::I32 | ValType::Ref(_) => self.b.ins().iconst(types::I32, 0),
            ValType::I64 => self.b.ins().iconst(types::I64, 0),
            ValType::F32 => self.b.ins().f32const(0.0),
            ValType::F64 => self.b.ins().f64const(0.0),
        }
    }

    pub(super) fn i32(&mut self, v: i64) -> Value {
        self.b.ins().iconst(types::I32, v & 0xffff_ffff)
    }

    pub(super) fn i64(&mut self, v: i64) -> Value {
        self.b.ins().iconst(types::I64, v)
    }

    pub(super) fn base(&mut self) -> Value {
        self.b.ins().get_pinned_reg(types::I64)
    }

    pub(super) fn load_context(&mut self, offset: usize) -> Value {
        let base = self.base();
        self.b.ins().load(
            types::I64,
            MemFlagsData::trusted(),
            base,
            displacement(CONTEXT) + offset as i32,
        )
    }

    pub(super) fn trap_if(&mut self, condition: Value, kind: TrapKind) {
        self.b.ins().trapnz(condition, trap_code(kind));
    }

    /// A block with parameters of these types.
    pub(super) fn block_for(&mut self, types: &[ValType]) -> Block {
        let block = self.b.create_block();
        for &ty in types {
            let value = self.b.append_block_param(block, clif_type(ty));
            if ty.is_managed() {
                self.b.declare_value_needs_stack_map(value);
            }
        }
        block
    }

    /// Goes on in a block whose parameters become operands of these types.
    fn continue_in(&mut self, block: Block, types: &[ValType]) {
        self.b.switch_to_block(block);
        let params = self.b.block_params(block).to_vec();
        for (value, &ty) in params.into_iter().zip(types) {
            self.stack.push(Operand { value, ty });
        }
        self.reachable = true;
    }

    pub(super) fn signature(&mut self, ty: TypeIndex) -> ir::SigRef {
        if let Some(&s) = self.signatures.get(&ty) {
            return s;
        }
        let sig = signature(self.env.types.func(ty));
        let s = self.b.import_signature(sig);
        self.signatures.insert(ty, s);
        s
    }

    // ---- control ----------------------------------------------------------------------------------------------------------------

    fn block_type(&self, ty: wp::BlockType) -> (Vec<ValType>, Vec<ValType>) {
        match ty {
            wp::BlockType::Empty => (vec![], vec![]),
            wp::BlockType::Type(t) => (vec![], vec![self.val_type(t)]),
            wp::BlockType::FuncType(i) => {
                let f = self.env.types.func(self.env.module.types[i as usize]);
                (f.params.clone(), f.results.clone())
            }
        }
    }

    fn frame(&mut self, depth: u32) -> &mut Frame {
        let i = self.control.len() - 1 - depth as usize;
        &mut self.control[i]
    }

    /// The target of a branch and its operand types.
    pub(super) fn target(&mut self, depth: u32) -> (Block, Vec<ValType>) {
        let frame = self.frame(depth);
        frame.branched = true;
        (frame.label, frame.label_types().to_vec())
    }

    /// The operands that a branch takes along; they stay on the stack.
    pub(super) fn branch_args(&self, count: usize) -> Vec<BlockArg> {
        self.stack[self.stack.len() - count..]
            .iter()
            .map(|o| BlockArg::Value(o.value))
            .collect()
    }

    pub(super) fn branch(&mut self, depth: u32) {
        let (block, types) = self.target(depth);
        let args = self.branch_args(types.len());
        self.b.ins().jump(block, &args);
        self.dead();
    }

    /// What follows cannot be reached.
    pub(super) fn dead(&mut self) {
        self.reachable = false;
        self.dead_depth = 0;
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.reachable
    }

    pub(super) fn set_reachable(&mut self, reachable: bool) {
        self.reachable = reachable;
    }

    /// A branch to `depth` if the condition holds; translation goes on after it.
    pub(super) fn branch_if(&mut self, condition: Value, depth: u32, args: &[BlockArg]) {
        let (block, _) = self.target(depth);
        let next = self.b.create_block();
        self.b.ins().brif(condition, block, args, next, &[]);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    fn open(
        &mut self,
        kind: FrameKind,
        label: Block,
        after: Block,
        params: Vec<ValType>,
        results: Vec<ValType>,
    ) {
        let height = self.stack.len() - params.len();
        self.control.push(Frame {
            kind,
            label,
            after,
            params,
            results,
            height,
            branched: false,
        });
    }

    fn step(&mut self, op: &Operator<'_>) -> Result<()> {
        if !self.reachable {
            return self.step_dead(op);
        }
        match *op {
            Operator::Nop => {}
            Operator::Unreachable => {
                self.b.ins().trap(trap_code(TrapKind::Unreachable));
                self.dead();
            }
            Operator::Block { blockty } => {
                let (params, results) = self.block_type(blockty);
                let after = self.block_for(&results);
                self.open(FrameKind::Block, after, after, params, results);
            }
            Operator::Loop { blockty } => {
                let (params, results) = self.block_type(blockty);
                let header = self.block_for(&params);
                let after = self.block_for(&results);
                let args = self.branch_args(params.len());
                self.b.ins().jump(header, &args);
                self.stack.truncate(self.stack.len() - params.len());
                self.continue_in(header, &params);
                self.open(FrameKind::Loop, header, after, params, results);
            }
            Operator::If { blockty } => {
                let condition = self.pop();
                let (params, results) = self.block_type(blockty);
                let after = self.block_for(&results);
                let then = self.b.create_block();
                let otherwise = self.b.create_block();
                self.b.ins().brif(condition, then, &[], otherwise, &[]);
                self.b.seal_block(then);
                self.b.seal_block(otherwise);
                self.b.switch_to_block(then);
                let operands = self.stack[self.stack.len() - params.len()..].to_vec();
                self.open(
                    FrameKind::If(Some((otherwise, operands))),
                    after,
                    after,
                    params,
                    results,
                );
            }
            Operator::Else => {
                self.leave_arm();
                self.start_else();
            }
            Operator::TryTable { ref try_table } => {
                let (params, results) = self.block_type(try_table.ty);
                let after = self.block_for(&results);
                let dispatch = self.b.create_block();
                self.b.append_block_param(dispatch, types::I64);
                self.handlers.push(dispatch);
                self.open(
                    FrameKind::Try(dispatch, try_table.catches.clone()),
                    after,
                    after,
                    params,
                    results,
                );
            }
            Operator::End => {
                self.leave_arm();
                self.end();
            }
            Operator::Br { relative_depth } => self.branch(relative_depth),
            Operator::BrIf { relative_depth } => {
                let condition = self.pop();
                let (_, types) = self.target(relative_depth);
                let args = self.branch_args(types.len());
                self.branch_if(condition, relative_depth, &args);
            }
            Operator::BrTable { ref targets } => self.br_table(targets)?,
            Operator::Return => {
                let depth = self.control.len() as u32 - 1;
                self.branch(depth);
            }
            _ => self.plain(op)?,
        }
        Ok(())
    }

    /// Everything but structured control.
    fn plain(&mut self, op: &Operator<'_>) -> Result<()> {
        if self.numeric(op) || self.access(op) || self.call(op) || self.object(op) {
            return Ok(());
        }
        Err(Error::Internal(format!(
            "no translation of {op:?} at offset {:#x}",
            self.offset
        )))
    }

    fn step_dead(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::TryTable { .. } => {
                self.dead_depth += 1;
            }
            Operator::Else if self.dead_depth == 0 => self.start_else(),
            Operator::End if self.dead_depth == 0 => self.end(),
            Operator::End => self.dead_depth -= 1,
            _ => {}
        }
        Ok(())
    }

    /// Jumps from the end of a block's body to what follows it.
    fn leave_arm(&mut self) {
        let frame = self.control.last_mut().expect("open block");
        frame.branched = true;
        let (after, count) = (frame.after, frame.results.len());
        let args = self.branch_args(count);
        self.b.ins().jump(after, &args);
    }

    fn start_else(&mut self) {
        let frame = self.control.last_mut().expect("open block");
        let height = frame.height;
        let FrameKind::If(pending) = &mut frame.kind else {
            unreachable!("validated: else belongs to if")
        };
        let (block, operands) = pending.take().expect("validated: one else");
        self.stack.truncate(height);
        self.stack.extend(operands);
        self.b.switch_to_block(block);
        self.reachable = true;
    }

    fn end(&mut self) {
        let mut frame = self.control.pop().expect("open block");
        match &mut frame.kind {
            FrameKind::If(Some((block, operands))) => {
                // No else: the parameters are the results.
                self.b.switch_to_block(*block);
                let values: Vec<_> = operands.iter().map(|o| o.value).collect();
                self.b.ins().jump(frame.after, &args(&values));
                frame.branched = true;
            }
            FrameKind::Loop => self.b.seal_block(frame.label),
            FrameKind::Try(dispatch, catches) => {
                self.handlers.pop();
                let (dispatch, catches) = (*dispatch, std::mem::take(catches));
                self.b.seal_block(dispatch);
                // The catch clauses' labels count from outside of this block.
                self.dispatch(dispatch, &catches);
            }
            _ => {}
        }
        self.stack.truncate(frame.height);
        // For a loop, branches go to its header; `after` is reached from its end only, which `branched` covers too.
        let reached = match frame.kind {
            FrameKind::Loop => self.reachable,
            _ => frame.branched || self.control.is_empty(),
        };
        self.b.seal_block(frame.after);
        if self.control.is_empty() {
            self.b.switch_to_block(frame.after);
            let values = self.b.block_params(frame.after).to_vec();
            self.b.ins().return_(&values);
            self.reachable = false;
        } else if reached {
            self.continue_in(frame.after, &frame.results);
        } else {
            self.dead();
        }
    }

    fn br_table(&mut self, targets: &wp::BrTable<'_>) -> Result<()> {
        let index = self.pop();
        let mut calls = Vec::new();
        let depths: Vec<u32> = targets
            .targets()
            .collect::<Result<_, _>>()
            .map_err(|e| Error::Internal(format!("br_table: {e}")))?;
        for depth in depths.into_iter().chain([targets.default()]) {
            let (block, types) = self.target(depth);
            let args = self.branch_args(types.len());
            calls.push(ir::BlockCall::new(
                block,
                args,
                &mut self.b.func.dfg.value_lists,
            ));
        }
        let default = calls.pop().expect("the default target");
        let table = self
            .b
            .create_jump_table(ir::JumpTableData::new(default, &calls));
        self.b.ins().br_table(index, table);
        self.dead();
        Ok(())
    }
}
