//! Structured control: blocks, loops, branches.

use super::facts::{Facts, meet};
use super::translate::{Operand, Translator, args};
use super::traps::trap_code;
use crate::error::{Error, Result, TrapKind};
use crate::types::*;
use cranelift_codegen::ir::{self, Block, BlockArg, InstBuilder, Value, types};
use cranelift_frontend::Variable;
use wasmparser as wp;
use wasmparser::Operator;

/// The part to translate after a copy of a loop's body.
#[derive(Clone, Copy)]
pub(super) enum Copy {
    /// The body once more.
    Next,
    /// The code after the loop.
    Last,
}

/// The copies of an open loop's body.
pub(super) struct Copies {
    /// Where the loop is in the bytecode.
    pub offset: u32,
    /// Copies after the one that is translated.
    pub left: usize,
    /// First iterations apart that may still be made because few follow.
    pub apart: usize,
    /// How far the counter is from its limit, if this copy has decided by constants whether it goes on.
    pub distance: Option<u32>,
    /// The facts that hold on all paths to the next copy; none as long as there is no path.
    pub facts: Option<Facts>,
    /// The loop's head, once the first iteration is over.
    pub head: Option<Block>,
    /// The facts assumed whenever the head is reached.
    pub assumed: Facts,
    /// Bytes that had been inlined before.
    pub inlined_bytes: usize,
    /// Stores that had been translated before.
    pub stored: usize,
}

/// The kind of a block.
pub(super) enum FrameKind {
    Block,
    Loop,
    /// With the block that the false branch goes to, the parameters and the condition, until `else` was seen.
    If(Option<(Block, Vec<Operand>, Value)>),
    /// With the block that takes exceptions, and its catch clauses.
    Try(Block, Vec<wp::Catch>),
    /// The body of a `try` whose clauses follow it, with the block that takes exceptions.
    LegacyTry(Block),
    /// One of its clauses. The exception is the first operand of it. With what no clause took so far; none after `catch_all`, and where
    /// the other clauses are not in this code.
    LegacyCatch(Option<Uncaught>),
    /// An `if` around the point where a continuation begins: its other arm is behind or is not reached.
    EnteredIf,
    /// A loop around that point, with its offset: its beginning is elsewhere.
    EnteredLoop(u32),
}

/// An exception that no clause of a `try` took so far, and where that is so.
#[derive(Clone, Copy)]
pub(super) struct Uncaught {
    block: Block,
    exception: Value,
    tag: Value,
}

/// An open block.
pub(super) struct Frame {
    pub kind: FrameKind,
    /// Where branches to this frame go.
    pub label: Block,
    /// The block after its end.
    pub after: Block,
    pub params: Vec<ValType>,
    pub results: Vec<ValType>,
    /// Operands below its parameters.
    pub height: usize,
    /// Blocks that take exceptions in it, from the outermost on.
    pub handlers: usize,
    /// The local that the operators after its end ask whether it is 0, if they do.
    pub tested: Option<Variable>,
    /// The facts at its beginning.
    pub entry: Facts,
    /// How its end is reached.
    pub exits: Exits,
    /// Of a loop whose body is in the code more than once.
    pub copies: Option<Copies>,
}

/// The ways that lead to the end of a block.
#[derive(Default)]
pub(super) struct Exits {
    pub count: usize,
    /// The facts that hold on all of them.
    pub facts: Option<Facts>,
    /// The values that the last one leaves on the stack.
    values: Vec<Value>,
    /// Ways apart from these that leave a 0, and that leave a 1.
    pub decided: [Option<Decided>; 2],
    /// Whether some way skips the rest of the block. One that leaves a loop does not: the loop's body has run by then, or does next time.
    is_skipped: bool,
}

/// Ways to a block's end that leave the same truth value.
pub(super) struct Decided {
    /// Where they meet.
    pub block: Block,
    /// The facts that hold on all of them.
    pub facts: Option<Facts>,
}

/// The result of a path.
#[derive(Clone, Copy)]
pub(super) enum Left {
    /// A 0 or a 1.
    Decided(bool),
    /// A value known only at run time.
    Open(Value),
    /// The same, in the local that is asked next.
    InLocal,
}

/// Where code goes on, and what is known there.
pub(super) struct Path {
    pub block: Block,
    pub facts: Facts,
}

/// The test that was applied to a value that control brings: a branch treats all three alike, but as numbers they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing: it is what was left, which may be any number.
    Itself,
    /// Whether it is 0, as 1 or 0.
    IsZero,
    /// Whether it is not 0, as 1 or 0.
    IsNotZero,
}

impl Asked {
    /// After one more `i32.eqz`.
    pub fn is_zero(self) -> Asked {
        match self {
            Asked::IsZero => Asked::IsNotZero,
            Asked::Itself | Asked::IsNotZero => Asked::IsZero,
        }
    }

    /// Whether 0 is meant where another number is left, and the other way around.
    pub fn negates(self) -> bool {
        self == Asked::IsZero
    }
}

/// A truth value that is the topmost operand, or in the local that becomes it next, on paths of which each has a block of its own.
pub(super) struct Truth {
    pub paths: Vec<(Path, Left)>,
    /// Whether it is in a local: then the next operator reads that, and a branch comes soon.
    pub in_local: bool,
    /// The tests applied to it since.
    pub asked: Asked,
    /// Where all of them meet if no branch follows.
    pub join: Block,
}

impl Exits {
    fn add(&mut self, facts: &Facts, values: &[Operand]) {
        self.count += 1;
        meet(&mut self.facts, facts);
        self.values = values.iter().map(|o| o.value).collect();
    }
}

impl Frame {
    fn label_types(&self) -> &[ValType] {
        match self.kind {
            FrameKind::Loop | FrameKind::EnteredLoop(_) => &self.params,
            _ => &self.results,
        }
    }
}

impl Translator<'_, '_> {
    pub(super) fn block_type(&self, ty: wp::BlockType) -> (Vec<ValType>, Vec<ValType>) {
        match ty {
            wp::BlockType::Empty => (vec![], vec![]),
            wp::BlockType::Type(t) => (vec![], vec![self.val_type(t)]),
            wp::BlockType::FuncType(i) => {
                let f = self.env.types.func(self.env.module.types[i as usize]);
                (f.params.clone(), f.results.clone())
            }
        }
    }

    /// The depth of the innermost activation's own frame, where `return` goes.
    pub(super) fn function_depth(&self) -> u32 {
        (self.control.len() - 1 - self.activation().control) as u32
    }

    /// The target of a branch from here, with the operands that are on the stack, and their types.
    pub(super) fn target(&mut self, depth: u32) -> (Block, Vec<ValType>) {
        let i = self.control.len() - 1 - depth as usize;
        self.target_at(i)
    }

    /// The same by the target's place in the list of open blocks.
    pub(super) fn target_at(&mut self, i: usize) -> (Block, Vec<ValType>) {
        let frame = &self.control[i];
        let (label, types) = (frame.label, frame.label_types().to_vec());
        match frame.kind {
            FrameKind::Loop => self.branch_back(i),
            FrameKind::EnteredLoop(_) => {}
            _ => {
                if let Some(block) = self.decided_exit(i) {
                    return (block, vec![]);
                }
                let frame = &mut self.control[i];
                let values = &self.stack[self.stack.len() - types.len()..];
                frame.exits.add(&self.facts, values);
                let mut inner = self.control[i + 1..].iter();
                let leaves_loop = inner.any(|f| matches!(f.kind, FrameKind::Loop));
                self.control[i].exits.is_skipped |= !leaves_loop;
            }
        }
        (label, types)
    }

    /// The target of a branch that is taken if a condition holds.
    fn target_if(&mut self, depth: u32, condition: Value) -> (Block, Vec<ValType>) {
        let known = self.facts.clone();
        self.learn_condition(condition, true);
        let target = self.target(depth);
        self.facts = known;
        target
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
        self.ins().jump(block, &args);
        self.dead();
    }

    /// Whether code comes by here whenever it begins, as far as that can be seen: on no arm of an `if`, and behind no branch over it.
    pub(super) fn is_certain(&self) -> bool {
        let is_sure = |f: &Frame| !matches!(f.kind, FrameKind::If(_)) && !f.exits.is_skipped;
        self.control.iter().all(is_sure)
    }

    /// The code after this is unreachable.
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

    /// A branch to a target if the condition holds; translation goes on after it.
    pub(super) fn branch_if(&mut self, condition: Value, block: Block, args: &[BlockArg]) {
        let next = self.b.create_block();
        self.ins().brif(condition, block, args, next, &[]);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    /// A block that takes exceptions from here on.
    pub(super) fn open_handler(&mut self) -> Block {
        let dispatch = self.b.create_block();
        self.b.append_block_param(dispatch, types::I64);
        self.handlers.push(dispatch);
        dispatch
    }

    pub(super) fn open(
        &mut self,
        kind: FrameKind,
        label: Block,
        after: Block,
        params: Vec<ValType>,
        results: Vec<ValType>,
    ) {
        let height = self.stack.len() - params.len();
        let tested = match kind {
            FrameKind::Block | FrameKind::If(_) => self.tested_after(),
            _ => None,
        };
        self.control.push(Frame {
            tested,
            kind,
            label,
            after,
            params,
            results,
            height,
            handlers: self.handlers.len(),
            entry: self.facts.clone(),
            exits: Exits::default(),
            copies: None,
        });
    }

    pub(super) fn step(&mut self, op: &Operator<'_>) -> Result<()> {
        if !self.reachable {
            return self.step_dead(op);
        }
        self.begin_operator(op);
        match *op {
            Operator::Nop => {}
            Operator::Unreachable => {
                self.forget_called();
                self.ins().trap(trap_code(TrapKind::Unreachable));
                self.dead();
            }
            Operator::Block { blockty } => {
                let (params, results) = self.block_type(blockty);
                let after = self.block_for(&results);
                self.open(FrameKind::Block, after, after, params, results);
            }
            Operator::Loop { blockty } => {
                let (params, results) = self.block_type(blockty);
                self.begin_loop(params, results)?;
            }
            Operator::If { blockty } => {
                let condition = self.pop();
                let (params, results) = self.block_type(blockty);
                let after = self.block_for(&results);
                let then = self.b.create_block();
                let otherwise = self.b.create_block();
                self.ins().brif(condition, then, &[], otherwise, &[]);
                self.b.seal_block(then);
                self.b.seal_block(otherwise);
                self.b.switch_to_block(then);
                let operands = self.stack[self.stack.len() - params.len()..].to_vec();
                self.open(
                    FrameKind::If(Some((otherwise, operands, condition))),
                    after,
                    after,
                    params,
                    results,
                );
                self.learn_condition(condition, true);
            }
            Operator::Else => {
                self.leave_arm();
                self.start_else();
            }
            Operator::TryTable { ref try_table } => {
                let (params, results) = self.block_type(try_table.ty);
                let after = self.block_for(&results);
                let dispatch = self.open_handler();
                self.open(
                    FrameKind::Try(dispatch, try_table.catches.clone()),
                    after,
                    after,
                    params,
                    results,
                );
            }
            Operator::Try { blockty } => {
                let (params, results) = self.block_type(blockty);
                let after = self.block_for(&results);
                let dispatch = self.open_handler();
                self.open(
                    FrameKind::LegacyTry(dispatch),
                    after,
                    after,
                    params,
                    results,
                );
            }
            Operator::Catch { tag_index } => {
                self.leave_arm();
                self.start_catch(Some(tag_index));
            }
            Operator::CatchAll => {
                self.leave_arm();
                self.start_catch(None);
            }
            Operator::Delegate { relative_depth } => {
                self.leave_arm();
                self.delegate(relative_depth)?;
            }
            Operator::Rethrow { relative_depth } => self.rethrow(relative_depth),
            Operator::End => {
                self.leave_arm();
                self.end()?;
            }
            Operator::Br { relative_depth } => self.branch(relative_depth),
            Operator::BrIf { relative_depth } => {
                let condition = self.pop();
                self.note_distance(condition, relative_depth);
                match self.constant(condition) {
                    Some(0) => {
                        self.end_operator(op);
                        return Ok(());
                    }
                    Some(_) => {
                        self.branch(relative_depth);
                        self.end_operator(op);
                        return Ok(());
                    }
                    None => {}
                }
                let (block, types) = self.target_if(relative_depth, condition);
                let args = self.branch_args(types.len());
                self.branch_if(condition, block, &args);
                self.learn_condition(condition, false);
            }
            Operator::BrTable { ref targets } => self.br_table(targets)?,
            Operator::Return => {
                let depth = self.function_depth();
                self.branch(depth);
            }
            _ => self.plain(op)?,
        }
        self.end_operator(op);
        Ok(())
    }

    /// Everything but structured control.
    fn plain(&mut self, op: &Operator<'_>) -> Result<()> {
        let translated = self.translate_numeric(op)
            || self.translate_variable(op)
            || self.translate_memory(op)
            || self.translate_table(op)
            || self.translate_call(op)?
            || self.translate_struct(op)
            || self.translate_array(op)
            || self.translate_reference(op)
            || self.translate_cast(op)
            || self.translate_vector(op);
        if translated {
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
            | Operator::Try { .. }
            | Operator::TryTable { .. } => {
                self.dead_depth += 1;
            }
            Operator::Else if self.dead_depth == 0 => self.start_else(),
            Operator::Catch { tag_index } if self.dead_depth == 0 => {
                self.start_catch(Some(*tag_index));
            }
            Operator::CatchAll if self.dead_depth == 0 => self.start_catch(None),
            Operator::Delegate { relative_depth } if self.dead_depth == 0 => {
                self.delegate(*relative_depth)?;
            }
            Operator::End if self.dead_depth == 0 => self.end()?,
            Operator::End | Operator::Delegate { .. } => self.dead_depth -= 1,
            _ => {}
        }
        self.forget_recorded();
        Ok(())
    }

    /// Jumps from the end of a block's body to what follows it.
    pub(super) fn leave_arm(&mut self) {
        if let Some(block) = self.decided_exit(self.control.len() - 1) {
            self.ins().jump(block, &[]);
            return;
        }
        let frame = self.control.last_mut().expect("open block");
        let (after, count) = (frame.after, frame.results.len());
        let values = &self.stack[self.stack.len() - count..];
        frame.exits.add(&self.facts, values);
        let args = self.branch_args(count);
        self.ins().jump(after, &args);
    }

    fn start_else(&mut self) {
        let frame = self.control.last_mut().expect("open block");
        let height = frame.height;
        self.facts.clone_from(&frame.entry);
        let FrameKind::If(pending) = &mut frame.kind else {
            // The `if` began before this code, whose condition held.
            self.stack.truncate(height);
            return self.dead();
        };
        let (block, operands, condition) = pending.take().expect("validated: one else");
        self.stack.truncate(height);
        self.stack.extend(operands);
        self.b.switch_to_block(block);
        self.fresh.clear();
        self.reachable = true;
        self.learn_condition(condition, false);
    }

    fn end(&mut self) -> Result<()> {
        if self.next_copy()? {
            return Ok(());
        }
        let mut frame = self.control.pop().expect("open block");
        match &mut frame.kind {
            FrameKind::If(Some((block, operands, condition))) => {
                // No else: the parameters are the results.
                self.b.switch_to_block(*block);
                self.fresh.clear();
                let values: Vec<_> = operands.iter().map(|o| o.value).collect();
                self.ins().jump(frame.after, &args(&values));
                self.facts.clone_from(&frame.entry);
                self.learn_condition(*condition, false);
                frame.exits.add(&self.facts, operands);
            }
            FrameKind::Loop => self.end_copies(frame.label, frame.copies.as_ref()),
            FrameKind::EnteredLoop(offset) => {
                let offset = *offset;
                self.b.seal_block(frame.label);
                self.stack.truncate(frame.height);
                self.leave_for_loop(frame.label, &frame.params, offset);
            }
            FrameKind::Try(dispatch, catches) => {
                self.handlers.pop();
                let (dispatch, catches) = (*dispatch, std::mem::take(catches));
                self.b.seal_block(dispatch);
                self.facts.clone_from(&frame.entry);
                self.forget_contents();
                // The catch clauses' labels count from outside of this block.
                self.dispatch(dispatch, &catches);
            }
            FrameKind::LegacyTry(dispatch) => {
                let dispatch = *dispatch;
                self.handlers.pop();
                let exception = self.begin_dispatch(dispatch, &frame.entry);
                self.pass_on(exception, self.handlers.len());
            }
            FrameKind::LegacyCatch(Some(uncaught)) => {
                let uncaught = *uncaught;
                self.b.switch_to_block(uncaught.block);
                self.pass_on(uncaught.exception, self.handlers.len());
            }
            _ => {}
        }
        self.stack.truncate(frame.height);
        // Branches to a loop go to its header; the code after it is reached from its end only.
        let reached = match frame.kind {
            FrameKind::EnteredLoop(_) => self.reachable,
            _ => frame.exits.count > 0 || self.control.is_empty(),
        };
        self.b.seal_block(frame.after);
        if self.control.is_empty() {
            self.b.switch_to_block(frame.after);
            let values = self.b.block_params(frame.after).to_vec();
            self.ins().return_(&values);
            self.reachable = false;
        } else if frame.exits.decided.iter().any(Option::is_some) {
            self.continue_decided(frame);
        } else if reached {
            self.continue_in(frame.after, &frame.results);
            self.facts = frame.exits.facts.unwrap_or_default();
            if frame.exits.count == 1 {
                // No paths meet: the values on the stack are unchanged.
                let first = self.stack.len() - frame.results.len();
                for (o, value) in self.stack[first..].iter_mut().zip(frame.exits.values) {
                    o.value = value;
                }
            }
        } else {
            self.dead();
        }
        Ok(())
    }

    /// Goes on in the block that takes the exceptions of a `try`: the exception.
    fn begin_dispatch(&mut self, dispatch: Block, entry: &Facts) -> Value {
        self.b.seal_block(dispatch);
        self.begin_clause(dispatch, entry);
        self.caught_in(dispatch)
    }

    /// Goes on in a block of what follows a `try`'s body, where nothing of that body is known.
    fn begin_clause(&mut self, block: Block, entry: &Facts) {
        self.b.switch_to_block(block);
        self.facts.clone_from(entry);
        self.forget_contents();
        self.fresh.clear();
        self.forget_recorded();
    }

    /// A clause of a `try` begins, for exceptions with the tag or for all.
    fn start_catch(&mut self, tag: Option<u32>) {
        let frame = self.control.last_mut().expect("open block");
        let (height, entry) = (frame.height, frame.entry.clone());
        let before = std::mem::replace(&mut frame.kind, FrameKind::LegacyCatch(None));
        self.stack.truncate(height);
        let (exception, thrown) = match before {
            FrameKind::LegacyTry(dispatch) => {
                self.handlers.pop();
                let exception = self.begin_dispatch(dispatch, &entry);
                (exception, self.tag_of(exception))
            }
            FrameKind::LegacyCatch(Some(uncaught)) => {
                self.begin_clause(uncaught.block, &entry);
                (uncaught.exception, uncaught.tag)
            }
            // This code began in an earlier clause.
            _ => return self.dead(),
        };
        self.reachable = true;
        let uncaught = tag.map(|tag| Uncaught {
            block: self.take_tag(thrown, tag),
            exception,
            tag: thrown,
        });
        let exn = ValType::Ref(RefType {
            nullable: false,
            heap: HeapType::Exn,
        });
        self.push(exception, exn);
        if let Some(tag) = tag {
            self.push_payload(exception, tag);
        }
        let handlers = self.handlers.len();
        let frame = self.control.last_mut().expect("open block");
        frame.kind = FrameKind::LegacyCatch(uncaught);
        frame.handlers = handlers;
    }

    /// The end of a `try` whose exceptions are thrown on at another block: at its handlers, if it is in the body of a `try`, or
    /// at those around it.
    fn delegate(&mut self, depth: u32) -> Result<()> {
        // Counted from outside of the `try`.
        let target = self.control.len() - 2 - depth as usize;
        let handlers = self.control[target].handlers;
        let frame = self.control.last_mut().expect("open block");
        let entry = frame.entry.clone();
        let before = std::mem::replace(&mut frame.kind, FrameKind::Block);
        if let FrameKind::LegacyTry(dispatch) = before {
            self.handlers.pop();
            let exception = self.begin_dispatch(dispatch, &entry);
            self.pass_on(exception, handlers);
        }
        self.end()
    }

    /// Throws the exception that the clause `depth` blocks around caught.
    fn rethrow(&mut self, depth: u32) {
        let frame = &self.control[self.control.len() - 1 - depth as usize];
        let exception = self.stack[frame.height].value;
        self.throw(exception);
    }

    /// Throws from here to the innermost of the first `handlers`. The code translated next is not reached from here.
    fn pass_on(&mut self, exception: Value, handlers: usize) {
        let reachable = self.is_reachable();
        self.throw_to(exception, handlers);
        self.set_reachable(reachable);
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
        self.ins().br_table(index, table);
        self.dead();
        Ok(())
    }
}
