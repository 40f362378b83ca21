//! The command line.

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
    /// Profile allocation sites: accesses to each site's objects, or survival in a Java program
    #[command(after_help = "Examples:\n  \
        varve profile programs/dist/graph.wasm -o graph.sites -- pagerank --scale 10\n  \
        varve profile programs/dist/graph.wasm -o graph.sites --add -- als\n  \
        varve profile -o app.sites -- java -jar app.jar\n  \
        varve profile -o app.sites --pid 4711 --for 60s\n  \
        varve sites graph.sites\n  \
        varve run programs/dist/graph.wasm --profile graph.sites --plan cgz-f \\\n      \
            --machine optane-6242 -- pagerank --scale 14")]
    Profile(ProfileArgs),
    /// Show a site profile: allocations of each site, and the memory that suits them
    #[command(after_help = "Examples:\n  \
        varve sites graph.sites\n  \
        varve sites graph.sites --by bytes --all\n  \
        varve sites graph.sites --heuristic cgz-f,cgz-f:threshold=4,knapsack:capacity=0.1\n  \
        varve sites graph.sites --json\n  \
        varve sites app.sites          (allocation sites of Java, by what survives)")]
    Sites(SitesArgs),
    /// Record a program's memory accesses for replay, inspect a trace, or import another tool's
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
    /// List, show, check and calibrate machine models; diagnose this machine
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
    /// Tier the memory of running programs: a page policy promotes hot pages and demotes cold ones
    #[command(after_help = tier::EXAMPLES)]
    Tier(tier::TierArgs),
    /// Show memory use by tier and process, migration rates, and the last decisions of `varve tier`
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArgs),
    /// Schedule programs that share a machine: memory, threads and order of each
    #[command(after_help = "Examples:\n  \
        varve jobs profile examples/group1.toml --machine optane-6230n\n  \
        varve jobs plan examples/group1.toml --machine optane-6230n\n  \
        varve jobs plan examples/group1.toml --emit slurm --nodes fast=0,slow=2 > job.sh\n  \
        varve jobs run examples/group1.toml --machine optane-6230n\n  \
        varve jobs profile examples/group1.toml --live --demands here.json\n  \
        varve jobs run examples/group1.toml --live --demands here.json")]
    Jobs(JobsArgs),
    /// Explain a heap plan, page policy, machine or workload, with a picture
    #[command(
        after_help = "Examples:\n  varve explain pima\n  varve explain plan kg-n:outside=slow\n  varve explain machine cxl-spr"
    )]
    Explain(ExplainArgs),
    /// List the page policies and their parameters
    #[command(after_help = "Examples:\n  varve policy\n  varve policy dynamic")]
    Policy(ListArgs),
    /// List the heap plans for WebAssembly, native and Java programs, and their parameters
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
    /// Run YCSB workloads on a store in this process, or on a server that speaks memcached's protocol
    #[command(after_help = "Examples:\n  \
        varve ycsb\n  \
        varve ycsb a c --store fhmap,hbtree --records 1000000 --operations 500000\n  \
        varve ycsb c --server 127.0.0.1:11211 --connections 8 --pipeline 16")]
    Ycsb(YcsbArgs),
    /// Check, inspect, compact, back up, salvage or export a durable region
    #[command(after_help = "Examples:\n  \
        varve durable check accounts.region\n  \
        varve durable info accounts.region\n  \
        varve durable compact accounts.region\n  \
        varve durable export accounts.region > accounts.jsonl")]
    Durable(DurableArgs),
    /// Repeat a paper's experiments and print published results beside ours
    #[command(args_conflicts_with_subcommands = true, after_help = study::EXAMPLES)]
    Study(StudyArgs),
    /// Run a matrix of runs that differ in some options: shard, resume and merge them
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        after_help = sweep::EXAMPLES
    )]
    Sweep(SweepArgs),
    /// Print completions of a shell for this command line
    #[command(after_help = "Examples:\n  \
        varve completions bash > /usr/share/bash-completion/completions/varve\n  \
        varve completions zsh > ~/.zfunc/_varve\n  \
        varve completions fish > ~/.config/fish/completions/varve.fish")]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write manual pages into a folder: varve.1, and one for each command
    #[command(after_help = "Example:\n  varve man /usr/local/share/man/man1")]
    Man {
        /// The folder, which is made if it does not exist
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
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
    /// A jar and its dependencies; Java source files, or folders of them; or the pom.xml of a project
    #[arg(required = true, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// Write the module to this file [default: named after the program, in the current folder]
    #[arg(short, long, value_name = "FILE.wasm")]
    pub output: Option<PathBuf>,
    /// Main class [default: the one that a manifest, the project or the sources name]
    #[arg(long, value_name = "CLASS")]
    pub main: Option<String>,
    /// Keep the classes of this region's objects even if the sources no longer use them; may be repeated
    #[arg(long, value_name = "FILE")]
    pub region: Vec<PathBuf>,
    /// Write Maven's output to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub struct ProfileArgs {
    /// A WebAssembly program, or the trace of a native one; with --from, a file of another tool
    pub program: Option<String>,
    /// Build the profile from another tool's output for a native program: the file of heaptrack, the text of `perf script` for
    /// samples of `perf mem`, or DAMON's records
    #[arg(long, value_enum, value_name = "TOOL")]
    pub from: Option<ProfileFrom>,
    /// With --from perf or damon: the mappings of the recorded process, a copy of its /proc/PID/maps [default: FILE.vmas or
    /// FILE.maps beside the file]
    #[arg(long, value_name = "FILE", requires = "from")]
    pub maps: Option<PathBuf>,
    /// Write the profile to this file
    #[arg(short, long, value_name = "FILE.sites")]
    pub output: PathBuf,
    /// Add this run's counts to an existing profile
    #[arg(long)]
    pub add: bool,
    /// Call this export, with the arguments after `--`, instead of the program's main function
    #[arg(long, value_name = "NAME")]
    pub invoke: Option<String>,
    /// Limit of the program's heap [default: 2GiB], and of its linear memories and tables [default: 4GiB]
    #[arg(long)]
    pub heap_max: Option<Bytes>,
    /// Initial nursery size; objects that leave it count as survivors [default: 4MiB]
    #[arg(long)]
    pub nursery: Option<Bytes>,
    /// Compiler level: baseline, optimizing or auto; all yield the same counts
    #[arg(long, value_name = "TIER")]
    pub tier: Option<varve_runtime::Tier>,
    #[command(flatten)]
    pub live: SamplingArgs,
    #[command(flatten)]
    pub java: JavaSampled,
    #[command(flatten)]
    pub sandbox: Sandbox,
    /// Machine model for the access costs of a native program's sites: a name from `varve machine list`, or a file [default:
    /// cxl-spr]
    #[arg(short, long)]
    pub machine: Option<String>,
    /// Record windows spread over a command's run, this share of it in total, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = run::model::share, conflicts_with_all = ["from", "live", "invoke"])]
    pub sample: Option<f64>,
    /// Record and replay the whole of a command's run, however long it is. Otherwise a run of more than 200 million instructions is
    /// known by its beginning and by windows of the rest
    #[arg(long, conflicts_with_all = ["from", "live", "invoke", "sample"])]
    pub whole: bool,
    /// The arguments of a WebAssembly program; or, without PROGRAM, a command
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

/// Options for sampling instead of tracing.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Sample a native program on this machine at nearly full speed: a command, or a process with --pid
    #[arg(long, conflicts_with_all = ["from", "invoke", "heap_max", "nursery", "tier", "machine"])]
    pub live: bool,
    /// Process to sample; it keeps running afterwards
    #[arg(long, value_name = "NUMBER")]
    pub pid: Option<u32>,
    /// Stop sampling after this time, such as 10s, and ask a command to end [default: at the program's end, or at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = run::sandbox::time)]
    pub time: Option<std::time::Duration>,
    /// Scans for accessed pages per second [default: 20]
    #[arg(long, value_name = "N", value_parser = rate, requires = "live")]
    pub rate: Option<f64>,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(n) if (0.01..=200.0).contains(&n) => Ok(n),
        _ => Err("a rate is 0.01 to 200 scans per second".into()),
    }
}

/// Tools whose files become profiles.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum ProfileFrom {
    /// The file of heaptrack, uncompressed: allocations, without accesses
    Heaptrack,
    /// `perf script` of memory samples: accesses, without allocations
    Perf,
    /// The file of `damo record`, or its text (`perf script`, `damo report raw`): access frequencies of addresses, without
    /// allocations
    Damon,
}

/// Sort keys for sites.
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
    /// Bytes that left the nursery, or reached the old generation
    Old,
}

/// Options for sampling the allocations of Java programs.
#[derive(clap::Args, Debug)]
pub struct JavaSampled {
    /// Sample Java allocations of a script that starts a Java virtual machine. `java` itself, and a process that runs one, are
    /// recognized without this option
    #[arg(long, conflicts_with_all = ["from", "invoke", "heap_max", "nursery", "tier", "machine", "rate"])]
    pub java: bool,
    /// Mean bytes that a Java thread allocates between two samples; 0 samples every object [default: 512KiB]
    #[arg(long, value_name = "BYTES", value_parser = interval, conflicts_with_all = ["from", "invoke", "heap_max", "nursery", "tier", "machine", "rate"])]
    pub interval: Option<Bytes>,
}

/// Java virtual machines take an interval of 31 bits.
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
    /// Sort key, largest first [default: accesses; for a Java program old]
    #[arg(long, value_enum)]
    pub by: Option<SitesBy>,
    /// Heap plans that use profiles, with parameters, separated by commas [default: all]
    #[arg(long, value_name = "PLANS")]
    pub heuristic: Option<String>,
    /// Fast memory for a native program: a share of its peak footprint, such as 25%, or a size, such as 8GiB [default: 25%]
    #[arg(long, value_name = "SIZE|PERCENT")]
    pub fast: Option<varve_run::request::Fast>,
    /// Number of sites to show
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub top: usize,
    /// Show all sites
    #[arg(long)]
    pub all: bool,
    /// Print JSON, with all data of all sites
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args, Debug)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub action: Option<TraceAction>,
    /// Write the trace to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not record allocation call sites; slightly faster
    #[arg(long)]
    pub no_sites: bool,
    /// Record accesses only between the program's own marks: from its lookup of the file `/varve/record/begin` to its lookup of
    /// `/varve/record/end`. Neither file needs to exist
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
    /// Print a trace's operations, threads, footprint and allocation sites
    Info {
        /// The trace
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Convert another tool's trace to Varve's format
    Import {
        /// Its format: lackey, champsim, memtrace or drmemtrace
        #[arg(long)]
        from: String,
        /// The other tool's trace
        file: PathBuf,
        /// Write the converted trace to this file
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
    /// Report what Varve can do on this machine, how to enable the rest, and errors in the memory set-up
    #[arg(long)]
    pub doctor: bool,
    /// With --doctor: repair the memory set-up, after showing the changes and asking
    #[arg(long, requires = "doctor", conflicts_with_all = ["undo", "root"])]
    pub fix: bool,
    /// With --doctor: revert what --fix changed since boot; settings that were changed again later stay
    #[arg(long, requires = "doctor")]
    pub undo: bool,
    /// With --fix: do not ask
    #[arg(long, requires = "fix")]
    pub yes: bool,
    /// With --doctor: judge another machine's set-up from a copy of its /sys and /proc in this folder
    #[arg(
        long,
        requires = "doctor",
        value_name = "FOLDER",
        conflicts_with = "undo"
    )]
    pub root: Option<PathBuf>,
    /// With --doctor: interleave weights from a file with the output of `varve machine calibrate here --json` [default: from
    /// the firmware's bandwidths]
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
        /// Name, file, or `here` for this machine
        machine: String,
        /// Print the whole file, with the source of every number
        #[arg(long)]
        toml: bool,
    },
    /// Check a machine file; print every problem with its line and a remedy
    Check {
        /// Name or file [default: all built-in machines]
        machine: Option<String>,
    },
    /// Run MemBench on the model with 1, 2, ... hot DIMMs and print how many DIMMs each bandwidth needs: the model for `varve
    /// run --trays model=...`
    Governor {
        /// Name or file of a machine whose channels are not interleaved
        machine: String,
        /// Run fewer loads, at a smaller size
        #[arg(long)]
        quick: bool,
    },
    /// Run the usual latency and bandwidth curves on the model and compare them with published ones; with `here`, measure them
    /// on this machine and compare the model with them
    Calibrate {
        /// Name, file, or `here`
        machine: String,
        /// Measure all points instead of the few most informative ones
        #[arg(long)]
        full: bool,
        /// With `here`: measure for some seconds only
        #[arg(long, conflicts_with = "full")]
        quick: bool,
    },
    /// Measure how programs reduce one another's bandwidth: reads and writes, sequential and random, with 1 to 10 threads in
    /// either memory, each paired with each
    Interference {
        /// Name, file, or `here`
        machine: String,
        /// Use two thread counts instead of five
        #[arg(long)]
        quick: bool,
        /// With `here`: nodes of fast and slow memory, such as fast=0,slow=1 [default: detected]
        #[arg(long, value_name = "NODES")]
        nodes: Option<String>,
        /// Write a page, JSON and Parquet into this folder
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Concurrent runs on the model; 0: one per core of this host
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
    /// Measure and classify the memory demands of each program of a group
    Profile(GroupArgs),
    /// Print the memory, threads and order that each program of a group should have, and why
    Plan(PlanArgs),
    /// Run a group as Linux would, and with each optimization, and compare
    Run(GroupArgs),
    /// Perform the accesses of a workload on this machine's memory; `run --live` starts this for programs with a workload and
    /// no command
    #[command(hide = true)]
    Exercise {
        /// The workload, `NAME:key=value,...`
        workload: String,
    },
}

/// The scheduler that a schedule is printed for.
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
    /// Print the schedule for another scheduler; what it cannot express is noted in that file and on standard error
    #[arg(long, value_enum, value_name = "FOR", conflicts_with_all = ["json", "out"], group = "places")]
    pub emit: Option<Scheduler>,
}

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("places").args(["live"]).multiple(true)))]
pub struct GroupArgs {
    /// Group file
    #[arg(value_name = "GROUP.toml")]
    pub group: PathBuf,
    /// The modelled machine: a name from `varve machine list`, or a file
    #[arg(short, long, default_value = "optane-6230n", conflicts_with = "live")]
    pub machine: String,
    /// Measure or run on this machine, not on the model
    #[arg(long)]
    pub live: bool,
    /// With --live: nodes of fast and slow memory, such as fast=0,slow=1 [default: detected]. With `plan --emit`: nodes of the
    /// machine that runs the schedule
    #[arg(long, requires = "places", value_name = "NODES")]
    pub nodes: Option<String>,
    /// With --live or `plan --emit`: folder for the programs' output
    #[arg(long, requires = "places", value_name = "FOLDER")]
    pub logs: Option<PathBuf>,
    /// With --live: keep each program's measured demands in this file, and do not measure an unchanged program again; `profile`
    /// measures all again
    #[arg(long, requires = "live", value_name = "FILE")]
    pub demands: Option<PathBuf>,
    /// With --live: runs of each strategy, interleaved; medians are compared [default: 3 with several strategies, else 1]
    #[arg(long, requires = "live", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: Option<u32>,
    /// Strategies: linux, placement, threads, order, sums such as placement+order, or all; several separated by commas
    /// [default: the baseline, each alone, and all together]
    #[arg(short, long, value_delimiter = ',')]
    pub strategy: Vec<varve_jobs::Strategy>,
    /// Divide all sizes and times of workloads by this power of two [default: 512; 1 if no program is a workload]
    #[arg(long)]
    pub scale: Option<u32>,
    /// Smaller and coarser; takes some seconds
    #[arg(long, conflicts_with = "scale")]
    pub quick: bool,
    /// Compare with the best of all schedules (groups of at most four programs)
    #[arg(long, conflicts_with = "live")]
    pub oracle: bool,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write a page, JSON and Parquet into this folder
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Concurrent runs on the model; 0: one per core of this host
    #[arg(long, default_value_t = 0, conflicts_with = "live")]
    pub jobs: usize,
    /// Keep finished runs in this folder; `none` keeps nothing
    #[arg(long, value_name = "FOLDER", conflicts_with = "live")]
    pub keep: Option<PathBuf>,
}

/// Kinds of things that can be explained.
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
    /// Name, with parameters if it has some, such as kg-w:old=kept; or a kind (plan, policy, machine or workload), followed by
    /// the name
    #[arg(value_name = "NAME|KIND")]
    pub first: String,
    /// Name, if the kind is given first
    pub name: Option<String>,
}

#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// Show this one, with its parameters
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args, Debug)]
pub struct ServeArgs {
    /// Data structure: fhmap (a functional hash map), pbtree (a B+ tree), hbtree (a B+ tree of which only the leaves are
    /// durable)
    #[arg(long, default_value_t)]
    pub store: varve_serve::Kind,
    /// Address and port; with port 0 the system chooses one [default: 127.0.0.1:11211, or none with --socket]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// Listen on this Unix socket; with --listen, on both
    #[arg(short, long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Permissions of the socket, as a file mode in octal digits
    #[arg(short = 'a', long, value_name = "MODE", default_value = "700", value_parser = mode, requires = "socket")]
    pub socket_mode: u32,
    /// Require clients to authenticate with a name and password from this file, which has lines of name:password
    #[arg(short = 'Y', long, value_name = "FILE")]
    pub auth_file: Option<PathBuf>,
    /// Threads, each with a store for its part of the keys [default: 1, or the number that the region files of --durable were
    /// made with]
    #[arg(short = 't', long, value_name = "N")]
    pub shards: Option<usize>,
    /// Memory limit for all values, with their keys and 160 bytes for each
    #[arg(short, long, default_value = "1GiB")]
    pub memory_limit: Bytes,
    /// Eviction at --memory-limit, after expired values: lru evicts values that were not used recently; off evicts none, and
    /// new values are refused
    #[arg(long, value_enum, default_value_t)]
    pub evict: Evict,
    /// Maximum size of a value
    #[arg(short = 'I', long, default_value = "1MiB")]
    pub max_item_size: Bytes,
    /// Maximum number of connections
    #[arg(short, long, default_value = "4096", value_parser = connections)]
    pub connections: usize,
    /// Memory limit for pending requests and responses, of all connections together
    #[arg(long, default_value = "64MiB")]
    pub buffers: Bytes,
    /// Close connections that send no request for this long; 0: never
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = time_out)]
    pub idle_timeout: f64,
    /// Close connections that transfer less than 4 KiB of a begun request or an unread response in this time; 0: never
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = time_out)]
    pub stall_timeout: f64,
    /// Limit of the program's heap [default: 1.5 times --memory-limit, and 128MiB; with --durable, at most what leaves
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
    seconds.filter(fits).ok_or_else(|| {
        format!("`{text}` is not a number of seconds: at least 0.01, or 0 for never")
    })
}

/// A file's mode.
fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|m| *m <= 0o777);
    mode.ok_or_else(|| format!("`{text}` is not a mode such as 700 or 770"))
}

/// Eviction when values reach the memory limit.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Evict {
    /// Evict nothing
    #[default]
    Off,
    /// Evict values that were not used recently
    Lru,
}

fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a server needs at least 1 connection".into()),
        Ok(n) => Ok(n),
        Err(e) => Err(format!("{e}")),
    }
}

#[derive(clap::Args, Debug)]
pub struct YcsbArgs {
    /// Workloads: a, b, c, d, f [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<varve_serve::ycsb::Workload>,
    /// Stores to run in this process: fhmap, pbtree, hbtree, or outside, a native B+ tree behind serialization [default: all]
    #[arg(long, value_delimiter = ',', conflicts_with = "server")]
    pub store: Vec<varve_serve::Kind>,
    /// Server to run them on; its records are written first
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub server: Option<std::net::SocketAddr>,
    /// With --server: connections, one thread each
    #[arg(long, default_value_t = 1, requires = "server")]
    pub connections: u64,
    /// With --server: requests in flight on each connection
    #[arg(long, default_value_t = 1, requires = "server")]
    pub pipeline: u64,
    /// Number of records
    #[arg(long, default_value_t = 10_000)]
    pub records: u64,
    /// Operations of each workload
    #[arg(long, default_value_t = 50_000)]
    pub operations: u64,
    /// Size of a value
    #[arg(long, default_value = "1000")]
    pub value: Bytes,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub durable: durable::DurableStore,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
