//! The file of a daemon: which control groups it tiers, and how much fast memory each may have.
//!
//! ```toml
//! fast = "48GiB"
//! metrics = "127.0.0.1:9464"
//!
//! [[group]]
//! name = "database"
//! cgroup = "system.slice/postgresql.service"
//! weight = 3
//! floor = "4GiB"
//! ```

use super::endpoint::Endpoint;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use varve_live::tier::Way;
use varve_spec::{Bytes, written};

/// What a daemon is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Fast memory of all groups together; `None`: what they use there, plus what is free there.
    pub fast: Option<u64>,
    /// Nodes of fast and slow memory, as `--nodes` has them; `None`: detected.
    pub nodes: Option<String>,
    /// Limit of migration of all groups together, bytes per second; 0: nothing migrates.
    pub rate: u64,
    /// CPU budget of all groups together, as a share of one core.
    pub core: f64,
    /// Where measurements can be read.
    pub metrics: Option<Endpoint>,
    /// Nothing migrates, and what would be done is told.
    pub dry_run: bool,
    /// The groups, at least one.
    pub groups: Vec<GroupConfig>,
}

/// A control group of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupConfig {
    /// Its name in reports and measurements.
    pub name: String,
    /// Its folder, below `/sys/fs/cgroup`.
    pub cgroup: String,
    /// The page policy.
    pub policy: String,
    /// Fast memory that it has, whatever others have.
    pub fast: Option<u64>,
    /// Its part of the fast memory that is left, beside the other groups' weights.
    pub weight: u64,
    /// Fast memory that it has at least.
    pub floor: u64,
    /// How its accesses are observed; `None`: in the first way that works.
    pub observe: Option<Way>,
    /// Bytes of a page; `None`: chosen by the footprint.
    pub page: Option<u64>,
    /// How long a migrated page stays where it is.
    pub hold: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    fast: Option<Bytes>,
    nodes: Option<String>,
    rate: Option<Bytes>,
    core: Option<String>,
    metrics: Option<String>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    group: Vec<One>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct One {
    name: Option<String>,
    cgroup: String,
    policy: Option<String>,
    fast: Option<Bytes>,
    weight: Option<u64>,
    floor: Option<Bytes>,
    observe: Option<String>,
    page: Option<String>,
    hold: Option<String>,
}

/// Largest weight of a group.
const HEAVIEST: u64 = 10_000;

/// Reads a file.
///
/// # Errors
/// One line that names the file, the place and what is wrong there.
pub fn read(file: &Path) -> Result<Config, String> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|e| format!("--config {name}: {e}"))?;
    parse(&text).map_err(|why| format!("--config {name}: {why}"))
}

fn parse(text: &str) -> Result<Config, String> {
    let file: File = toml::from_str(text).map_err(|e| crate::line_of(text, &e))?;
    if file.group.is_empty() {
        return Err(
            "no [[group]] in it: each has a `cgroup`, such as \"system.slice/redis-server.service\""
                .into(),
        );
    }
    let groups: Result<Vec<GroupConfig>, String> = file.group.into_iter().map(of_group).collect();
    let groups = groups?;
    for (at, one) in groups.iter().enumerate() {
        for other in &groups[..at] {
            if one.name == other.name {
                return Err(format!("two groups are called `{}`", one.name));
            }
            overlap(one, other)?;
        }
    }
    let metrics = file.metrics.map(|text| text.parse()).transpose();
    Ok(Config {
        fast: file.fast.map(|bytes| bytes.0),
        nodes: file.nodes,
        rate: file.rate.map_or(256 << 20, |bytes| bytes.0),
        core: file.core.map_or(Ok(0.02), |text| {
            core_share(&text).map_err(|why| format!("core = \"{text}\": {why}"))
        })?,
        metrics: metrics.map_err(|why: String| format!("metrics: {why}"))?,
        dry_run: file.dry_run,
        groups,
    })
}

fn of_group(one: One) -> Result<GroupConfig, String> {
    let cgroup = one.cgroup.trim_matches('/').to_string();
    let name = one.name.unwrap_or_else(|| cgroup.clone());
    let wrong = |why: String| format!("group `{name}`: {why}");
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err("a group has an empty name, or one with control characters".into());
    }
    let parts = Path::new(&cgroup).components();
    let is_plain = |part| matches!(part, std::path::Component::Normal(_));
    if cgroup.is_empty() || !parts.into_iter().all(is_plain) {
        return Err(wrong(format!(
            "cgroup = \"{cgroup}\": a folder below /sys/fs/cgroup, such as \"system.slice/redis-server.service\""
        )));
    }
    let weight = one.weight.unwrap_or(1);
    if !(1..=HEAVIEST).contains(&weight) {
        return Err(wrong(format!("weight = {weight}: from 1 to {HEAVIEST}")));
    }
    let fast = one.fast.map(|bytes| bytes.0);
    if fast.is_some() && (one.weight.is_some() || one.floor.is_some()) {
        return Err(wrong(
            "`fast` is all of its fast memory: leave `weight` and `floor` out".into(),
        ));
    }
    let within = |key: &str, text: &str, why: String| wrong(format!("{key} = \"{text}\": {why}"));
    let observe = one
        .observe
        .map(|text| way(&text).map_err(|why| within("observe", &text, why)));
    let page = one.page.map(|text| {
        let page = page_size(&text).map_err(|why| within("page", &text, why));
        page.map(|bytes| bytes.0)
    });
    let hold = one.hold.map(|text| {
        let seconds = written::seconds(&text).filter(|s| (0.0..=86_400.0).contains(s));
        seconds.ok_or_else(|| {
            wrong(format!(
                "hold = \"{text}\": a time such as 10s, up to a day"
            ))
        })
    });
    let policy = one.policy.unwrap_or_else(|| "hotset".into());
    crate::pages::live_spec(&policy).map_err(wrong)?;
    Ok(GroupConfig {
        policy,
        fast,
        weight,
        floor: one.floor.map_or(0, |bytes| bytes.0),
        observe: observe.transpose()?,
        page: page.transpose()?,
        hold: Duration::from_secs_f64(hold.transpose()?.unwrap_or(10.0)),
        name,
        cgroup,
    })
}

/// A process is in one group.
fn overlap(one: &GroupConfig, other: &GroupConfig) -> Result<(), String> {
    let paths = [one, other].map(|group| PathBuf::from(&group.cgroup));
    match paths[0].starts_with(&paths[1]) || paths[1].starts_with(&paths[0]) {
        true => Err(format!(
            "groups `{}` and `{}` overlap: {} and {} have processes in common",
            other.name, one.name, other.cgroup, one.cgroup
        )),
        false => Ok(()),
    }
}

/// `2%` as a fraction of one.
///
/// # Errors
/// A line that says what a CPU budget is.
pub fn core_share(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').map(str::trim);
    match percent.and_then(|number| number.parse::<f64>().ok()) {
        Some(percent) if (0.1..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a CPU budget is 0.1% to 100% of a core".into()),
    }
}

/// A page size of a policy.
///
/// # Errors
/// A line that says what a page is.
pub fn page_size(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    match bytes.0.is_power_of_two() && (4096..=2 << 20).contains(&bytes.0) {
        true => Ok(bytes),
        false => Err("a page is a power of two from 4KiB to 2MiB".into()),
    }
}

/// A way to observe accesses, by its name.
///
/// # Errors
/// A line with all names.
pub fn way(text: &str) -> Result<Way, String> {
    let names: Vec<&str> = Way::ALL.iter().map(|way| way.name()).collect();
    let found = Way::ALL.into_iter().find(|way| way.name() == text);
    found.ok_or_else(|| format!("choose one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
fast = "48GiB"
core = "4%"
metrics = "127.0.0.1:9464"

[[group]]
name = "database"
cgroup = "/system.slice/postgresql.service"
weight = 3
floor = "4GiB"

[[group]]
cgroup = "system.slice/redis-server.service"
fast = "2GiB"
policy = "hotset:spare=64MiB"
observe = "writes"
page = "4KiB"
hold = "30s"
"#;

    #[test]
    fn a_file_is_read() {
        let config = parse(GOOD).unwrap();
        assert_eq!((config.fast, config.core), (Some(48 << 30), 0.04));
        let [database, redis] = &config.groups[..] else {
            panic!("{config:?}");
        };
        assert_eq!(database.cgroup, "system.slice/postgresql.service");
        assert_eq!((database.weight, database.floor), (3, 4 << 30));
        assert_eq!(redis.name, "system.slice/redis-server.service");
        assert_eq!((redis.fast, redis.page), (Some(2 << 30), Some(4096)));
        assert_eq!(redis.observe, Some(Way::Writes));
        assert_eq!(redis.hold, Duration::from_secs(30));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let says = |from: &str, to: &str| {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from}");
            let why = parse(&text).unwrap_err();
            assert!(!why.contains('\n'), "{why}");
            why
        };
        assert!(says("weight", "wieght").starts_with("line 9: unknown field `wieght`"));
        assert!(says("weight = 3", "weight = 0").contains("from 1 to"));
        assert!(says("2GiB", "much").contains("line 14"));
        assert!(says("4%", "4").contains("core = \"4\""));
        assert!(says("\"writes\"", "\"eyes\"").contains("choose one of hardware"));
        assert!(says("page = \"4KiB\"", "page = \"5000\"").contains("power of two"));
        assert!(says("30s", "-1s").contains("a time"));
        assert!(says("hotset:spare", "hotst:spare").contains("hotst"));
        assert!(says("hotset:spare=64MiB", "static").contains("group `system.slice/redis"));
        assert!(says("127.0.0.1", "0.0.0.0").contains("metrics: "));
        assert!(says("fast = \"2GiB\"", "fast = \"2GiB\"\nweight = 1").contains("leave `weight`"));
        assert!(says("redis-server.service", "..").contains("below /sys/fs/cgroup"));
        let nested = "postgresql.service/workers";
        assert!(says("redis-server.service", nested).contains("overlap"));
        let same = "[[group]]\nname = \"database\"";
        assert!(
            says("\n[[group]]\ncgroup", &format!("\n{same}\ncgroup")).contains("called `database`")
        );
        assert!(parse("core = \"2%\"").unwrap_err().contains("no [[group]]"));
        let missing = read(Path::new("/no/such.toml")).unwrap_err();
        assert!(missing.starts_with("--config /no/such.toml: "));
    }
}
