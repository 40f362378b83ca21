//! E10: every way of using memory beside every other.

use super::{Setup, claim};
use crate::Effort;
use varve_jobs::compare::Making;
use varve_jobs::interference::{THREADS, on_model};
use varve_jobs::{Error, Memory};
use varve_report::{Kind, StudyResult, Value};

pub fn claims(setup: &Setup, making: &Making, out: &mut StudyResult) -> Result<(), Error> {
    let threads: &[u32] = match setup.options.effort {
        Effort::Full => &THREADS,
        Effort::Quick => &[1, 10],
        Effort::Tiny => &[10],
    };
    let m = on_model(&setup.spec.machine, threads, making)?;
    let place = |pattern: &str, memory, threads| m.find(pattern, memory, threads);
    let loss = |of: (&str, Memory, u32), by: (&str, Memory, u32)| {
        m.loss(place(of.0, of.1, of.2)?, place(by.0, by.1, by.2)?)
    };
    let (fast, slow) = (Memory::Fast, Memory::Slow);
    for (n, published) in [(1, 33.8), (2, 68.2), (4, 89.9), (8, 96.7), (10, 97.6)] {
        let s = if n == 1 { "" } else { "s" };
        let what = format!(
            "{n} thread{s} writing PM at random cut{} ten that write DRAM in sequence by",
            if n == 1 { "s" } else { "" }
        );
        let note = if n == 1 {
            "a core keeps more PM writes in flight here than the paper's benchmark seems to"
        } else {
            ""
        };
        let ours = loss(("SW", fast, 10), ("RW", slow, n));
        if threads.contains(&n) {
            out.claims
                .push(claim("E10", &what, published, ours, "%", note));
        }
    }
    let ours = |of: (&str, Memory), by: (&str, Memory)| loss((of.0, of.1, 10), (by.0, by.1, 10));
    out.claims.push(claim(
        "E10",
        "ten PM readers cut ten DRAM readers, both in sequence, by",
        Value::range(79.0, 80.0),
        ours(("SR", fast), ("SR", slow)),
        "%",
        "94 or 89.3 GB/s to 18 GB/s",
    ));
    let dram: Vec<f64> = ["SR", "RR", "SW", "RW"]
        .iter()
        .filter_map(|p| ours(("SR", slow), (p, fast)))
        .collect();
    out.claims.push(claim(
        "E10",
        "ten DRAM threads of any kind cut ten that read PM in sequence by",
        Value::AtMost { at_most: 15.0 },
        dram.into_iter().reduce(f64::max),
        "%",
        "",
    ));
    let alone = |p, memory| place(p, memory, 10).map(|i| m.alone[i]);
    out.claims.extend([
        claim(
            "E10",
            "ten threads read PM in sequence at",
            13.0,
            alone("SR", slow),
            "GB/s",
            "the machine has two PM DIMMs because one could not read so much",
        )
        .of_kind(Kind::Input),
        claim(
            "E10",
            "ten threads read DRAM in sequence at",
            Value::range(89.3, 94.0),
            alone("SR", fast),
            "GB/s",
            "",
        ),
        claim(
            "E10",
            "ten threads write DRAM in sequence at",
            68.0,
            alone("SW", fast),
            "GB/s",
            "from it is how long a store keeps its fill buffer",
        )
        .of_kind(Kind::Input),
    ]);
    // "For the bandwidth of DRAM, the interference caused by PM reads and writes is more significant than that on DRAM."
    let worst = |memory: Memory| {
        let by = ["SR", "RR", "SW", "RW"];
        let all = by.iter().filter_map(|p| ours(("SR", fast), (p, memory)));
        all.reduce(f64::max)
    };
    let answer = worst(slow).zip(worst(fast));
    let yes = answer.map_or(Value::Missing, |(pm, dram)| Value::from(pm > dram));
    let note = answer.map_or(String::new(), |(pm, dram)| {
        format!("at worst {pm:.0} % by PM, {dram:.0} % by DRAM")
    });
    let what = "PM threads disturb DRAM readers more than DRAM threads do";
    out.claims
        .push(varve_report::Claim::new("E10", what, true, yes, "").with_note(note));
    out.charts.push(m.chart());
    Ok(())
}
