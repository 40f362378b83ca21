//! Functions that the ops of a replay are of: reported beside the ops, since listeners may change and add ops.

use super::Steps;
use crate::format::Event;
use crate::listener::Listener;
use varve_access::Op;

/// By thread: where another function begins in the ops that it got last, and that function's number and 1.
pub(super) struct Code(Vec<Vec<(u32, u32)>>);

impl Code {
    pub fn of(threads: usize) -> Code {
        Code(vec![Vec::new(); threads])
    }

    /// A thread is about to be given more.
    pub fn begin(&mut self, thread: usize) {
        self.0[thread].clear();
    }

    /// The functions of the ops that a thread got last.
    pub fn told(&self, thread: usize) -> &[(u32, u32)] {
        &self.0[thread]
    }

    /// `reader` is about to take ops of a thread; `steps` are their functions.
    pub fn listen<'a, L: Listener>(
        &'a mut self,
        thread: usize,
        steps: Steps<'a>,
        reader: &'a mut L,
    ) -> Listening<'a, L> {
        Listening {
            told: &mut self.0[thread],
            steps: steps.iter().collect(),
            next: 0,
            taken: 0,
            reader,
        }
    }
}

/// A listener that takes ops function by function.
pub(super) struct Listening<'a, L> {
    told: &'a mut Vec<(u32, u32)>,
    steps: Vec<(usize, u32)>,
    next: usize,
    /// Ops that it was given.
    taken: usize,
    reader: &'a mut L,
}

impl<L: Listener> Listener for Listening<'_, L> {
    fn ops(&mut self, mut ops: &[Op], out: &mut Vec<Op>) {
        while let Some(&(at, function)) = self.steps.get(self.next)
            && let Some((before, others)) = ops.split_at_checked(at.saturating_sub(self.taken))
            && !others.is_empty()
        {
            self.reader.ops(before, out);
            self.told.push((out.len() as u32, function + 1));
            (self.taken, self.next) = (at.max(self.taken), self.next + 1);
            ops = others;
        }
        self.taken += ops.len();
        self.reader.ops(ops, out);
    }

    /// What is skipped waits for nothing, whichever functions it is of; what follows is of the last one.
    fn passed(&mut self, ops: &[Op], touches: &[Op], out: &mut Vec<Op>) {
        self.taken += ops.len();
        let before = |step: &&(usize, u32)| step.0 < self.taken;
        let passed = self.steps[self.next..].iter().take_while(before).count();
        self.next += passed;
        self.reader.passed(ops, touches, out);
        if passed > 0 {
            let (_, function) = self.steps[self.next - 1];
            self.told.push((out.len() as u32, function + 1));
        }
    }

    fn event(&mut self, event: &Event, before: &mut Vec<Op>) {
        self.reader.event(event, before);
    }

    fn copied(&mut self, from: u64, to: u64) {
        self.reader.copied(from, to);
    }

    fn gone(&mut self, addr: u64, bytes: u64, out: &mut Vec<Op>) {
        self.reader.gone(addr, bytes, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::CodeAt;

    /// Gives every op twice, as one that crosses a page is given.
    struct Twice;

    impl Listener for Twice {
        fn ops(&mut self, ops: &[Op], out: &mut Vec<Op>) {
            out.extend(ops.iter().flat_map(|op| [*op, *op]));
        }
    }

    #[test]
    fn functions_begin_where_their_ops_come_to_stand() {
        let ops: Vec<Op> = (0..6).map(|at| Op::read(at, 8, 1)).collect();
        let code = [(10, 7), (12, 3), (15, 7)].map(|(at, function)| CodeAt { at, function });
        let steps = Steps {
            code: &code,
            first: 10,
        };
        let mut all = Code::of(2);
        let mut out = vec![Op::read(99, 8, 1)];
        let mut twice = Twice;
        let mut listening = all.listen(1, steps, &mut twice);
        // A window may begin between any two, or within one.
        listening.ops(&ops[..1], &mut out);
        listening.ops(&ops[1..1], &mut out);
        listening.ops(&ops[1..2], &mut out);
        listening.ops(&ops[2..], &mut out);
        assert_eq!(out.len(), 13);
        assert_eq!(all.told(1), [(1, 8), (5, 4), (11, 8)]);
        assert!(all.told(0).is_empty());
        all.begin(1);
        assert!(all.told(1).is_empty());
    }
}
