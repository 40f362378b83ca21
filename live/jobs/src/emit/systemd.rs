//! A shell script that writes a slice, a service for each program and a target into systemd's folder, and starts them.

use super::steps::{Step, plain};
use super::{Emission, one_line};
use crate::group::OnFailure;
use crate::kinds::Memory;
use varve_spec::quoted;

/// Time between asking a program to end and killing it, s, as `varve jobs run` has it.
const GRACE_S: u32 = 2;

/// The script.
pub fn script(e: &Emission, steps: &[Step], lost: &[String]) -> String {
    let group = plain(&e.group.name);
    let base = format!("varve-{group}");
    let folder = e.options.logs.display().to_string();
    let mut out = format!(
        "#!/bin/sh\n\
         # {}, strategy {}: {} programs, each a service in {base}.slice. Made by\n\
         #   {}\n\
         # Run it in the folder where that ran:\n\
         #   sh FILE              as root: writes the units, starts them, and waits for their end\n\
         #   sh FILE FOLDER       writes the units there, and starts nothing\n\
         #   systemctl stop {base}.slice    ends all\n",
        one_line(&e.group.name),
        e.plan.strategy.name(),
        steps.len(),
        one_line(e.command),
    );
    for line in lost {
        out += &format!("# Not as planned: {}\n", one_line(line));
    }
    out += &format!(
        "set -eu\n\
         folder=${{1:-/run/systemd/system}}\n\
         mkdir -p \"$folder\" {logs}\n\
         # In units, % begins what systemd fills in.\n\
         here=$(pwd | sed 's/%/%%/g')\n\
         path=$(printf %s \"$PATH\" | sed 's/%/%%/g')\n\
         user=${{SUDO_USER:-$(id -un)}}\n\
         service() {{\n    \
             {{\n        \
                 cat\n        \
                 echo \"User=$user\"\n        \
                 echo \"WorkingDirectory=$here\"\n        \
                 echo \"Environment=\\\"PATH=$path\\\"\"\n        \
                 echo \"StandardOutput=truncate:$2\"\n        \
                 echo \"StandardError=inherit\"\n    \
             }} >\"$folder/$1.service\"\n\
         }}\n\n\
         cat >\"$folder/{base}.slice\" <<'END'\n\
         [Unit]\n\
         Description={about}\n\n\
         [Slice]\n\
         AllowedCPUs={cpus}\n",
        logs = quoted(&folder),
        about = specifiers(&one_line(&e.group.name)),
        cpus = ranges(e.cpus),
    );
    if let Some(nodes) = steps
        .iter()
        .any(|s| s.memory.is_some())
        .then_some(e.nodes)
        .flatten()
    {
        let all: Vec<u32> = nodes.fast.iter().chain(&nodes.slow).copied().collect();
        out += &format!("AllowedMemoryNodes={}\n", ranges(&all));
    }
    out += "END\n\n";
    for step in steps {
        // The folder of logs may be one of its own, or one below here.
        let log = match step.log.starts_with('/') {
            true => quoted(&specifiers(&step.log)),
            false => format!("\"$here\"/{}", quoted(&specifiers(&step.log))),
        };
        out += &format!("service {} {log} <<'END'\n", unit(&base, step));
        out += &service(e, steps, step, &base);
        out += "END\n\n";
    }
    let units: Vec<String> = steps
        .iter()
        .map(|s| format!("{}.service", unit(&base, s)))
        .collect();
    out += &format!(
        "cat >\"$folder/{base}.target\" <<'END'\n\
         [Unit]\n\
         Description={}\n\
         Wants={}\n\
         END\n\n\
         if [ $# -gt 0 ]; then\n    \
             echo \"the units of {base}.target are in $folder\"\n    \
             exit\n\
         fi\n\
         systemctl daemon-reload\n",
        specifiers(&one_line(&e.group.name)),
        units.join(" ")
    );
    let evicted = steps.iter().filter(|s| {
        let others = steps.iter().flat_map(|other| &other.evicts);
        others.into_iter().any(|&who| who == s.program)
    });
    let evicted: Vec<String> = evicted
        .map(|s| format!("{}.service", unit(&base, s)))
        .collect();
    if !evicted.is_empty() {
        out += &format!(
            "# What moved away last time begins in fast memory again.\n\
             systemctl revert {}\n",
            evicted.join(" ")
        );
    }
    out += &format!(
        "systemctl start {base}.target\n\
         ! systemctl --quiet is-failed {}\n",
        units.join(" ")
    );
    out
}

/// The unit of a program.
fn service(e: &Emission, steps: &[Step], step: &Step, base: &str) -> String {
    let of = |program: usize| {
        let step = steps.iter().find(|s| s.program == program);
        step.map(|s| format!("{}.service", unit(base, s)))
    };
    let program = &e.group.programs[step.program];
    let mut out = format!(
        "[Unit]\nDescription={} of {}\n",
        specifiers(&one_line(&program.name)),
        specifiers(&one_line(&e.group.name))
    );
    let after: Vec<String> = step.after.iter().filter_map(|&p| of(p)).collect();
    if !after.is_empty() {
        // A service of one shot is waited for until it has ended, well or not.
        out += &format!("After={}\n", after.join(" "));
    }
    out += &format!("\n[Service]\nType=oneshot\nSlice={base}.slice\n");
    if let Some(cpus) = &step.cpus {
        out += &format!("AllowedCPUs={}\n", ranges(cpus));
    }
    if let Some((_, nodes)) = &step.memory {
        // Preferred, and not the only ones: a program for which they have no room takes others.
        out += &format!("NUMAPolicy=preferred\nNUMAMask={}\n", ranges(nodes));
    }
    if let Some(limit) = step.time_limit_s {
        out += &format!("TimeoutStartSec={limit}\n");
    }
    out += &format!("TimeoutStopSec={GRACE_S}\n");
    for (name, value) in &step.environment {
        out += &format!("Environment={}\n", word(&format!("{name}={value}"), false));
    }
    let slow = e.nodes.map(|n| ranges(&n.slow)).filter(|_| {
        step.memory
            .as_ref()
            .is_some_and(|(m, _)| *m == Memory::Fast)
    });
    for unit in step.evicts.iter().filter_map(|&who| of(who)) {
        if let Some(slow) = &slow {
            // The kernel moves a program's pages with its control group's nodes.
            out += &format!(
                "ExecStartPre=-+/usr/bin/env systemctl --runtime set-property {unit} \"AllowedMemoryNodes={slow}\"\n"
            );
        }
    }
    let words: Vec<String> = step.words.iter().map(|w| word(w, true)).collect();
    out += &format!("ExecStart=/usr/bin/env {}\n", words.join(" "));
    if e.group.on_failure == OnFailure::Stop {
        out += &format!(
            "ExecStopPost=+/bin/sh -c \"[ $$SERVICE_RESULT = success ] || systemctl --no-block stop {base}.slice\"\n"
        );
    }
    out
}

fn unit(base: &str, step: &Step) -> String {
    format!("{base}-{}", step.name)
}

/// A word of a unit; `runs`: of a command line, where systemd fills in variables.
fn word(word: &str, runs: bool) -> String {
    let mut out = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '%' => out += "%%",
            '$' if runs => out += "$$",
            c if c.is_control() => out += &format!("\\x{:02x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// Numbers as systemd writes them: `0-3 8`.
fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut out: Vec<(u32, u32)> = Vec::new();
    for n in sorted {
        match out.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => out.push((n, n)),
        }
    }
    let words: Vec<String> = out
        .iter()
        .map(|&(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{ranges, word};

    #[test]
    fn numbers_next_to_each_other_are_a_range() {
        assert_eq!(ranges(&[8, 0, 1, 2, 3, 3]), "0-3 8");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn words_of_a_unit_stay_as_they_are() {
        assert_eq!(word("a b", true), r#""a b""#);
        assert_eq!(word("50%\"$x\\", true), r#""50%%\"$$x\\""#);
        assert_eq!(word("$x", false), r#""$x""#);
    }
}
