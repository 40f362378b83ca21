//! Energies against sums done by hand, and invariants for any activity.

use super::*;
use crate::describe::DramPower;
use crate::model::{self, DramCounts, Options, RankTimes};
use proptest::prelude::*;
use varve_access::{Fault, Kind, Op, OutOfFrames, Pager, Program};

const SECOND: u64 = 1_000_000_000_000;

/// Round numbers: a rank of ten devices at 1 V, so that 100 mA are 1 W.
fn machine() -> Machine {
    let mut m = Machine::load("haswell-2620v3").unwrap();
    m.dram.power = Some(DramPower {
        vdd: 1.0,
        devices: 10,
        idd0_ma: 60.0,
        idd2n_ma: 30.0,
        idd2p_ma: 10.0,
        idd3n_ma: 50.0,
        idd3p_ma: 20.0,
        idd4r_ma: 150.0,
        idd4w_ma: 130.0,
        idd5_ma: 250.0,
        idd6_ma: 5.0,
        register_ma: None,
        register_powerdown_ma: None,
        register_selfrefresh_ma: None,
        io_nj: None,
    });
    let gone = [
        "register_ma",
        "register_powerdown_ma",
        "register_selfrefresh_ma",
        "io_nj",
    ];
    m.sources
        .retain(|key, _| !gone.iter().any(|g| key.ends_with(g)));
    (m.dram.ras_ns, m.dram.rp_ns) = (30.0, 10.0);
    (m.dram.rfc_ns, m.dram.refi_ns) = (100.0, 10_000.0);
    m.dram.mts = 2000;
    assert_eq!(m.check(), []);
    m
}

fn rank(active: u64, standby: u64, powerdown: u64, selfrefresh: u64) -> RankTimes {
    RankTimes {
        active,
        standby,
        powerdown,
        selfrefresh,
        ..RankTimes::default()
    }
}

fn commands(reads: u64, writes: u64, activates: u64) -> DramCounts {
    DramCounts {
        reads,
        writes,
        activates,
        ..DramCounts::default()
    }
}

fn one(m: &Machine, dram: DramCounts, ranks: &[RankTimes]) -> Energy {
    let channel = ChannelActivity {
        dram,
        pm: None,
        ranks: ranks.to_vec(),
    };
    Energy::during(m, 1.0, &[vec![channel]]).unwrap()
}

#[track_caller]
fn near(ours: f64, by_hand: f64) {
    let error = (ours - by_hand).abs();
    assert!(
        error <= 1e-9 * by_hand.abs(),
        "{ours} J, {by_hand} J by hand"
    );
}

#[test]
fn an_idle_rank_for_a_second_in_each_state() {
    let m = machine();
    let nothing = commands(0, 0, 0);
    // 50 mA x 1 V x 10 devices x 1 s; for a hundredth of it 250 mA, which is 200 mA more.
    let e = one(&m, nothing, &[rank(SECOND, 0, 0, 0)]).dram();
    near(e.active, 0.5);
    near(e.refresh, 0.02);
    near(e.total(), 0.52);
    let e = one(&m, nothing, &[rank(0, SECOND, 0, 0)]).dram();
    near(e.standby, 0.3);
    near(e.refresh, 0.022);
    near(e.total(), 0.322);
    let e = one(&m, nothing, &[rank(0, 0, SECOND, 0)]).dram();
    near(e.powerdown, 0.1);
    near(e.refresh, 0.024);
    near(e.total(), 0.124);
    // Self-refresh contains its refreshes.
    let e = one(&m, nothing, &[rank(0, 0, 0, SECOND)]).dram();
    near(e.selfrefresh, 0.05);
    near(e.total(), 0.05);
}

#[test]
fn a_rank_that_sleeps_with_open_rows_draws_the_active_power_down_current() {
    let mut m = machine();
    m.dram.powerdown_after_ns = 50.0;
    let e = one(&m, commands(0, 0, 0), &[rank(0, 0, SECOND, 0)]).dram();
    near(e.powerdown, 0.2);
}

#[test]
fn a_million_commands_of_each_kind() {
    let m = machine();
    // Four clocks of 1 ns for a burst, 100 mA above active stand-by: 1 W for 4 ns.
    let e = one(&m, commands(1_000_000, 0, 0), &[rank(0, 0, 0, 0)]).dram();
    near(e.read, 4e-3);
    near(e.total(), 4e-3);
    // 80 mA above.
    let e = one(&m, commands(0, 1_000_000, 0), &[rank(0, 0, 0, 0)]).dram();
    near(e.write, 3.2e-3);
    // 60 mA for 40 ns, less 50 mA for 30 ns and 30 mA for 10 ns: 600 mA ns, 6 nJ.
    let e = one(&m, commands(0, 0, 1_000_000), &[rank(0, 0, 0, 0)]).dram();
    near(e.activate, 6e-3);
}

#[test]
fn commands_fall_to_ranks_by_their_active_time_and_the_channel_keeps_them_all() {
    let m = machine();
    let ranks = [rank(3 * SECOND, 0, 0, 0), rank(SECOND, 0, 0, 0)];
    let e = one(&m, commands(1_000_000, 0, 0), &ranks);
    let dimm = &e.sockets[0][0].dimms[0];
    assert_eq!(e.sockets[0][0].dimms.len(), 1);
    near(dimm[0].read, 3e-3);
    near(dimm[1].read, 1e-3);
    // Two DIMMs of a rank each.
    let mut two = m.clone();
    (two.dram.ranks, two.dram.dimms_per_channel) = (1, 2);
    let e = one(&two, commands(1_000_000, 0, 0), &ranks);
    assert_eq!(e.sockets[0][0].dimms.len(), 2);
    near(e.dram().read, 4e-3);
}

#[test]
fn pm_takes_its_idle_power_and_an_energy_for_each_media_line() {
    let mut m = Machine::load("optane-6242").unwrap();
    let pm = m.pm.as_mut().unwrap();
    (pm.read_nj, pm.write_nj, pm.idle_w) = (Some(100.0), Some(400.0), Some(3.0));
    let channel = ChannelActivity {
        pm: Some(PmCounts {
            // Accesses that the buffer answers cost the media nothing.
            reads: 40_000_000,
            writes: 8_000_000,
            media_reads: 10_000_000,
            media_writes: 2_000_000,
            ..PmCounts::default()
        }),
        ..ChannelActivity::default()
    };
    let e = Energy::during(&m, 2.0, &[vec![channel.clone()], vec![channel]]).unwrap();
    let pm = e.pm();
    near(pm.idle, 2.0 * 6.0);
    near(pm.read, 2.0 * 1.0);
    near(pm.write, 2.0 * 0.8);
    near(e.socket(1), 7.8);
    near(e.total(), 15.6);
    near(e.watts(), 7.8);
    assert_eq!(e.left_out, []);
}

#[test]
fn a_machine_without_the_numbers_is_named_with_the_key() {
    let none = |m: &Machine| {
        let e = Energy::during(m, 1.0, &[]).unwrap_err();
        (e.key, e.to_string())
    };
    let cxl = Machine::load("cxl-spr").unwrap();
    assert_eq!(
        none(&cxl).1,
        "machine `cxl-spr` has no power parameters: `dram.power` is missing from its file; add it with its source, see docs/machines.md"
    );
    let good = Machine::load("optane-6242").unwrap();
    let mut m = good.clone();
    m.pm.as_mut().unwrap().idle_w = None;
    assert_eq!(none(&m).0, "pm.idle_w");
    m = good.clone();
    m.pm.as_mut().unwrap().read_nj = None;
    assert_eq!(none(&m).0, "pm.read_nj");
    m = good.clone();
    m.pm.as_mut().unwrap().write_nj = None;
    assert_eq!(none(&m).0, "pm.write_nj");
    // An expander has no numbers to give: its host's memory has energy, and the result names the memory that is left
    // out.
    m = good;
    m.cxl = cxl.cxl;
    let e = Energy::during(&m, 1.0, &[]).unwrap();
    assert_eq!(e.left_out, [NodeKind::Cxl]);
}

#[test]
fn every_machine_with_numbers_has_energy_in_the_range_of_dimms() {
    for (name, _) in crate::load::builtin() {
        let m = Machine::load(name).unwrap();
        let Some(_) = m.dram.power else { continue };
        let ranks = m.dram.ranks as usize;
        let all = |t: RankTimes, c: DramCounts| one(&m, c, &vec![t; ranks]).total();
        let nothing = commands(0, 0, 0);
        let asleep = all(rank(0, 0, 0, SECOND), nothing);
        let standby = all(rank(0, SECOND, 0, 0), nothing);
        // The bus is full of reads, four to an activate.
        let lines = (f64::from(m.dram.mts) * 1e6 / 8.0) as u64;
        let busy = all(rank(SECOND, 0, 0, 0), commands(lines, 0, lines / 4));
        assert!(asleep < standby && standby < busy, "{name}");
        // DDR4 registered DIMMs of those years: idle fractions of a watt to two, at most five to ten.
        assert!((0.2..2.0).contains(&asleep), "{name}: {asleep} W");
        assert!((2.0..10.0).contains(&busy), "{name}: {busy} W");
        if let Some(p) = &m.pm {
            let lines = |gbps: f64| gbps * 1e9 / p.line_bytes.0 as f64;
            let idle = p.idle_w.unwrap();
            let reading = idle + p.read_nj.unwrap() * 1e-9 * lines(p.media_read_gbps);
            let writing = idle + p.write_nj.unwrap() * 1e-9 * lines(p.media_write_gbps);
            // The bandwidths are those that Intel gives for 15 W.
            assert!(
                reading < 15.0 && writing < 15.0,
                "{name}: {reading} W, {writing} W"
            );
        }
    }
}

fn any_power() -> impl Strategy<Value = DramPower> {
    // Currents in the order that the loader asks for.
    prop::array::uniform9(0.1f64..100.0).prop_map(|i| {
        let idd2n = i[0] + i[1];
        let idd3n = idd2n + i[2];
        DramPower {
            vdd: 1.2,
            devices: 9,
            idd0_ma: idd3n + i[3],
            idd2n_ma: idd2n,
            idd2p_ma: i[0],
            idd3n_ma: idd3n,
            idd3p_ma: i[0] + i[2],
            idd4r_ma: idd3n + i[4],
            idd4w_ma: idd3n + i[5],
            idd5_ma: idd3n + i[6],
            idd6_ma: idd2n * i[7] / 100.0,
            register_ma: None,
            register_powerdown_ma: None,
            register_selfrefresh_ma: None,
            io_nj: None,
        }
    })
}

fn any_channel() -> impl Strategy<Value = ChannelActivity> {
    let times = prop::array::uniform4(0..SECOND).prop_map(|t| rank(t[0], t[1], t[2], t[3]));
    let counts = prop::array::uniform3(0u64..1 << 30);
    (counts, prop::collection::vec(times, 2)).prop_map(|(c, ranks)| ChannelActivity {
        dram: commands(c[0], c[1], c[2]),
        pm: None,
        ranks,
    })
}

/// Both, one after the other.
fn then(a: &ChannelActivity, b: &ChannelActivity) -> ChannelActivity {
    let ranks = a.ranks.iter().zip(&b.ranks);
    ChannelActivity {
        dram: commands(
            a.dram.reads + b.dram.reads,
            a.dram.writes + b.dram.writes,
            a.dram.activates + b.dram.activates,
        ),
        pm: None,
        ranks: ranks
            .map(|(a, b)| {
                rank(
                    a.active + b.active,
                    a.standby + b.standby,
                    a.powerdown + b.powerdown,
                    a.selfrefresh + b.selfrefresh,
                )
            })
            .collect(),
    }
}

proptest! {
    #[test]
    fn two_spans_take_what_they_take_together(power in any_power(), a in any_channel(), b in any_channel()) {
        let mut m = machine();
        m.dram.power = Some(power);
        prop_assert_eq!(m.check(), []);
        let of = |seconds, c: &ChannelActivity| Energy::during(&m, seconds, &[vec![c.clone()]]).unwrap();
        let mut sum = of(1.0, &a);
        sum.add(&of(2.0, &b));
        let together = of(3.0, &then(&a, &b));
        prop_assert_eq!(sum.seconds, together.seconds);
        prop_assert!((sum.total() - together.total()).abs() <= 1e-9 * together.total());
        // More is never less: each part of `a` is in `a` and `b` together.
        let (less, more) = (of(1.0, &a).dram(), together.dram());
        for (less, more) in [
            (less.active, more.active),
            (less.standby, more.standby),
            (less.powerdown, more.powerdown),
            (less.selfrefresh, more.selfrefresh),
            (less.refresh, more.refresh),
            (less.activate, more.activate),
            (less.read, more.read),
            (less.write, more.write),
        ] {
            prop_assert!(0.0 <= less && less <= more * (1.0 + 1e-12), "{less} {more}");
        }
    }

    #[test]
    fn a_deeper_state_takes_less(power in any_power(), ps in 1..SECOND) {
        let mut m = machine();
        m.dram.power = Some(power);
        let of = |t| one(&m, commands(0, 0, 0), &[t, t]).total();
        prop_assert!(of(rank(0, ps, 0, 0)) <= of(rank(ps, 0, 0, 0)));
        prop_assert!(of(rank(0, 0, ps, 0)) <= of(rank(0, ps, 0, 0)));
        // Not less than power-down, which does not refresh by itself, whatever the currents.
        prop_assert!(of(rank(0, 0, 0, ps)) <= of(rank(0, ps, 0, 0)));
    }
}

/// Reads of random lines, in two phases of which the second sleeps between them.
struct TwoPhases(u64);

const LINES: u64 = 20_000;

impl Program for TwoPhases {
    fn name(&self) -> String {
        "two phases".into()
    }
    fn threads(&self) -> usize {
        1
    }
    fn fill(&mut self, _: usize, _: u64, out: &mut Vec<Op>) -> bool {
        for _ in 0..200 {
            if self.0 == LINES {
                out.push(Op::mark(Kind::Phase, 1));
            }
            if self.0 > LINES {
                out.push(Op::mark(Kind::Sleep, 5_000));
            }
            let line = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            out.push(Op::read((1 << 32) + line * 64, 8, 1));
            self.0 += 1;
        }
        self.0 < 2 * LINES
    }
}

/// Frames in the order of first touches: all on the first DIMM.
struct InOrder(u32);

impl Pager for InOrder {
    fn page_bytes(&self) -> u64 {
        2 << 20
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.0 += 1;
        Ok(self.0 - 1)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

#[test]
fn the_phases_of_a_run_add_up_and_idle_dimms_sleep() {
    let m = Machine::load("haswell-2620v3").unwrap();
    let run = model::run(
        &m,
        &mut InOrder(0),
        &mut [&mut TwoPhases(0)],
        &Options::default(),
        &mut |_| true,
    )
    .unwrap();
    assert_eq!(run.phases.len(), 2);
    // Times of ranks and channels, summed over the phases, are those of the run.
    for (s, socket) in run.ranks.iter().enumerate() {
        for (c, channel) in socket.iter().enumerate() {
            for (r, rank) in channel.iter().enumerate() {
                let of = |p: &Phase| p.channels[s][c].ranks[r];
                let states = |t: RankTimes| [t.active, t.standby, t.powerdown, t.selfrefresh];
                let phases = states(of(&run.phases[0]))
                    .into_iter()
                    .zip(states(of(&run.phases[1])));
                let sum: Vec<u64> = phases.map(|(a, b)| a + b).collect();
                assert_eq!(sum, states(*rank), "{s} {c} {r}");
                let all: u64 = sum.iter().sum();
                assert!(
                    all.abs_diff(run.ns * 1000) < 1_000_000,
                    "{all} ps, {} ns",
                    run.ns
                );
            }
        }
        for p in &run.phases {
            let reads = p.channels[s].iter().map(|c| c.dram.reads).sum::<u64>();
            assert_eq!(reads, p.sockets[s].dram.reads);
        }
    }
    let whole = Energy::of(&m, &run).unwrap();
    let parts: Vec<Energy> = run
        .phases
        .iter()
        .map(|p| Energy::of_phase(&m, p).unwrap())
        .collect();
    near(whole.total(), parts[0].total() + parts[1].total());
    near(whole.seconds, run.ns as f64 / 1e9);
    near(whole.total(), whole.socket(0) + whole.socket(1));
    // The second phase, mostly asleep, draws less; unused DIMMs draw the same, that of self-refresh.
    let of =
        |e: &Energy, socket: usize, channel: usize| e.sockets[socket][channel].total() / e.seconds;
    assert!(of(&parts[1], 0, 0) < 0.7 * of(&parts[0], 0, 0));
    let p = m.dram.power.as_ref().unwrap();
    let register = p.register_selfrefresh_ma.unwrap();
    let asleep = p.vdd * (2.0 * 18.0 * p.idd6_ma + register) / 1e3;
    for (socket, channel) in [(0, 1), (0, 3), (1, 0)] {
        let watts = of(&parts[1], socket, channel);
        assert!((watts / asleep - 1.0).abs() < 0.05, "{watts} W, {asleep} W");
    }
    assert!(of(&parts[0], 0, 0) > 1.5 * asleep);
}

/// A register draws its 2 W while any rank of its DIMM is awake, 0.5 W while all are in power-down and 0.1 W in self-refresh;
/// each 64 B cost 4 nJ on the channel.
#[test]
fn a_register_wakes_with_the_first_rank_of_its_dimm() {
    let mut m = machine();
    m.dram.dimms_per_channel = 2;
    let p = m.dram.power.as_mut().unwrap();
    (p.register_ma, p.register_powerdown_ma) = (Some(2000.0), Some(500.0));
    p.register_selfrefresh_ma = Some(100.0);
    p.io_nj = Some(4.0);
    let (tenth, half) = (SECOND / 10, SECOND / 2);
    let first = [
        rank(tenth, tenth, SECOND - 2 * tenth, 0),
        rank(half, 0, 0, half),
    ];
    let second = [rank(0, 0, SECOND, 0), rank(0, 0, 0, SECOND)];
    let e = one(&m, commands(1000, 500, 0), &[first, second].concat());
    let channel = &e.sockets[0][0];
    near(channel.dimm(0).register, 2.0 * 0.5 + 0.5 * 0.5);
    near(channel.dimm(1).register, 0.5);
    let asleep = [rank(0, half, 0, half), rank(half / 2, 0, half / 2, half)];
    let e = one(&m, commands(0, 0, 0), &[asleep, asleep].concat());
    near(e.sockets[0][0].dimm(0).register, 0.5 * 2.0 + 0.5 * 0.1);
    near(channel.dram().io, 1500.0 * 4e-9);
    let parts = channel.dram();
    near(parts.background() + parts.operation(), channel.total());
}

#[test]
fn processors_take_a_base_and_so_much_for_each_core() {
    let mut m = machine();
    m.cpu = Some(crate::describe::CpuPower {
        asleep_w: 10.0,
        awake_w: 30.0,
        core_w: 5.0,
    });
    // Two seconds: three threads all the time, then more threads than the six cores can be.
    let of = |threads: &[f64]| CpuEnergy::of(&m, 2.0, threads).unwrap();
    assert_eq!(of(&[6.0]).total(), 60.0 + 30.0 + 20.0);
    assert_eq!(of(&[24.0, 2.0]).total(), 2.0 * 60.0 + 60.0 + 10.0);
    assert_eq!(of(&[]).total(), 40.0);
    m.cpu = None;
    let error = CpuEnergy::of(&m, 1.0, &[]).unwrap_err().to_string();
    assert!(error.contains("`cpu` is missing"), "{error}");
}

/// The spans of a run have its length and its energy together.
#[test]
fn power_over_time_adds_up_to_the_run() {
    let m = Machine::load("haswell-2620v3").unwrap();
    let options = Options {
        snapshot_ns: 50_000,
        ..Options::default()
    };
    let run = model::run(
        &m,
        &mut InOrder(0),
        &mut [&mut TwoPhases(0)],
        &options,
        &mut |_| true,
    )
    .unwrap();
    let spans = series(&m, &run).unwrap();
    assert!(spans.len() > 5, "{}", spans.len());
    for (a, b) in spans.iter().zip(&spans[1..]) {
        assert_eq!(a.end, b.begin);
    }
    let sum: f64 = spans.iter().map(|s| s.energy.total()).sum();
    let until = spans.last().unwrap().end / (run.ns as f64 / 1e9);
    let whole = Energy::of(&m, &run).unwrap().total();
    assert!(until > 0.8 && until <= 1.0, "{until}");
    assert!(
        sum < whole * 1.001 && sum > whole * until * 0.9,
        "{sum} {whole}"
    );
    // The DIMM that is used draws more than one that is not, in the busy half most of all.
    let watts =
        |s: &EnergySpan, channel: usize| s.energy.sockets[0][channel].total() / s.energy.seconds;
    assert!(watts(&spans[1], 0) > 2.0 * watts(&spans[1], 2));
}
