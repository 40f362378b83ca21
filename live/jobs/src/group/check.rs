//! Constraints between the keys of a group.

use super::Group;
use varve_machine::Problem;

/// All that is wrong.
pub fn check(group: &Group) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (i, program) in group.programs.iter().enumerate() {
        let first = group.programs.iter().position(|p| p.name == program.name);
        if let Some(first) = first.filter(|&first| first < i) {
            let line = group.programs[first].line;
            let what = format!("the program in line {line} has the same name");
            problems.push(group.problem(i, "name", what, "give each its own"));
        }
        if let Some(cores) = group.cores
            && program.threads > cores
        {
            let what = format!(
                "{} threads, and the group has {cores} cores",
                program.threads
            );
            let remedy = "lower `threads`, or raise `cores`";
            problems.push(group.problem(i, "threads", what, remedy));
        }
    }
    problems.extend(cycle(group));
    problems
}

/// Programs that wait for one another for ever.
fn cycle(group: &Group) -> Option<Problem> {
    let n = group.programs.len();
    let mut ended = vec![false; n];
    // A program that waits only for programs that end will end: the remaining ones form a cycle.
    while let Some(next) =
        (0..n).find(|&i| !ended[i] && group.programs[i].after.iter().all(|&a| ended[a]))
    {
        ended[next] = true;
    }
    let start = (0..n).find(|&i| !ended[i])?;
    let mut path = vec![start];
    loop {
        let last = path[path.len() - 1];
        let next = *group.programs[last].after.iter().find(|&&a| !ended[a])?;
        if let Some(at) = path.iter().position(|&p| p == next) {
            path.push(next);
            path.drain(..at);
            break;
        }
        path.push(next);
    }
    let names: Vec<&str> = path
        .iter()
        .map(|&i| group.programs[i].name.as_str())
        .collect();
    let what = format!("none of these ever starts: {}", names.join(" waits for "));
    Some(group.problem(path[0], "after", what, "take one `after` out"))
}
