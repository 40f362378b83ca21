//! Calls, and the function's own beginning and end: the conventions of Cranelift, whose code is on the other side.

use super::Generator;
use super::assembler::{
    Alu, Place, R8, R9, R10, R12, R13, R14, RAX, RBX, RCX, RDI, RDX, RSI, RSP, Reg, Size, XMM0,
    memory, slot,
};
use super::control::Landing;
use super::registers::Source;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{
    AbiParam, ArgumentPurpose, Block, BlockArg, BlockCall, ExceptionTable, ExceptionTableItem,
    FuncRef, Inst, InstructionData, Opcode, SigRef, Value,
};
use cranelift_codegen::isa::CallConv;
use smallvec::SmallVec;

/// Where arguments are.
const ARGUMENTS: [Reg; 6] = [RDI, RSI, RDX, RCX, R8, R9];
/// Callee-saved registers. None is used here, but a throw may leave any values there.
const SAVED: [Reg; 4] = [RBX, R12, R13, R14];
/// Where results are: by the convention of compiled code, and of the C library.
const RESULTS: [Reg; 8] = [RAX, RCX, RDX, RSI, RDI, R8, R9, R10];
const C_RESULTS: [Reg; 2] = [RAX, RDX];
const FLOATS: u8 = 8;
const C_FLOAT_RESULTS: u8 = 2;
/// Where the address of what is called is. It holds no argument.
const CALLEE: Reg = R10;

/// The callee.
#[derive(Clone, Copy)]
enum Callee {
    Known(FuncRef),
    Address(Value),
}

/// Where an argument is.
#[derive(Clone, Copy)]
enum Where {
    Reg(Reg),
    /// In the caller's frame, this number of bytes above its end.
    Stack(i32),
}

/// Registers for values, in order; none for those that are on the stack. None at all if one is special.
fn registers(
    params: &[AbiParam],
    general: &[Reg],
    floats: u8,
) -> Option<SmallVec<[Option<Reg>; 8]>> {
    let (mut general, mut float) = (general.iter(), 0);
    let mut next = |param: &AbiParam| {
        if param.purpose != ArgumentPurpose::Normal {
            return None;
        }
        if !param.value_type.is_float() {
            return Some(general.next().copied());
        }
        float += 1;
        Some((float <= floats).then_some(XMM0 + float - 1))
    };
    params.iter().map(&mut next).collect()
}

/// Where arguments are, and how many bytes of the stack they take.
fn arguments(params: &[AbiParam]) -> Option<(SmallVec<[Where; 8]>, i32)> {
    let mut bytes = 0;
    let all = registers(params, &ARGUMENTS, FLOATS)?
        .into_iter()
        .map(|reg| {
            reg.map_or_else(
                || {
                    bytes += 8;
                    Where::Stack(bytes - 8)
                },
                Where::Reg,
            )
        });
    let all = all.collect();
    Some((all, (bytes + 15) & -16))
}

/// Where results are; none if some are not in registers.
fn results(params: &[AbiParam], convention: CallConv) -> Option<SmallVec<[Reg; 8]>> {
    let all = match convention {
        CallConv::Tail => registers(params, &RESULTS, FLOATS)?,
        _ => registers(params, &C_RESULTS, C_FLOAT_RESULTS)?,
    };
    all.into_iter().collect()
}

/// The places of arguments for a call.
#[derive(Default)]
struct Passed {
    registers: SmallVec<[(Reg, Source); 8]>,
    /// Bytes above the stack's end.
    stack: SmallVec<[(i32, Source); 4]>,
    bytes: i32,
}

impl Generator<'_> {
    /// The function's parameters are where its caller has put them.
    pub fn take_parameters(&mut self, entry: Block) -> Option<()> {
        let func = self.func;
        if func.signature.call_conv != CallConv::Tail {
            return None;
        }
        results(&func.signature.returns, CallConv::Tail)?;
        let (places, bytes) = arguments(&func.signature.params)?;
        self.taken = bytes;
        if self.memory.plan.catches {
            for reg in SAVED {
                self.memory.plan.frame += 8;
                let at = slot(-self.memory.plan.frame);
                self.asm.store(at, reg);
                self.saved.push((reg, at));
            }
        }
        let params = func.dfg.block_params(entry);
        for (&param, place) in params.iter().zip(places) {
            match place {
                Where::Reg(reg) => self.define(param, reg),
                // Its slot is there, above the return address and the caller's frame pointer.
                Where::Stack(at) => {
                    let info = self.info(param);
                    (info.slot, info.stored) = (16 + at, true);
                }
            }
        }
        Some(())
    }

    /// Returns to the caller.
    pub fn give_back(&mut self, inst: Inst) -> Option<()> {
        let func = self.func;
        let regs = results(&func.signature.returns, CallConv::Tail)?;
        let values = func.dfg.inst_args(inst);
        let moves = values.iter().zip(regs).map(|(&value, reg)| {
            let value = self.func.dfg.resolve_aliases(value);
            (reg, self.source(value))
        });
        let moves = moves.collect();
        self.move_into(moves);
        for &value in values {
            let value = self.resolve(value);
            self.used(value);
        }
        self.leave();
        // Functions have at most 1000 parameters, of 8 bytes each there.
        self.asm.ret(self.taken as u16);
        Some(())
    }

    /// The caller's frame and registers are as they were.
    fn leave(&mut self) {
        for &(reg, at) in &self.saved {
            self.asm.load(reg, at);
        }
        self.asm.leave();
    }

    pub fn call(&mut self, inst: Inst, next: Option<Block>) -> Option<()> {
        let func = self.func;
        let dfg = &func.dfg;
        let args: SmallVec<[Value; 8]> = dfg
            .inst_args(inst)
            .iter()
            .map(|&v| self.resolve(v))
            .collect();
        let known = |callee: FuncRef| (Callee::Known(callee), dfg.ext_funcs[callee].signature);
        let (opcode, (callee, signature), table) = match dfg.insts[inst] {
            InstructionData::Call {
                opcode, func_ref, ..
            } => (opcode, known(func_ref), None),
            InstructionData::TryCall {
                opcode,
                func_ref,
                exception,
                ..
            } => (opcode, known(func_ref), Some(exception)),
            InstructionData::CallIndirect {
                opcode, sig_ref, ..
            } => (opcode, (Callee::Address(args[0]), sig_ref), None),
            InstructionData::TryCallIndirect {
                opcode, exception, ..
            } => {
                let signature = dfg.exception_tables[exception].signature();
                (
                    opcode,
                    (Callee::Address(args[0]), signature),
                    Some(exception),
                )
            }
            _ => return None,
        };
        let convention = dfg.signatures[signature].call_conv;
        match convention {
            CallConv::Tail | CallConv::SystemV => {}
            CallConv::PreserveAll => return self.call_that_saves(callee, signature, &args),
            _ => return None,
        }
        let gives = results(&dfg.signatures[signature].returns, convention)?;
        let passed = self.passed(callee, signature, &args)?;
        for &arg in &args {
            self.info(arg).uses -= 1;
        }
        let returns = opcode == Opcode::ReturnCallIndirect;
        if returns && (passed.bytes, self.taken) != (0, 0) {
            return None;
        }
        if !returns {
            self.save_all();
        }
        let bytes = passed.bytes;
        self.pass(passed);
        for &arg in &args {
            self.free_if_unused(arg);
        }
        self.forget_registers();
        if returns {
            self.leave();
            self.asm.jump_to(Place::Reg(CALLEE));
            return Some(());
        }
        self.leave_for(callee);
        let here = self.asm.at();
        if let Some(entries) = dfg.user_stack_map_entries(inst) {
            let slots = &self.memory.plan.slots;
            let at = entries.iter().map(|entry| {
                let start = slots[entry.slot.as_u32() as usize];
                (start + entry.offset as i32) as u32
            });
            let at = at.collect();
            self.piece.stack_maps.push((here, 0, at));
        }
        if convention != CallConv::Tail {
            self.move_stack(Alu::Add, bytes);
        }
        match table {
            Some(table) => self.go_on(table, next, &gives)?,
            None => {
                for (&value, &reg) in dfg.inst_results(inst).iter().zip(&gives) {
                    self.define(value, reg);
                }
            }
        }
        Some(())
    }

    fn passed(&mut self, callee: Callee, signature: SigRef, args: &[Value]) -> Option<Passed> {
        let params = &self.func.dfg.signatures[signature].params;
        let (places, bytes) = arguments(params)?;
        let mut passed = Passed {
            bytes,
            ..Passed::default()
        };
        let args = match callee {
            Callee::Known(_) => args,
            Callee::Address(callee) => {
                let source = self.source(callee);
                passed.registers.push((CALLEE, source));
                &args[1..]
            }
        };
        for (&arg, place) in args.iter().zip(places) {
            let source = self.source(arg);
            match place {
                Where::Reg(reg) => passed.registers.push((reg, source)),
                Where::Stack(at) => passed.stack.push((at, source)),
            }
        }
        Some(passed)
    }

    /// Puts arguments where the callee takes them.
    fn pass(&mut self, passed: Passed) {
        self.move_stack(Alu::Sub, passed.bytes);
        for (at, source) in passed.stack {
            self.write_move(source, memory(RSP, at));
        }
        self.move_into(passed.registers);
    }

    fn move_stack(&mut self, op: Alu, bytes: i32) {
        if bytes != 0 {
            let place = Place::Reg(RSP);
            self.asm.alu_constant(op, Size::Double, place, bytes);
        }
    }

    fn leave_for(&mut self, callee: Callee) {
        match callee {
            Callee::Known(callee) => {
                let target = &self.func.dfg.ext_funcs[callee];
                match target.colocated {
                    true => {
                        let field = self.asm.call_field();
                        let name = target.name.clone();
                        let fields = &mut self.piece.fields;
                        fields.push((field, Reloc::X86CallPCRel4, name, -4));
                    }
                    false => {
                        self.put_address(callee, CALLEE);
                        self.asm.call_to(Place::Reg(CALLEE));
                    }
                }
            }
            Callee::Address(_) => self.asm.call_to(Place::Reg(CALLEE)),
        }
    }

    fn put_address(&mut self, func: FuncRef, reg: Reg) {
        let target = &self.func.dfg.ext_funcs[func];
        let name = target.name.clone();
        let field = match target.colocated {
            true => (self.asm.address_field(reg), Reloc::X86PCRel4, name, -4),
            false => (self.asm.constant_field(reg), Reloc::Abs8, name, 0),
        };
        self.piece.fields.push(field);
    }

    pub fn address_of_function(&mut self, inst: Inst) -> Option<()> {
        let InstructionData::FuncAddr { func_ref, .. } = self.func.dfg.insts[inst] else {
            return None;
        };
        let result = self.result(inst);
        let reg = self.register(false);
        self.put_address(func_ref, reg);
        self.define(result, reg);
        Some(())
    }

    /// A call of what changes no register.
    fn call_that_saves(&mut self, callee: Callee, signature: SigRef, args: &[Value]) -> Option<()> {
        if !self.func.dfg.signatures[signature].returns.is_empty() {
            return None;
        }
        let passed = self.passed(callee, signature, args)?;
        if passed.bytes != 0 {
            return None;
        }
        if let Callee::Known(_) = callee {
            self.empty(CALLEE);
        }
        for &(to, _) in &passed.registers {
            self.empty(to);
        }
        self.pass(passed);
        for &arg in args {
            self.used(arg);
        }
        self.leave_for(callee);
        Some(())
    }

    /// The code after a call that may throw.
    fn go_on(&mut self, table: ExceptionTable, next: Option<Block>, gives: &[Reg]) -> Option<()> {
        let func = self.func;
        let table = &func.dfg.exception_tables[table];
        let mut thrown = None;
        for item in table.items() {
            match item {
                ExceptionTableItem::Default(call) if thrown.is_none() => thrown = Some(call),
                _ => return None,
            }
        }
        if let Some(thrown) = &thrown {
            self.land(thrown)?;
        }
        let normal = *table.normal_return();
        let given = |arg: BlockArg| match arg {
            BlockArg::TryCallRet(i) => gives.get(i as usize).copied(),
            _ => None,
        };
        let block = normal.block(&func.dfg.value_lists);
        if next == Some(block) && self.memory.plan.is_following(block) {
            for (arg, param) in self.handed(&normal) {
                if let Some(reg) = given(arg) {
                    self.define(param, reg);
                }
            }
            self.hand_over(&normal);
        } else {
            let moves = self.moves(&normal, given)?;
            self.write_moves(&moves);
            self.use_handed(&normal);
            let field = self.asm.jump();
            self.memory.jumps.push((field, block));
        }
        if let Some(thrown) = &thrown {
            self.use_handed(thrown);
        }
        Some(())
    }

    /// Records the handlers of a call's exceptions.
    fn land(&mut self, to: &BlockCall) -> Option<()> {
        let thrown = |arg: BlockArg| matches!(arg, BlockArg::TryCallExn(0)).then_some(RAX);
        let moves = self.moves(to, thrown)?;
        let landing = Landing {
            handler: self.piece.handlers.len(),
            moves,
            block: to.block(&self.func.dfg.value_lists),
        };
        self.memory.landings.push(landing);
        let here = self.asm.at();
        self.piece.handlers.push((here, 0, 0));
        Some(())
    }
}
