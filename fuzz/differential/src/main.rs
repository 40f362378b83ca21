//! `differential FIRST LAST [SECONDS]`: compares the engines on the modules of a range of seeds, and ends at the first difference, or
//! when the time is over. `differential FILE`: on one module, in text or binary form. `differential --show SEED`: the module of a seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use varve_differential::{Case, Outcome, Tally, check};

/// Bytes that a module is made from, at most.
const BYTES: u32 = 16_000;

/// The case of a seed; none if its bytes make none.
fn case(seed: u64) -> Option<Case> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = vec![0; (200 + random.next_u32() % BYTES) as usize];
    random.fill_bytes(&mut bytes);
    Case::new(&bytes)
}

fn seeds(first: u64, last: u64, most: Duration) -> Result<(), String> {
    let start = Instant::now();
    let (mut same, mut exhausted, mut nothing, mut seed) = (0u64, 0u64, 0u64, first);
    let mut tally = Tally::default();
    while seed <= last && start.elapsed() < most {
        if seed.is_multiple_of(100) {
            // A crash of the whole process leaves behind where it began.
            println!("seed {seed}");
        }
        let outcome = match case(seed) {
            Some(case) => check(&case, &mut tally).map_err(|e| format!("seed {seed}: {e}"))?,
            None => Outcome::Nothing,
        };
        match outcome {
            Outcome::Same => same += 1,
            Outcome::Exhausted => exhausted += 1,
            Outcome::Nothing => nothing += 1,
        }
        seed += 1;
    }
    println!(
        "seeds {first} to {}: {same} the same, {exhausted} the same until memory or stack ended, {nothing} no modules; {} s",
        seed - 1,
        start.elapsed().as_secs()
    );
    println!("{tally:?}");
    // A generator whose modules do nothing would hide everything.
    let few = seed - first < 100;
    match few || same > nothing && tally.returned > seed - first && tally.refused * 20 < same {
        true => Ok(()),
        false => Err("most of the modules do nothing: see src/generate.rs".into()),
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let number = |text: &String| {
        text.parse::<u64>()
            .map_err(|_| format!("`{text}` is no number"))
    };
    match arguments {
        [flag, seed] if flag == "--show" => {
            let case = case(number(seed)?).ok_or("the seed makes no module")?;
            std::io::stdout()
                .write_all(&case.module)
                .map_err(|e| e.to_string())
        }
        [file] => {
            let bytes = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
            let outcome =
                Case::of_module(&bytes).and_then(|case| check(&case, &mut Tally::default()));
            println!("{:?}", outcome.map_err(|e| format!("{file}: {e}"))?);
            Ok(())
        }
        [first, last] => seeds(number(first)?, number(last)?, Duration::MAX),
        [first, last, seconds] => seeds(
            number(first)?,
            number(last)?,
            Duration::from_secs(number(seconds)?),
        ),
        _ => Err("usage: differential FIRST LAST [SECONDS] | FILE | --show SEED".into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}
