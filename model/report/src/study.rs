//! The result of a study: claims, published beside ours, with everything needed to make them again.

use crate::{Agreement, Chart, Error, Origin, RunTable, Value, file};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where our side of a claim comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Computed on the model: the same wherever and whenever it is run.
    #[default]
    Modelled,
    /// Measured on the host that runs the study.
    Measured,
    /// The published value was used to choose a number of a machine or of a program, so that agreement proves nothing.
    Input,
}

impl Kind {
    /// In a word, as tables print it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Modelled => "model",
            Kind::Measured => "here",
            Kind::Input => "input",
        }
    }
}

/// The rule of the model that moves a claim most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The rule that was switched off or changed, such as `prefetchers off`.
    pub rule: String,
    /// The claim's value then: a number, or the other answer.
    pub ours: Value,
}

/// One published claim and our result for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The claim's id, such as `D5`.
    pub id: String,
    /// The claim, in a few words.
    pub what: String,
    /// The value that the paper prints.
    pub published: Value,
    /// The value that the study computed.
    pub ours: Value,
    /// The unit of both.
    pub unit: String,
    /// Ours over published, where both are numbers and the published one is not zero.
    pub ratio: Option<f64>,
    /// Remark for the reader: a reduced size, a known residual. May be empty.
    pub note: String,
    /// Where ours comes from.
    #[serde(default)]
    pub kind: Kind,
    /// The lowest and the highest of ours over several seeds, whose median `ours` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
    /// The rule of the model that moves ours most, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
}

impl Claim {
    /// A claim with its ratio worked out.
    ///
    /// ```
    /// use varve_report::Claim;
    /// let claim = Claim::new("D5", "JC-static, hot pages clustered", 85.0, 82.0, "% of DRAM");
    /// assert_eq!(claim.ratio, Some(82.0 / 85.0));
    /// ```
    pub fn new(
        id: impl Into<String>,
        what: impl Into<String>,
        published: impl Into<Value>,
        ours: impl Into<Value>,
        unit: impl Into<String>,
    ) -> Claim {
        let (published, ours) = (published.into(), ours.into());
        Claim {
            id: id.into(),
            what: what.into(),
            ratio: Value::ratio(&published, &ours),
            published,
            ours,
            unit: unit.into(),
            note: String::new(),
            kind: Kind::default(),
            spread: None,
            sensitivity: None,
        }
    }

    /// The same claim, ours from somewhere else than the model.
    pub fn of_kind(mut self, kind: Kind) -> Claim {
        self.kind = kind;
        self
    }

    /// The same claim with another value of ours.
    pub fn with_ours(mut self, ours: impl Into<Value>) -> Claim {
        self.ours = ours.into();
        self.ratio = Value::ratio(&self.published, &self.ours);
        self
    }

    /// The same claim with a note.
    pub fn with_note(mut self, note: impl Into<String>) -> Claim {
        self.note = note.into();
        self
    }

    /// What the claim would be on a machine on which what is compared makes no difference, such as one whose memories are alike:
    /// 1 of a ratio of times or speeds, 100 of a speed in per cent. `None` of other units, which do not say it.
    pub fn alike(&self) -> Option<f64> {
        match &self.unit[..] {
            "x" | "x faster" | "x DRAM-only" | "x default" => Some(1.0),
            "% of DRAM" => Some(100.0),
            _ => None,
        }
    }

    /// How far the effect is from the published one, where the unit says what no effect is; else how far the value is.
    pub fn off(&self) -> Option<f64> {
        match self.alike() {
            Some(alike) => Value::effect(&self.published, &self.ours, alike),
            None => Value::factor(&self.published, &self.ours),
        }
    }

    /// Does the claim say next to nothing? A machine on which nothing makes a difference would be within a quarter of the published
    /// value, or both values are 0.
    pub fn is_trivial(&self) -> bool {
        let zero = |v: &Value| v.number() == Some(0.0);
        let alike = self
            .alike()
            .and_then(|a| Value::factor(&self.published, &a.into()));
        alike.is_some_and(|off| off <= 1.25) || zero(&self.published) && zero(&self.ours)
    }

    /// How far ours is from published.
    pub fn agreement(&self) -> Agreement {
        Value::agreement_of(self.off())
    }
}

/// Everything a study found, and all that is needed to find it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// The study's name, as on the command line.
    pub study: String,
    /// The machine it ran on or modelled.
    pub machine: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// The version of Varve.
    pub version: String,
    /// The claims, in the paper's order.
    pub claims: Vec<Claim>,
    /// Of the coarse version, `--quick`: smaller and fewer programs.
    #[serde(default)]
    pub coarse: bool,
    /// The study's title, for people.
    #[serde(default)]
    pub title: String,
    /// The command that makes this result again.
    #[serde(default)]
    pub command: String,
    /// Paragraphs about the measurements and their sizes.
    #[serde(default)]
    pub about: Vec<String>,
    /// Errors, a line each: values that depend on them are missing.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Charts, in the paper's own shapes.
    #[serde(default)]
    pub charts: Vec<Chart>,
    /// Run comparisons behind the claims.
    #[serde(default)]
    pub tables: Vec<RunTable>,
}

/// The output of `--json`, and nothing else.
#[derive(Serialize)]
struct Printed<'a> {
    study: &'a str,
    machine: &'a str,
    seed: u64,
    version: &'a str,
    claims: &'a [Claim],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    failures: &'a [String],
}

impl StudyResult {
    /// An empty result of a study.
    pub fn new(
        study: impl Into<String>,
        machine: impl Into<String>,
        seed: u64,
        version: impl Into<String>,
    ) -> StudyResult {
        StudyResult {
            study: study.into(),
            machine: machine.into(),
            seed,
            version: version.into(),
            claims: Vec::new(),
            coarse: false,
            title: String::new(),
            command: String::new(),
            about: Vec::new(),
            failures: Vec::new(),
            charts: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Where the result comes from.
    pub fn origin(&self) -> Origin {
        Origin {
            machine: self.machine.clone(),
            seed: self.seed,
            version: self.version.clone(),
            command: self.command.clone(),
        }
    }

    /// Whether every chart and table is consistent and no two charts have the same id.
    pub fn check(&self) -> Result<(), Error> {
        self.tables.iter().try_for_each(RunTable::check)?;
        check_charts(&self.charts)
    }

    /// The output of `varve study NAME --json`, the same for every study:
    /// `{study, machine, seed, version, claims: [{id, what, published, ours, unit, ratio, note, kind}]}`, and `spread` and
    /// `sensitivity` where they were asked for.
    ///
    /// ```
    /// use varve_report::{Claim, StudyResult};
    /// let mut result = StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
    /// result.claims.push(Claim::new("D12", "metadata", 50.0, 41.0, "MB"));
    /// let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    /// assert_eq!(json["claims"][0]["ratio"], 0.82);
    /// ```
    pub fn to_json(&self) -> String {
        let printed = Printed {
            study: &self.study,
            machine: &self.machine,
            seed: self.seed,
            version: &self.version,
            claims: &self.claims,
            failures: &self.failures,
        };
        pretty(&printed)
    }

    /// The whole result with charts and tables, as kept in the results file.
    pub fn to_full_json(&self) -> String {
        pretty(self)
    }

    /// Write the whole result to a file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        file::write_atomically(path, self.to_full_json().as_bytes())
    }

    /// Read a result that [`StudyResult::write`] wrote.
    pub fn read(path: &Path) -> Result<StudyResult, Error> {
        file::read_json(path)
    }

    /// The claims that are answers: all but inputs.
    pub fn answers(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|c| c.kind != Kind::Input)
    }

    /// How many answers are close, near, far and not comparable.
    pub fn tally(&self) -> [(Agreement, usize); 4] {
        use Agreement::*;
        [Close, Near, Far, Unknown]
            .map(|a| (a, self.answers().filter(|c| c.agreement() == a).count()))
    }
}

/// Whether every chart is consistent and has an id of its own.
pub(crate) fn check_charts(charts: &[Chart]) -> Result<(), Error> {
    for (i, chart) in charts.iter().enumerate() {
        chart.check()?;
        if charts[..i].iter().any(|c| c.id == chart.id) {
            let what = format!("chart \"{}\"", chart.id);
            return Err(Error::Inconsistent {
                what,
                why: "another chart has the same id".into(),
            });
        }
    }
    Ok(())
}

/// JSON of a type whose maps have text keys and whose numbers are all JSON's: it cannot fail.
pub(crate) fn pretty<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect("results have only JSON's own types")
}
