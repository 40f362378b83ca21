//! What a generated module does here, it does on another engine too.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use varve_differential::{Outcome, check_bytes};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match check_bytes(bytes) {
        Ok(Outcome::Nothing) => Corpus::Reject,
        Ok(_) => Corpus::Keep,
        Err(difference) => panic!("{difference}"),
    }
});
