//! Work done before a loop rather than in each of its iterations: reads of fields that it reads, of objects that it does not assign.

use super::alias::Region;
use super::effects::{Effects, Path, effects};
use super::facts::Facts;
use super::isa::Level;
use super::translate::{Translator, broken};
use crate::error::Result;
use crate::store::{FuncKind, Inline};
use crate::types::{HeapType, Kind, RefType, Storage, ValType};
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Variable;
use std::rc::Rc;

/// Fields that are read before a loop at most: more would not stay in registers.
const MOST_PATHS: usize = 16;
/// The depth to which calls are followed for their effects, and the greatest size of a callee in bytes.
const DEPTH: u32 = 3;
const BYTES: usize = 400;

impl Translator<'_, '_> {
    /// Before a loop begins: drops facts that do not hold when it begins again, and reads fields that it would read each time. Returns the locals
    /// that have the same value in all of the loop, and the facts that must hold at its end. `first` are the regions that its first iteration stored
    /// in, if that was apart from the others.
    pub(super) fn before_loop(
        &mut self,
        params: usize,
        first: Option<&[Option<Region>]>,
    ) -> Result<(Vec<(Variable, Value)>, Facts)> {
        if self.job.level != Level::Optimizing {
            return Ok(Default::default());
        }
        let effects = self.loop_effects()?;
        let mut assumed = Facts::new();
        match first.filter(|_| effects.anything && self.is_calm()) {
            Some(stored) => assumed = self.assume_for_loop(stored),
            None => self.forget_for_loop(&effects),
        }
        let own = self.activation().locals;
        let kept: Vec<u32> = effects
            .read
            .difference(&effects.assigned)
            .copied()
            .collect();
        if !effects.anything {
            self.read_ahead(&effects, params);
            if self.stores_references(&effects) {
                // Where objects are was found out for the first iteration alone.
                self.forget_settled();
            }
        }
        let kept = kept
            .into_iter()
            .map(|local| {
                let variable = self.locals[own + local as usize].variable;
                (variable, self.value_of(variable))
            })
            .collect();
        Ok((kept, assumed))
    }

    /// Whether other functions run in iterations of the loop that begins at the operator, so that it has to record the running function in each one.
    /// Baseline code does not check.
    pub(super) fn others_run_in_loop(&mut self) -> Result<bool> {
        if !self.env.samples || self.job.level != Level::Optimizing {
            return Ok(true);
        }
        Ok(self.loop_effects()?.others_run)
    }

    /// The effects of the loop that begins at the operator, with those of its callees.
    pub(super) fn loop_effects(&mut self) -> Result<Rc<Effects>> {
        if let Some(known) = self.loops.get(&self.offset) {
            return Ok(known.clone());
        }
        let index = self.env.index_of(self.activation().func_id);
        let (_, loops) = effects(&self.env.body(index)).map_err(broken)?;
        for (offset, mut effects) in loops {
            self.add_calls(&mut effects, DEPTH, false)?;
            self.loops.insert(offset, Rc::new(effects));
        }
        Ok(self.loops[&self.offset].clone())
    }

    /// Adds the stores of callees. Calls before a throw matter only if the exception is caught (`catches`).
    fn add_calls(&mut self, effects: &mut Effects, depth: u32, catches: bool) -> Result<()> {
        let catches = catches || effects.catches;
        let mut calls = std::mem::take(&mut effects.calls);
        if catches {
            calls.append(&mut effects.last_calls);
        }
        for index in calls {
            if !effects.anything {
                let called = self.call_effects(index, depth, catches)?;
                effects.add_stores(&called);
            }
        }
        Ok(())
    }

    fn call_effects(&mut self, index: u32, depth: u32, catches: bool) -> Result<Rc<Effects>> {
        let key = (index, depth, catches);
        if let Some(known) = self.callees.get(&key) {
            return Ok(known.clone());
        }
        let module = self.env.module;
        let mut found = Effects::default();
        if index < module.imported_funcs {
            let id = self.env.func_at(self.env.instance.funcs[index as usize]);
            found.anything = !matches!(
                self.env.funcs[id as usize].kind,
                FuncKind::Host(_, Some(Inline::Leaf(_) | Inline::Mark))
            );
        } else if depth == 0
            || module.bodies[(index - module.imported_funcs) as usize].len() > BYTES
        {
            found.anything = true;
        } else {
            found = effects(&self.env.body(index)).map_err(broken)?.0;
            self.add_calls(&mut found, depth - 1, catches)?;
        }
        let found = Rc::new(found);
        self.callees.insert(key, found.clone());
        Ok(found)
    }

    /// Reads fields of objects in locals that the loop leaves alone. Where an object is null, which the loop would find out
    /// later if at all, it is left to baseline code.
    fn read_ahead(&mut self, effects: &Effects, params: usize) {
        let own: Vec<&Path> = effects
            .paths
            .iter()
            .filter(|p| !effects.assigned.contains(&p.local))
            .take(MOST_PATHS)
            .collect();
        for path in own {
            self.read_path(path, effects, params);
        }
        for local in effects.lengths.difference(&effects.assigned) {
            let local = &self.locals[self.activation().locals + *local as usize];
            if matches!(local.ty, ValType::Ref(r) if !r.nullable) {
                let array = self.value_of(local.variable);
                self.read_length(array);
            }
        }
    }

    fn read_path(&mut self, path: &Path, effects: &Effects, params: usize) {
        let local = &self.locals[self.activation().locals + path.local as usize];
        let (variable, mut ty) = (local.variable, local.ty);
        let mut reference = self.value_of(variable);
        for &(struct_type, field) in &path.fields {
            let region = self.region_of(struct_type, field);
            let stored = |&(t, f): &(u32, u32)| self.region_of(t, f) == region;
            if effects.fields.iter().any(stored) {
                return;
            }
            let own = self.env.module.types[struct_type as usize];
            let Storage::Val(field_type) = self.env.types.fields(own)[field as usize].storage
            else {
                return;
            };
            if let Some(known) = self.field_of(reference, region) {
                (reference, ty) = (known, field_type);
                continue;
            }
            let not_null = matches!(ty, ValType::Ref(r) if !r.nullable)
                || matches!(ty, ValType::Ref(r) if self.is_known(reference, RefType { nullable: false, ..r }));
            if !not_null && !self.leave_if_null(reference, ty, params) {
                return;
            }
            reference = self.read_field(reference, struct_type, field);
            ty = field_type;
            let is_array = |heap| matches!(heap, HeapType::Concrete(_, Kind::Array));
            if matches!(ty, ValType::Ref(r) if !r.nullable && is_array(r.heap)) {
                self.read_length(reference);
            }
        }
    }

    fn region_of(&self, struct_type: u32, field: u32) -> Region {
        self.field_region(self.env.module.types[struct_type as usize], field)
    }

    /// Leaves for baseline code at the loop's beginning if a reference is null; whether that can be done here.
    fn leave_if_null(&mut self, reference: Value, ty: ValType, params: usize) -> bool {
        if !self.may_leave() {
            return false;
        }
        let (null, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(null);
        self.ins().brif(reference, next, &[], null, &[]);
        self.b.seal_block(null);
        self.b.seal_block(next);
        self.b.switch_to_block(null);
        self.leave_at_loop(params);
        self.b.switch_to_block(next);
        self.learn_type(reference, Self::non_null(ty));
        true
    }
}
