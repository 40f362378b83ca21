//! Where control goes: branches with block arguments, traps, and the cold code after a function.

use super::assembler::{Alu, Cond, Place, RBP, Reg, SCRATCH, Size, memory, slot};
use super::registers::Source;
use super::{Generator, bit};
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Inst, InstructionData, JumpTable, Opcode, TrapCode, Value,
};
use smallvec::SmallVec;

/// Values on their way into slots.
pub(super) type Moves = SmallVec<[(Source, i32); 4]>;

/// Where a call goes on when something was thrown.
pub(super) struct Landing {
    /// The call's place in the list of handlers.
    pub handler: usize,
    pub moves: Moves,
    pub block: Block,
}

impl Generator<'_> {
    pub fn control(&mut self, inst: Inst, next: Option<Block>) -> Option<()> {
        let func = self.func;
        match func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => self.jump(&destination, next),
            InstructionData::Brif { arg, blocks, .. } => self.branch(arg, &blocks, next)?,
            InstructionData::BranchTable { arg, table, .. } => self.branch_by_table(arg, table),
            InstructionData::Trap { code, .. } => {
                let at = self.asm.at();
                self.piece.traps.push((at, code));
                self.asm.trap();
            }
            InstructionData::CondTrap { opcode, arg, code } => {
                let arg = self.resolve(arg);
                let cond = self.truth(arg)?;
                match opcode {
                    Opcode::Trapz => self.trap_if(cond.not(), code),
                    _ => self.trap_if(cond, code),
                }
            }
            InstructionData::MultiAry { .. } => return self.give_back(inst),
            _ => return None,
        }
        Some(())
    }

    /// A trap if the flags say so. It is after the function's code.
    pub fn trap_if(&mut self, cond: Cond, code: TrapCode) {
        let field = self.asm.jump_if(cond);
        self.memory.traps.push((field, code, self.source));
    }

    pub fn write_traps(&mut self) {
        for i in 0..self.memory.traps.len() {
            let (field, code, source) = self.memory.traps[i];
            let here = self.asm.at();
            self.asm.patch(field, here);
            self.note_source(source);
            self.piece.traps.push((here, code));
            self.asm.trap();
        }
    }

    pub fn write_landings(&mut self) {
        for landing in std::mem::take(&mut self.memory.landings) {
            self.piece.handlers[landing.handler].2 = self.asm.at();
            self.write_moves(&landing.moves);
            self.jump_to(landing.block);
        }
    }

    fn jump_to(&mut self, block: Block) {
        let field = self.asm.jump();
        self.memory.jumps.push((field, block));
    }

    fn jump_if(&mut self, cond: Cond, block: Block) {
        let field = self.asm.jump_if(cond);
        self.memory.jumps.push((field, block));
    }

    fn target_of(&self, call: &BlockCall) -> Block {
        call.block(&self.func.dfg.value_lists)
    }

    /// The arguments of a branch, each with the parameter that takes it.
    pub fn handed(&self, call: &BlockCall) -> SmallVec<[(BlockArg, Value); 4]> {
        let dfg = &self.func.dfg;
        let params = dfg.block_params(self.target_of(call));
        let args = call.args(&dfg.value_lists).map(|arg| match arg {
            BlockArg::Value(value) => BlockArg::Value(self.resolve(value)),
            other => other,
        });
        args.zip(params.iter().copied()).collect()
    }

    /// The values to store along an edge. `made` has the registers of the results of the call at its beginning.
    pub fn moves(
        &mut self,
        call: &BlockCall,
        made: impl Fn(BlockArg) -> Option<Reg>,
    ) -> Option<Moves> {
        let mut moves = Moves::new();
        for (arg, param) in self.handed(call) {
            if !self.info(param).is_used {
                continue;
            }
            let source = match arg {
                BlockArg::Value(value) => self.source(value),
                other => Source::Reg(made(other)?),
            };
            moves.push((source, self.slot_of(param)));
        }
        Some(moves)
    }

    fn plain_moves(&mut self, call: &BlockCall) -> Moves {
        // No call, and nothing that it gives.
        self.moves(call, |_| None).unwrap_or_default()
    }

    /// Counts the uses of a branch's arguments.
    pub fn use_handed(&mut self, call: &BlockCall) {
        for (arg, _) in self.handed(call) {
            if let BlockArg::Value(value) = arg {
                self.used(value);
            }
        }
    }

    /// Stores what a block takes. Leaves registers and flags alone.
    pub fn write_moves(&mut self, moves: &Moves) {
        let overwritten = |(i, &(source, _)): (usize, &(Source, i32))| match source {
            Source::Slot(from) => moves[..i].iter().any(|&(_, to)| to == from),
            _ => false,
        };
        // If a slot is written before it is read, all that is in slots is read first.
        let crossed = moves.iter().enumerate().any(overwritten);
        let in_slot =
            |&&(source, to): &&(Source, i32)| matches!(source, Source::Slot(from) if from != to);
        if crossed {
            for &(source, _) in moves.iter().filter(in_slot) {
                if let Source::Slot(from) = source {
                    self.asm.push(slot(from));
                }
            }
        }
        for &(source, to) in moves {
            match source {
                Source::Slot(from) if from == to || crossed => {}
                _ => self.write_move(source, slot(to)),
            }
        }
        if crossed {
            for &(_, to) in moves.iter().rev().filter(in_slot) {
                self.asm.pop(slot(to));
            }
        }
    }

    /// Stores one value. Leaves registers and flags alone.
    pub fn write_move(&mut self, source: Source, to: Place) {
        match source {
            Source::Reg(reg) => return self.asm.store(to, reg),
            Source::Constant(bits) => match i32::try_from(bits) {
                Ok(short) => return self.asm.store_constant(Size::Double, to, short),
                Err(_) => self.asm.constant(SCRATCH, bits),
            },
            Source::Slot(from) => self.asm.load(SCRATCH, slot(from)),
            Source::Frame(offset) => self.asm.address(true, SCRATCH, RBP, offset),
        }
        self.asm.store(to, SCRATCH);
    }

    fn follows(&self, block: Block, next: Option<Block>) -> bool {
        let plan = &self.memory.plan;
        next == Some(block) && plan.is_following(block)
    }

    fn jump(&mut self, to: &BlockCall, next: Option<Block>) {
        let block = self.target_of(to);
        if self.follows(block, next) {
            return self.hand_over(to);
        }
        let moves = self.plain_moves(to);
        self.write_moves(&moves);
        self.use_handed(to);
        if next != Some(block) {
            self.jump_to(block);
        }
    }

    /// Hands values to the block that follows, in registers. The results of a call are there already.
    pub fn hand_over(&mut self, to: &BlockCall) {
        for (arg, param) in self.handed(to) {
            let BlockArg::Value(value) = arg else {
                continue;
            };
            let reg = self.operand(value);
            self.used(value);
            let reg = self.copy(reg);
            self.define(param, reg);
            self.locked = 0;
        }
    }

    fn branch(&mut self, arg: Value, to: &[BlockCall; 2], next: Option<Block>) -> Option<()> {
        let arg = self.resolve(arg);
        let cond = self.truth(arg)?;
        let [yes, no] = [self.plain_moves(&to[0]), self.plain_moves(&to[1])];
        let [yes_block, no_block] = [self.target_of(&to[0]), self.target_of(&to[1])];
        match (yes.is_empty(), no.is_empty()) {
            (true, true) if next == Some(yes_block) => self.jump_if(cond.not(), no_block),
            (true, _) => {
                self.jump_if(cond, yes_block);
                self.write_moves(&no);
                if next != Some(no_block) {
                    self.jump_to(no_block);
                }
            }
            (false, true) => {
                self.jump_if(cond.not(), no_block);
                self.write_moves(&yes);
                if next != Some(yes_block) {
                    self.jump_to(yes_block);
                }
            }
            (false, false) => {
                let other = self.asm.jump_if(cond.not());
                self.write_moves(&yes);
                self.jump_to(yes_block);
                let here = self.asm.at();
                self.asm.patch(other, here);
                self.write_moves(&no);
                if next != Some(no_block) {
                    self.jump_to(no_block);
                }
            }
        }
        self.use_handed(&to[0]);
        self.use_handed(&to[1]);
        Some(())
    }

    fn branch_by_table(&mut self, arg: Value, table: JumpTable) {
        let arg = self.resolve(arg);
        let func = self.func;
        let table = &func.dfg.jump_tables[table];
        let from = self.operand(arg);
        let reg = self.register(false);
        self.asm.mov_word(reg, from);
        self.used(arg);
        let entries = table.as_slice();
        let calls: Vec<(BlockCall, Moves)> = table
            .all_branches()
            .iter()
            .map(|call| (*call, self.plain_moves(call)))
            .collect();
        let place = Place::Reg(reg);
        let len = entries.len() as i32;
        self.asm.alu_constant(Alu::Cmp, Size::Word, place, len);
        // The default is the first of all branches.
        let out = self.asm.jump_if(Cond::ABOVE_EQUAL);
        let start = self.asm.address_field(SCRATCH);
        self.asm.address_of_element(reg, SCRATCH, reg, 2);
        self.asm.load_signed(Size::Word, true, reg, memory(reg, 0));
        let base = Place::Reg(SCRATCH);
        self.asm.alu(Alu::Add, Size::Double, reg, base);
        self.asm.jump_to(place);
        let base = self.asm.at();
        self.asm.patch(start, base);
        for _ in entries {
            self.asm.word(0);
        }
        for (i, (call, moves)) in calls.iter().enumerate() {
            let here = self.asm.at();
            match i.checked_sub(1) {
                None => self.asm.patch(out, here),
                Some(entry) => {
                    let field = base + 4 * entry as u32;
                    self.asm.patch_word(field, here as i32 - base as i32);
                }
            }
            self.write_moves(moves);
            self.jump_to(self.target_of(call));
        }
        for (call, _) in &calls {
            self.use_handed(call);
        }
    }

    /// Moves values into registers, all at once.
    pub fn move_into(&mut self, mut moves: SmallVec<[(Reg, Source); 8]>) {
        moves.retain(|&mut (to, from)| from != Source::Reg(to));
        let mut sources = moves.iter().fold(0, |all, &(_, from)| match from {
            Source::Reg(reg) => all | bit(reg),
            _ => all,
        });
        let mut rest = moves.len();
        while sources != 0 {
            let ready = moves[..rest]
                .iter()
                .position(|&(to, from)| matches!(from, Source::Reg(_)) && sources & bit(to) == 0);
            match ready {
                Some(at) => {
                    let (to, from) = moves[at];
                    let Source::Reg(from) = from else {
                        unreachable!()
                    };
                    self.asm.mov(to, from);
                    rest -= 1;
                    moves.swap(at, rest);
                }
                // Registers in a circle: one of them steps aside.
                None => {
                    let first = moves[..rest].iter().find_map(|&(_, from)| match from {
                        Source::Reg(reg) => Some(reg),
                        _ => None,
                    });
                    let Some(first) = first else { break };
                    let aside = match super::assembler::is_float(first) {
                        true => super::assembler::FLOAT_SCRATCH,
                        false => SCRATCH,
                    };
                    self.asm.mov(aside, first);
                    for (_, from) in &mut moves[..rest] {
                        if *from == Source::Reg(first) {
                            *from = Source::Reg(aside);
                        }
                    }
                }
            }
            sources = moves[..rest].iter().fold(0, |all, &(_, from)| match from {
                Source::Reg(reg) => all | bit(reg),
                _ => all,
            });
        }
        for &(to, from) in &moves[..rest] {
            match from {
                Source::Slot(from) => self.asm.load(to, slot(from)),
                Source::Constant(bits) => self.make_constant(to, bits),
                Source::Frame(offset) => self.asm.address(true, to, RBP, offset),
                Source::Reg(_) => unreachable!("they were moved before"),
            }
        }
    }
}
