//! Scripts that share work out to many processes or machines.

use crate::ui::quoted;
use std::path::Path;

/// The scheduler that runs the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum For {
    /// A job array of Slurm, for `sbatch`
    Slurm,
    /// An indexed Job of Kubernetes, for `kubectl apply`
    K8s,
    /// Processes beside each other
    Shell,
}

/// Work that can be shared: the command that does all of it, to which `--shard` and `--merge` are added.
pub struct Shared<'a> {
    pub name: String,
    /// Where all processes keep their results.
    pub folder: &'a Path,
    /// The words behind `varve`, with results in this folder.
    pub words: &'a dyn Fn(&Path) -> Vec<String>,
    /// How often all shares are to be made, as some of the work depends on other parts of it.
    pub rounds: usize,
}

/// Words as a shell understands them.
pub fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A path as a word of a shell.
pub fn word(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A job array of Slurm: each task runs `command` with its own share.
pub fn array(name: &str, shards: usize, log: &str, says: &str, command: &str) -> String {
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name={name}\n\
         #SBATCH --array=0-{last}\n\
         #SBATCH --output={log}\n\
         {says}\
         exec {command} --shard \"$SLURM_ARRAY_TASK_ID/{shards}\" --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
        name = quoted(name),
        last = shards - 1,
    )
}

/// The script: `shards` times the same command, each with its own share.
pub fn script(target: For, shared: &Shared, shards: usize) -> String {
    let Shared { name, folder, .. } = shared;
    let command = format!("varve {}", line(&(shared.words)(folder)));
    let merge = format!("{command} --merge");
    let last = shards - 1;
    let then = match shared.rounds {
        1 => "When all have ended:".into(),
        n => format!(
            "Some runs depend on others: give it to the scheduler {n} times, one after the other. When all have ended:"
        ),
    };
    match target {
        For::Slurm => {
            let says =
                format!("# The folder must be one that all nodes see. {then}\n#   {merge}\n");
            array(
                name,
                shards,
                &quoted(&format!("{name}-%a.log")),
                &says,
                &command,
            )
        }
        For::Shell => {
            let shares = format!(
                "for shard in $(seq 0 {last}); do\n    \
                     {command} --shard \"$shard/{shards}\" --jobs 1 &\n\
                 done\n\
                 wait\n"
            );
            match shared.rounds {
                1 => format!("#!/bin/sh\n{shares}exec {merge}\n"),
                n => format!(
                    "#!/bin/sh\n# Some runs depend on others.\nfor round in $(seq {n}); do\n{shares}done\nexec {merge}\n"
                ),
            }
        }
        For::K8s => {
            // Where a volume is mounted is no path from somewhere.
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
            job(
                &label(name),
                &folder,
                &(shared.words)(&folder),
                shards,
                &then,
            )
        }
    }
}

/// An indexed Job of Kubernetes. The image has no shell: its entry point is varve, and Kubernetes itself puts the index in.
fn job(name: &str, folder: &Path, words: &[String], shards: usize, then: &str) -> String {
    // What looks like a variable of the container is a word of ours.
    let words = words.iter().map(|word| word.replace("$(", "$$("));
    let share = [
        "--shard".into(),
        format!("$(JOB_COMPLETION_INDEX)/{shards}"),
    ];
    let args: Vec<String> = words.clone().chain(share).collect();
    let merge: Vec<String> = words.chain(["--merge".into()]).collect();
    let [args, merge] = [args, merge].map(serde_json::Value::from);
    let folder = serde_json::Value::from(folder.to_string_lossy().into_owned());
    format!(
        "# The image begins with varve, and has the files that are read; the claim `{name}` is a volume that all pods see, at the\n\
         # folder of the results. {then}\n\
         #   args: {merge}\n\
         apiVersion: batch/v1\n\
         kind: Job\n\
         metadata:\n  name: {name}\n\
         spec:\n  completions: {shards}\n  parallelism: {shards}\n  completionMode: Indexed\n  template:\n    spec:\n      \
         restartPolicy: Never\n      containers:\n      - name: varve\n        image: varve\n        args: {args}\n        \
         volumeMounts:\n        - name: results\n          mountPath: {folder}\n      volumes:\n      - name: results\n        \
         persistentVolumeClaim:\n          claimName: {name}\n",
    )
}

/// A name as Kubernetes takes it: small letters, digits and `-` between them. A pod's name has the index and more behind it, and has
/// 63 characters at most.
fn label(name: &str) -> String {
    const MOST: usize = 40;
    let plain = name.to_lowercase();
    let plain = plain.chars().map(|c| match c.is_ascii_alphanumeric() {
        true => c,
        false => '-',
    });
    let short: String = plain.skip_while(|c| *c == '-').take(MOST).collect();
    match short.trim_end_matches('-') {
        "" => "varve".into(),
        short => short.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn names_are_as_kubernetes_takes_them() {
        assert_eq!(label("Budget_2.Final"), "budget-2-final");
        assert_eq!(label("_hidden-"), "hidden");
        assert_eq!(label("größe"), "gr--e");
        assert_eq!(label("..."), "varve");
        assert_eq!(label(&"a".repeat(99)).len(), 40);
        assert_eq!(label(&format!("{}-b", "a".repeat(39))), "a".repeat(39));
    }
}
