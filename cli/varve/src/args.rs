//! What the command line takes.

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use varve_spec::Bytes;

/// Puts every byte of a program in the right memory: DRAM, CXL, Optane, far nodes; live, or on a fast model of a
/// machine that you do not own.
#[derive(Parser, Debug)]
#[command(
    name = "varve",
    version,
    max_term_width = 80,
    before_help = crate::cmd::start::questions(),
    after_help = "Exit codes: 0 done, 1 the work failed, 2 wrong usage or input,\n\
                  124 out of time (--timeout), 130 interrupted.\n\
                  The book is in docs/; start with docs/start.md."
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a program on a modelled machine, or on this one with its memory placed
    Run(Request),
    /// Compile a Java program to a WebAssembly module, by TeaVM; needs a JDK and Maven
    #[command(after_help = "Examples:\n  \
        varve build Main.java && varve run Main.wasm\n  \
        varve build app.jar library.jar --main org.example.Main -o app.wasm\n  \
        varve build Main.java --region accounts.region\n  \
        varve build my-project/pom.xml")]
    Build(BuildArgs),
    /// Count what a program does to the objects of each of its allocation sites, or what of a Java program's survives
    #[command(after_help = "Examples:\n  \
        varve profile programs/dist/graph.wasm -o graph.sites -- pagerank --scale 10\n  \
        varve profile programs/dist/graph.wasm -o graph.sites --add -- als\n  \
        varve profile -o app.sites -- java -jar app.jar\n  \
        varve profile -o app.sites --pid 4711 --for 60s\n  \
        varve sites graph.sites\n  \
        varve run programs/dist/graph.wasm --profile graph.sites --plan cgz-f \\\n      \
            --machine optane-6242 -- pagerank --scale 14")]
    Profile(ProfileArgs),
    /// Show a site profile: what was made where, and which memory it is for
    #[command(after_help = "Examples:\n  \
        varve sites graph.sites\n  \
        varve sites graph.sites --by bytes --all\n  \
        varve sites graph.sites --heuristic cgz-f,cgz-f:threshold=4,knapsack:capacity=0.1\n  \
        varve sites graph.sites --json\n  \
        varve sites app.sites          (allocation sites of Java, by what survives)")]
    Sites(SitesArgs),
    /// Record a program's memory accesses for replay, look into a trace, or import one of another tool
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  \
        varve trace -o sort.trace -- sort words.txt\n  \
        varve trace --sample 1% -o service.trace -- ./service\n  \
        varve trace info sort.trace\n  \
        varve trace import --from lackey lackey.txt -o program.trace"
    )]
    Trace(TraceArgs),
    /// Compile C with the probe built in, for fast tracing (uses $CC or cc)
    #[command(after_help = "Example:\n  varve cc -O2 -o kernel kernel.c && varve run -- ./kernel")]
    Cc(CompileArgs),
    /// Compile C++ with the probe built in, for fast tracing (uses $CXX or c++)
    #[command(
        name = "c++",
        after_help = "Example:\n  varve c++ -O2 -o kernel kernel.cpp && varve run -- ./kernel"
    )]
    Cxx(CompileArgs),
    /// List, show, check and calibrate machines; say what this one can do
    #[command(after_help = "Examples:\n  \
        varve machine list\n  \
        varve machine show optane-6230\n  \
        varve machine check my-server.toml\n  \
        varve machine calibrate optane-8260\n  \
        varve machine calibrate here --quick\n  \
        varve machine --doctor\n  \
        varve machine --doctor --fix\n  \
        varve machine --doctor --undo")]
    Machine(MachineArgs),
    /// Tier programs that run already: pages in use to fast memory, others to slow memory, by a page policy
    #[command(after_help = tier::EXAMPLES)]
    Tier(tier::TierArgs),
    /// Show memory use by tier and process, migration rates, and the last decisions of `varve tier`
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArgs),
    /// Place whole programs that share a machine: which memory, how many threads, in what order
    #[command(after_help = "Examples:\n  \
        varve jobs profile examples/group1.toml --machine optane-6230n\n  \
        varve jobs plan examples/group1.toml --machine optane-6230n\n  \
        varve jobs plan examples/group1.toml --emit slurm --nodes fast=0,slow=2 > job.sh\n  \
        varve jobs run examples/group1.toml --machine optane-6230n\n  \
        varve jobs profile examples/group1.toml --live --demands here.json\n  \
        varve jobs run examples/group1.toml --live --demands here.json")]
    Jobs(JobsArgs),
    /// Explain a plan, page policy, machine or workload, with a picture
    #[command(
        after_help = "Examples:\n  varve explain pima\n  varve explain plan kg-n:outside=slow\n  varve explain machine cxl-spr"
    )]
    Explain(ExplainArgs),
    /// List the page policies and their parameters
    #[command(after_help = "Examples:\n  varve policy\n  varve policy dynamic")]
    Policy(ListArgs),
    /// List the plans for WebAssembly, native and Java programs, and their parameters
    #[command(after_help = "Examples:\n  varve plan\n  varve plan pima")]
    Plan(ListArgs),
    /// List the workloads and their parameters
    Workload(ListArgs),
    /// Serve a key-value store over memcached's protocol; the store is a managed program
    #[command(after_help = "Examples:\n  \
        varve serve\n  \
        varve serve --store hbtree --memory-limit 4GiB --listen 127.0.0.1:11311\n  \
        varve serve --shards 4 --durable values.region\n  \
        varve serve --socket /run/values.sock --socket-mode 770")]
    Serve(ServeArgs),
    /// Run the workloads of YCSB on a store in this process, or on a server of memcached's protocol
    #[command(after_help = "Examples:\n  \
        varve ycsb\n  \
        varve ycsb a c --store fhmap,hbtree --records 1000000 --operations 500000\n  \
        varve ycsb c --server 127.0.0.1:11211 --connections 8 --pipeline 16")]
    Ycsb(YcsbArgs),
    /// Look into a durable region: check it, say what it holds, make it smaller, export it
    #[command(after_help = "Examples:\n  \
        varve durable check accounts.region\n  \
        varve durable info accounts.region\n  \
        varve durable compact accounts.region\n  \
        varve durable export accounts.region > accounts.jsonl")]
    Durable(DurableArgs),
    /// Run a paper's experiments and print published beside ours
    #[command(args_conflicts_with_subcommands = true, after_help = study::EXAMPLES)]
    Study(StudyArgs),
    /// Run many runs that differ in some options, resume them, share them out, and merge them
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        after_help = sweep::EXAMPLES
    )]
    Sweep(SweepArgs),
}

pub mod durable;
pub mod medium;
#[cfg(test)]
mod reference;
pub mod run;
pub mod shares;
pub mod study;
pub mod sweep;
pub mod tier;
pub mod top;

pub use durable::{DurableArgs, DurableCommand};
pub use run::Request;
pub use run::sandbox::Sandbox;
pub use study::{StudyAction, StudyArgs, StudyOf};
pub use sweep::{SubmitHow, SweepAction, SweepArgs};

#[derive(clap::Args, Debug)]
pub struct BuildArgs {
    /// A jar and those that it needs; files of Java, or folders of them; or the pom.xml of a project
    #[arg(required = true, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// Where to write the module (named after the program, here, if it is not given)
    #[arg(short, long, value_name = "FILE.wasm")]
    pub output: Option<PathBuf>,
    /// The class to begin with, if no manifest or project names one, or another
    #[arg(long, value_name = "CLASS")]
    pub main: Option<String>,
    /// Have the program keep the classes that this region's objects are of, though its sources do not use them any more; may be repeated
    #[arg(long, value_name = "FILE")]
    pub region: Vec<PathBuf>,
    /// Keep all that Maven says in this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub struct ProfileArgs {
    /// The WebAssembly program, or the trace of a native one; with --from, a file of another tool
    pub program: Option<String>,
    /// Make the profile of what another tool has written about a native program: the file of heaptrack, the text of `perf script` for
    /// samples of `perf mem`, or DAMON's records
    #[arg(long, value_enum, value_name = "TOOL")]
    pub from: Option<ProfileFrom>,
    /// With --from perf or damon: what lies where in the recorded process, a copy of its /proc/PID/maps (FILE.vmas or FILE.maps beside
    /// the file, if it is not given)
    #[arg(long, value_name = "FILE", requires = "from")]
    pub maps: Option<PathBuf>,
    /// Where to write the profile
    #[arg(short, long, value_name = "FILE.sites")]
    pub output: PathBuf,
    /// Add this run's counts to the profile that is there
    #[arg(long)]
    pub add: bool,
    /// Call this export, with the arguments after `--`, in place of the program's main function
    #[arg(long, value_name = "NAME")]
    pub invoke: Option<String>,
    /// Most memory of the program's objects (2GiB if it is not given), and of its linear memories and tables (4GiB)
    #[arg(long)]
    pub heap_max: Option<Bytes>,
    /// Nursery in the beginning (4MiB if it is not given): what leaves it has survived
    #[arg(long)]
    pub nursery: Option<Bytes>,
    /// Compilers: baseline, optimizing, or auto; all count the same
    #[arg(long, value_name = "TIER")]
    pub tier: Option<varve_runtime::Tier>,
    #[command(flatten)]
    pub live: SamplingArgs,
    #[command(flatten)]
    pub java: JavaSampled,
    #[command(flatten)]
    pub sandbox: Sandbox,
    /// The machine that a native program's sites are valued on: a name from `varve machine list`, or a file (cxl-spr if it is not
    /// given)
    #[arg(short, long)]
    pub machine: Option<String>,
    /// Record windows of a command all over its run, which are this share of it, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = run::model::share, conflicts_with_all = ["from", "live", "invoke"])]
    pub sample: Option<f64>,
    /// The arguments of a WebAssembly program; or, without PROGRAM, a command
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

/// How a program is sampled that is not traced.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Samples in place of a trace")]
pub struct SamplingArgs {
    /// Sample a native program on this machine, at nearly its usual speed: a command, or a process with --pid
    #[arg(long, conflicts_with_all = ["from", "invoke", "heap_max", "nursery", "tier", "machine"])]
    pub live: bool,
    /// The process to sample, which runs on afterwards
    #[arg(long, value_name = "NUMBER")]
    pub pid: Option<u32>,
    /// Stop after this time, such as 10s; a command is asked to end then (its own end, or Ctrl-C, if it is not given)
    #[arg(long = "for", value_name = "TIME", value_parser = run::sandbox::time)]
    pub time: Option<std::time::Duration>,
    /// Looks per second at which memory is in use (20 if it is not given)
    #[arg(long, value_name = "N", value_parser = rate, requires = "live")]
    pub rate: Option<f64>,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(n) if (0.01..=200.0).contains(&n) => Ok(n),
        _ => Err("a rate is 0.01 to 200 looks per second".into()),
    }
}

/// Tools whose files become profiles.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum ProfileFrom {
    /// What heaptrack writes, uncompressed: allocations, without accesses
    Heaptrack,
    /// `perf script` of memory samples: accesses, without allocations
    Perf,
    /// What `damo record` writes, or its text (`perf script`, `damo report raw`): how often addresses are in use, without allocations
    Damon,
}

/// What sites are sorted by.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum SitesBy {
    /// Reads and writes of survivors
    Accesses,
    /// Writes of survivors
    Writes,
    /// Bytes of all objects
    Bytes,
    /// All objects
    Objects,
    /// Bytes that survived: the nursery, or into the old generation
    Old,
}

/// How allocations of Java programs are sampled.
#[derive(clap::Args, Debug)]
pub struct JavaSampled {
    /// Sample allocations of Java: of a script that starts a Java virtual machine. `java` itself, and a process that is one, are
    /// known without it
    #[arg(long, conflicts_with_all = ["from", "invoke", "heap_max", "nursery", "tier", "machine", "rate"])]
    pub java: bool,
    /// Bytes that a thread of a Java program allocates between two samples, on average; 0 samples every object (512KiB if it is not
    /// given)
    #[arg(long, value_name = "BYTES", value_parser = interval, conflicts_with_all = ["from", "invoke", "heap_max", "nursery", "tier", "machine", "rate"])]
    pub interval: Option<Bytes>,
}

/// Virtual machines take 31 bits.
fn interval(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    match bytes.0 <= i32::MAX as u64 {
        true => Ok(bytes),
        false => Err("an interval is less than 2GiB".into()),
    }
}

#[derive(clap::Args, Debug)]
pub struct SitesArgs {
    /// The profile
    #[arg(value_name = "FILE.sites")]
    pub profile: PathBuf,
    /// What to sort by, the most first (accesses if it is not given; of a Java program old)
    #[arg(long, value_enum)]
    pub by: Option<SitesBy>,
    /// Heap plans that go by profiles, with parameters, separated by commas (all of them if it is not given)
    #[arg(long, value_name = "PLANS")]
    pub heuristic: Option<String>,
    /// The fast memory of a native program, such as 25% of what it takes at most, or 8GiB (25% if it is not given)
    #[arg(long, value_name = "SIZE|PERCENT")]
    pub fast: Option<varve_run::request::Fast>,
    /// Sites to show
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub top: usize,
    /// Show all sites
    #[arg(long)]
    pub all: bool,
    /// Print JSON: all that is known of all sites
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args, Debug)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub action: Option<TraceAction>,
    /// Where to write the trace
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Leave allocation call sites out (a little faster)
    #[arg(long)]
    pub no_sites: bool,
    /// Record accesses only between the program's own marks: from where it looks for the file `/varve/record/begin` to where it looks
    /// for `/varve/record/end`, which need not be there
    #[arg(long)]
    pub marked: bool,
    #[command(flatten)]
    pub windows: run::model::Windows,
    /// The command to record
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

#[derive(Subcommand, Debug)]
pub enum TraceAction {
    /// Say what is in a trace: ops, threads, footprint, allocation sites
    Info {
        /// The trace
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Turn another tool's trace into one of ours
    Import {
        /// Its format: lackey, champsim, memtrace or drmemtrace
        #[arg(long)]
        from: String,
        /// The other tool's trace
        file: PathBuf,
        /// Where to write ours
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

#[derive(clap::Args, Debug)]
pub struct CompileArgs {
    /// The compiler's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub struct MachineArgs {
    #[command(subcommand)]
    pub action: Option<MachineAction>,
    /// Say what this machine lets Varve do, how to get what is missing, and what is wrong with the set-up of its memories
    #[arg(long)]
    pub doctor: bool,
    /// With --doctor: change what is wrong with the set-up, after it was shown and you were asked
    #[arg(long, requires = "doctor", conflicts_with_all = ["undo", "root"])]
    pub fix: bool,
    /// With --doctor: revert what --fix has changed since this machine started, where it has not been changed again
    #[arg(long, requires = "doctor")]
    pub undo: bool,
    /// With --fix: do it unasked
    #[arg(long, requires = "fix")]
    pub yes: bool,
    /// With --doctor: judge the set-up of another machine, from a copy of its /sys and /proc in this folder
    #[arg(
        long,
        requires = "doctor",
        value_name = "FOLDER",
        conflicts_with = "undo"
    )]
    pub root: Option<PathBuf>,
    /// With --doctor: weights of interleaving from what `varve machine calibrate here --json` has printed into this file (by the
    /// firmware's bandwidths if it is not given)
    #[arg(
        long,
        requires = "doctor",
        value_name = "FILE",
        conflicts_with = "undo"
    )]
    pub calibrated: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Subcommand, Debug)]
pub enum MachineAction {
    /// List the machines
    List,
    /// Show a machine: caches, memories, nodes, and what is assumed
    Show {
        /// Name, file, or `here` for the machine that this runs on
        machine: String,
        /// Print the whole file, every number with its source
        #[arg(long)]
        toml: bool,
    },
    /// Check a machine file; every problem with its line and a remedy
    Check {
        /// Name or file; all built-in machines when none is given
        machine: Option<String>,
    },
    /// Run MemBench on the model with 1, 2, ... hot DIMMs and print which bandwidth needs how many: the model for
    /// `varve run --trays model=...`
    Governor {
        /// Name or file of a machine whose channels are not interleaved
        machine: String,
        /// A few loads, at a smaller size
        #[arg(long)]
        quick: bool,
    },
    /// Run the classic latency and bandwidth curves on the model and compare them with published ones; `here`: measure
    /// them on the machine that this runs on and compare the model with them
    Calibrate {
        /// Name, file, or `here`
        machine: String,
        /// All points instead of the few that tell most
        #[arg(long)]
        full: bool,
        /// With `here`: measure for some seconds only
        #[arg(long, conflicts_with = "full")]
        quick: bool,
    },
    /// What programs do to one another's bandwidth: reading and writing, in order and at random, with 1 to 10 threads in
    /// either memory, each beside each
    Interference {
        /// Name, file, or `here`
        machine: String,
        /// Two numbers of threads instead of five
        #[arg(long)]
        quick: bool,
        /// With `here`: nodes of fast and slow memory, such as fast=0,slow=1; found out if they are not given
        #[arg(long, value_name = "NODES")]
        nodes: Option<String>,
        /// Write a page, JSON and Parquet into this folder
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Runs at a time on the model; 0: one per core of this host
        #[arg(long, default_value_t = 0)]
        jobs: usize,
    },
}

#[derive(clap::Args, Debug)]
pub struct JobsArgs {
    #[command(subcommand)]
    pub action: JobsAction,
}

#[derive(Subcommand, Debug)]
pub enum JobsAction {
    /// Measure what each program of a group asks of memory, and class it
    Profile(GroupArgs),
    /// Say which memory, threads and order a group should have, and why
    Plan(PlanArgs),
    /// Run a group as Linux would and with each optimization, and compare
    Run(GroupArgs),
    /// Carry out the accesses of a workload on this machine's memory: what `run --live` starts for programs that have a workload
    /// and no command
    #[command(hide = true)]
    Exercise {
        /// The workload, `NAME:key=value,...`
        workload: String,
    },
}

/// Who carries out a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scheduler {
    /// A batch script of Slurm, for `sbatch`: each program is a step of one job
    Slurm,
    /// Units of systemd, in a shell script that writes and starts them
    Systemd,
}

#[derive(clap::Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    pub group: GroupArgs,
    /// Print the plan as a file that others carry out; what they cannot express is said in it, and here
    #[arg(long, value_enum, value_name = "FOR", conflicts_with_all = ["json", "out"], group = "places")]
    pub emit: Option<Scheduler>,
}

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("places").args(["live"]).multiple(true)))]
pub struct GroupArgs {
    /// The group's file
    #[arg(value_name = "GROUP.toml")]
    pub group: PathBuf,
    /// The modelled machine: a name from `varve machine list`, or a file
    #[arg(short, long, default_value = "optane-6230n", conflicts_with = "live")]
    pub machine: String,
    /// On this machine itself
    #[arg(long)]
    pub live: bool,
    /// With --live: nodes of fast and slow memory, such as fast=0,slow=1; found out if they are not given. `plan --emit`: those of
    /// the machine that the file is for
    #[arg(long, requires = "places", value_name = "NODES")]
    pub nodes: Option<String>,
    /// With --live, and for `plan --emit`: folder for the programs' output
    #[arg(long, requires = "places", value_name = "FOLDER")]
    pub logs: Option<PathBuf>,
    /// With --live: keep what was measured of each program in this file, and measure no program again that is in it as it is now;
    /// `profile` measures all anew
    #[arg(long, requires = "live", value_name = "FILE")]
    pub demands: Option<PathBuf>,
    /// With --live: runs of each strategy, in turns; medians are compared [default: 3 where several strategies are, or else 1]
    #[arg(long, requires = "live", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: Option<u32>,
    /// What to plan or run: linux, placement, threads, order, sums such as placement+order, or all; several separated by
    /// commas (the baseline, each alone, and all together, if it is not given)
    #[arg(short, long, value_delimiter = ',')]
    pub strategy: Vec<varve_jobs::Strategy>,
    /// Divide all sizes and times of workloads by this power of two (512; 1 if no program is a workload)
    #[arg(long)]
    pub scale: Option<u32>,
    /// Small and coarse, in some seconds
    #[arg(long, conflicts_with = "scale")]
    pub quick: bool,
    /// Compare with the best of all plans (groups of up to four programs)
    #[arg(long, conflicts_with = "live")]
    pub oracle: bool,
    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write a page, JSON and Parquet into this folder
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Runs at a time on the model; 0: one per core of this host
    #[arg(long, default_value_t = 0, conflicts_with = "live")]
    pub jobs: usize,
    /// Where finished runs are kept; `none` keeps nothing
    #[arg(long, value_name = "FOLDER", conflicts_with = "live")]
    pub keep: Option<PathBuf>,
}

/// What can be explained.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explained {
    /// A heap plan
    Plan,
    /// A page policy
    Policy,
    /// A machine
    Machine,
    /// A workload
    Workload,
}

#[derive(clap::Args, Debug)]
pub struct ExplainArgs {
    /// Its name, with parameters if it has some, such as kg-w:old=kept; or what kind of thing it is (plan, policy, machine or
    /// workload), before its name
    #[arg(value_name = "NAME|KIND")]
    pub first: String,
    /// Its name, where the kind is written
    pub name: Option<String>,
}

#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// One of them, with its parameters
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args, Debug)]
pub struct ServeArgs {
    /// The data structure: fhmap (a functional hash map), pbtree (a B+ tree), hbtree (a B+ tree of which only the leaves are durable)
    #[arg(long, default_value_t)]
    pub store: varve_serve::Kind,
    /// Address and port; 0 has the system choose a port [default: 127.0.0.1:11211, or none with --socket]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// Listen on a socket in the file system, too if --listen is given
    #[arg(short, long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Who may use the socket: a file's mode in octal digits
    #[arg(short = 'a', long, value_name = "MODE", default_value = "700", value_parser = mode, requires = "socket")]
    pub socket_mode: u32,
    /// Have clients give a name and password first, as one of this file's lines of name:password has them
    #[arg(short = 'Y', long, value_name = "FILE")]
    pub auth_file: Option<PathBuf>,
    /// Threads, each with its part of the keys in a store of its own [default: 1, or as many as the region files of --durable were made with]
    #[arg(short = 't', long, value_name = "N")]
    pub shards: Option<usize>,
    /// Most memory of all values, with their keys and 160 bytes for each
    #[arg(short, long, default_value = "1GiB")]
    pub memory_limit: Bytes,
    /// What makes room when values have reached --memory-limit, besides those that have expired: off, nothing, so that no value is lost and new
    /// ones are refused; lru, values that were not asked for lately
    #[arg(long, value_enum, default_value_t)]
    pub evict: Evict,
    /// Most bytes of a value
    #[arg(short = 'I', long, default_value = "1MiB")]
    pub max_item_size: Bytes,
    /// Most connections
    #[arg(short, long, default_value = "4096", value_parser = connections)]
    pub connections: usize,
    /// Most memory for requests and answers that wait, of all connections together
    #[arg(long, default_value = "64MiB")]
    pub buffers: Bytes,
    /// Close connections that send no request for so long; 0: never
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = time_out)]
    pub idle_timeout: f64,
    /// Close connections whose request has begun, or whose answer is not read, when less than 4 KiB of it move for so long; 0: never
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = time_out)]
    pub stall_timeout: f64,
    /// Most memory of the program's objects [default: half as much again as --memory-limit, and 128MiB; with --durable as much of that as leaves
    /// addresses to durable objects]
    #[arg(long)]
    pub heap_max: Option<Bytes>,
    #[command(flatten)]
    pub durable: durable::DurableStore,
}

/// Seconds, or 0 for never.
fn time_out(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok();
    let fits = |s: &f64| *s == 0.0 || (0.01..=1e9).contains(s);
    seconds
        .filter(fits)
        .ok_or_else(|| format!("`{text}` is no number of seconds, from 0.01 on, or 0 for never"))
}

/// A file's mode.
fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|m| *m <= 0o777);
    mode.ok_or_else(|| format!("`{text}` is no mode such as 700 or 770"))
}

/// What makes room for new values.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Evict {
    /// Nothing.
    #[default]
    Off,
    /// Values that were not asked for lately.
    Lru,
}

fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a server without connections serves nobody: 1 is the least".into()),
        Ok(n) => Ok(n),
        Err(e) => Err(format!("{e}")),
    }
}

#[derive(clap::Args, Debug)]
pub struct YcsbArgs {
    /// Workloads: a, b, c, d, f (all of them if none is given)
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<varve_serve::ycsb::Workload>,
    /// Stores to run in this process: fhmap, pbtree, hbtree, or outside, a native B+ tree behind serialization (all of them if none is given)
    #[arg(long, value_delimiter = ',', conflicts_with = "server")]
    pub store: Vec<varve_serve::Kind>,
    /// A server to run them on; its records are written first
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub server: Option<std::net::SocketAddr>,
    /// With --server: connections, each with a thread
    #[arg(long, default_value_t = 1, requires = "server")]
    pub connections: u64,
    /// With --server: requests of a connection that are under way at a time
    #[arg(long, default_value_t = 1, requires = "server")]
    pub pipeline: u64,
    /// Records
    #[arg(long, default_value_t = 10_000)]
    pub records: u64,
    /// Operations of each workload
    #[arg(long, default_value_t = 50_000)]
    pub operations: u64,
    /// Bytes of a value
    #[arg(long, default_value = "1000")]
    pub value: Bytes,
    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub durable: durable::DurableStore,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
