//! Random programs of nested `try`s, as text and as what they must do.

use proptest::prelude::*;
use std::fmt::Write;

/// Functions of a program. Each calls only later ones.
pub const FUNCS: usize = 3;
/// Turns of each loop.
const TURNS: i32 = 4;

/// A step of a program. Depths are taken modulo what is open.
#[derive(Clone, Debug)]
pub enum Step {
    /// Mixes a number into the state.
    Note(i32),
    /// Throws a number with one of two tags.
    Throw(u8, i32),
    /// Throws again what one of the clauses around caught, if there is one.
    Rethrow(usize),
    Branch(usize),
    /// A branch if the state is odd.
    BranchIf(usize),
    Call(usize),
    /// A call in place of the return.
    TailCall(usize),
    Block(Vec<Step>),
    Loop(Vec<Step>),
    /// The first if the state is odd.
    If(Vec<Step>, Vec<Step>),
    /// With clauses by tag, and one for all.
    Try(Vec<Step>, Vec<(u8, Vec<Step>)>, Option<Vec<Step>>),
    Delegate(Vec<Step>, usize),
}

pub fn functions() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let leaf = prop_oneof![
        3 => (0..100i32).prop_map(Step::Note),
        3 => (0..2u8, 0..100i32).prop_map(|(t, n)| Step::Throw(t, n)),
        2 => (0..4usize).prop_map(Step::Rethrow),
        1 => (0..6usize).prop_map(Step::Branch),
        1 => (0..6usize).prop_map(Step::BranchIf),
        3 => (0..FUNCS).prop_map(Step::Call),
        1 => (0..FUNCS).prop_map(Step::TailCall),
    ];
    let step = leaf.prop_recursive(5, 60, 4, |inner| {
        let steps = || prop::collection::vec(inner.clone(), 0..4);
        let clauses = prop::collection::vec((0..2u8, steps()), 0..3);
        prop_oneof![
            1 => steps().prop_map(Step::Block),
            1 => steps().prop_map(Step::Loop),
            2 => (steps(), steps()).prop_map(|(a, b)| Step::If(a, b)),
            6 => (steps(), clauses, prop::option::of(steps()))
                .prop_map(|(b, c, a)| Step::Try(b, c, a)),
            3 => (steps(), 0..5usize).prop_map(|(b, d)| Step::Delegate(b, d)),
        ]
    });
    prop::collection::vec(prop::collection::vec(step, 1..5), FUNCS)
}

/// The state of an open block, for writing or running its contents.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// A block without a result; a loop.
    Plain,
    /// A block with a number as its result.
    Valued,
    /// A clause, with the exception while it runs. It has a number as its result.
    Clause(Exception),
}

type Exception = (u8, i32);

/// The depth of the `n`th clause around, from the innermost on.
fn clause(open: &[Open], n: usize) -> Option<usize> {
    let clauses: Vec<usize> = (0..open.len())
        .filter(|&d| matches!(open[open.len() - 1 - d], Open::Clause(_)))
        .collect();
    (!clauses.is_empty()).then(|| clauses[n % clauses.len()])
}

fn callee(this: usize, n: usize) -> Option<usize> {
    (this + 1 < FUNCS).then(|| this + 1 + n % (FUNCS - this - 1))
}

// ---- as text -----------------------------------------------------------------------------------------------------------------------

struct Text {
    out: String,
    func: usize,
    open: Vec<Open>,
    loops: usize,
}

/// The program as a module: `run`, and the global `state`.
pub fn module(functions: &[Vec<Step>]) -> String {
    let mut all = String::from(
        "(module
        (type $box (struct (field i32)))
        (tag $t0 (param i32))
        (tag $t1 (param i32 (ref $box)))
        (global $state (export \"state\") (mut i32) (i32.const 1))
        (func $note (param i32)
            (global.set $state (i32.add (i32.mul (global.get $state) (i32.const 31)) (local.get 0))))
        (func $box (param i32) (result i32 (ref $box)) (local.get 0) (struct.new $box (local.get 0)))
        (func $unbox (param i32 (ref $box)) (result i32)
            (i32.add (local.get 0) (struct.get $box 0 (local.get 1))))\n",
    );
    for (func, steps) in functions.iter().enumerate() {
        let mut text = Text {
            out: String::new(),
            func,
            open: vec![Open::Plain],
            loops: 0,
        };
        text.steps(steps);
        let locals = "(local i32)".repeat(text.loops);
        let name = if func == 0 { "(export \"run\")" } else { "" };
        writeln!(all, "(func $f{func} {name} {locals}\n{})", text.out).unwrap();
    }
    all + ")"
}

impl Text {
    fn line(&mut self, text: &str) {
        self.out += text;
        self.out.push('\n');
    }

    fn inside(&mut self, open: Open, steps: &[Step]) {
        self.open.push(open);
        self.steps(steps);
        self.open.pop();
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    fn target(&mut self, depth: usize) -> usize {
        let depth = depth % self.open.len();
        if self.open[self.open.len() - 1 - depth] != Open::Plain {
            self.line("i32.const 9");
        }
        depth
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Note(n) => self.line(&format!("(call $note (i32.const {n}))")),
            Step::Throw(0, n) => self.line(&format!("(throw $t0 (i32.const {n}))")),
            Step::Throw(_, n) => self.line(&format!("(throw $t1 (call $box (i32.const {n})))")),
            Step::Rethrow(n) => {
                if let Some(depth) = clause(&self.open, *n) {
                    self.line(&format!("rethrow {depth}"));
                }
            }
            Step::Branch(depth) => {
                let depth = self.target(*depth);
                self.line(&format!("br {depth}"));
            }
            Step::BranchIf(depth) => {
                let depth = depth % self.open.len();
                let valued = self.open[self.open.len() - 1 - depth] != Open::Plain;
                let (before, after) = match valued {
                    true => ("i32.const 9", "drop"),
                    false => ("", ""),
                };
                self.line(&format!(
                    "{before} (br_if {depth} (i32.and (global.get $state) (i32.const 1))) {after}"
                ));
            }
            Step::Call(n) => {
                if let Some(f) = callee(self.func, *n) {
                    self.line(&format!("(call $f{f})"));
                }
            }
            Step::TailCall(n) => {
                if let Some(f) = callee(self.func, *n) {
                    self.line(&format!("(return_call $f{f})"));
                }
            }
            Step::Block(steps) => {
                self.line("block");
                self.inside(Open::Plain, steps);
                self.line("end");
            }
            Step::Loop(steps) => {
                let local = self.loops;
                self.loops += 1;
                self.line(&format!("(local.set {local} (i32.const 0)) block loop"));
                // A turn counts when it begins, so that branches to the loop end too.
                self.line(&format!(
                    "(br_if 1 (i32.ge_u (local.get {local}) (i32.const {TURNS})))
                    (local.set {local} (i32.add (local.get {local}) (i32.const 1)))"
                ));
                self.open.push(Open::Plain);
                self.inside(Open::Plain, steps);
                self.open.pop();
                self.line("br 0 end end");
            }
            Step::If(then, otherwise) => {
                self.line("(i32.and (global.get $state) (i32.const 1)) if");
                self.inside(Open::Plain, then);
                self.line("else");
                self.inside(Open::Plain, otherwise);
                self.line("end");
            }
            Step::Try(body, clauses, all) => {
                // An operand that waits below.
                self.line("i32.const 100 try (result i32)");
                self.inside(Open::Valued, body);
                self.line("i32.const 7");
                for (tag, steps) in clauses {
                    self.line(&format!("catch $t{tag}"));
                    if *tag == 1 {
                        self.line("call $unbox");
                    }
                    self.line("call $note");
                    self.inside(Open::Clause((0, 0)), steps);
                    self.line("i32.const 8");
                }
                if let Some(steps) = all {
                    self.line("catch_all");
                    self.inside(Open::Clause((0, 0)), steps);
                    self.line("i32.const 6");
                }
                self.line("end i32.add call $note");
            }
            Step::Delegate(body, depth) => {
                let depth = depth % self.open.len();
                self.line("i32.const 200 try (result i32)");
                self.inside(Open::Valued, body);
                self.line(&format!("i32.const 5 delegate {depth} i32.add call $note"));
            }
        }
    }
}

// ---- as what it does ---------------------------------------------------------------------------------------------------------------

/// How a step ends.
#[derive(Clone, Copy)]
enum Flow {
    On,
    /// To the block of this depth, with 9 as its result if it has one.
    Branch(usize),
    /// At the block of this depth.
    Throw(Exception, usize),
    /// In the place of the function's return.
    TailCall(usize),
}

pub struct Run<'a> {
    pub functions: &'a [Vec<Step>],
    pub state: i32,
}

/// The flow that an inner block passes to the outer one.
fn leave(flow: Flow) -> Flow {
    match flow {
        Flow::Branch(0) => Flow::On,
        Flow::Branch(d) => Flow::Branch(d - 1),
        Flow::Throw(e, d) => Flow::Throw(e, d.saturating_sub(1)),
        flow => flow,
    }
}

impl Run<'_> {
    /// Runs a function: its exception, by its tag.
    pub fn call(&mut self, func: usize) -> Result<(), Exception> {
        let mut func = func;
        loop {
            match self.steps(func, &mut vec![Open::Plain], &self.functions[func]) {
                Flow::TailCall(next) => func = next,
                Flow::Throw(e, _) => return Err(e),
                _ => return Ok(()),
            }
        }
    }

    fn note(&mut self, n: i32) {
        self.state = self.state.wrapping_mul(31).wrapping_add(n);
    }

    fn inside(&mut self, func: usize, open: &mut Vec<Open>, what: Open, steps: &[Step]) -> Flow {
        open.push(what);
        let flow = self.steps(func, open, steps);
        open.pop();
        flow
    }

    fn steps(&mut self, func: usize, open: &mut Vec<Open>, steps: &[Step]) -> Flow {
        for step in steps {
            match self.step(func, open, step) {
                Flow::On => {}
                flow => return flow,
            }
        }
        Flow::On
    }

    fn step(&mut self, func: usize, open: &mut Vec<Open>, step: &Step) -> Flow {
        let odd = self.state & 1 != 0;
        match step {
            Step::Note(n) => self.note(*n),
            Step::Throw(tag, n) => return Flow::Throw((*tag, *n), 0),
            Step::Rethrow(n) => {
                if let Some(depth) = clause(open, *n)
                    && let Open::Clause(e) = open[open.len() - 1 - depth]
                {
                    return Flow::Throw(e, 0);
                }
            }
            Step::Branch(depth) => return Flow::Branch(depth % open.len()),
            Step::BranchIf(depth) if odd => return Flow::Branch(depth % open.len()),
            Step::BranchIf(_) => {}
            Step::Call(n) => {
                if let Some(f) = callee(func, *n)
                    && let Err(e) = self.call(f)
                {
                    return Flow::Throw(e, 0);
                }
            }
            Step::TailCall(n) => {
                if let Some(f) = callee(func, *n) {
                    return Flow::TailCall(f);
                }
            }
            Step::Block(steps) => {
                let flow = self.inside(func, open, Open::Plain, steps);
                return leave(flow);
            }
            Step::Loop(steps) => {
                open.push(Open::Plain);
                for _ in 0..TURNS {
                    match self.inside(func, open, Open::Plain, steps) {
                        Flow::On | Flow::Branch(0) => {}
                        flow => {
                            open.pop();
                            return leave(leave(flow));
                        }
                    }
                }
                open.pop();
            }
            Step::If(then, otherwise) => {
                let steps = if odd { then } else { otherwise };
                let flow = self.inside(func, open, Open::Plain, steps);
                return leave(flow);
            }
            Step::Try(body, clauses, all) => {
                let (flow, result) = match self.inside(func, open, Open::Valued, body) {
                    Flow::Throw(e, 0) => {
                        if let Some((tag, steps)) = clauses.iter().find(|c| c.0 == e.0) {
                            self.note(if *tag == 1 { 2 * e.1 } else { e.1 });
                            (self.inside(func, open, Open::Clause(e), steps), 8)
                        } else if let Some(steps) = all {
                            (self.inside(func, open, Open::Clause(e), steps), 6)
                        } else {
                            return Flow::Throw(e, 0);
                        }
                    }
                    flow => (flow, 7),
                };
                return self.valued(flow, 100, result);
            }
            Step::Delegate(body, depth) => {
                let depth = depth % open.len();
                return match self.inside(func, open, Open::Valued, body) {
                    Flow::Throw(e, 0) => Flow::Throw(e, depth),
                    flow => self.valued(flow, 200, 5),
                };
            }
        }
        Flow::On
    }

    /// The end of a block with a result: that is added to what waited below.
    fn valued(&mut self, flow: Flow, below: i32, result: i32) -> Flow {
        match flow {
            Flow::On => self.note(below + result),
            Flow::Branch(0) => self.note(below + 9),
            flow => return leave(flow),
        }
        Flow::On
    }
}
