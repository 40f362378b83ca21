//! Scripts that share the points of a sweep out to many processes or machines.

use crate::ui::quoted;
use std::path::Path;

/// Who runs the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum For {
    /// A job array of Slurm, for `sbatch`
    Slurm,
    /// An indexed Job of Kubernetes, for `kubectl apply`
    K8s,
    /// Processes beside each other
    Shell,
}

/// The script: `shards` times the same command, each with its own share.
pub fn script(target: For, file: &Path, out: &Path, shards: usize) -> String {
    let word = |path: &Path| quoted(&path.to_string_lossy());
    let command = format!("varve sweep {} --out {}", word(file), word(out));
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let merge = format!("{command} --merge");
    let last = shards - 1;
    match target {
        For::Slurm => format!(
            "#!/bin/bash\n\
             #SBATCH --job-name={name}\n\
             #SBATCH --array=0-{last}\n\
             #SBATCH --output={name}-%a.log\n\
             # The folder must be one that all nodes see. When all have ended:\n\
             #   {merge}\n\
             exec {command} --shard \"$SLURM_ARRAY_TASK_ID/{shards}\" --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
            name = quoted(&stem),
        ),
        For::Shell => format!(
            "#!/bin/sh\n\
             for shard in $(seq 0 {last}); do\n    \
                 {command} --shard \"$shard/{shards}\" --jobs 1 &\n\
             done\n\
             wait\n\
             exec {merge}\n"
        ),
        For::K8s => {
            let name: String = stem
                .to_lowercase()
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect();
            // Where a volume is mounted is no path from somewhere.
            let out = std::path::absolute(out).unwrap_or_else(|_| out.to_path_buf());
            let command = format!("varve sweep {} --out {}", word(file), word(&out));
            let shell = format!("exec {command} --shard \"$JOB_COMPLETION_INDEX/{shards}\"");
            let shell = serde_json::Value::from(shell);
            format!(
                "# The image has varve and the files of the sweep; the claim `sweep` is a volume that all pods see, at the\n\
                 # folder of the results. When all have ended:\n\
                 #   {command} --merge\n\
                 apiVersion: batch/v1\n\
                 kind: Job\n\
                 metadata:\n  name: {name}\n\
                 spec:\n  completions: {shards}\n  parallelism: {shards}\n  completionMode: Indexed\n  template:\n    spec:\n      \
                 restartPolicy: Never\n      containers:\n      - name: varve\n        image: varve\n        command: [\"sh\", \"-c\", {shell}]\n        \
                 volumeMounts:\n        - name: results\n          mountPath: {}\n      volumes:\n      - name: results\n        \
                 persistentVolumeClaim:\n          claimName: sweep\n",
                serde_json::Value::from(out.to_string_lossy().into_owned())
            )
        }
    }
}
