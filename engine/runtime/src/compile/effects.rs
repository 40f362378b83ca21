//! Effects of loops: their stores, and their reads through locals that they do not assign. A read need not be repeated in each iteration if no store
//! touches its field.
//!
//! One pass over a function's body, for all its loops.

use std::collections::{BTreeSet, HashMap, HashSet};
use wasmparser::{FunctionBody, Operator};

/// Most fields that are followed from a local.
const LONGEST: usize = 3;

/// The effects between the beginning of a loop, or of a function, and its end, by the numbers of its module.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Effects {
    /// It has unknown callees, so that anything may be stored.
    pub anything: bool,
    /// It calls functions, known or unknown, and goes on afterwards.
    pub others_run: bool,
    /// Functions that it calls.
    pub calls: BTreeSet<u32>,
    /// Functions that it calls just before it throws: their stores matter only if the exception is caught in it.
    pub last_calls: BTreeSet<u32>,
    /// It catches exceptions.
    pub catches: bool,
    /// There is a loop in it.
    pub loops: bool,
    /// Functions are called in it, known or unknown.
    pub calls_any: bool,
    /// Bytes of its bytecode.
    pub bytes: usize,
    /// Fields of structs that are stored.
    pub fields: HashSet<(u32, u32)>,
    /// The types of arrays whose elements are stored.
    pub arrays: HashSet<u32>,
    /// Globals that are set.
    pub globals: BTreeSet<u32>,
    /// Locals that are assigned.
    pub assigned: BTreeSet<u32>,
    /// Locals that are read.
    pub read: BTreeSet<u32>,
    /// Arrays in locals whose lengths are read, without what only one arm of an `if` reads.
    pub lengths: BTreeSet<u32>,
    /// Fields that are read, each from the one before, the first from a local: in their order, without what only one arm
    /// of an `if` reads.
    pub paths: Vec<Path>,
}

/// A local and fields, by the types of their structs and their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Path {
    pub local: u32,
    pub fields: Vec<(u32, u32)>,
}

impl Effects {
    pub fn add(&mut self, other: &Effects) {
        self.add_stores(other);
        self.calls.extend(&other.calls);
        self.last_calls.extend(&other.last_calls);
        self.catches |= other.catches;
        self.loops |= other.loops;
        self.calls_any |= other.calls_any;
        self.others_run |= other.others_run;
        self.assigned.extend(&other.assigned);
        self.read.extend(&other.read);
    }

    /// Adds what another function stores: its locals are others.
    pub fn add_stores(&mut self, other: &Effects) {
        self.anything |= other.anything;
        self.fields.extend(&other.fields);
        self.arrays.extend(&other.arrays);
        self.globals.extend(&other.globals);
    }

    fn note(&mut self, op: &Operator<'_>) {
        use Operator::*;
        match *op {
            LocalGet { local_index } => {
                self.read.insert(local_index);
            }
            LocalSet { local_index } | LocalTee { local_index } => {
                self.assigned.insert(local_index);
            }
            CallIndirect { .. } | CallRef { .. } => {
                self.anything = true;
                self.calls_any = true;
                self.others_run = true;
            }
            ReturnCall { .. } | ReturnCallIndirect { .. } | ReturnCallRef { .. } => {
                self.anything = true;
                self.calls_any = true;
            }
            GlobalSet { global_index } => {
                self.globals.insert(global_index);
            }
            StructSet {
                struct_type_index,
                field_index,
            } => {
                self.fields.insert((struct_type_index, field_index));
            }
            ArraySet { array_type_index }
            | ArrayFill { array_type_index }
            | ArrayCopy {
                array_type_index_dst: array_type_index,
                ..
            }
            | ArrayInitData {
                array_type_index, ..
            }
            | ArrayInitElem {
                array_type_index, ..
            } => {
                self.arrays.insert(array_type_index);
            }
            _ => {}
        }
    }
}

/// An open block.
#[derive(Default)]
struct Open {
    /// Where it begins, if it is a loop.
    is_loop: Option<u32>,
    is_if: bool,
    effects: Effects,
}

/// The effects of a function, and of each of its loops by the loop's offset. The body has been validated.
pub(super) fn effects(
    body: &FunctionBody<'_>,
) -> wasmparser::Result<(Effects, HashMap<u32, Effects>)> {
    let mut loops = HashMap::new();
    let mut open = vec![Open::default()];
    let mut following = Following::default();
    // A call that the operator comes right after.
    let mut call: Option<u32> = None;
    let mut reader = body.get_operators_reader()?;
    loop {
        let offset = reader.original_position() as u32;
        let op = reader.read()?;
        if let Some(callee) = call.take() {
            let here = &mut open.last_mut().expect("the function itself").effects;
            match op {
                Operator::Throw { .. } | Operator::Unreachable => &mut here.last_calls,
                _ => {
                    here.others_run = true;
                    here.calls_any = true;
                    &mut here.calls
                }
            }
            .insert(callee);
        }
        if matches!(op, Operator::ArrayLen) {
            following.note_length(&mut open);
        }
        let assigns = following.step(&op);
        if matches!(op, Operator::StructGet { .. }) {
            following.note_path(&mut open);
        }
        match op {
            Operator::Call { function_index } => call = Some(function_index),
            Operator::LocalTee { .. } | Operator::LocalSet { .. } if !assigns => {}
            Operator::Loop { .. } => open.push(Open {
                is_loop: Some(offset),
                ..Open::default()
            }),
            Operator::If { .. } => open.push(Open {
                is_if: true,
                ..Open::default()
            }),
            Operator::Block { .. } => open.push(Open::default()),
            Operator::Try { .. } | Operator::TryTable { .. } => {
                let mut inner = Open::default();
                inner.effects.catches = true;
                // A call just before a throw may be followed by the rest of the loop.
                inner.effects.others_run = true;
                open.push(inner);
            }
            Operator::End | Operator::Delegate { .. } => {
                let inner = open.pop().expect("validated: blocks are balanced");
                let Some(around) = open.last_mut() else {
                    return Ok((inner.effects, loops));
                };
                around.effects.add(&inner.effects);
                if let Some(begin) = inner.is_loop {
                    around.effects.loops = true;
                    let bytes = (offset - begin) as usize;
                    let effects = Effects {
                        bytes,
                        ..inner.effects
                    };
                    loops.insert(begin, effects);
                }
            }
            op => open
                .last_mut()
                .expect("the function itself")
                .effects
                .note(&op),
        }
    }
}

/// A value that comes from a local, by fields, on its way through operators.
///
/// Null checks, as compilers make them of Java, are seen through: a block that is left if the value is not null, and otherwise
/// calls and throws.
#[derive(Default)]
struct Following {
    path: Option<Path>,
    /// Operators of a null check that have been seen.
    check: usize,
}

impl Following {
    /// Goes on with an operator. Whether it assigns another value to its local, if it is an assignment.
    fn step(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        let check = std::mem::take(&mut self.check);
        match *op {
            LocalGet { local_index } => {
                self.path = Some(Path {
                    local: local_index,
                    fields: vec![],
                });
            }
            StructGet {
                struct_type_index,
                field_index,
            } if check == 0 => {
                self.path = self.path.take().filter(|p| p.fields.len() < LONGEST);
                if let Some(path) = &mut self.path {
                    path.fields.push((struct_type_index, field_index));
                }
            }
            Block { .. } if check == 0 => self.check = 1,
            BrOnNonNull { relative_depth: 0 } if check == 1 => self.check = 2,
            Call { .. } if check == 2 => self.check = 3,
            Throw { .. } if check == 3 => self.check = 4,
            End if check == 4 => {}
            LocalTee { local_index } | LocalSet { local_index } if check == 0 => {
                let own = Path {
                    local: local_index,
                    fields: vec![],
                };
                let same = self.path.as_ref() == Some(&own);
                if matches!(op, LocalSet { .. }) {
                    self.path = None;
                }
                return !same;
            }
            _ => self.path = None,
        }
        true
    }

    /// Tells the loops around that a field is read.
    fn note_path(&self, open: &mut [Open]) {
        let Some(path) = &self.path else { return };
        for effects in loops_around(open) {
            if !effects.paths.contains(path) {
                effects.paths.push(path.clone());
            }
        }
    }

    /// Tells the loops around that the length of an array is read.
    fn note_length(&self, open: &mut [Open]) {
        if let Some(path) = self.path.as_ref().filter(|p| p.fields.is_empty()) {
            for effects in loops_around(open) {
                effects.lengths.insert(path.local);
            }
        }
    }
}

/// The loops around, up to an `if`.
fn loops_around(open: &mut [Open]) -> impl Iterator<Item = &mut Effects> {
    open.iter_mut()
        .rev()
        .take_while(|b| !b.is_if)
        .filter(|b| b.is_loop.is_some())
        .map(|b| &mut b.effects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(module: &str) -> Vec<(Effects, Vec<Effects>)> {
        let module = wat::parse_str(module).unwrap();
        let mut found = vec![];
        for payload in wasmparser::Parser::new(0).parse_all(&module) {
            if let wasmparser::Payload::CodeSectionEntry(body) = payload.unwrap() {
                let (whole, loops) = effects(&body).unwrap();
                let mut loops: Vec<_> = loops.into_iter().collect();
                loops.sort_by_key(|l| l.0);
                found.push((whole, loops.into_iter().map(|l| l.1).collect()));
            }
        }
        found
    }

    #[test]
    fn a_loop_has_the_effects_of_the_loops_in_it_and_not_of_what_is_before() {
        let found = all("(module
            (type $s (struct (field (mut i32)) (field (mut i32))))
            (type $a (array (mut i32)))
            (func $f)
            (func (param (ref $s) (ref $a)) (local i32)
              (struct.set $s 0 (local.get 0) (i32.const 1))
              (loop
                (struct.set $s 1 (local.get 0) (i32.const 1))
                (loop (array.set $a (local.get 1) (i32.const 0) (i32.const 1))))
              (loop (block (call $f) (local.set 2 (i32.const 1))))))");
        assert_eq!(found[0], Default::default());
        let (whole, loops) = &found[1];
        assert_eq!(loops[0].fields, HashSet::from([(0, 1)]));
        assert_eq!(loops[0].arrays, HashSet::from([1]));
        assert_eq!(loops[0].read, BTreeSet::from([0, 1]));
        assert_eq!(loops[1].fields, HashSet::new());
        assert_eq!(loops[2].calls, BTreeSet::from([0]));
        let others: Vec<bool> = loops.iter().map(|l| l.others_run).collect();
        assert_eq!(others, [false, false, true]);
        assert_eq!(loops[2].assigned, BTreeSet::from([2]));
        assert_eq!(whole.fields, HashSet::from([(0, 0), (0, 1)]));
        assert!(!whole.anything);
    }

    #[test]
    fn calls_before_a_throw_are_apart() {
        let found = all("(module (tag $t)
            (func $f)
            (func (loop (call $f) (throw $t)) (loop (try_table (call $f) (throw $t)) (call $f))))");
        let loops = &found[1].1;
        assert!(loops[0].calls.is_empty() && !loops[0].catches);
        assert!(!loops[0].others_run && loops[1].others_run);
        assert_eq!(loops[0].last_calls, BTreeSet::from([0]));
        assert_eq!(loops[1].last_calls, BTreeSet::from([0]));
        assert_eq!(loops[1].calls, BTreeSet::from([0]));
        assert!(loops[1].catches);
    }

    #[test]
    fn a_null_check_keeps_a_local_as_it_is() {
        let found = all("(module (tag $t)
            (type $s (struct (field (mut i32)) (field (mut (ref null $s)))))
            (func $npe)
            (func (param (ref null $s))
              (loop
                (local.get 0)
                (block (param (ref null $s)) (result (ref $s))
                  (br_on_non_null 0) (call $npe) (throw $t))
                (local.tee 0)
                (struct.get $s 0) (drop))))");
        let inside = &found[1].1[0];
        assert!(inside.assigned.is_empty());
        assert_eq!(inside.paths.len(), 1);
        assert_eq!(inside.paths[0].fields, [(0, 0)]);
    }

    #[test]
    fn paths_begin_at_locals_and_end_at_an_if() {
        let found = all("(module
            (type $s (struct (field (mut i32)) (field (mut (ref null $s)))))
            (func (param (ref $s) i32)
              (loop
                (loop (drop (struct.get $s 0 (struct.get $s 1 (local.get 0)))))
                (if (local.get 1) (then (drop (struct.get $s 0 (local.get 0))))))))");
        let path = |fields: &[(u32, u32)]| Path {
            local: 0,
            fields: fields.to_vec(),
        };
        let (_, loops) = &found[0];
        assert!(!loops[0].catches);
        let both = vec![path(&[(0, 1)]), path(&[(0, 1), (0, 0)])];
        assert_eq!(loops[0].paths, both);
        assert_eq!(loops[1].paths, both);
    }
}
