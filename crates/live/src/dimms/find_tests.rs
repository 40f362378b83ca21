use super::super::gf2::{Space, lightest, parity};
use super::*;
use proptest::prelude::*;

/// A machine with hidden functions: rows from bit 17 on, noise, and times now and then that have nothing to do with memory.
struct Hidden {
    bank: Box<dyn Fn(u64) -> u64>,
    noise: f64,
    outliers: f64,
    state: u64,
}

impl Hidden {
    fn of(functions: Vec<u64>, noise: f64, outliers: f64, seed: u64) -> Hidden {
        let bank = move |address: u64| {
            let bits = functions.iter().map(|f| u64::from(parity(f & address)));
            bits.fold(0, |bank, bit| bank << 1 | bit)
        };
        Hidden {
            bank: Box::new(bank),
            noise,
            outliers,
            state: seed | 1,
        }
    }

    /// From 0 to 1 (xorshift).
    fn random(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }

    fn time(&mut self, a: u64, b: u64) -> f64 {
        let conflict = (self.bank)(a) == (self.bank)(b) && a >> 17 != b >> 17;
        let base = if conflict { 390.0 } else { 300.0 };
        let noise = self.noise * (self.random() + self.random() + self.random() - 1.5);
        match self.random() < self.outliers {
            true => base * (1.0 + 9.0 * self.random()),
            false => base + noise,
        }
    }

    fn find(mut self, addresses: &[u64]) -> Result<Found, Unfound> {
        find(addresses, 7, &mut |a, b| self.time(a, b))
    }
}

/// Lines spread over memory of so many address bits.
fn lines(bits: u32, n: usize) -> Vec<u64> {
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n).map(|_| next() & ((1 << bits) - 1) & !63).collect()
}

fn span(functions: &[u64]) -> Space {
    Space::of(functions.iter().copied())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn hidden_functions_are_found_through_noise_and_outliers(
        functions in prop::collection::vec(1u64..1 << 27, 1..8),
        noise in 0.0f64..25.0,
        outliers in 0.0f64..0.04,
        seed in any::<u64>(),
    ) {
        let functions: Vec<u64> = functions.iter().map(|f| f << 6).collect();
        let hidden = span(&functions);
        let found = Hidden::of(functions, noise, outliers, seed).find(&lines(33, 6000)).unwrap();
        prop_assert_eq!(span(&found.functions), hidden.clone(), "{:x?}", found);
        prop_assert_eq!(found.functions.clone(), lightest(hidden.basis(), &[]));
        prop_assert_eq!(found.unseen, 0);
        prop_assert!((370.0..410.0).contains(&found.times.1));
    }
}

/// As published for a Haswell server with one DIMM a channel (Pessl et al., table 2), but for its bits above 33.
#[test]
fn many_banks_and_functions_of_many_bits_are_found() {
    let xor = |bits: &[u32]| bits.iter().fold(0u64, |mask, bit| mask | 1 << bit);
    let functions = [
        xor(&[14, 18]),
        xor(&[15, 19]),
        xor(&[16, 20]),
        xor(&[17, 21]),
        xor(&[6, 7]),
        xor(&[7, 12, 14, 16, 18, 26]),
        xor(&[8, 9, 12, 13, 18, 19]),
        xor(&[22, 25, 27]),
        xor(&[13, 30]),
    ];
    let found = Hidden::of(functions.to_vec(), 15.0, 0.01, 3)
        .find(&lines(31, 8000))
        .unwrap();
    assert_eq!(span(&found.functions), span(&functions));
}

#[test]
fn bits_that_go_with_others_or_never_change_are_named() {
    // Memory of two large pages: bit 30 goes with bit 28, 29 is always set, and those between are 0.
    let addresses: Vec<u64> = lines(22, 5000)
        .into_iter()
        .map(|a| match a >> 21 {
            0 => a | 1 << 29,
            _ => (a & !(1 << 21)) | 0b111 << 28,
        })
        .collect();
    let functions = vec![1 << 13 | 1 << 28, 1 << 14 | 1 << 18];
    let found = Hidden::of(functions, 10.0, 0.01, 5)
        .find(&addresses)
        .unwrap();
    assert_eq!(found.functions.len(), 2);
    assert!(found.functions.contains(&(1 << 14 | 1 << 18)));
    let unseen: Vec<u32> = (0..64).filter(|bit| found.unseen >> bit & 1 == 1).collect();
    assert_eq!(unseen, [21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
}

#[test]
fn where_there_is_nothing_to_find_nothing_is_claimed() {
    let all = lines(33, 4000);
    let one_bank_each = Hidden {
        bank: Box::new(|address| address),
        noise: 20.0,
        outliers: 0.03,
        state: 9,
    };
    let why = one_bank_each.find(&all).unwrap_err();
    assert!(matches!(why, Unfound::OneMode { .. }), "{why}");
    assert!(
        why.to_string()
            .contains("no row conflicts can be seen here")
    );
    let three_channels = Hidden {
        bank: Box::new(|address| 16 * ((address >> 8) % 3) + (address >> 14) % 16),
        noise: 10.0,
        outliers: 0.0,
        state: 9,
    };
    let why = three_channels.find(&all).unwrap_err();
    assert!(matches!(why, Unfound::NotLinear { .. }), "{why}");
    let few = Hidden::of(vec![1 << 13], 1.0, 0.0, 1).find(&all[..20]);
    assert_eq!(few.unwrap_err(), Unfound::Few(20));
    assert!(!why.to_string().contains('\n'));
}
