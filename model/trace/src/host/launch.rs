//! Starts a program with a probe inside.

use super::command::{Mode, RecorderOptions, Target};
use super::error::RecordError;
use super::memory::SharedMemory;
use super::tables::Tables;
use crate::arch;
use crate::schedule::Extent;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const QEMU_PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/qemu.so"));
const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.so"));
const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));

/// Passes the path of the shared memory to a compiled probe.
pub(super) const RING_VARIABLE: &str = "VARVE_RING";

/// A program that runs under a probe, and the files that it needs.
pub(super) struct Started {
    pub child: Child,
    pub compiled: bool,
    _tables: Option<Tables>,
    /// Removed when dropped; the program may load from it at any time.
    _folder: tempfile::TempDir,
}

/// Starts `target`.
pub(super) fn start(
    target: &Target,
    options: &RecorderOptions,
    memory: &SharedMemory,
) -> Result<Started, RecordError> {
    if QEMU_PLUGIN.is_empty() {
        return Err(RecordError::Host);
    }
    let compiled = match options.mode {
        Mode::Auto => target.compiled,
        Mode::Qemu => false,
        Mode::Compiled if !target.compiled => {
            return Err(RecordError::NotCompiled(target.program.clone()));
        }
        Mode::Compiled => true,
    };
    let whole = matches!(options.extent, Extent::Whole | Extent::Thinning(_));
    if compiled && (options.marked || !whole) {
        return Err(RecordError::Marked(target.program.clone()));
    }
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| RecordError::Io { path, source }
    };
    let folder = tempfile::Builder::new()
        .prefix("varve-")
        .tempdir()
        .map_err(io(&std::env::temp_dir()))?;
    // by this path rather than by number, so that the program may close and reuse its files
    let ring = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        memory.file().as_raw_fd()
    );
    let mut tables = None;
    let mut command = if compiled {
        let mut command = Command::new(&target.program);
        command.env(RING_VARIABLE, &ring);
        command
    } else {
        let qemu = find_qemu()?;
        let (plugin, shim) = (
            folder.path().join("varve-qemu.so"),
            folder.path().join("varve-shim.so"),
        );
        std::fs::write(&plugin, QEMU_PLUGIN).map_err(io(&plugin))?;
        let mut words: Vec<OsString> = Vec::new();
        if std::env::var_os("QEMU_CPU").is_none() {
            words.extend(["-cpu".into(), arch::QEMU_CPU.into()]);
        }
        if options.allocations {
            std::fs::write(&shim, SHIM).map_err(io(&shim))?;
            words.extend(["-E".into(), preload(&shim)]);
        }
        // the plugin starts other programs with the same words (exec)
        let ask = if options.ask_all { ",ask=all" } else { "" };
        let marked = if options.marked { ",marked=yes" } else { "" };
        let parts = match options.marked || options.extent != Extent::Whole {
            true => ",parts=yes",
            false => "",
        };
        let count = words.len() + 2;
        let tables = match options.allocations {
            true => {
                let served = Tables::serve(folder.path()).map_err(io(folder.path()))?;
                format!(",tables={}", tables.insert(served).path().display())
            }
            false => String::new(),
        };
        let for_plugin = format!(
            "{},ring={ring},words={count}{ask}{marked}{parts}{tables}",
            plugin.display()
        );
        words.extend(["-plugin".into(), for_plugin.into()]);
        let mut command = Command::new(&qemu);
        if options.allocations {
            let agent = folder.path().join("varve-agent.so");
            std::fs::write(&agent, AGENT).map_err(io(&agent))?;
            command.env(JAVA_OPTIONS, with_agent(&agent));
        }
        command.args(&words);
        command.arg(&target.program);
        command
    };
    command.args(&target.args);
    // SAFETY: between fork and exec only one system call is made, which allocates nothing.
    unsafe {
        command.pre_exec(move || {
            // the program must not outlive its recorder
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let child = command.spawn().map_err(|source| RecordError::Io {
        path: command.get_program().into(),
        source,
    })?;
    Ok(Started {
        child,
        compiled,
        _tables: tables,
        _folder: folder,
    })
}

/// `LD_PRELOAD` for the program: ours after the user's own.
fn preload(shim: &Path) -> OsString {
    let mut value = OsString::from("LD_PRELOAD=");
    if let Some(own) = std::env::var_os("LD_PRELOAD").filter(|own| !own.is_empty()) {
        value.push(own);
        value.push(":");
    }
    value.push(shim);
    value
}

/// Options that every Java virtual machine takes, whichever process starts it: the agent after the user's own.
const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

fn with_agent(agent: &Path) -> OsString {
    let mut value = std::env::var_os(JAVA_OPTIONS).unwrap_or_default();
    if !value.is_empty() {
        value.push(" ");
    }
    value.push("-agentpath:");
    value.push(agent);
    value
}

fn find_qemu() -> Result<PathBuf, RecordError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(arch::QEMU))
        .find(|file| file.is_file())
        .ok_or(RecordError::NoQemu)
}
