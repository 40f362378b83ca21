//! Vectors of 128 bits. On the operand stack and wherever they are kept they are of one type; each operator takes them for lanes of
//! its own.

use super::signatures::VECTOR;
use super::slot::Width;
use super::translate::Translator;
use crate::types::ValType::{self, F32, F64, I32, I64, V128};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value, types,
};
use wasmparser::{MemArg, Operator};

use types::{F32X4, F64X2, I8X16, I16X8, I32X4, I64X2};

impl Translator<'_, '_> {
    /// A constant of 16 bytes.
    pub(super) fn vector(&mut self, bytes: &[u8; 16]) -> Value {
        self.vector_of(VECTOR, bytes)
    }

    fn vector_of(&mut self, ty: Type, bytes: &[u8; 16]) -> Value {
        let data = ConstantData::from(&bytes[..]);
        let handle = self.b.func.dfg.constants.insert(data);
        self.ins().vconst(ty, handle)
    }

    /// Both halves of a value, if it is a vector.
    pub(super) fn halves(&mut self, v: Value) -> Option<[Value; 2]> {
        if self.b.func.dfg.value_type(v) != VECTOR {
            return None;
        }
        let v = self.lanes(v, I64X2);
        Some([0, 1].map(|lane| self.ins().extractlane(v, lane)))
    }

    /// A vector with other lanes.
    fn lanes(&mut self, v: Value, ty: Type) -> Value {
        match self.b.func.dfg.value_type(v) == ty {
            true => v,
            false => {
                let flags = MemFlagsData::new().with_endianness(Endianness::Little);
                self.ins().bitcast(ty, flags, v)
            }
        }
    }

    fn pop_lanes(&mut self, ty: Type) -> Value {
        let v = self.pop();
        self.lanes(v, ty)
    }

    fn push_lanes(&mut self, v: Value) {
        let v = self.lanes(v, VECTOR);
        self.push(v, V128);
    }

    fn vector_unary(&mut self, ty: Type, f: impl FnOnce(&mut Self, Value) -> Value) {
        let a = self.pop_lanes(ty);
        let v = f(self, a);
        self.push_lanes(v);
    }

    fn vector_binary(&mut self, ty: Type, f: impl FnOnce(&mut Self, Value, Value) -> Value) {
        let b = self.pop_lanes(ty);
        let a = self.pop_lanes(ty);
        let v = f(self, a, b);
        self.push_lanes(v);
    }

    fn vector_compare(&mut self, ty: Type, cc: IntCC) {
        self.vector_binary(ty, |t, a, b| t.b.ins().icmp(cc, a, b));
    }

    fn vector_compare_float(&mut self, ty: Type, cc: FloatCC) {
        self.vector_binary(ty, |t, a, b| t.b.ins().fcmp(cc, a, b));
    }

    /// The operand by which lanes are shifted is taken modulo their bits, by Cranelift too.
    fn vector_shift(&mut self, ty: Type, f: impl FnOnce(&mut Self, Value, Value) -> Value) {
        let by = self.pop();
        let a = self.pop_lanes(ty);
        let v = f(self, a, by);
        self.push_lanes(v);
    }

    fn splat(&mut self, ty: Type) {
        let v = self.pop();
        let v = self.narrowed(v, ty);
        let v = self.ins().splat(ty, v);
        self.push_lanes(v);
    }

    /// A number as a lane.
    fn narrowed(&mut self, v: Value, ty: Type) -> Value {
        let lane = ty.lane_type();
        match lane {
            types::I8 | types::I16 => self.ins().ireduce(lane, v),
            _ => v,
        }
    }

    /// A lane as a number.
    fn extract(&mut self, ty: Type, lane: u8, signed: bool, to: ValType) {
        let v = self.pop_lanes(ty);
        let v = self.ins().extractlane(v, lane);
        let v = match (ty.lane_type(), signed) {
            (types::I8 | types::I16, true) => self.ins().sextend(types::I32, v),
            (types::I8 | types::I16, false) => self.ins().uextend(types::I32, v),
            _ => v,
        };
        self.push(v, to);
    }

    fn replace(&mut self, ty: Type, lane: u8) {
        let v = self.pop();
        let v = self.narrowed(v, ty);
        let to = self.pop_lanes(ty);
        let v = self.ins().insertlane(to, v, lane);
        self.push_lanes(v);
    }

    fn number_of(&mut self, ty: Type, f: impl FnOnce(&mut Self, Value) -> Value) {
        let v = self.pop_lanes(ty);
        let v = f(self, v);
        self.push(v, I32);
    }

    fn is_true(&mut self, ty: Type, f: impl FnOnce(&mut Self, Value) -> Value) {
        let v = self.pop_lanes(ty);
        let v = f(self, v);
        self.push_bool(v);
    }

    /// The smaller or larger by comparison alone, as C's operators have it.
    fn pseudo(&mut self, ty: Type, min: bool) {
        let b = self.pop_lanes(ty);
        let a = self.pop_lanes(ty);
        let takes_b = match min {
            true => self.ins().fcmp(FloatCC::LessThan, b, a),
            false => self.ins().fcmp(FloatCC::LessThan, a, b),
        };
        let [takes_b, a, b] = [takes_b, a, b].map(|v| self.lanes(v, VECTOR));
        let v = self.ins().bitselect(takes_b, b, a);
        self.push_lanes(v);
    }

    /// Both operands made wider, by their low or high halves.
    fn widen(&mut self, v: Value, low: bool, signed: bool) -> Value {
        match (low, signed) {
            (true, true) => self.ins().swiden_low(v),
            (true, false) => self.ins().uwiden_low(v),
            (false, true) => self.ins().swiden_high(v),
            (false, false) => self.ins().uwiden_high(v),
        }
    }

    fn extended(&mut self, ty: Type, low: bool, signed: bool) {
        self.vector_unary(ty, |t, a| t.widen(a, low, signed));
    }

    fn extended_product(&mut self, ty: Type, low: bool, signed: bool) {
        self.vector_binary(ty, |t, a, b| {
            let (a, b) = (t.widen(a, low, signed), t.widen(b, low, signed));
            t.b.ins().imul(a, b)
        });
    }

    fn extended_sum(&mut self, ty: Type, signed: bool) {
        self.vector_unary(ty, |t, a| {
            let (low, high) = (t.widen(a, true, signed), t.widen(a, false, signed));
            t.b.ins().iadd_pairwise(low, high)
        });
    }

    /// Two lanes as integers of 32 bits, and two zeros.
    fn truncated(&mut self, signed: bool) {
        self.vector_unary(F64X2, |t, a| {
            // A constant of this very type, by which Cranelift knows the operation.
            let zero = t.vector_of(I64X2, &[0; 16]);
            match signed {
                true => {
                    let v = t.b.ins().fcvt_to_sint_sat(I64X2, a);
                    t.b.ins().snarrow(v, zero)
                }
                false => {
                    let v = t.b.ins().fcvt_to_uint_sat(I64X2, a);
                    t.b.ins().uunarrow(v, zero)
                }
            }
        });
    }

    // ---- memory -----------------------------------------------------------------------------------------------------------------

    /// A number from memory.
    fn load_number(&mut self, arg: &MemArg, ty: ValType, width: Width) -> Value {
        self.memory_load(arg, ty, width);
        self.pop()
    }

    fn load_splat(&mut self, arg: &MemArg, lanes: Type, ty: ValType, width: Width) {
        self.memory_load(arg, ty, width);
        self.splat(lanes);
    }

    /// Half a vector, its lanes extended.
    fn load_extended(&mut self, arg: &MemArg, lanes: Type, signed: bool) {
        let v = self.load_number(arg, I64, Width::whole(I64));
        let v = self.ins().scalar_to_vector(I64X2, v);
        let v = self.lanes(v, lanes);
        let v = self.widen(v, true, signed);
        self.push_lanes(v);
    }

    fn load_zero(&mut self, arg: &MemArg, lanes: Type, ty: ValType) {
        let v = self.load_number(arg, ty, Width::whole(ty));
        let v = self.ins().scalar_to_vector(lanes, v);
        self.push_lanes(v);
    }

    fn load_lane(&mut self, arg: &MemArg, lanes: Type, lane: u8, ty: ValType, width: Width) {
        let vector = self.pop();
        let v = self.load_number(arg, ty, width);
        self.push(vector, V128);
        self.push(v, ty);
        self.replace(lanes, lane);
    }

    fn store_lane(&mut self, arg: &MemArg, lanes: Type, lane: u8, ty: ValType, width: Width) {
        self.extract(lanes, lane, false, ty);
        self.memory_store(arg, width);
    }

    fn translate_vector_memory(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        let whole = Width::whole;
        let byte = Width::part(types::I8, I32, false);
        let short = Width::part(types::I16, I32, false);
        match *op {
            V128Load { ref memarg } => self.memory_load(memarg, V128, whole(V128)),
            V128Store { ref memarg } => self.memory_store(memarg, whole(V128)),
            V128Load8Splat { ref memarg } => self.load_splat(memarg, I8X16, I32, byte),
            V128Load16Splat { ref memarg } => self.load_splat(memarg, I16X8, I32, short),
            V128Load32Splat { ref memarg } => self.load_splat(memarg, I32X4, I32, whole(I32)),
            V128Load64Splat { ref memarg } => self.load_splat(memarg, I64X2, I64, whole(I64)),
            V128Load8x8S { ref memarg } => self.load_extended(memarg, I8X16, true),
            V128Load8x8U { ref memarg } => self.load_extended(memarg, I8X16, false),
            V128Load16x4S { ref memarg } => self.load_extended(memarg, I16X8, true),
            V128Load16x4U { ref memarg } => self.load_extended(memarg, I16X8, false),
            V128Load32x2S { ref memarg } => self.load_extended(memarg, I32X4, true),
            V128Load32x2U { ref memarg } => self.load_extended(memarg, I32X4, false),
            V128Load32Zero { ref memarg } => self.load_zero(memarg, I32X4, I32),
            V128Load64Zero { ref memarg } => self.load_zero(memarg, I64X2, I64),
            V128Load8Lane { ref memarg, lane } => self.load_lane(memarg, I8X16, lane, I32, byte),
            V128Load16Lane { ref memarg, lane } => self.load_lane(memarg, I16X8, lane, I32, short),
            V128Load32Lane { ref memarg, lane } => {
                self.load_lane(memarg, I32X4, lane, I32, whole(I32));
            }
            V128Load64Lane { ref memarg, lane } => {
                self.load_lane(memarg, I64X2, lane, I64, whole(I64));
            }
            V128Store8Lane { ref memarg, lane } => self.store_lane(memarg, I8X16, lane, I32, byte),
            V128Store16Lane { ref memarg, lane } => {
                self.store_lane(memarg, I16X8, lane, I32, short);
            }
            V128Store32Lane { ref memarg, lane } => {
                self.store_lane(memarg, I32X4, lane, I32, whole(I32));
            }
            V128Store64Lane { ref memarg, lane } => {
                self.store_lane(memarg, I64X2, lane, I64, whole(I64));
            }
            _ => return false,
        }
        true
    }

    /// Translates an operator on vectors; whether it is one.
    pub(super) fn translate_vector(&mut self, op: &Operator<'_>) -> bool {
        self.translate_vector_memory(op)
            || self.translate_vector_lanes(op)
            || self.translate_vector_compare(op)
            || self.translate_vector_integer(op)
            || self.translate_vector_float(op)
    }

    fn translate_vector_lanes(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            V128Const { value } => {
                let v = self.vector(value.bytes());
                self.push(v, V128);
            }
            I8x16Splat => self.splat(I8X16),
            I16x8Splat => self.splat(I16X8),
            I32x4Splat => self.splat(I32X4),
            I64x2Splat => self.splat(I64X2),
            F32x4Splat => self.splat(F32X4),
            F64x2Splat => self.splat(F64X2),
            I8x16ExtractLaneS { lane } => self.extract(I8X16, lane, true, I32),
            I8x16ExtractLaneU { lane } => self.extract(I8X16, lane, false, I32),
            I16x8ExtractLaneS { lane } => self.extract(I16X8, lane, true, I32),
            I16x8ExtractLaneU { lane } => self.extract(I16X8, lane, false, I32),
            I32x4ExtractLane { lane } => self.extract(I32X4, lane, false, I32),
            I64x2ExtractLane { lane } => self.extract(I64X2, lane, false, I64),
            F32x4ExtractLane { lane } => self.extract(F32X4, lane, false, F32),
            F64x2ExtractLane { lane } => self.extract(F64X2, lane, false, F64),
            I8x16ReplaceLane { lane } => self.replace(I8X16, lane),
            I16x8ReplaceLane { lane } => self.replace(I16X8, lane),
            I32x4ReplaceLane { lane } => self.replace(I32X4, lane),
            I64x2ReplaceLane { lane } => self.replace(I64X2, lane),
            F32x4ReplaceLane { lane } => self.replace(F32X4, lane),
            F64x2ReplaceLane { lane } => self.replace(F64X2, lane),
            I8x16Shuffle { lanes } => self.vector_binary(I8X16, |t, a, b| {
                let mask = t.b.func.dfg.immediates.push(ConstantData::from(&lanes[..]));
                t.b.ins().shuffle(a, b, mask)
            }),
            I8x16Swizzle => self.vector_binary(I8X16, |t, a, b| t.b.ins().swizzle(a, b)),
            _ => return false,
        }
        true
    }

    fn translate_vector_compare(&mut self, op: &Operator<'_>) -> bool {
        use IntCC::*;
        use Operator::*;
        match *op {
            I8x16Eq => self.vector_compare(I8X16, Equal),
            I16x8Eq => self.vector_compare(I16X8, Equal),
            I32x4Eq => self.vector_compare(I32X4, Equal),
            I64x2Eq => self.vector_compare(I64X2, Equal),
            I8x16Ne => self.vector_compare(I8X16, NotEqual),
            I16x8Ne => self.vector_compare(I16X8, NotEqual),
            I32x4Ne => self.vector_compare(I32X4, NotEqual),
            I64x2Ne => self.vector_compare(I64X2, NotEqual),
            I8x16LtS => self.vector_compare(I8X16, SignedLessThan),
            I16x8LtS => self.vector_compare(I16X8, SignedLessThan),
            I32x4LtS => self.vector_compare(I32X4, SignedLessThan),
            I64x2LtS => self.vector_compare(I64X2, SignedLessThan),
            I8x16LtU => self.vector_compare(I8X16, UnsignedLessThan),
            I16x8LtU => self.vector_compare(I16X8, UnsignedLessThan),
            I32x4LtU => self.vector_compare(I32X4, UnsignedLessThan),
            I8x16GtS => self.vector_compare(I8X16, SignedGreaterThan),
            I16x8GtS => self.vector_compare(I16X8, SignedGreaterThan),
            I32x4GtS => self.vector_compare(I32X4, SignedGreaterThan),
            I64x2GtS => self.vector_compare(I64X2, SignedGreaterThan),
            I8x16GtU => self.vector_compare(I8X16, UnsignedGreaterThan),
            I16x8GtU => self.vector_compare(I16X8, UnsignedGreaterThan),
            I32x4GtU => self.vector_compare(I32X4, UnsignedGreaterThan),
            I8x16LeS => self.vector_compare(I8X16, SignedLessThanOrEqual),
            I16x8LeS => self.vector_compare(I16X8, SignedLessThanOrEqual),
            I32x4LeS => self.vector_compare(I32X4, SignedLessThanOrEqual),
            I64x2LeS => self.vector_compare(I64X2, SignedLessThanOrEqual),
            I8x16LeU => self.vector_compare(I8X16, UnsignedLessThanOrEqual),
            I16x8LeU => self.vector_compare(I16X8, UnsignedLessThanOrEqual),
            I32x4LeU => self.vector_compare(I32X4, UnsignedLessThanOrEqual),
            I8x16GeS => self.vector_compare(I8X16, SignedGreaterThanOrEqual),
            I16x8GeS => self.vector_compare(I16X8, SignedGreaterThanOrEqual),
            I32x4GeS => self.vector_compare(I32X4, SignedGreaterThanOrEqual),
            I64x2GeS => self.vector_compare(I64X2, SignedGreaterThanOrEqual),
            I8x16GeU => self.vector_compare(I8X16, UnsignedGreaterThanOrEqual),
            I16x8GeU => self.vector_compare(I16X8, UnsignedGreaterThanOrEqual),
            I32x4GeU => self.vector_compare(I32X4, UnsignedGreaterThanOrEqual),
            F32x4Eq => self.vector_compare_float(F32X4, FloatCC::Equal),
            F64x2Eq => self.vector_compare_float(F64X2, FloatCC::Equal),
            F32x4Ne => self.vector_compare_float(F32X4, FloatCC::NotEqual),
            F64x2Ne => self.vector_compare_float(F64X2, FloatCC::NotEqual),
            F32x4Lt => self.vector_compare_float(F32X4, FloatCC::LessThan),
            F64x2Lt => self.vector_compare_float(F64X2, FloatCC::LessThan),
            F32x4Gt => self.vector_compare_float(F32X4, FloatCC::GreaterThan),
            F64x2Gt => self.vector_compare_float(F64X2, FloatCC::GreaterThan),
            F32x4Le => self.vector_compare_float(F32X4, FloatCC::LessThanOrEqual),
            F64x2Le => self.vector_compare_float(F64X2, FloatCC::LessThanOrEqual),
            F32x4Ge => self.vector_compare_float(F32X4, FloatCC::GreaterThanOrEqual),
            F64x2Ge => self.vector_compare_float(F64X2, FloatCC::GreaterThanOrEqual),
            _ => return false,
        }
        true
    }

    fn translate_vector_integer(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        macro_rules! un {
            ($ty:expr, $f:ident) => {
                self.vector_unary($ty, |t, a| t.b.ins().$f(a))
            };
        }
        macro_rules! bin {
            ($ty:expr, $f:ident) => {
                self.vector_binary($ty, |t, a, b| t.b.ins().$f(a, b))
            };
        }
        macro_rules! shift {
            ($ty:expr, $f:ident) => {
                self.vector_shift($ty, |t, a, b| t.b.ins().$f(a, b))
            };
        }
        match *op {
            V128Not => un!(VECTOR, bnot),
            V128And => bin!(VECTOR, band),
            V128AndNot => bin!(VECTOR, band_not),
            V128Or => bin!(VECTOR, bor),
            V128Xor => bin!(VECTOR, bxor),
            V128Bitselect => {
                let mask = self.pop();
                let b = self.pop();
                let a = self.pop();
                let v = self.ins().bitselect(mask, a, b);
                self.push(v, V128);
            }
            V128AnyTrue => self.is_true(VECTOR, |t, a| t.b.ins().vany_true(a)),
            I8x16AllTrue => self.is_true(I8X16, |t, a| t.b.ins().vall_true(a)),
            I16x8AllTrue => self.is_true(I16X8, |t, a| t.b.ins().vall_true(a)),
            I32x4AllTrue => self.is_true(I32X4, |t, a| t.b.ins().vall_true(a)),
            I64x2AllTrue => self.is_true(I64X2, |t, a| t.b.ins().vall_true(a)),
            I8x16Bitmask => self.number_of(I8X16, |t, a| t.b.ins().vhigh_bits(types::I32, a)),
            I16x8Bitmask => self.number_of(I16X8, |t, a| t.b.ins().vhigh_bits(types::I32, a)),
            I32x4Bitmask => self.number_of(I32X4, |t, a| t.b.ins().vhigh_bits(types::I32, a)),
            I64x2Bitmask => self.number_of(I64X2, |t, a| t.b.ins().vhigh_bits(types::I32, a)),
            I8x16Abs => un!(I8X16, iabs),
            I16x8Abs => un!(I16X8, iabs),
            I32x4Abs => un!(I32X4, iabs),
            I64x2Abs => un!(I64X2, iabs),
            I8x16Neg => un!(I8X16, ineg),
            I16x8Neg => un!(I16X8, ineg),
            I32x4Neg => un!(I32X4, ineg),
            I64x2Neg => un!(I64X2, ineg),
            I8x16Popcnt => un!(I8X16, popcnt),
            I8x16Shl => shift!(I8X16, ishl),
            I16x8Shl => shift!(I16X8, ishl),
            I32x4Shl => shift!(I32X4, ishl),
            I64x2Shl => shift!(I64X2, ishl),
            I8x16ShrS => shift!(I8X16, sshr),
            I16x8ShrS => shift!(I16X8, sshr),
            I32x4ShrS => shift!(I32X4, sshr),
            I64x2ShrS => shift!(I64X2, sshr),
            I8x16ShrU => shift!(I8X16, ushr),
            I16x8ShrU => shift!(I16X8, ushr),
            I32x4ShrU => shift!(I32X4, ushr),
            I64x2ShrU => shift!(I64X2, ushr),
            I8x16Add => bin!(I8X16, iadd),
            I16x8Add => bin!(I16X8, iadd),
            I32x4Add => bin!(I32X4, iadd),
            I64x2Add => bin!(I64X2, iadd),
            I8x16Sub => bin!(I8X16, isub),
            I16x8Sub => bin!(I16X8, isub),
            I32x4Sub => bin!(I32X4, isub),
            I64x2Sub => bin!(I64X2, isub),
            I16x8Mul => bin!(I16X8, imul),
            I32x4Mul => bin!(I32X4, imul),
            I64x2Mul => bin!(I64X2, imul),
            I8x16AddSatS => bin!(I8X16, sadd_sat),
            I16x8AddSatS => bin!(I16X8, sadd_sat),
            I8x16AddSatU => bin!(I8X16, uadd_sat),
            I16x8AddSatU => bin!(I16X8, uadd_sat),
            I8x16SubSatS => bin!(I8X16, ssub_sat),
            I16x8SubSatS => bin!(I16X8, ssub_sat),
            I8x16SubSatU => bin!(I8X16, usub_sat),
            I16x8SubSatU => bin!(I16X8, usub_sat),
            I8x16MinS => bin!(I8X16, smin),
            I16x8MinS => bin!(I16X8, smin),
            I32x4MinS => bin!(I32X4, smin),
            I8x16MinU => bin!(I8X16, umin),
            I16x8MinU => bin!(I16X8, umin),
            I32x4MinU => bin!(I32X4, umin),
            I8x16MaxS => bin!(I8X16, smax),
            I16x8MaxS => bin!(I16X8, smax),
            I32x4MaxS => bin!(I32X4, smax),
            I8x16MaxU => bin!(I8X16, umax),
            I16x8MaxU => bin!(I16X8, umax),
            I32x4MaxU => bin!(I32X4, umax),
            I8x16AvgrU => bin!(I8X16, avg_round),
            I16x8AvgrU => bin!(I16X8, avg_round),
            I16x8Q15MulrSatS => bin!(I16X8, sqmul_round_sat),
            I8x16NarrowI16x8S => bin!(I16X8, snarrow),
            I8x16NarrowI16x8U => bin!(I16X8, unarrow),
            I16x8NarrowI32x4S => bin!(I32X4, snarrow),
            I16x8NarrowI32x4U => bin!(I32X4, unarrow),
            I16x8ExtendLowI8x16S => self.extended(I8X16, true, true),
            I16x8ExtendHighI8x16S => self.extended(I8X16, false, true),
            I16x8ExtendLowI8x16U => self.extended(I8X16, true, false),
            I16x8ExtendHighI8x16U => self.extended(I8X16, false, false),
            I32x4ExtendLowI16x8S => self.extended(I16X8, true, true),
            I32x4ExtendHighI16x8S => self.extended(I16X8, false, true),
            I32x4ExtendLowI16x8U => self.extended(I16X8, true, false),
            I32x4ExtendHighI16x8U => self.extended(I16X8, false, false),
            I64x2ExtendLowI32x4S => self.extended(I32X4, true, true),
            I64x2ExtendHighI32x4S => self.extended(I32X4, false, true),
            I64x2ExtendLowI32x4U => self.extended(I32X4, true, false),
            I64x2ExtendHighI32x4U => self.extended(I32X4, false, false),
            I16x8ExtMulLowI8x16S => self.extended_product(I8X16, true, true),
            I16x8ExtMulHighI8x16S => self.extended_product(I8X16, false, true),
            I16x8ExtMulLowI8x16U => self.extended_product(I8X16, true, false),
            I16x8ExtMulHighI8x16U => self.extended_product(I8X16, false, false),
            I32x4ExtMulLowI16x8S => self.extended_product(I16X8, true, true),
            I32x4ExtMulHighI16x8S => self.extended_product(I16X8, false, true),
            I32x4ExtMulLowI16x8U => self.extended_product(I16X8, true, false),
            I32x4ExtMulHighI16x8U => self.extended_product(I16X8, false, false),
            I64x2ExtMulLowI32x4S => self.extended_product(I32X4, true, true),
            I64x2ExtMulHighI32x4S => self.extended_product(I32X4, false, true),
            I64x2ExtMulLowI32x4U => self.extended_product(I32X4, true, false),
            I64x2ExtMulHighI32x4U => self.extended_product(I32X4, false, false),
            I16x8ExtAddPairwiseI8x16S => self.extended_sum(I8X16, true),
            I16x8ExtAddPairwiseI8x16U => self.extended_sum(I8X16, false),
            I32x4ExtAddPairwiseI16x8S => self.extended_sum(I16X8, true),
            I32x4ExtAddPairwiseI16x8U => self.extended_sum(I16X8, false),
            I32x4DotI16x8S => self.vector_binary(I16X8, |t, a, b| {
                let halves = [true, false].map(|low| {
                    let (a, b) = (t.widen(a, low, true), t.widen(b, low, true));
                    t.b.ins().imul(a, b)
                });
                t.b.ins().iadd_pairwise(halves[0], halves[1])
            }),
            _ => return false,
        }
        true
    }

    fn translate_vector_float(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        macro_rules! un {
            ($ty:expr, $f:ident) => {
                self.vector_unary($ty, |t, a| t.b.ins().$f(a))
            };
        }
        macro_rules! bin {
            ($ty:expr, $f:ident) => {
                self.vector_binary($ty, |t, a, b| t.b.ins().$f(a, b))
            };
        }
        match *op {
            F32x4Abs => un!(F32X4, fabs),
            F64x2Abs => un!(F64X2, fabs),
            F32x4Neg => un!(F32X4, fneg),
            F64x2Neg => un!(F64X2, fneg),
            F32x4Sqrt => un!(F32X4, sqrt),
            F64x2Sqrt => un!(F64X2, sqrt),
            F32x4Ceil => un!(F32X4, ceil),
            F64x2Ceil => un!(F64X2, ceil),
            F32x4Floor => un!(F32X4, floor),
            F64x2Floor => un!(F64X2, floor),
            F32x4Trunc => un!(F32X4, trunc),
            F64x2Trunc => un!(F64X2, trunc),
            F32x4Nearest => un!(F32X4, nearest),
            F64x2Nearest => un!(F64X2, nearest),
            F32x4Add => bin!(F32X4, fadd),
            F64x2Add => bin!(F64X2, fadd),
            F32x4Sub => bin!(F32X4, fsub),
            F64x2Sub => bin!(F64X2, fsub),
            F32x4Mul => bin!(F32X4, fmul),
            F64x2Mul => bin!(F64X2, fmul),
            F32x4Div => bin!(F32X4, fdiv),
            F64x2Div => bin!(F64X2, fdiv),
            F32x4Min => bin!(F32X4, fmin),
            F64x2Min => bin!(F64X2, fmin),
            F32x4Max => bin!(F32X4, fmax),
            F64x2Max => bin!(F64X2, fmax),
            F32x4PMin => self.pseudo(F32X4, true),
            F64x2PMin => self.pseudo(F64X2, true),
            F32x4PMax => self.pseudo(F32X4, false),
            F64x2PMax => self.pseudo(F64X2, false),
            F32x4ConvertI32x4S => {
                self.vector_unary(I32X4, |t, a| t.b.ins().fcvt_from_sint(F32X4, a));
            }
            F32x4ConvertI32x4U => {
                self.vector_unary(I32X4, |t, a| t.b.ins().fcvt_from_uint(F32X4, a));
            }
            F64x2ConvertLowI32x4S => self.vector_unary(I32X4, |t, a| {
                let wide = t.b.ins().swiden_low(a);
                t.b.ins().fcvt_from_sint(F64X2, wide)
            }),
            F64x2ConvertLowI32x4U => self.vector_unary(I32X4, |t, a| {
                let wide = t.b.ins().uwiden_low(a);
                t.b.ins().fcvt_from_uint(F64X2, wide)
            }),
            F64x2PromoteLowF32x4 => un!(F32X4, fvpromote_low),
            F32x4DemoteF64x2Zero => un!(F64X2, fvdemote),
            I32x4TruncSatF32x4S => {
                self.vector_unary(F32X4, |t, a| t.b.ins().fcvt_to_sint_sat(I32X4, a));
            }
            I32x4TruncSatF32x4U => {
                self.vector_unary(F32X4, |t, a| t.b.ins().fcvt_to_uint_sat(I32X4, a));
            }
            I32x4TruncSatF64x2SZero => self.truncated(true),
            I32x4TruncSatF64x2UZero => self.truncated(false),
            _ => return false,
        }
        true
    }
}
