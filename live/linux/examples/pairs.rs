//! The cost of finding an allocation site: pairs of `malloc` and `free` under the placing allocator (`bench/live-malloc` has
//! the comparison). `cargo run --release -p varve-live --example pairs 10000000 [KIND]`

#[path = "../tests/common/compiled.rs"]
mod compiled;

use compiled::Program;
use varve_live::nodes::Kinds;
use varve_live::objects::{ObjectOptions, Site, SiteMap, Tier, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(program) = Program::new("pairs", &[]) else {
        return Ok(());
    };
    let stacks: [(&[(&str, &str)], Tier); 5] = [
        (&[("direct", "malloc")], Tier::Fast),
        (&[("xmalloc", "malloc"), ("wrapped", "xmalloc")], Tier::Fast),
        (
            &[("xmalloc", "malloc"), ("wrapped_cold", "xmalloc")],
            Tier::Slow,
        ),
        (
            &[
                ("inner", "malloc"),
                ("middle", "inner"),
                ("outer", "middle"),
                ("deep", "outer"),
            ],
            Tier::Fast,
        ),
        (
            &[
                ("inner", "malloc"),
                ("middle", "inner"),
                ("outer", "middle"),
                ("deep_cold", "outer"),
            ],
            Tier::Slow,
        ),
    ];
    let site = |(stack, tier): (&[(&str, &str)], Tier)| Site {
        stack: stack
            .iter()
            .map(|(function, callee)| program.frame(function, callee))
            .collect(),
        tier,
        promised_bytes: 0,
        rank: 0,
    };
    let map = SiteMap {
        sites: stacks.into_iter().map(site).collect(),
        variables: Vec::new(),
        default_tier: None,
        budget_bytes: 1 << 30,
        kinds: Kinds {
            fast: vec![0],
            slow: vec![0],
        },
    };
    let mut command = vec![program.path.clone().into_os_string()];
    command.extend(std::env::args_os().skip(1));
    let report = run(&command, &map, &ObjectOptions::default())?;
    for group in &report.ran.processes[0].groups {
        println!(
            "{:?}: {} objects",
            report.groups[group.group], group.objects
        );
    }
    Ok(())
}
