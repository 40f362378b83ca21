//! Machine code in one pass over a function, for code that is to be there soon and not to be fast.
//!
//! Cranelift's own ways have several passes: they choose instructions from a tree, give registers to values, and then write. For a function
//! of 200 instructions that is a quarter of a millisecond, most of it for bookkeeping. Here each instruction is written when it is seen.
//!
//! - **Values live in registers within a stretch**: blocks of which each is reached from the one before it alone. A value used in another stretch is
//!   stored in a slot of the frame where it is made, and loaded where it is used. Blocks take their parameters in slots.
//! - **Nothing is in registers across calls.** So only registers that a callee may change are used, and none is saved.
//! - **Constants and addresses of slots are made where they are used**, mostly as parts of instructions.
//! - A comparison right before what uses its outcome leaves it in the flags.
//!
//! Rare operations are not supported: vectors, some conversions, tail calls with arguments on the stack. Cranelift's generator compiles functions
//! with them.

mod assembler;
mod calls;
mod control;
mod floats;
mod integers;
mod memory;
mod plan;
mod registers;

use assembler::{Assembler, Reg};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, ExternalName, Function, Inst, Opcode, TrapCode, Value};
use plan::{Info, NO_REGISTER, NONE, Plan};

/// Code, and what is known of it. Offsets count from its start.
#[derive(Default)]
pub(crate) struct Piece {
    pub code: Vec<u8>,
    pub traps: Vec<(u32, TrapCode)>,
    /// By return address: bytes from stack pointer to frame pointer, and the references' offsets from the stack pointer.
    pub stack_maps: Vec<(u32, u32, Box<[u32]>)>,
    /// By return address: bytes from stack pointer to frame pointer, and the handler.
    pub handlers: Vec<(u32, u32, u32)>,
    /// Where instructions with another source begin, and that.
    pub sources: Vec<(u32, u32)>,
    /// Fields to fill: where, how, with what, and what to add.
    pub fields: Vec<(u32, Reloc, ExternalName, i64)>,
}

/// The generator's memory, for one function after another.
#[derive(Default)]
pub(crate) struct OnePass {
    plan: Plan,
    /// Where blocks begin, or [`NONE`] before their code is there.
    starts: SecondaryMap<Block, u32>,
    /// Fields that lead to blocks.
    jumps: Vec<(u32, Block)>,
    /// Fields that lead to traps, each with its source.
    traps: Vec<(u32, TrapCode, u32)>,
    landings: Vec<control::Landing>,
    free_slots: Vec<i32>,
    /// Memory for code as it grows.
    code: Vec<u8>,
}

impl OnePass {
    /// The code of a function, if it has only what is known here.
    /// `shared` are constants, and the heap's base, that are not in its blocks.
    pub fn generate(&mut self, func: &Function, shared: &[Inst]) -> Option<Piece> {
        self.plan.make(func, shared)?;
        self.starts.clear();
        self.jumps.clear();
        self.traps.clear();
        self.landings.clear();
        self.free_slots.clear();
        let mut generator = Generator {
            func,
            asm: Assembler::new(std::mem::take(&mut self.code)),
            holds: [None; 32],
            locked: 0,
            turn: 0,
            flags: None,
            skip: None,
            source: NONE,
            saved: Vec::new(),
            taken: 0,
            piece: Piece::default(),
            memory: self,
        };
        let is_whole = generator.run();
        let Generator { mut piece, asm, .. } = generator;
        piece.code = asm.code.as_slice().to_vec();
        self.code = asm.code;
        is_whole.map(|()| piece)
    }
}

/// A function on its way.
struct Generator<'a> {
    func: &'a Function,
    asm: Assembler,
    /// The values in registers.
    holds: [Option<Value>; 32],
    /// Registers that the instruction at hand needs, a bit for each.
    locked: u32,
    /// Which register is taken next if all are in use.
    turn: u8,
    /// A condition that the flags hold, and for which value.
    flags: Option<(Value, assembler::Cond)>,
    /// An instruction that was done with the one before it.
    skip: Option<Inst>,
    /// Where in the module the code at hand comes from.
    source: u32,
    /// The caller's registers, and where they are in the frame.
    saved: Vec<(Reg, assembler::Place)>,
    /// Bytes of arguments on the stack, which the function takes from there when it returns.
    taken: i32,
    piece: Piece,
    memory: &'a mut OnePass,
}

impl<'a> Generator<'a> {
    fn run(&mut self) -> Option<()> {
        let size = self.asm.enter();
        for i in 0..self.memory.plan.order.len() {
            let block = self.memory.plan.order[i];
            self.memory.starts[block] = self.asm.at() + 1;
            if i == 0 {
                self.take_parameters(block)?;
            } else {
                self.begin(block, self.memory.plan.follows[i]);
            }
            let next = self.memory.plan.order.get(i + 1).copied();
            for inst in self.func.layout.block_insts(block) {
                if self.skip == Some(inst) {
                    continue;
                }
                self.locate(inst);
                self.instruction(inst, next)?;
                self.locked = 0;
            }
        }
        self.write_landings();
        self.write_traps();
        self.fill(size)
    }

    /// Fills what was not known before.
    fn fill(&mut self, size: u32) -> Option<()> {
        let frame = (self.memory.plan.frame + 15) & -16;
        self.asm.patch_word(size, frame);
        for i in 0..self.memory.jumps.len() {
            let (field, block) = self.memory.jumps[i];
            let start = self.memory.starts[block].checked_sub(1)?;
            self.asm.patch(field, start);
        }
        for (_, bytes, references) in &mut self.piece.stack_maps {
            *bytes = frame as u32;
            for reference in references {
                *reference = reference.wrapping_add(frame as u32);
            }
        }
        for (_, bytes, _) in &mut self.piece.handlers {
            *bytes = frame as u32;
        }
        Some(())
    }

    fn begin(&mut self, block: Block, follows: bool) {
        if !follows {
            self.forget_registers();
        }
        let func = self.func;
        for &param in func.dfg.block_params(block) {
            let info = self.info(param);
            if info.reg == NO_REGISTER {
                info.stored = true;
            }
        }
    }

    /// Records the source of the code that begins here.
    fn locate(&mut self, inst: Inst) {
        let source = self.func.srcloc(inst);
        if !source.is_default() {
            self.note_source(source.bits());
        }
    }

    fn note_source(&mut self, source: u32) {
        if source != self.source {
            self.source = source;
            self.piece.sources.push((self.asm.at(), source));
        }
    }

    /// The value that another name of it stands for.
    fn resolve(&self, value: Value) -> Value {
        self.func.dfg.resolve_aliases(value)
    }

    fn info(&mut self, value: Value) -> &mut Info {
        &mut self.memory.plan.values[value.as_u32() as usize]
    }

    /// The operand of an instruction.
    fn arg(&self, inst: Inst, index: usize) -> Value {
        self.resolve(self.func.dfg.inst_args(inst)[index])
    }

    fn result(&self, inst: Inst) -> Value {
        self.func.dfg.first_result(inst)
    }

    fn instruction(&mut self, inst: Inst, next: Option<Block>) -> Option<()> {
        use Opcode::*;
        match self.func.dfg.insts[inst].opcode() {
            // Made where they are used.
            Iconst | F32const | F64const | StackAddr | GetPinnedReg | Nop => {}
            Iadd | Isub | Band | Bor | Bxor | Imul | Ishl | Ushr | Sshr | Rotl | Rotr | Udiv
            | Sdiv | Urem | Srem | Icmp | Ireduce | Uextend | Sextend | Clz | Ctz | Popcnt
            | UaddOverflowTrap | Ineg | Bnot | GetStackPointer => self.integer(inst)?,
            Select => self.select(inst)?,
            Fadd | Fsub | Fmul | Fdiv | Sqrt | Fneg | Fabs | Fcopysign | Fcmp | Ceil | Floor
            | Trunc | Nearest | Fmin | Fmax | Fpromote | Fdemote | FcvtFromSint | FcvtFromUint
            | FcvtToSintSat | Bitcast => self.float(inst)?,
            Load | Uload8 | Uload16 | Uload32 | Sload8 | Sload16 | Sload32 => self.load(inst)?,
            Store | Istore8 | Istore16 | Istore32 => self.store(inst)?,
            Jump | Brif | BrTable | Trap | Trapz | Trapnz | Return => self.control(inst, next)?,
            Call | CallIndirect | TryCall | TryCallIndirect | ReturnCallIndirect => {
                self.call(inst, next)?
            }
            FuncAddr => self.address_of_function(inst)?,
            _ => return None,
        }
        Some(())
    }
}

/// A register's bit in a set of them.
fn bit(reg: Reg) -> u32 {
    1 << reg
}
