//! Constraints between the numbers that energy is computed from.

use crate::describe::{Dram, DramPower, Machine, Pm};

type Say<'a> = &'a mut dyn FnMut(&str, String, &str);

/// Reports inconsistent currents and powers of a machine.
pub fn findings(m: &Machine, say: Say<'_>) {
    if let Some(p) = &m.dram.power {
        currents(p, say);
        activate(&m.dram, p, say);
    }
    if let Some(pm) = &m.pm {
        media(pm, say);
    }
    if let Some(cpu) = &m.cpu
        && cpu.asleep_w > cpu.awake_w
    {
        let what = format!("{} W is more than awake ({} W)", cpu.asleep_w, cpu.awake_w);
        say("cpu.asleep_w", what, "a socket that sleeps draws less");
    }
}

/// Each current is above those of the states that it includes, so that no energy comes out negative.
fn currents(p: &DramPower, say: Say<'_>) {
    let standby = ("idd2n_ma", p.idd2n_ma, "precharge stand-by");
    let active = ("idd3n_ma", p.idd3n_ma, "active stand-by");
    let sleeps = "a rank that sleeps draws less";
    let works = "a burst or refresh is drawn on top of stand-by";
    let states = [
        ("register_ma", p.register_ma),
        ("register_powerdown_ma", p.register_powerdown_ma),
        ("register_selfrefresh_ma", p.register_selfrefresh_ma),
    ];
    for [(above, high), (below, low)] in states.array_windows() {
        let key = |name: &str| format!("dram.power.{name}");
        match (high, low) {
            (Some(high), Some(low)) if low > high => {
                let what = format!("{low} mA is more than in the state above ({above}, {high} mA)");
                say(&key(below), what, "a register that sleeps draws less");
            }
            (None, Some(_)) => {
                let what = format!("missing, although {below} is given");
                say(&key(above), what, "add it, or leave out both");
            }
            _ => {}
        }
    }
    let pairs = [
        (("idd2p_ma", p.idd2p_ma), standby, sleeps),
        (("idd6_ma", p.idd6_ma), standby, sleeps),
        (("idd3p_ma", p.idd3p_ma), active, sleeps),
        (("idd2n_ma", p.idd2n_ma), active, "open rows draw more"),
    ];
    for ((key, low), (name, high, state), remedy) in pairs {
        if low > high {
            let what = format!("{low} mA is more than {state} ({name}, {high} mA)");
            say(&format!("dram.power.{key}"), what, remedy);
        }
    }
    for (key, high) in [
        ("idd4r_ma", p.idd4r_ma),
        ("idd4w_ma", p.idd4w_ma),
        ("idd5_ma", p.idd5_ma),
    ] {
        let (name, low, state) = active;
        if high < low {
            let what = format!("{high} mA is less than {state} ({name}, {low} mA)");
            say(&format!("dram.power.{key}"), what, works);
        }
    }
}

fn activate(d: &Dram, p: &DramPower, say: Say<'_>) {
    let background = (p.idd3n_ma * d.ras_ns + p.idd2n_ma * d.rp_ns) / (d.ras_ns + d.rp_ns);
    if p.idd0_ma < background {
        let what = format!(
            "{} mA is less than the stand-by of an activate and its precharge ({background:.1} mA)",
            p.idd0_ma
        );
        say(
            "dram.power.idd0_ma",
            what,
            "it is drawn on top of idd3n_ma for tRAS and idd2n_ma for tRP",
        );
    }
}

fn media(p: &Pm, say: Say<'_>) {
    let keys = [
        ("pm.read_nj", p.read_nj),
        ("pm.write_nj", p.write_nj),
        ("pm.idle_w", p.idle_w),
    ];
    let Some((there, _)) = keys.iter().find(|(_, v)| v.is_some()) else {
        return;
    };
    for (key, value) in keys {
        if value.is_none() {
            say(
                key,
                format!("missing, although {there} is given"),
                "energy needs all of pm.read_nj, pm.write_nj and pm.idle_w: add it, or leave out all three",
            );
        }
    }
}
