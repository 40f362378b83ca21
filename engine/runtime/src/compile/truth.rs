//! Truth values that say by which path control came.
//!
//! `return true` and `return false` of an inlined function leave a 1 or a 0 where paths meet, and the branch that follows asks which it
//! was. Or it asks a local that each path has set. Here paths with a 0, with a 1 and with another value do not meet before the operator
//! after the block's end is known. If that is a branch, each goes where it leads; their facts still hold there. If it is anything else, they meet
//! after all.

use super::control::{Asked, Decided, Frame, FrameKind, Left, Path, Truth};
use super::facts::{Facts, meet};
use super::isa::Level;
use super::translate::{Operand, Translator, args, broken};
use crate::error::Result;
use crate::types::ValType;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, types};
use cranelift_frontend::Variable;
use rustc_hash::FxHashMap as HashMap;
use wasmparser::{BlockType, FunctionBody, Operator};

impl Translator<'_, '_> {
    /// Where a way to the end of the block with number `i` goes if the topmost operand is a truth value that is known here.
    pub(super) fn decided_exit(&mut self, i: usize) -> Option<Block> {
        // The function itself returns its result.
        if self.job.level != Level::Optimizing || i == 0 {
            return None;
        }
        let frame = &self.control[i];
        let goes_on = matches!(frame.kind, FrameKind::Block | FrameKind::If(_));
        let tested = frame.tested;
        let value = match (goes_on, tested, &frame.results[..]) {
            (true, Some(local), []) => self.value_of(local),
            (true, None, [ValType::I32]) => self.stack.last()?.value,
            _ => return None,
        };
        let which = match self.constant(value)? {
            0 => 0,
            1 => 1,
            _ => return None,
        };
        if self.control[i].exits.decided[which].is_none() {
            let block = self.b.create_block();
            self.control[i].exits.decided[which] = Some(Decided { block, facts: None });
        }
        let decided = self.control[i].exits.decided[which].as_mut()?;
        meet(&mut decided.facts, &self.facts);
        Some(decided.block)
    }

    /// Goes on after the end of a block to which ways with known truth values lead, perhaps beside others.
    pub(super) fn continue_decided(&mut self, frame: Frame) {
        let Frame {
            exits,
            after,
            tested,
            ..
        } = frame;
        let mut paths = Vec::new();
        for (decided, left) in exits.decided.into_iter().zip([false, true]) {
            let Some(decided) = decided else { continue };
            self.b.seal_block(decided.block);
            let facts = decided.facts.unwrap_or_default();
            let block = decided.block;
            paths.push((Path { block, facts }, Left::Decided(left)));
        }
        if exits.count > 0 {
            let left = match tested {
                None => Left::Open(self.b.block_params(after)[0]),
                Some(_) => Left::InLocal,
            };
            let facts = exits.facts.unwrap_or_default();
            let block = after;
            paths.push((Path { block, facts }, left));
        }
        self.reachable = true;
        let join = self.block_for(&[ValType::I32]);
        if tested.is_none() {
            let value = self.b.block_params(join)[0];
            self.push(value, ValType::I32);
        }
        if paths.len() == 1 {
            // All ways leave the same.
            let (path, left) = paths.remove(0);
            self.begin(path);
            match (tested, left) {
                (Some(local), Left::Decided(left)) => {
                    let value = self.i32(i64::from(left));
                    self.b.def_var(local, value);
                }
                _ => self.set_left(left, Asked::Itself),
            }
            return;
        }
        self.truth = Some(Truth {
            paths,
            in_local: tested.is_some(),
            asked: Asked::Itself,
            join,
        });
    }

    /// Before an operator is translated whose topmost operand may be such a truth value: whether this is its translation.
    pub(super) fn decide(&mut self, op: &Operator<'_>) -> bool {
        let Some(mut truth) = self.truth.take() else {
            return false;
        };
        match *op {
            Operator::LocalGet { local_index } if truth.in_local => {
                let first = self.activation().locals;
                let variable = self.locals[first + local_index as usize].variable;
                for (path, left) in &mut truth.paths {
                    if matches!(left, Left::InLocal) {
                        self.b.switch_to_block(path.block);
                        *left = Left::Open(self.value_of(variable));
                    }
                }
                truth.in_local = false;
                let value = self.b.block_params(truth.join)[0];
                self.push(value, ValType::I32);
                self.truth = Some(truth);
                true
            }
            Operator::I32Eqz => {
                truth.asked = truth.asked.is_zero();
                self.truth = Some(truth);
                true
            }
            Operator::BrIf { relative_depth } => {
                let (yes, no) = self.part(truth);
                self.pop();
                self.begin(yes);
                self.branch(relative_depth);
                self.begin(no);
                true
            }
            Operator::If { blockty } if !matches!(blockty, BlockType::FuncType(_)) => {
                let (yes, no) = self.part(truth);
                let condition = self.pop();
                let (params, results) = self.block_type(blockty);
                let after = self.block_for(&results);
                // The facts in the other arm.
                self.facts = no.facts;
                let kind = FrameKind::If(Some((no.block, vec![], condition)));
                self.open(kind, after, after, params, results);
                self.begin(yes);
                true
            }
            // It is the result of a block around: the paths go on apart.
            Operator::End | Operator::Else => {
                self.leave_apart(truth, Self::leave_arm);
                false
            }
            Operator::Return => {
                let depth = self.function_depth();
                self.leave_apart(truth, |t| t.branch(depth));
                false
            }
            Operator::Br { relative_depth } => {
                self.leave_apart(truth, |t| t.branch(relative_depth));
                false
            }
            _ => {
                self.meet_again(truth);
                false
            }
        }
    }

    /// The paths meet, if they have not yet.
    pub(super) fn join_truth(&mut self) {
        if let Some(truth) = self.truth.take() {
            self.meet_again(truth);
        }
    }

    /// Where the paths lead on which the truth value is not 0, and where the others do.
    fn part(&mut self, truth: Truth) -> (Path, Path) {
        let (yes, no) = (self.b.create_block(), self.b.create_block());
        let (mut yes_facts, mut no_facts) = (None, None);
        for (path, left) in truth.paths {
            self.b.switch_to_block(path.block);
            match left {
                Left::Decided(left) if left != truth.asked.negates() => {
                    self.ins().jump(yes, &[]);
                    meet(&mut yes_facts, &path.facts);
                }
                Left::Decided(_) => {
                    self.ins().jump(no, &[]);
                    meet(&mut no_facts, &path.facts);
                }
                Left::Open(value) => {
                    let (then, otherwise) = match truth.asked.negates() {
                        true => (no, yes),
                        false => (yes, no),
                    };
                    self.ins().brif(value, then, &[], otherwise, &[]);
                    meet(&mut yes_facts, &path.facts);
                    meet(&mut no_facts, &path.facts);
                }
                Left::InLocal => unreachable!("the local was read"),
            }
        }
        self.b.seal_block(yes);
        self.b.seal_block(no);
        let path = |block, facts: Option<Facts>| Path {
            block,
            facts: facts.unwrap_or_default(),
        };
        (path(yes, yes_facts), path(no, no_facts))
    }

    /// Leaves the block around on all paths but the last, where the operator that does the same is translated.
    fn leave_apart(&mut self, mut truth: Truth, leave: impl Fn(&mut Self)) {
        let last = truth.paths.pop();
        for (path, left) in truth.paths {
            self.begin_with(path, left, truth.asked);
            leave(self);
        }
        let (path, left) = last.expect("paths lead here");
        self.begin_with(path, left, truth.asked);
    }

    fn meet_again(&mut self, truth: Truth) {
        let mut known = None;
        for (path, left) in truth.paths {
            self.begin_with(path, left, truth.asked);
            let value = self.stack.last().expect("the truth value").value;
            self.ins().jump(truth.join, &args(&[value]));
            meet(&mut known, &self.facts);
        }
        self.b.seal_block(truth.join);
        let value = self.b.block_params(truth.join)[0];
        let facts = known.unwrap_or_default();
        let block = truth.join;
        self.begin_with(Path { block, facts }, Left::Open(value), Asked::Itself);
    }

    fn begin(&mut self, path: Path) {
        self.b.switch_to_block(path.block);
        self.fresh.clear();
        self.facts = path.facts;
        self.reachable = true;
    }

    /// Goes on on one path, with its result as the topmost operand.
    fn begin_with(&mut self, path: Path, left: Left, asked: Asked) {
        self.begin(path);
        self.set_left(left, asked);
    }

    fn set_left(&mut self, left: Left, asked: Asked) {
        let value = match (left, asked) {
            (Left::Decided(left), _) => self.i32(i64::from(left != asked.negates())),
            (Left::Open(value), Asked::Itself) => value,
            // It may be any number, and what was asked of it is 0 or 1.
            (Left::Open(value), _) => {
                let condition = match asked.negates() {
                    true => IntCC::Equal,
                    false => IntCC::NotEqual,
                };
                let truth = self.ins().icmp_imm_s(condition, value, 0);
                self.ins().uextend(types::I32, truth)
            }
            (Left::InLocal, _) => unreachable!("the local was read"),
        };
        let top = self.stack.last_mut().expect("the truth value");
        *top = Operand {
            value,
            ty: ValType::I32,
        };
    }

    // ---- locals that are asked --------------------------------------------------------------------------------------------------

    /// The local that is asked after the end of the block that begins at the operator.
    pub(super) fn tested_after(&self) -> Option<Variable> {
        let local = *self.tests.get(&self.offset)?;
        let first = self.activation().locals;
        Some(self.locals[first + local as usize].variable)
    }

    /// Finds such blocks of a function whose code is to be in this one.
    pub(super) fn find_tests(&mut self, body: &FunctionBody<'_>) -> Result<()> {
        if self.job.level == Level::Optimizing {
            tests(body, &mut self.tests).map_err(broken)?;
        }
        Ok(())
    }
}

/// Blocks without results, by their offsets, and the locals that are asked after their ends: read, perhaps negated, and branched on.
fn tests(body: &FunctionBody<'_>, found: &mut HashMap<u32, u32>) -> wasmparser::Result<()> {
    let mut open: Vec<Option<u32>> = vec![None];
    // A block that has just ended, and what has been read since.
    let mut ended: Option<(u32, Option<u32>)> = None;
    let mut reader = body.get_operators_reader()?;
    while !reader.eof() {
        let offset = reader.original_position() as u32;
        let op = reader.read()?;
        ended = match (ended, &op) {
            (Some((block, None)), Operator::LocalGet { local_index }) => {
                Some((block, Some(*local_index)))
            }
            (Some((_, Some(_))), Operator::I32Eqz) => ended,
            (Some((block, Some(local))), Operator::BrIf { .. } | Operator::If { .. }) => {
                found.insert(block, local);
                None
            }
            _ => None,
        };
        match op {
            Operator::Block { blockty } | Operator::If { blockty } => {
                open.push((blockty == BlockType::Empty).then_some(offset));
            }
            Operator::Loop { .. } | Operator::Try { .. } | Operator::TryTable { .. } => {
                open.push(None);
            }
            Operator::End | Operator::Delegate { .. } => {
                let block = open.pop().expect("validated: blocks are balanced");
                ended = block.map(|block| (block, None));
            }
            _ => {}
        }
    }
    Ok(())
}
