//! Creation, comparison and tests of references, without their targets.

use super::facts::Condition;
use super::signatures::REFERENCE;
use super::translate::{Operand, Translator};
use super::traps::trap_code;
use crate::error::TrapKind;
use crate::types::{HeapType, Kind, RefType, ValType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use varve_heap::layout;
use wasmparser::Operator;

const I31_NON_NULL: ValType = ValType::Ref(RefType {
    nullable: false,
    heap: HeapType::I31,
});

impl Translator<'_, '_> {
    /// The type without null.
    pub(super) fn non_null(ty: ValType) -> ValType {
        match ty {
            ValType::Ref(r) => ValType::Ref(RefType {
                nullable: false,
                heap: r.heap,
            }),
            t => t,
        }
    }

    /// Whether a reference is certainly not null.
    pub(super) fn is_some(&self, o: Operand) -> bool {
        matches!(o.ty, ValType::Ref(r) if !r.nullable) || self.is_never_null(o.value)
    }

    /// A conversion between `any` and `extern`: the same reference under another type.
    fn retype(&mut self, heap: HeapType) {
        let operand = self.pop_operand();
        let nullable = matches!(operand.ty, ValType::Ref(r) if r.nullable);
        self.push(operand.value, ValType::Ref(RefType { nullable, heap }));
    }

    /// Translates an operator on references; whether it is one.
    pub(super) fn translate_reference(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            RefNull { hty } => {
                let heap = self.heap_type(hty);
                let v = self.i64(0);
                self.stack.push(Operand {
                    value: v,
                    ty: ValType::Ref(RefType {
                        nullable: true,
                        heap,
                    }),
                });
            }
            RefIsNull => {
                let o = self.pop_operand();
                if self.is_some(o) {
                    self.push_decided(false);
                    return true;
                }
                let is = self.ins().icmp_imm_s(IntCC::Equal, o.value, 0);
                self.push_bool(is);
                let condition = self.stack.last().expect("just pushed").value;
                if let ValType::Ref(ty) = Self::non_null(o.ty) {
                    self.says(condition, Condition::Null(o.value, ty));
                }
            }
            RefFunc { function_index } => {
                let place = self.env.instance.funcs[function_index as usize];
                let ty = self.env.module.funcs[function_index as usize];
                let v = self.i64(place as i64);
                let heap = HeapType::Concrete(ty, Kind::Func);
                self.push(
                    v,
                    ValType::Ref(RefType {
                        nullable: false,
                        heap,
                    }),
                );
            }
            RefEq => {
                let [a, b] = self.stack[self.stack.len() - 2..] else {
                    unreachable!("validated: two references")
                };
                let v = self.same(a, b);
                self.pop_n(2);
                self.push_bool(v);
            }
            RefAsNonNull => {
                let o = self.pop_operand();
                if !self.is_some(o) {
                    self.ins()
                        .trapz(o.value, trap_code(TrapKind::NullReference));
                    self.learn_type(o.value, Self::non_null(o.ty));
                }
                self.push(o.value, Self::non_null(o.ty));
            }
            BrOnNull { relative_depth } => {
                let o = self.pop_operand();
                if !self.is_some(o) {
                    let null = self.ins().icmp_imm_s(IntCC::Equal, o.value, 0);
                    let (block, types) = self.target(relative_depth);
                    let values = self.branch_args(types.len());
                    self.branch_if(null, block, &values);
                    self.learn_type(o.value, Self::non_null(o.ty));
                }
                self.push(o.value, Self::non_null(o.ty));
            }
            BrOnNonNull { relative_depth } => {
                let o = *self.stack.last().expect("validated");
                if let Some((null, facts)) = self.null_path.take() {
                    // A cast has asked already.
                    self.branch(relative_depth);
                    self.pop();
                    self.b.switch_to_block(null);
                    self.fresh.clear();
                    self.facts = facts;
                    self.set_reachable(true);
                    return true;
                }
                if self.is_some(o) {
                    self.branch(relative_depth);
                    return true;
                }
                let known = self.facts.clone();
                self.learn_type(o.value, Self::non_null(o.ty));
                let (block, types) = self.target(relative_depth);
                self.facts = known;
                let values = self.branch_args(types.len());
                self.branch_if(o.value, block, &values);
                self.pop();
            }
            RefI31 => {
                let v = self.pop();
                let v = self.ins().ishl_imm_u(v, 1);
                let v = self.ins().bor_imm_u(v, layout::I31_TAG as i64);
                let v = self.ins().uextend(REFERENCE, v);
                self.push(v, I31_NON_NULL);
            }
            I31GetS | I31GetU => {
                let v = self.pop();
                self.ins().trapz(v, trap_code(TrapKind::NullReference));
                let v = self.ins().ireduce(types::I32, v);
                let v = match op {
                    I31GetS => self.ins().sshr_imm_u(v, 1),
                    _ => self.ins().ushr_imm_u(v, 1),
                };
                self.push(v, ValType::I32);
            }
            AnyConvertExtern => self.retype(HeapType::Any),
            ExternConvertAny => self.retype(HeapType::Extern),
            _ => return false,
        }
        true
    }
}
