//! One job of Slurm on one node, each program a step of it.
//!
//! Programs of a group share a machine, so they share a job: separate jobs would not meet on a node. A loop in the script starts
//! steps as others end. It needs nothing newer than bash 4.

use super::steps::{CPUS_LATER, Step, plain};
use super::{Emission, one_line};
use crate::group::OnFailure;
use varve_spec::quoted;

/// Time between asking a step to end and killing it, s, as `varve jobs run` has it.
const GRACE_S: u32 = 2;

/// The batch script.
pub fn script(e: &Emission, steps: &[Step], lost: &[String]) -> String {
    let name = plain(&e.group.name);
    let cores = e.host.cores;
    let mut out = format!(
        "#!/bin/bash\n\
         # {}, strategy {}: {} programs on one node, each a step of this job. Made by\n\
         #   {}\n\
         # Submit it in the folder where that ran: sbatch FILE\n\
         #SBATCH --job-name={name}\n\
         #SBATCH --nodes=1\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task={cores}\n\
         #SBATCH --exclusive\n\
         #SBATCH --mem=0\n\
         #SBATCH --output=%x-%j.log\n",
        one_line(&e.group.name),
        e.plan.strategy.name(),
        steps.len(),
        one_line(e.command),
    );
    for line in lost {
        out += &format!("# Not as planned: {}\n", one_line(line));
    }
    out += "\n";
    if steps.iter().any(|s| s.memory.is_some()) {
        out += "scontrol show config 2>/dev/null | grep -q '^TaskPlugin .*task/affinity' ||\n    \
                echo \"$SLURM_JOB_NAME: programs are not placed: Slurm binds no memory without TaskPlugin=task/affinity\" >&2\n";
    }
    let folder = e.options.logs.display().to_string();
    out += &format!("mkdir -p {} || exit 1\n\n", quoted(&folder));
    out += "# Steps by number, what each waits for, and its name.\n";
    let position = |program: usize| steps.iter().position(|s| s.program == program);
    let list = |words: Vec<String>| words.join(" ");
    let after = steps.iter().map(|s| {
        let before: Vec<String> = (s.after.iter())
            .filter_map(|&p| Some(position(p)?.to_string()))
            .collect();
        quoted(&before.join(" "))
    });
    let names = steps.iter().map(|s| s.name.clone());
    out += &format!("after=({})\n", list(after.collect()));
    out += &format!("names=({})\n", list(names.collect()));
    out += "step() {\n    case $1 in\n";
    for (n, step) in steps.iter().enumerate() {
        out += &format!("    {n}) {} ;;\n", command(e, step, cores));
    }
    out += "    esac\n}\n\n";
    let stop = match e.group.on_failure {
        OnFailure::GoOn => "",
        OnFailure::Stop => {
            "        # A program that fails ends all others.\n        \
             stopping=1\n        scancel --signal=TERM \"$SLURM_JOB_ID\"\n"
        }
    };
    out += &format!(
        "# Each step tells here that it has ended.\n\
         ends=$(mktemp -u)\n\
         mkfifo \"$ends\" && exec 3<>\"$ends\" && rm \"$ends\" || exit 1\n\
         running=0 failed=0 stopping=\n\
         waiting=(\"${{!names[@]}}\")\n\
         over=()\n\
         while :; do\n    \
             rest=()\n    \
             for i in \"${{waiting[@]}}\"; do\n        \
                 free=1\n        \
                 for a in ${{after[i]}}; do [[ ${{over[a]}} ]] || free=; done\n        \
                 if [[ $free && ! $stopping ]]; then\n            \
                     {{ step \"$i\"; echo \"$i $?\" >&3; }} &\n            \
                     running=$((running + 1))\n        \
                 else\n            \
                     rest+=(\"$i\")\n        \
                 fi\n    \
             done\n    \
             waiting=(\"${{rest[@]}}\")\n    \
             ((running)) || break\n    \
             read -r i code <&3\n    \
             running=$((running - 1)) over[i]=1\n    \
             if ((code)); then\n        \
                 echo \"$SLURM_JOB_NAME: ${{names[i]}} ended with exit code $code\" >&2\n        \
                 failed=1\n{stop}    \
             fi\n\
         done\n\
         exit \"$failed\"\n"
    );
    out
}

/// `srun` with the program.
fn command(e: &Emission, step: &Step, cores: u32) -> String {
    // A step with processors of its own has one for each thread; others share all.
    let cpus = match step.cpus {
        Some(_) => format!("--exact --cpus-per-task={}", step.threads),
        None => format!("--overlap --cpus-per-task={cores}"),
    };
    let memory = match &step.memory {
        None => String::new(),
        Some((_, nodes)) => match nodes[..] {
            [node] => format!(" --mem-bind=prefer,map_mem:{node}"),
            _ => format!(" --mem-bind=prefer,mask_mem:{}", mask(nodes)),
        },
    };
    let mut words: Vec<String> = Vec::new();
    if let Some(limit) = step.time_limit_s {
        words.extend([
            "timeout".into(),
            format!("--kill-after={GRACE_S}"),
            limit.to_string(),
        ]);
    }
    words.push("env".into());
    words.extend(step.environment.iter().map(|(k, v)| format!("{k}={v}")));
    words.extend(step.words.iter().cloned());
    let line = match words.iter().any(|w| w.contains(CPUS_LATER)) {
        false => words
            .iter()
            .map(|w| quoted(w))
            .collect::<Vec<_>>()
            .join(" "),
        true => {
            let parts = |w: &String| {
                let parts = w.split(CPUS_LATER).map(|part| match part {
                    "" => String::new(),
                    part => quoted(part),
                });
                parts.collect::<Vec<_>>().join("\"$cpus\"")
            };
            let words: Vec<String> = words.iter().map(parts).collect();
            let inner = format!(
                "cpus=$(sed -n \"s/^Cpus_allowed_list:[[:space:]]*//p\" /proc/self/status)\nexec {}",
                words.join(" ")
            );
            format!("bash -c {}", quoted(&inner))
        }
    };
    let name = &e.group.programs[step.program].name;
    format!(
        "srun --job-name={} --nodes=1 --ntasks=1 --mem=0 {cpus}{memory} {line} >{} 2>&1",
        quoted(&plain(name)),
        quoted(&step.log)
    )
}

/// Nodes as bits, in hexadecimal digits.
fn mask(nodes: &[u32]) -> String {
    let most = nodes.iter().max().map_or(0, |n| n / 4);
    let digit = |place: u32| {
        let bits = nodes.iter().filter(|&n| n / 4 == place);
        let value = bits.fold(0, |value, n| value | 1 << (n % 4));
        char::from_digit(value, 16).unwrap_or('0')
    };
    let digits: String = (0..=most).rev().map(digit).collect();
    format!("0x{digits}")
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn nodes_are_bits_of_a_mask() {
        assert_eq!(mask(&[0]), "0x1");
        assert_eq!(mask(&[0, 2]), "0x5");
        assert_eq!(mask(&[1, 70]), format!("0x4{}2", "0".repeat(16)));
    }
}
