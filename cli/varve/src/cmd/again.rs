//! Options of this command line that hold for another command about the same program, as words for a shell.

use crate::args::ProfileArgs;
use crate::args::run::engine::Engine;
use crate::args::run::region::Region;
use crate::args::run::sandbox::Sandbox;
use crate::ui::quoted;
use clap::{Arg, Args, Command};

/// An option: its long name, and whether the next word is its value.
type Known = (String, bool);

/// Options of how a WebAssembly program is run, wherever its memory is, each behind a blank.
pub fn for_run() -> String {
    of(std::env::args_os().skip(1), &of_run())
}

/// Those that `varve profile` takes too.
pub fn for_profile() -> String {
    of(std::env::args_os().skip(1), &of_profile())
}

fn of_profile() -> Vec<Known> {
    let also = known(ProfileArgs::augment_args(Command::new("")));
    let both = of_run().into_iter();
    both.filter(|of| also.contains(of)).collect()
}

fn of_run() -> Vec<Known> {
    let command = Engine::augment_args(Command::new(""));
    known(Sandbox::augment_args(Region::augment_args(command)))
}

fn known(command: Command) -> Vec<Known> {
    let option = |arg: &Arg| -> Option<Known> {
        let takes = arg.get_action().takes_values() && !arg.is_require_equals_set();
        Some((arg.get_long()?.to_string(), takes))
    };
    command.get_arguments().filter_map(option).collect()
}

fn of(words: impl Iterator<Item = std::ffi::OsString>, known: &[Known]) -> String {
    let mut words = words.take_while(|word| word != "--");
    let mut kept = String::new();
    let mut keep = |word: &std::ffi::OsStr| {
        kept += " ";
        kept += &quoted(&word.to_string_lossy());
    };
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let name = text.strip_prefix("--").unwrap_or_default();
        let (name, value) = name
            .split_once('=')
            .map_or((name, None), |(n, v)| (n, Some(v)));
        let Some((_, takes)) = known.iter().find(|(known, _)| known == name) else {
            continue;
        };
        keep(&word);
        if *takes && value.is_none() {
            words.next().iter().for_each(|value| keep(value));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str, known: &[Known]) -> String {
        of(line.split('|').map(Into::into), known)
    }

    #[test]
    fn what_is_about_the_program_is_kept_and_what_is_about_the_model_is_not() {
        let line = "run|x.wasm|--machine|cxl-spr|--nursery|1MiB|--dir=a b|--fast|10%|--env|A=1|--inherit-env|--json|--|--nursery|2";
        let of_run = of_run();
        assert_eq!(
            kept(line, &of_run),
            " --nursery 1MiB '--dir=a b' --env A=1 --inherit-env"
        );
        assert_eq!(kept("run|x.wasm|--fast|10%", &of_run), "");
        let line = "run|x.wasm|--nursery|1MiB|--nursery-max|4MiB|--dir|.";
        assert_eq!(kept(line, &of_profile()), " --nursery 1MiB --dir .");
    }
}
