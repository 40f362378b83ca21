//! `varve build`: a Java program becomes a module, by the compiler that `programs/` uses. Maven fetches it.

mod input;
mod maven;
mod project;
mod region;
mod said;
mod startable;

use crate::args::BuildArgs;
use crate::ui::{self, Done, Failure, failed, wrong};
use input::Input;
use maven::Maven;
use project::SourceProgram;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn build(a: &BuildArgs) -> Done {
    // From here on Ctrl-C ends what is started, and the folder goes.
    ui::stop_flag();
    let input = Input::of(&a.input).map_err(wrong)?;
    let output = a.output.clone().unwrap_or_else(|| input.default_output());
    let file_name = module_name(&output)?;
    can_write(&output)?;
    let keep = region::classes(&a.region)?;
    let maven = Maven::find(a.log.as_deref()).map_err(wrong)?;
    let scratch = tempfile::Builder::new()
        .prefix("varve-build-")
        .tempdir()
        .map_err(|e| failed(format!("cannot make a temporary folder: {e}; set TMPDIR")))?;
    let program = SourceProgram::of(&input, a.main.as_deref(), &maven, scratch.path())?;
    let app = project::write(scratch.path(), &program, &file_name, maven.release, &keep)
        .map_err(|e| failed(format!("{}: {e}", scratch.path().display())))?;
    let words = ["process-classes"];
    maven.run(
        scratch.path(),
        &words,
        "compiling",
        &program.shown(scratch.path()),
    )?;
    let built = app.join("target/wasm");
    startable::check(&built.join(&file_name), &a.input[0])?;
    let map = PathBuf::from(format!("{}.map", output.display()));
    copy(&built.join(&file_name), &output)?;
    copy(&built.join(format!("{file_name}.map")), &map)?;
    let bytes = fs::metadata(&output).map_or(0, |m| m.len());
    crate::ui::message!(
        "wrote {} ({bytes} bytes), and {} for the lines of its sources",
        output.display(),
        map.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// The last part of the output's path, which the source map refers to.
fn module_name(output: &Path) -> Result<String, Failure> {
    match output.file_name().and_then(|n| n.to_str()) {
        Some(name) if name.ends_with(".wasm") => Ok(name.into()),
        _ => Err(wrong(format!(
            "{}: a module's name ends with .wasm; choose another -o",
            output.display()
        ))),
    }
}

/// Found out before minutes of work.
fn can_write(output: &Path) -> Result<(), Failure> {
    let folder = output.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match folder.is_dir() {
        true => ui::can_hold_results(folder, "-o"),
        false => Err(wrong(format!(
            "{}: no such folder; make it, or choose another -o",
            folder.display()
        ))),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let copied = fs::copy(from, to).map(drop);
    copied.map_err(|e| failed(format!("{}: {e}; choose another -o", to.display())))
}
