//! Attacks and accidents against the real program. Each case is a row of a table or a test of its own, and begins
//! with its number. Cases that cannot be built on this machine are reported as skipped.
//!
//! Some are elsewhere: protocol-001, 003, 052 and 056 in `process`, fs-fault-003 with all other system errors.

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

/// Prints a line, bypassing the harness, which hides the output of passing tests.
fn report(line: &str) {
    use std::io::Write as _;
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}
