//! The live locals at a place in a function: code that leaves an activation stores them.
//!
//! One pass from the end of the body to its beginning. A branch back to a loop is assumed to need every local read in the loop or needed after any
//! block around it: more than a second pass would find, and never less.

use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;
use wasmparser::{FunctionBody, Operator};

/// A set of locals.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Locals(SmallVec<[u64; 2]>);

impl Locals {
    pub fn contains(&self, local: usize) -> bool {
        self.0
            .get(local / 64)
            .is_some_and(|w| w >> (local % 64) & 1 != 0)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    fn insert(&mut self, local: u32) {
        let (word, bit) = (local as usize / 64, local % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    fn remove(&mut self, local: u32) {
        if let Some(word) = self.0.get_mut(local as usize / 64) {
            *word &= !(1 << (local % 64));
        }
    }

    fn add(&mut self, other: &Locals) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}

/// Locals that are needed before operators, by their offsets: at calls and the operators after them, at allocations, at loops, and where
/// objects are accessed if that is checked.
pub(super) type Liveness = HashMap<u32, Locals>;

/// The part of an operator that the pass needs.
enum Step {
    Get(u32),
    Set(u32),
    Begin,
    /// With all locals read in it.
    Loop(Locals),
    If,
    Else,
    /// With the depths that its handlers go to, counted from outside.
    Try(Vec<u32>),
    /// A clause of a `try`, which exceptions go to.
    Catch,
    End,
    /// Goes to one of these, or on if it may.
    Branch(Vec<u32>, bool),
    Leave,
    /// May be left for a handler, or for other code.
    Call,
    /// May be left for other code.
    Access,
    Throw,
}

fn step(op: &Operator<'_>, checked: bool) -> Option<Step> {
    use Operator::*;
    Some(match *op {
        LocalGet { local_index } => Step::Get(local_index),
        // A tee keeps its value on the stack: to the local it is a set.
        LocalSet { local_index } | LocalTee { local_index } => Step::Set(local_index),
        Block { .. } | Try { .. } => Step::Begin,
        Loop { .. } => Step::Loop(Locals::default()),
        If { .. } => Step::If,
        Else => Step::Else,
        TryTable { ref try_table } => Step::Try(
            try_table
                .catches
                .iter()
                .map(|c| match *c {
                    wasmparser::Catch::One { label, .. }
                    | wasmparser::Catch::OneRef { label, .. }
                    | wasmparser::Catch::All { label }
                    | wasmparser::Catch::AllRef { label } => label,
                })
                .collect(),
        ),
        Catch { .. } | CatchAll => Step::Catch,
        // Of the handlers around, all of which count, some are left out.
        End | Delegate { .. } => Step::End,
        Br { relative_depth } => Step::Branch(vec![relative_depth], false),
        BrIf { relative_depth }
        | BrOnNull { relative_depth }
        | BrOnNonNull { relative_depth }
        | BrOnCast { relative_depth, .. }
        | BrOnCastFail { relative_depth, .. } => Step::Branch(vec![relative_depth], true),
        BrTable { ref targets } => {
            let depths = targets.targets().filter_map(Result::ok);
            Step::Branch(depths.chain([targets.default()]).collect(), false)
        }
        Return | Unreachable => Step::Leave,
        // The caller's handlers see what these throw.
        ReturnCall { .. } | ReturnCallIndirect { .. } | ReturnCallRef { .. } => Step::Call,
        Call { .. }
        | CallIndirect { .. }
        | CallRef { .. }
        | StructNew { .. }
        | StructNewDefault { .. }
        | ArrayNew { .. }
        | ArrayNewDefault { .. }
        | ArrayNewFixed { .. }
        | ArrayNewData { .. }
        | ArrayNewElem { .. } => Step::Call,
        Throw { .. } | ThrowRef | Rethrow { .. } => Step::Throw,
        StructGet { .. }
        | StructGetS { .. }
        | StructGetU { .. }
        | StructSet { .. }
        | ArrayGet { .. }
        | ArrayGetS { .. }
        | ArrayGetU { .. }
        | ArraySet { .. }
        | RefEq
            if checked =>
        {
            Step::Access
        }
        _ => return None,
    })
}

/// A block, while the pass is in it.
struct Frame {
    /// The locals that branches to it need.
    target: Locals,
    /// The locals needed after it.
    after: Locals,
    /// The locals that its `else` needs.
    otherwise: Option<Locals>,
    /// The locals that its handlers and those of outer blocks need.
    handlers: Locals,
}

/// Finds live locals. `checked`: accesses of objects have persistence checks, where code may be left. The body has been validated.
pub(super) fn liveness(body: &FunctionBody<'_>, checked: bool) -> wasmparser::Result<Liveness> {
    let mut steps: Vec<(u32, u32, Step)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    // The step that opens each block, by the step that ends it.
    let mut opened: HashMap<usize, usize> = HashMap::default();
    let mut reader = body.get_operators_reader()?;
    while !reader.eof() {
        let offset = reader.original_position() as u32;
        let op = reader.read()?;
        let Some(step) = step(&op, checked) else {
            continue;
        };
        let index = steps.len();
        match step {
            Step::Begin | Step::Loop(_) | Step::If | Step::Try(_) => open.push(index),
            Step::End => {
                if let Some(begin) = open.pop() {
                    opened.insert(index, begin);
                }
            }
            Step::Get(local) => {
                for &o in &open {
                    if let Step::Loop(read) = &mut steps[o].2 {
                        read.insert(local);
                    }
                }
            }
            _ => {}
        }
        steps.push((offset, reader.original_position() as u32, step));
    }
    let mut result = Liveness::default();
    let mut live = Locals::default();
    let mut frames: Vec<Frame> = Vec::new();
    let target = |frames: &[Frame], depth: u32| match frames.len().checked_sub(1 + depth as usize) {
        Some(i) => frames[i].target.clone(),
        // The function's own block.
        None => Locals::default(),
    };
    for index in (0..steps.len()).rev() {
        let (offset, next, step) = &steps[index];
        match step {
            Step::Get(local) => live.insert(*local),
            Step::Set(local) => live.remove(*local),
            Step::End => {
                let mut frame = Frame {
                    target: live.clone(),
                    after: live.clone(),
                    otherwise: None,
                    handlers: frames
                        .last()
                        .map_or_else(Locals::default, |f| f.handlers.clone()),
                };
                match opened.get(&index).map(|&begin| &steps[begin].2) {
                    Some(Step::Loop(read)) => {
                        frame.target.add(read);
                        for around in &frames {
                            frame.target.add(&around.target);
                            frame.target.add(&around.handlers);
                        }
                    }
                    Some(Step::Try(depths)) => {
                        for &depth in depths {
                            frame.handlers.add(&target(&frames, depth));
                        }
                    }
                    _ => {}
                }
                // The function's own end opens nothing.
                if opened.contains_key(&index) {
                    frames.push(frame);
                }
            }
            Step::Else => {
                if let Some(frame) = frames.last_mut() {
                    frame.otherwise = Some(std::mem::replace(&mut live, frame.after.clone()));
                }
            }
            Step::Catch => {
                if let Some(frame) = frames.last_mut() {
                    frame.handlers.add(&live);
                    live = frame.after.clone();
                }
            }
            Step::If => {
                if let Some(frame) = frames.pop() {
                    live.add(frame.otherwise.as_ref().unwrap_or(&frame.after));
                }
            }
            Step::Begin | Step::Try(_) => {
                frames.pop();
            }
            Step::Loop(_) => {
                frames.pop();
                result.insert(*offset, live.clone());
            }
            Step::Branch(depths, on) => {
                if !on {
                    live = Locals::default();
                }
                for &depth in depths {
                    live.add(&target(&frames, depth));
                }
            }
            Step::Leave => live = Locals::default(),
            Step::Access => {
                result.insert(*offset, live.clone());
            }
            Step::Call | Step::Throw => {
                if let Step::Throw = step {
                    live = Locals::default();
                } else {
                    result.insert(*next, live.clone());
                }
                if let Some(frame) = frames.last() {
                    live.add(&frame.handlers);
                }
                result.insert(*offset, live.clone());
            }
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locals live before each operator that is listed, in the order of the body.
    fn live(wat: &str) -> Vec<Vec<usize>> {
        live_if(wat, false)
    }

    fn live_if(wat: &str, checked: bool) -> Vec<Vec<usize>> {
        let wasm = wat::parse_str(wat).unwrap();
        for payload in wasmparser::Parser::new(0).parse_all(&wasm) {
            if let wasmparser::Payload::CodeSectionEntry(body) = payload.unwrap() {
                let mut all: Vec<_> = liveness(&body, checked).unwrap().into_iter().collect();
                all.sort_by_key(|(offset, _)| *offset);
                return all
                    .into_iter()
                    .map(|(_, l)| (0..64).filter(|&i| l.contains(i)).collect())
                    .collect();
            }
        }
        unreachable!("there is a function")
    }

    #[test]
    fn a_local_lives_from_its_write_to_its_last_read() {
        let found = live(
            "(module (func $f (param i32 i32) (local i32)
                (local.set 2 (i32.const 1))
                (call $f (local.get 0) (local.get 1))
                (drop (local.get 2))))",
        );
        // Before the call its arguments are on the stack.
        assert_eq!(found, [vec![2], vec![2]]);
    }

    #[test]
    fn what_a_loop_reads_lives_around_it() {
        let found = live(
            "(module (func $f (param i32 i32) (local i32)
                (loop $l
                    (drop (local.get 0))
                    (call $f (i32.const 0) (i32.const 0))
                    (br_if $l (local.get 1)))))",
        );
        assert_eq!(found, [vec![0, 1], vec![0, 1], vec![0, 1]]);
    }

    #[test]
    fn both_arms_count() {
        let found = live(
            "(module (func $f (param i32 i32 i32)
                (call $f (i32.const 0) (i32.const 0) (i32.const 0))
                (if (local.get 0)
                    (then (drop (local.get 1)))
                    (else (drop (local.get 2))))))",
        );
        assert_eq!(found[0], [0, 1, 2]);
    }

    #[test]
    fn handlers_keep_what_they_need() {
        let found = live(
            "(module (tag $t) (func $f (param i32 i32)
                (block $h
                    (try_table (catch $t $h)
                        (local.set 1 (i32.const 5))
                        (call $f (i32.const 0) (i32.const 0))
                        (return)))
                (drop (local.get 0))))",
        );
        assert_eq!(found[0], [0]);
    }

    #[test]
    fn clauses_keep_what_they_need() {
        let found = live(
            "(module (tag $t) (func $f (param i32 i32 i32)
                try
                    (local.set 1 (i32.const 5))
                    (call $f (i32.const 0) (i32.const 0) (i32.const 0))
                catch $t
                    (drop (local.get 0))
                catch_all
                    (drop (local.get 1))
                end
                try
                    try (call $f (i32.const 0) (i32.const 0) (i32.const 0)) delegate 0
                catch_all
                    (drop (local.get 2))
                end))",
        );
        // The first call and what follows it, then the second.
        assert_eq!(found, [vec![0, 1, 2], vec![2], vec![2], vec![]]);
    }

    #[test]
    fn checked_accesses_are_places_where_code_may_be_left() {
        let wat =
            "(module (type $s (struct (field (mut i32)))) (func (param i32) (local (ref null $s))
            (struct.set $s 0 (local.get 1) (i32.const 7))
            (drop (local.get 0))
            (drop (struct.get $s 0 (local.get 1)))))";
        assert_eq!(live(wat), [[0; 0]; 0]);
        assert_eq!(live_if(wat, true), [vec![0, 1], vec![]]);
    }
}
