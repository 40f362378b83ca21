//! Every machine file loads, checks clean and reads back as it was written; values derived from its numbers are right.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use varve_machine::load::{
    FIELDS, LoadError, ProbedCache, ProbedMachine, ProbedMemory, builtin, file_text, names,
};
use varve_machine::{Machine, Mode, NodeKind, NumaNode};
use varve_spec::Bytes;

const GIB: u64 = 1 << 30;

fn machine(name: &str) -> Machine {
    Machine::load_from(name, &[]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_built_in_machine_is_sound() {
    for (name, text) in builtin() {
        let m = Machine::parse(text, &format!("machines/{name}.toml"))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(m.check(), [], "{name}");
        assert_eq!(
            Machine::parse(&m.to_toml(), &format!("{name}.toml")).unwrap(),
            m,
            "{name}"
        );
    }
}

#[test]
fn every_file_in_the_folder_is_built_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| p.file_stem().unwrap().to_str().unwrap().to_string())
        .collect();
    assert_eq!(
        files,
        builtin().iter().map(|(n, _)| n.to_string()).collect()
    );
    for paper in [
        "optane-6242",
        "haswell-2620v3",
        "optane-dc-48",
        "optane-6230",
        "optane-6230-memory-mode",
        "optane-6230n",
    ] {
        assert!(files.contains(paper), "{paper}");
    }
}

#[test]
fn the_idle_latencies_of_paper_d_add_up() {
    // Inputs, so that this only proves that the remainders were computed right.
    for name in ["optane-6230", "optane-6230-memory-mode"] {
        let m = machine(name);
        assert!(
            (m.idle_read_ns(NodeKind::Dram) - 96.0).abs() < 0.5,
            "{}",
            m.idle_read_ns(NodeKind::Dram)
        );
        assert!(
            (m.idle_read_ns(NodeKind::Pm) - 305.0).abs() < 0.5,
            "{}",
            m.idle_read_ns(NodeKind::Pm)
        );
    }
    let cxl = machine("cxl-spr");
    assert!((cxl.idle_read_ns(NodeKind::Dram) - 115.0).abs() < 0.5);
    assert!((cxl.idle_read_ns(NodeKind::Cxl) - 230.0).abs() < 0.5);
}

#[test]
fn the_machine_of_paper_d_differs_from_its_flat_twin_in_the_cache_only() {
    let (mut cached, flat) = (machine("optane-6230-memory-mode"), machine("optane-6230"));
    assert_eq!(cached.dram_cache.as_ref().unwrap().bytes, Bytes(48 * GIB));
    cached.dram_cache = None;
    cached.mode = Mode::Flat;
    cached
        .sources
        .retain(|key, _| !key.starts_with("dram_cache"));
    (cached.name, cached.about) = (flat.name.clone(), flat.about.clone());
    assert_eq!(cached, flat);
}

#[test]
fn nodes_are_numbered_dram_first_and_memory_mode_has_one_for_each_socket() {
    let node = |kind, socket, gib, cached| NumaNode {
        kind,
        socket,
        bytes: Bytes(gib * GIB),
        cached,
    };
    let flat = [
        node(NodeKind::Dram, 0, 64, false),
        node(NodeKind::Dram, 1, 64, false),
        node(NodeKind::Pm, 0, 504, false),
        node(NodeKind::Pm, 1, 504, false),
    ];
    assert_eq!(machine("optane-6230").nodes(), flat);
    let cached = [
        node(NodeKind::Pm, 0, 504, true),
        node(NodeKind::Pm, 1, 504, true),
    ];
    assert_eq!(machine("optane-6230-memory-mode").nodes(), cached);
    assert_eq!(
        machine("cxl-spr")
            .nodes()
            .iter()
            .filter(|n| n.kind == NodeKind::Cxl)
            .count(),
        2
    );
    assert_eq!(machine("optane-6230-memory-mode").total_bytes(), 1008 * GIB);
    assert_eq!(machine("optane-6230").hardware_threads(), 80);
}

#[test]
fn the_model_numbers_frames_in_the_order_of_the_nodes() {
    for (name, _) in builtin() {
        let m = machine(name);
        let bytes: Vec<u64> = varve_machine::model::nodes(&m)
            .iter()
            .map(|n| n.bytes)
            .collect();
        assert_eq!(
            bytes,
            m.nodes().iter().map(|n| n.bytes.0).collect::<Vec<_>>(),
            "{name}"
        );
    }
}

#[test]
fn peaks_follow_from_channels_and_dimms() {
    let m = machine("optane-6230");
    assert!((m.peak_read_gbps(NodeKind::Dram) - 4.0 * 2.666 * 8.0).abs() < 1e-9);
    assert!((m.peak_read_gbps(NodeKind::Pm) - 4.0 * 6.8).abs() < 1e-9);
    assert!((m.peak_write_gbps(NodeKind::Pm) - 4.0 * 1.85).abs() < 1e-9);
    assert_eq!(m.peak_read_gbps(NodeKind::Cxl), 0.0);
}

#[test]
fn a_summary_reads_like_this() {
    let expected = "\
optane-6230-memory-mode: 2 x Xeon Gold 6230, 48 GB of DRAM cache over 512 GB Optane per socket (Johnny Cache, memory mode)
  cores    2 x 20 cores x 2 threads, 2.1 GHz
  L1       32KiB, 8 ways, 2.4 ns
  L2       1MiB, 16 ways, 6.7 ns
  LLC      27.5MiB, 11 ways, 19.5 ns
  DRAM     64GiB per socket (4 channels x 1 x 16GiB DDR-2666), idle read 96 ns, peak 85.3 GB/s read, 85.3 GB/s write
  PM       504GiB per socket (4 x 126GiB), idle read 305 ns, peak 27.2 GB/s read, 7.4 GB/s write
  mode     memory mode, 48GiB of each socket's DRAM cache its slow memory
  node 0   504GiB of PM behind the DRAM cache, socket 0
  node 1   504GiB of PM behind the DRAM cache, socket 1
  total    1008GiB
";
    let summary = machine("optane-6230-memory-mode").summary();
    let text = summary.to_string();
    assert!(text.starts_with(expected), "{text}");
    assert!(
        summary.assumed > 0 && summary.assumed < summary.numbers / 2,
        "{text}"
    );
}

#[test]
fn a_scaled_machine_shrinks_memory_caches_and_page_work_alike() {
    let m = machine("optane-6230-memory-mode");
    let s = m.scaled(64);
    assert_eq!(s.check(), []);
    assert_eq!(s.dram_cache.as_ref().unwrap().bytes.0 * 64, 48 * GIB);
    assert_eq!(s.total_bytes() * 64, m.total_bytes());
    assert_eq!(s.dram_bytes() * 64, m.dram_bytes());
    assert_eq!((s.l1.bytes, s.l2.bytes), (Bytes(4096), Bytes(16384)));
    assert_eq!(s.llc.bytes.0 * 64, m.llc.bytes.0);
    assert_eq!(s.os.fault_ns * 64.0, m.os.fault_ns);
    assert_eq!(s.os.slice_ns * 64.0, m.os.slice_ns);
    assert_eq!(
        (s.tlb.clone(), s.core.clone()),
        (m.tlb.clone(), m.core.clone())
    );
    assert_eq!(m.scaled(1), m);
    assert_eq!(m.scaled(0), m);
}

#[test]
fn machines_stay_sound_at_every_scale() {
    for (name, _) in builtin() {
        for s in [2, 3, 7, 16, 48, 64, 100, 256, 1000, 4096] {
            let scaled = machine(name).scaled(s);
            assert_eq!(scaled.check(), [], "{name} / {s}");
        }
    }
}

#[test]
fn a_folder_comes_before_the_built_in_machines() {
    let folder = std::env::temp_dir().join(format!("varve-machines-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut m = machine("optane-6230");
    m.about = "mine".into();
    fs::write(folder.join("optane-6230.toml"), m.to_toml()).unwrap();
    m.name = "lab".into();
    fs::write(folder.join("lab.toml"), m.to_toml()).unwrap();
    let folders = [folder.clone()];
    assert_eq!(
        Machine::load_from("optane-6230", &folders).unwrap().about,
        "mine"
    );
    assert_eq!(Machine::load_from("lab", &folders).unwrap(), m);
    assert_eq!(
        Machine::load(folder.join("lab.toml").to_str().unwrap()).unwrap(),
        m
    );
    assert!(file_text("lab", &folders).unwrap().1.ends_with("lab.toml"));
    assert!(
        file_text("cxl-spr", &folders)
            .unwrap()
            .0
            .starts_with("# A current CXL server")
    );
    assert!(
        names(&folders).contains(&"lab".to_string())
            && names(&folders).contains(&"cxl-spr".to_string())
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let error = Machine::load_from("optane-6320", &[]).unwrap_err();
    assert!(matches!(error, LoadError::Unknown { .. }));
    let text = error.to_string();
    assert!(
        text.starts_with("no machine is called `optane-6320`; known are cxl-spr, haswell-2620v3, "),
        "{text}"
    );
    assert!(text.ends_with("(did you mean `optane-6230`?)"), "{text}");
    let text = Machine::load("nowhere/lab.toml").unwrap_err().to_string();
    assert!(
        text.starts_with("nowhere/lab.toml: ") && text.contains("give a readable machine file"),
        "{text}"
    );
}

#[test]
fn the_table_of_fields_is_the_structs() {
    // The field table is written by hand: a machine with every section must name exactly its keys.
    let mut m = machine("optane-6230-memory-mode");
    m.cxl = machine("cxl-spr").cxl;
    let pm = m.pm.as_mut().unwrap();
    (pm.read_nj, pm.write_nj, pm.idle_w) = (Some(1.0), Some(1.0), Some(1.0));
    m.dram_cache.as_mut().unwrap().conflict_ns = Some(1.0);
    m.cpu = machine("haswell-2620v3").cpu;
    m.dram.power = machine("haswell-2620v3").dram.power;
    let mut keys = BTreeSet::new();
    let mut todo = vec![(String::new(), toml::Table::try_from(&m).unwrap())];
    while let Some((prefix, table)) = todo.pop() {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            match value {
                toml::Value::Table(_) if key == "sources" => {}
                toml::Value::Table(inner) => todo.push((format!("{key}."), inner)),
                _ => assert!(keys.insert(key)),
            }
        }
    }
    assert_eq!(keys, FIELDS.iter().map(|f| f.key.to_string()).collect());
}

#[test]
fn the_book_lists_every_field_and_every_machine() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !house.join("docs").is_dir() {
        return; // A packaged crate has no book.
    }
    let book = fs::read_to_string(house.join("docs/machines.md")).unwrap();
    for f in FIELDS {
        let row = format!("| `{}` | {} | {} |", f.key, f.unit, f.about);
        assert!(book.contains(&row), "docs/machines.md lacks the row\n{row}");
    }
    for (name, _) in builtin() {
        assert!(
            book.contains(&format!("| `{name}` |")),
            "docs/machines.md lacks {name}"
        );
    }
}

fn probe() -> ProbedMachine {
    ProbedMachine {
        cpu: "Some CPU @ 2.70GHz".into(),
        sockets: 1,
        cores_per_socket: 2,
        threads_per_core: 1,
        ghz: Some(2.7),
        l1: ProbedCache {
            bytes: 48 << 10,
            ways: 12,
            ns: Some(1.9),
        },
        l2: ProbedCache {
            bytes: 2 << 20,
            ways: 16,
            ns: Some(5.5),
        },
        llc: Some(ProbedCache {
            bytes: 105 << 20,
            ways: 15,
            ns: Some(40.0),
        }),
        dram: ProbedMemory {
            bytes: 16 * GIB,
            read_ns: 120.0,
            read_gbps: 30.0,
            write_gbps: Some(20.0),
        },
        slow: None,
        remote: None,
    }
}

#[test]
fn a_probed_machine_is_sound_and_keeps_what_was_measured() {
    let m = Machine::from_probe(&probe());
    assert_eq!(m.check(), []);
    assert_eq!(
        (m.name.as_str(), m.core.per_socket, m.l1.ns),
        ("here", 2, 1.9)
    );
    assert!((m.idle_read_ns(NodeKind::Dram) - 120.0).abs() < 0.1);
    assert!(m.peak_read_gbps(NodeKind::Dram) >= 30.0);
    assert_eq!(m.sources["l1.ns"], "probed: 1.9000 ns");
    assert!(m.sources["dram"].starts_with("assumption"));
    assert_eq!(Machine::parse(&m.to_toml(), "here.toml").unwrap(), m);
}

#[test]
fn a_probe_of_two_sockets_with_an_expander_becomes_two_kinds_of_nodes() {
    let far = ProbedMemory {
        bytes: 16 * GIB,
        read_ns: 200.0,
        read_gbps: 25.0,
        write_gbps: None,
    };
    let slow = ProbedMemory {
        bytes: 64 * GIB,
        read_ns: 260.0,
        read_gbps: 22.0,
        write_gbps: Some(18.0),
    };
    let m = Machine::from_probe(&ProbedMachine {
        sockets: 2,
        remote: Some(far),
        slow: Some(slow),
        ..probe()
    });
    assert_eq!(m.check(), []);
    assert_eq!(m.link.as_ref().unwrap().ns, 80.0);
    assert!((m.idle_read_ns(NodeKind::Cxl) - 260.0).abs() < 0.1);
    assert_eq!(m.peak_write_gbps(NodeKind::Cxl), 18.0);
}

#[test]
fn a_probe_in_a_container_that_sees_next_to_nothing_is_still_a_machine() {
    let nothing = ProbedCache {
        bytes: 0,
        ways: 0,
        ns: None,
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let blind = ProbedMemory {
            bytes: 0,
            read_ns: bad,
            read_gbps: bad,
            write_gbps: Some(bad),
        };
        let m = Machine::from_probe(&ProbedMachine {
            cpu: String::new(),
            sockets: 0,
            cores_per_socket: 0,
            threads_per_core: 0,
            ghz: Some(bad),
            l1: nothing,
            l2: nothing,
            llc: None,
            dram: blind,
            slow: Some(blind),
            remote: Some(blind),
        });
        assert_eq!(m.check(), [], "{bad}");
    }
}
