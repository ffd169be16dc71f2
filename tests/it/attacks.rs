//! What attackers and accidents do, played against the real program: a case is a row of a table or a test of its own, and
//! begins with its number. What cannot be built on this machine is reported as skipped.
//!
//! Some stand elsewhere: protocol-001, 003, 052 and 056 in `process`, fs-fault-003 with all other system errors.

mod checks;
mod crash;
mod display;
mod files;
mod injection;
mod paths;
mod protocol;
mod scene;
mod secrets;
mod shell;
mod streams;
mod tracer;

/// Reports a case that cannot be built here.
fn skip(case: &str, why: &str) {
    report(&format!("skipped {case}: {why}"));
}

/// A line past the harness, which hides what tests that pass have printed.
fn report(line: &str) {
    use std::io::Write as _;
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}
