//! One Run = machine + page policy + program + seed -> RunResult.
