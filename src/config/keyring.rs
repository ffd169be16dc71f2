//! Keys in the system's keyring, through the program that each system has for it: secrets stay behind the system's own
//! question, and no client of a message bus has to be built in.

use super::options::CommandLine;

/// The program that prints the key kept under `service`.
#[must_use]
pub fn lookup(service: &str) -> CommandLine {
    command(&["secret-tool", "lookup", "service", service], &["security", "find-generic-password", "-w", "-s", service])
}

/// The program that asks for a key and keeps it under `service`.
#[must_use]
pub fn store(service: &str) -> CommandLine {
    let label = format!("--label=tandem-{service}");
    command(
        &["secret-tool", "store", &label, "service", service],
        &["security", "add-generic-password", "-U", "-s", service, "-a", "tandem", "-w"],
    )
}

fn command(linux: &[&str], macos: &[&str]) -> CommandLine {
    let words = if cfg!(target_os = "macos") { macos } else { linux };
    CommandLine::of(words)
}
