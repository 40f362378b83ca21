//! Shares of work: each process of several does its own.

/// One of several shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub own: usize,
    pub of: usize,
}

impl Share {
    /// Those of a list that are its own.
    pub fn retain<T>(self, list: &mut Vec<T>) {
        let mut at = 0;
        list.retain(|_| {
            at += 1;
            (at - 1) % self.of == self.own
        });
    }
}

/// Reads 3/16, or `auto` for the task of a job array of Slurm.
///
/// # Errors
/// It is not a share, or this is not such a task.
pub fn share(text: &str) -> Result<Share, String> {
    let of_array = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let share = match text {
        "auto" => {
            let first = of_array("SLURM_ARRAY_TASK_MIN").unwrap_or(0);
            let own = of_array("SLURM_ARRAY_TASK_ID").and_then(|task| task.checked_sub(first));
            own.zip(of_array("SLURM_ARRAY_TASK_COUNT"))
        }
        text => text
            .split_once('/')
            .and_then(|(own, of)| own.parse().ok().zip(of.parse().ok())),
    };
    match share {
        Some((own, of)) if own < of => Ok(Share { own, of }),
        _ if text == "auto" => Err(
            "--shard auto: this is not a task of a job array of Slurm (SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT); write a share such as 3/16"
                .into(),
        ),
        _ => Err(format!("--shard {text}: write a share such as 3/16, from 0/16 to 15/16")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_of_a_list_and_none_twice() {
        let mut all = Vec::new();
        for own in 0..3 {
            let mut list: Vec<u32> = (0..10).collect();
            share(&format!("{own}/3")).unwrap().retain(&mut list);
            all.extend(list);
        }
        all.sort();
        assert_eq!(all, (0..10).collect::<Vec<u32>>());
        for wrong in ["3/3", "x", "1/", "-1/3"] {
            assert!(
                share(wrong).unwrap_err().contains("such as 3/16"),
                "{wrong}"
            );
        }
    }
}
