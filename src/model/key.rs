//! Keys and certificates outside the configuration.
#![expect(
    clippy::disallowed_methods,
    reason = "the user's own key program and CA file, named in the user's own configuration"
)]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::Certificate;
use secrecy::SecretString;
use tokio::process::Command;

use super::{ErrorCode, Failure, fault};
use crate::domain::find_program;

/// Key programs may ask for a passphrase.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs a program that prints a key on its first line.
pub(super) async fn run(command: &[String]) -> Result<SecretString, Failure> {
    let failed = |why: &str| {
        let program = command.first().map_or("", String::as_str);
        Failure::new(
            ErrorCode::Auth,
            format!("api-key-command {program:?} {why}"),
        )
    };
    let (program, arguments) = command.split_first().ok_or_else(|| failed("is empty"))?;
    // A program that exists only in a workspace, such as a script of the user's own, is run after all.
    let is_name = !program.contains(std::path::is_separator);
    let found = is_name.then(|| find_program(program)).flatten();
    let run = Command::new(found.unwrap_or_else(|| program.into()))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(TIMEOUT, run)
        .await
        .map_err(|_| failed("did not end within 60 s"))?
        .map_err(|error| failed(&format!("cannot be started: {error}")))?;
    if !output.status.success() {
        return Err(failed(&format!("failed: {}", output.status)));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed("printed no text"))?;
    match text.lines().next().map(str::trim) {
        Some(key) if !key.is_empty() => Ok(key.into()),
        _ => Err(failed("printed nothing")),
    }
}

/// The certificate authorities in a PEM file.
pub(super) fn certificates(file: &Path) -> Result<Vec<Certificate>, Failure> {
    let failed = |why: String| fault::invalid(&format!("ca-file {}: {why}", file.display()));
    let pem = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if certificates.is_empty() => {
            Err(failed("it has no PEM certificate".to_owned()))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(failed(error.to_string())),
    }
}
