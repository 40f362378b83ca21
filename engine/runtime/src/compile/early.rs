//! Values are computed as soon as their operands are there, where that leaves fewer values to keep.
//!
//! The mid-end puts what has no effects where it is used first. The sum of two numbers that were loaded far above then needs two registers
//! on the way, or two places on the stack, and its result one. So an instruction goes back up to its operands, if it is the only one that
//! uses two of them or more. Other operands that it needs go along.
//!
//! Little is computed that was not before: an instruction goes up past checks, whose other ways are cold, past where ways part and meet
//! again, and out of loops. It never goes into a loop, nor out of one of two ways.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value, ValueDef};
use cranelift_codegen::loop_analysis::LoopAnalysis;
use cranelift_codegen::packed_option::ReservedValue;
use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;

/// As many branches an instruction goes up past, at most.
const FARTHEST: usize = 200;

/// Moves a function's instructions. Blocks and branches stay as they are.
pub(super) fn run(
    func: &mut Function,
    cfg: &ControlFlowGraph,
    domtree: &DominatorTree,
    loops: &LoopAnalysis,
) {
    let users = users(func);
    let mut early = Early {
        func,
        cfg,
        domtree,
        loops,
        users,
        along: HashMap::default(),
    };
    let blocks: Vec<Block> = domtree.cfg_rpo().copied().collect();
    for block in blocks {
        let mut next = early.func.layout.first_inst(block);
        while let Some(inst) = next {
            next = early.func.layout.next_inst(inst);
            early.visit(inst);
        }
    }
}

/// The only instruction that uses each value: the reserved one if there are more, none if there is no user.
fn users(func: &Function) -> Vec<Option<Inst>> {
    let mut users = vec![None; func.dfg.num_values()];
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            for value in func.dfg.inst_values(inst) {
                let user = &mut users[func.dfg.resolve_aliases(value).as_u32() as usize];
                *user = match *user {
                    None => Some(inst),
                    Some(other) if other == inst => Some(inst),
                    Some(_) => Some(Inst::reserved_value()),
                };
            }
        }
    }
    users
}

/// A place in a block: after an instruction, or where the block begins.
#[derive(Clone, Copy)]
struct Place {
    block: Block,
    behind: Option<Inst>,
}

struct Early<'a> {
    func: &'a mut Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    loops: &'a LoopAnalysis,
    /// See [`users`].
    users: Vec<Option<Inst>>,
    /// Where instructions could be that end one value and make one. They go there if what uses them does.
    along: HashMap<Inst, Place>,
}

impl Early<'_> {
    fn visit(&mut self, inst: Inst) {
        if !self.is_movable(inst) {
            return;
        }
        let ended = self.ended(inst);
        if ended == 0 {
            return;
        }
        let Some(place) = self.place(inst) else {
            return;
        };
        let here = self.func.layout.inst_block(inst).expect("it has a block");
        if self.is_into_a_loop(here, place.block) || !self.is_only_past_checks(here, place.block) {
            return;
        }
        match ended {
            1 => {
                self.along.insert(inst, place);
            }
            _ => self.go(inst),
        }
    }

    /// Whether it has one result and does nothing else. Comparisons become part of the branch that uses them.
    fn is_movable(&self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        let opcode = dfg.insts[inst].opcode();
        let has_effects = opcode.can_trap()
            || opcode.can_load()
            || opcode.can_store()
            || opcode.other_side_effects()
            || opcode.is_branch()
            || opcode.is_terminator()
            || opcode.is_call();
        let is_compared = matches!(opcode, Opcode::Icmp | Opcode::Fcmp);
        !has_effects && !is_compared && dfg.inst_results(inst).len() == 1
    }

    fn operands(&self, inst: Inst) -> SmallVec<[Value; 3]> {
        let dfg = &self.func.dfg;
        let mut all: SmallVec<[Value; 3]> = SmallVec::new();
        for value in dfg.inst_values(inst) {
            let value = dfg.resolve_aliases(value);
            if !all.contains(&value) {
                all.push(value);
            }
        }
        all
    }

    /// How many values end with the instruction.
    fn ended(&self, inst: Inst) -> usize {
        let ends = |value: &Value| {
            let user = self.users.get(value.as_u32() as usize);
            user == Some(&Some(inst)) && self.constant(*value).is_none()
        };
        self.operands(inst).iter().filter(|v| ends(v)).count()
    }

    /// The instruction that makes a value of nothing.
    fn constant(&self, value: Value) -> Option<Inst> {
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else {
            return None;
        };
        let opcode = self.func.dfg.insts[inst].opcode();
        let is_constant = matches!(
            opcode,
            Opcode::Iconst | Opcode::F32const | Opcode::F64const | Opcode::GetPinnedReg
        );
        is_constant.then_some(inst)
    }

    /// The first place where all operands are there, once those that can have gone up.
    fn place(&self, inst: Inst) -> Option<Place> {
        let mut last: Option<Place> = None;
        for value in self.operands(inst) {
            if self.constant(value).is_some() {
                continue;
            }
            let place = match self.func.dfg.value_def(value) {
                ValueDef::Result(inst, _) => match self.along.get(&inst) {
                    Some(&place) => place,
                    None => Place {
                        block: self.func.layout.inst_block(inst)?,
                        behind: Some(inst),
                    },
                },
                ValueDef::Param(block, _) => Place {
                    block,
                    behind: None,
                },
                ValueDef::Union(..) => return None,
            };
            last = Some(match last {
                Some(other) if self.is_behind(other, place) => other,
                _ => place,
            });
        }
        last
    }

    /// Whether a place is after another. One of them dominates the other.
    fn is_behind(&self, place: Place, other: Place) -> bool {
        if place.block != other.block {
            return self.domtree.block_dominates(other.block, place.block);
        }
        match (place.behind, other.behind) {
            (_, None) => true,
            (None, _) => false,
            (Some(a), Some(b)) => self.func.layout.pp_cmp(a, b).is_ge(),
        }
    }

    /// Whether the block above is repeated where the other is not.
    fn is_into_a_loop(&self, block: Block, above: Block) -> bool {
        let repeated = self.loops.innermost_loop(above);
        repeated.is_some_and(|of| !self.loops.is_in_loop(block, of))
    }

    /// Whether a block is entered whenever one that dominates it is, but for ways that are cold.
    fn is_only_past_checks(&self, mut block: Block, above: Block) -> bool {
        let layout = &self.func.layout;
        for _ in 0..FARTHEST {
            if block == above {
                return true;
            }
            if layout.is_cold(block) {
                return false;
            }
            let Some(over) = self.domtree.idom(block) else {
                return false;
            };
            // Where ways meet, or a loop begins, the block is entered whichever way is taken.
            if self.cfg.pred_iter(block).count() == 1 {
                let mut others = self.cfg.succ_iter(over).filter(|&b| b != block);
                if !others.all(|b| layout.is_cold(b)) {
                    return false;
                }
            }
            block = over;
        }
        false
    }

    /// Moves the instruction, and before it those of its operands that go along.
    fn go(&mut self, inst: Inst) {
        for value in self.operands(inst) {
            if let ValueDef::Result(operand, _) = self.func.dfg.value_def(value)
                && self.along.remove(&operand).is_some()
            {
                self.go(operand);
            }
        }
        let Some(place) = self.place(inst) else {
            return;
        };
        let layout = &mut self.func.layout;
        let before = match place.behind {
            Some(behind) => layout.next_inst(behind),
            None => layout.first_inst(place.block),
        };
        let before = before.expect("a block ends with a branch");
        if before == inst {
            return;
        }
        layout.remove_inst(inst);
        layout.insert_inst(inst, before);
        self.bring_constants(inst);
    }

    /// Has constants where the instruction is now, if they are made further down.
    fn bring_constants(&mut self, inst: Inst) {
        for value in self.operands(inst) {
            let Some(constant) = self.constant(value) else {
                continue;
            };
            let layout = &self.func.layout;
            if self.domtree.dominates(constant, inst, layout) {
                continue;
            }
            let copy = self.func.dfg.clone_inst(constant);
            let copied = self.func.dfg.first_result(copy);
            self.func.layout.insert_inst(copy, inst);
            let dfg = &self.func.dfg;
            let mut values: SmallVec<[Value; 3]> = dfg.inst_values(inst).collect();
            for v in &mut values {
                if dfg.resolve_aliases(*v) == value {
                    *v = copied;
                }
            }
            let dfg = &mut self.func.dfg;
            dfg.overwrite_inst_values(inst, values.into_iter());
        }
    }
}

#[cfg(test)]
mod tests;
