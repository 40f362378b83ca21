//! Constants, arithmetic, comparisons and conversions.

use super::facts::Condition;
use super::translate::Translator;
use crate::types::ValType;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use wasmparser::Operator;

impl Translator<'_, '_> {
    fn unary(&mut self, ty: ValType, f: impl FnOnce(&mut Self, Value) -> Value) {
        let a = self.pop();
        let v = f(self, a);
        self.push(v, ty);
    }

    fn binary(&mut self, ty: ValType, f: impl FnOnce(&mut Self, Value, Value) -> Value) {
        let b = self.pop();
        let a = self.pop();
        let v = f(self, a, b);
        self.push(v, ty);
    }

    /// A boolean as WebAssembly has it.
    pub(super) fn push_bool(&mut self, condition: Value) {
        let v = self.ins().uextend(types::I32, condition);
        self.push(v, ValType::I32);
    }

    fn compare(&mut self, cc: IntCC) {
        let b = self.pop();
        let a = self.pop();
        let narrow = self.b.func.dfg.value_type(a) == types::I32;
        if std::mem::take(&mut self.unsigned) {
            let v = self.ins().icmp(IntCC::UnsignedLessThan, a, b);
            self.push_bool(v);
            let condition = self.stack.last().expect("just pushed").value;
            return self.says(condition, Condition::Within(a, b));
        }
        if narrow && let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            self.push_decided(decide(cc, x, y));
            let decided = self.stack.last().expect("just pushed").value;
            self.distance = Some((decided, x.abs_diff(y).try_into().unwrap_or(u32::MAX)));
            return;
        }
        if narrow && let Some(is) = self.decided(cc, a, b) {
            return self.push_decided(is);
        }
        let v = self.ins().icmp(cc, a, b);
        self.push_bool(v);
        if narrow {
            let condition = self.stack.last().expect("just pushed").value;
            self.says(condition, Condition::Compare(cc, a, b));
        }
    }

    /// A sum or difference, which constants have at once: so counters of loops are known whose first iterations are apart.
    fn sum(
        &mut self,
        apply: fn(i32, i32) -> i32,
        f: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) {
        self.binary(ValType::I32, |t, a, b| {
            match (t.constant(a), t.constant(b)) {
                (Some(x), Some(y)) => t.i32(apply(x as i32, y as i32).into()),
                _ => f(t, a, b),
            }
        });
    }

    /// A boolean that is known.
    pub(super) fn push_decided(&mut self, is: bool) {
        let v = self.i32(i64::from(is));
        self.push(v, ValType::I32);
    }

    fn compare_float(&mut self, cc: FloatCC) {
        let b = self.pop();
        let a = self.pop();
        let v = self.ins().fcmp(cc, a, b);
        self.push_bool(v);
    }

    fn is_zero(&mut self) {
        let a = self.pop();
        let narrow = self.b.func.dfg.value_type(a) == types::I32;
        if narrow && let Some(known) = self.constant(a) {
            self.push_decided(known == 0);
            let negated = self.stack.last().expect("just pushed").value;
            if let Some((decided, distance)) = self.distance
                && decided == a
            {
                self.distance = Some((negated, distance));
            }
            return;
        }
        let v = self.ins().icmp_imm_s(IntCC::Equal, a, 0);
        self.push_bool(v);
        let condition = self.stack.last().expect("just pushed").value;
        self.says(condition, Condition::Not(a));
    }

    fn extend_low(
        &mut self,
        ty: ValType,
        from: cranelift_codegen::ir::Type,
        to: cranelift_codegen::ir::Type,
    ) {
        self.unary(ty, |t, a| {
            let low = t.b.ins().ireduce(from, a);
            t.b.ins().sextend(to, low)
        });
    }

    /// Whether the operator is one of these.
    pub(super) fn translate_numeric(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        use ValType::{F32, F64, I32, I64};
        macro_rules! un {
            ($ty:expr, $f:ident) => {
                self.unary($ty, |t, a| t.b.ins().$f(a))
            };
        }
        macro_rules! bin {
            ($ty:expr, $f:ident) => {
                self.binary($ty, |t, a, b| t.b.ins().$f(a, b))
            };
        }
        macro_rules! to {
            ($ty:expr, $f:ident, $clif:expr) => {
                self.unary($ty, |t, a| t.b.ins().$f($clif, a))
            };
        }
        match *op {
            I32Const { value } => {
                let v = self.i32(value as i64);
                self.push(v, I32);
            }
            I64Const { value } => {
                let v = self.i64(value);
                self.push(v, I64);
            }
            F32Const { value } => {
                let v = self
                    .ins()
                    .f32const(cranelift_codegen::ir::immediates::Ieee32::with_bits(
                        value.bits(),
                    ));
                self.push(v, F32);
            }
            F64Const { value } => {
                let v = self
                    .ins()
                    .f64const(cranelift_codegen::ir::immediates::Ieee64::with_bits(
                        value.bits(),
                    ));
                self.push(v, F64);
            }
            I32Eqz | I64Eqz => self.is_zero(),
            I32Eq | I64Eq => self.compare(IntCC::Equal),
            I32Ne | I64Ne => self.compare(IntCC::NotEqual),
            I32LtS | I64LtS => self.compare(IntCC::SignedLessThan),
            I32LtU | I64LtU => self.compare(IntCC::UnsignedLessThan),
            I32GtS | I64GtS => self.compare(IntCC::SignedGreaterThan),
            I32GtU | I64GtU => self.compare(IntCC::UnsignedGreaterThan),
            I32LeS | I64LeS => self.compare(IntCC::SignedLessThanOrEqual),
            I32LeU | I64LeU => self.compare(IntCC::UnsignedLessThanOrEqual),
            I32GeS | I64GeS => self.compare(IntCC::SignedGreaterThanOrEqual),
            I32GeU | I64GeU => self.compare(IntCC::UnsignedGreaterThanOrEqual),
            F32Eq | F64Eq => self.compare_float(FloatCC::Equal),
            F32Ne | F64Ne => self.compare_float(FloatCC::NotEqual),
            F32Lt | F64Lt => self.compare_float(FloatCC::LessThan),
            F32Gt | F64Gt => self.compare_float(FloatCC::GreaterThan),
            F32Le | F64Le => self.compare_float(FloatCC::LessThanOrEqual),
            F32Ge | F64Ge => self.compare_float(FloatCC::GreaterThanOrEqual),
            I32Clz => un!(I32, clz),
            I32Ctz => un!(I32, ctz),
            I32Popcnt => un!(I32, popcnt),
            I64Clz => un!(I64, clz),
            I64Ctz => un!(I64, ctz),
            I64Popcnt => un!(I64, popcnt),
            I32Add => self.sum(i32::wrapping_add, |t, a, b| t.b.ins().iadd(a, b)),
            I32Sub => self.sum(i32::wrapping_sub, |t, a, b| t.b.ins().isub(a, b)),
            I32Mul => bin!(I32, imul),
            I32DivS => bin!(I32, sdiv),
            I32DivU => bin!(I32, udiv),
            I32RemS => bin!(I32, srem),
            I32RemU => bin!(I32, urem),
            I32And => bin!(I32, band),
            I32Or => bin!(I32, bor),
            I32Xor => bin!(I32, bxor),
            I32Shl => bin!(I32, ishl),
            I32ShrS => bin!(I32, sshr),
            I32ShrU => bin!(I32, ushr),
            I32Rotl => bin!(I32, rotl),
            I32Rotr => bin!(I32, rotr),
            I64Add => bin!(I64, iadd),
            I64Sub => bin!(I64, isub),
            I64Mul => bin!(I64, imul),
            I64DivS => bin!(I64, sdiv),
            I64DivU => bin!(I64, udiv),
            I64RemS => bin!(I64, srem),
            I64RemU => bin!(I64, urem),
            I64And => bin!(I64, band),
            I64Or => bin!(I64, bor),
            I64Xor => bin!(I64, bxor),
            I64Shl => bin!(I64, ishl),
            I64ShrS => bin!(I64, sshr),
            I64ShrU => bin!(I64, ushr),
            I64Rotl => bin!(I64, rotl),
            I64Rotr => bin!(I64, rotr),
            F32Abs => un!(F32, fabs),
            F32Neg => un!(F32, fneg),
            F32Ceil => un!(F32, ceil),
            F32Floor => un!(F32, floor),
            F32Trunc => un!(F32, trunc),
            F32Nearest => un!(F32, nearest),
            F32Sqrt => un!(F32, sqrt),
            F32Add => bin!(F32, fadd),
            F32Sub => bin!(F32, fsub),
            F32Mul => bin!(F32, fmul),
            F32Div => bin!(F32, fdiv),
            F32Min => bin!(F32, fmin),
            F32Max => bin!(F32, fmax),
            F32Copysign => bin!(F32, fcopysign),
            F64Abs => un!(F64, fabs),
            F64Neg => un!(F64, fneg),
            F64Ceil => un!(F64, ceil),
            F64Floor => un!(F64, floor),
            F64Trunc => un!(F64, trunc),
            F64Nearest => un!(F64, nearest),
            F64Sqrt => un!(F64, sqrt),
            F64Add => bin!(F64, fadd),
            F64Sub => bin!(F64, fsub),
            F64Mul => bin!(F64, fmul),
            F64Div => bin!(F64, fdiv),
            F64Min => bin!(F64, fmin),
            F64Max => bin!(F64, fmax),
            F64Copysign => bin!(F64, fcopysign),
            I32WrapI64 => to!(I32, ireduce, types::I32),
            I64ExtendI32S => to!(I64, sextend, types::I64),
            I64ExtendI32U => to!(I64, uextend, types::I64),
            I32TruncF32S | I32TruncF64S => to!(I32, fcvt_to_sint, types::I32),
            I32TruncF32U | I32TruncF64U => to!(I32, fcvt_to_uint, types::I32),
            I64TruncF32S | I64TruncF64S => to!(I64, fcvt_to_sint, types::I64),
            I64TruncF32U | I64TruncF64U => to!(I64, fcvt_to_uint, types::I64),
            I32TruncSatF32S | I32TruncSatF64S => to!(I32, fcvt_to_sint_sat, types::I32),
            I32TruncSatF32U | I32TruncSatF64U => to!(I32, fcvt_to_uint_sat, types::I32),
            I64TruncSatF32S | I64TruncSatF64S => to!(I64, fcvt_to_sint_sat, types::I64),
            I64TruncSatF32U | I64TruncSatF64U => to!(I64, fcvt_to_uint_sat, types::I64),
            F32ConvertI32S | F32ConvertI64S => to!(F32, fcvt_from_sint, types::F32),
            F32ConvertI32U | F32ConvertI64U => to!(F32, fcvt_from_uint, types::F32),
            F64ConvertI32S | F64ConvertI64S => to!(F64, fcvt_from_sint, types::F64),
            F64ConvertI32U | F64ConvertI64U => to!(F64, fcvt_from_uint, types::F64),
            F32DemoteF64 => to!(F32, fdemote, types::F32),
            F64PromoteF32 => to!(F64, fpromote, types::F64),
            I32ReinterpretF32 => self.reinterpret(I32, types::I32),
            I64ReinterpretF64 => self.reinterpret(I64, types::I64),
            F32ReinterpretI32 => self.reinterpret(F32, types::F32),
            F64ReinterpretI64 => self.reinterpret(F64, types::F64),
            I32Extend8S => self.extend_low(I32, types::I8, types::I32),
            I32Extend16S => self.extend_low(I32, types::I16, types::I32),
            I64Extend8S => self.extend_low(I64, types::I8, types::I64),
            I64Extend16S => self.extend_low(I64, types::I16, types::I64),
            I64Extend32S => self.extend_low(I64, types::I32, types::I64),
            Drop => {
                self.pop();
            }
            Select | TypedSelect { .. } => {
                let condition = self.pop();
                let b = self.pop_operand();
                let a = self.pop_operand();
                let ty = match *op {
                    TypedSelect { ty } => self.val_type(ty),
                    _ => a.ty,
                };
                let v = self.ins().select(condition, a.value, b.value);
                self.push(v, ty);
            }
            _ => return false,
        }
        true
    }

    fn reinterpret(&mut self, ty: ValType, clif: cranelift_codegen::ir::Type) {
        self.unary(ty, |t, a| t.b.ins().bitcast(clif, MemFlagsData::new(), a));
    }
}

/// The result of a comparison of 32-bit constants, with their signs.
fn decide(cc: IntCC, a: i64, b: i64) -> bool {
    let (low, high) = (a as u32, b as u32);
    match cc {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::SignedLessThan => a < b,
        IntCC::SignedLessThanOrEqual => a <= b,
        IntCC::SignedGreaterThan => a > b,
        IntCC::SignedGreaterThanOrEqual => a >= b,
        IntCC::UnsignedLessThan => low < high,
        IntCC::UnsignedLessThanOrEqual => low <= high,
        IntCC::UnsignedGreaterThan => low > high,
        IntCC::UnsignedGreaterThanOrEqual => low >= high,
    }
}
