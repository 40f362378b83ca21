//! How often an instruction of an observed program counts: see [`Config::slower`](crate::Config::slower).

use varve_access::Op;

/// Multiplies the instructions of the program's accesses.
pub(super) struct Slower {
    times: f64,
    /// The fraction left of the last access: instructions are reported in whole numbers.
    left: f64,
    /// The collector executes, whose instructions count once.
    pub collecting: bool,
}

impl Slower {
    pub fn new(times: f64) -> Slower {
        Slower {
            times: times.max(1.0),
            left: 0.0,
            collecting: false,
        }
    }

    /// Whether the program's instructions count more than once.
    pub fn is_scaled(&self) -> bool {
        self.times > 1.0
    }

    /// Multiplies the instructions of accesses that were not reported yet.
    pub fn count(&mut self, ops: &mut [Op]) {
        if !self.is_scaled() || self.collecting {
            return;
        }
        for op in ops {
            let all = self.times * f64::from(op.instructions) + self.left;
            op.instructions = all as u32;
            self.left = all - f64::from(op.instructions);
            // An op has no room for more than four billion: the rest is left out.
            if op.instructions == u32::MAX {
                self.left = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(ops: &[Op]) -> u64 {
        ops.iter().map(|op| u64::from(op.instructions)).sum()
    }

    proptest! {
        /// Whatever the buffers are, the sum equals that of one multiplication, with an error below one instruction.
        #[test]
        fn all_instructions_count_as_often_as_is_said(
            instructions in prop::collection::vec(0u32..1000, 1..200),
            times in 1.0..50.0f64,
            buffer in 1usize..20,
        ) {
            let mut ops: Vec<Op> = instructions.iter().map(|&n| Op::read(0, 8, n)).collect();
            let before = sum(&ops) as f64;
            let mut slower = Slower::new(times);
            ops.chunks_mut(buffer).for_each(|ops| slower.count(ops));
            prop_assert!((sum(&ops) as f64 - times * before).abs() < 1.001);
        }
    }

    #[test]
    fn the_collector_s_instructions_count_once() {
        let mut ops = [Op::read(0, 8, 10); 3];
        let mut slower = Slower::new(4.0);
        slower.collecting = true;
        slower.count(&mut ops);
        assert_eq!(sum(&ops), 30);
        slower.collecting = false;
        slower.count(&mut ops);
        assert_eq!(sum(&ops), 120);
    }
}
