//! A program's command line and environment variables, with the decisions filled in.

use super::LiveOptions;
use super::inside::InPart;
use crate::group::{Live, Modelled, Program};
use crate::inside::{Inside, Told};
use crate::kinds::Memory;
use std::ffi::OsString;
use varve_live::nodes::Kinds;

/// The values of `{threads}`, `{memory}`, `{nodes}` and `{cpus}`.
#[derive(Clone, Debug)]
pub struct Filling {
    /// Threads.
    pub threads: u32,
    /// Its memory; `None`: the kernel's choice, or both.
    pub memory: Option<Memory>,
    /// The nodes of that memory, where they are known.
    pub nodes: Option<Vec<u32>>,
    /// It is in fast memory in part, on nodes of these kinds.
    pub in_part: Option<(InPart, Kinds)>,
    /// Its processors, such as `0,1`.
    pub cpus: String,
}

/// Numbers, separated by commas.
pub fn list(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    words.join(",")
}

/// The command line.
pub fn words(program: &Program, filling: &Filling, options: &LiveOptions) -> Vec<OsString> {
    let varve = || options.varve.clone().into_os_string();
    let filled = |words: &[String]| -> Vec<OsString> {
        words.iter().map(|word| filling.fill(word).into()).collect()
    };
    match &program.live {
        Some(Live::Command(words)) => filled(words),
        Some(Live::Managed(file, arguments)) => {
            let mut words = vec![varve(), "run".into(), file.into()];
            if let (Some(inside), Some((part, kinds))) = (&program.inside, &filling.in_part) {
                words.extend(placed(inside, *part, kinds));
                words.push("--gc-stats".into());
            }
            words.push("--".into());
            words.extend(filled(arguments));
            words
        }
        None => match carried_out(program, filling.threads, options) {
            Some(line) => vec![varve(), "jobs".into(), "exercise".into(), line.into()],
            // `check` refuses such groups before anything starts.
            None => vec!["false".into()],
        },
    }
}

/// The options of `varve run` that place a program's own memory.
pub fn placed(inside: &Inside, part: InPart, kinds: &Kinds) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--plan".into(), (&inside.plan).into()];
    if let Some(sites) = &inside.sites {
        words.extend(["--sites".into(), sites.into()]);
    }
    if let Some(fast) = part.fast.filter(|_| inside.told != Told::Generations) {
        words.extend(["--fast".into(), fast.to_string().into()]);
    }
    let (fast, slow) = (Kinds::list(&kinds.fast), Kinds::list(&kinds.slow));
    words.extend(["--nodes".into(), format!("fast={fast},slow={slow}").into()]);
    words
}

/// Its variables, in order; of two of the same name the later one counts.
pub fn environment(program: &Program, filling: &Filling) -> Vec<(String, String)> {
    let threads = ("OMP_NUM_THREADS".to_string(), filling.threads.to_string());
    let own = program
        .env
        .iter()
        .map(|(k, v)| (k.clone(), filling.fill(v)));
    // The file's variables take precedence.
    std::iter::once(threads).chain(own).collect()
}

/// The workload that is carried out for a program that is nothing else on this machine.
pub fn carried_out(program: &Program, threads: u32, options: &LiveOptions) -> Option<String> {
    let (None, Some(Modelled::Workload(line))) = (&program.live, &program.modelled) else {
        return None;
    };
    let sep = if line.contains(':') { ',' } else { ':' };
    let (scale, seed) = (options.scale, options.seed);
    Some(format!(
        "{line}{sep}threads={threads},scale={scale},seed={seed}"
    ))
}

impl Filling {
    fn fill(&self, text: &str) -> String {
        let nodes = self.nodes.as_deref().map(list);
        let memory = match (self.memory, &self.in_part) {
            (Some(memory), _) => memory.to_string(),
            (None, Some(_)) => "part".into(),
            (None, None) => "any".into(),
        };
        let values = [
            ("{threads}", self.threads.to_string()),
            ("{memory}", memory),
            ("{nodes}", nodes.unwrap_or_else(|| "all".into())),
            ("{cpus}", self.cpus.clone()),
        ];
        values
            .iter()
            .fold(text.to_string(), |t, (word, value)| t.replace(word, value))
    }
}
