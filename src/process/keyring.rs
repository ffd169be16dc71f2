//! The system's keyring: Secret Service on Linux, the keychain on macOS, through each system's own program.
#![expect(
    clippy::disallowed_methods,
    reason = "the programs of the system's keyring"
)]

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::domain::find_program;

/// A keyring may ask for a password.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The secret of an account at a service.
pub async fn lookup(service: &str, account: &str) -> Option<String> {
    if cfg!(target_os = "macos") {
        let arguments = ["find-generic-password", "-w", "-s", service, "-a", account];
        return run("security", &arguments, "").await;
    }
    let arguments = ["lookup", "service", service, "server", account];
    run("secret-tool", &arguments, "").await
}

/// Stores a secret; false if there is no keyring. It is passed on standard input: arguments are visible to other users.
pub async fn keep(service: &str, account: &str, secret: &str) -> bool {
    if cfg!(target_os = "macos") {
        let quoted =
            |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let (account, secret) = (quoted(account), quoted(secret));
        let line = format!("add-generic-password -U -s {service} -a {account} -w {secret}\n");
        return run("security", &["-i"], &line).await.is_some();
    }
    let label = format!("--label={service}");
    let arguments = ["store", &label, "service", service, "server", account];
    run("secret-tool", &arguments, secret).await.is_some()
}

/// Removes the secret of an account; whether it is gone. A person may refuse to unlock the keyring.
pub async fn forget(service: &str, account: &str) -> bool {
    let removed = if cfg!(target_os = "macos") {
        let arguments = ["delete-generic-password", "-s", service, "-a", account];
        run("security", &arguments, "").await
    } else {
        let arguments = ["clear", "service", service, "server", account];
        run("secret-tool", &arguments, "").await
    };
    removed.is_some() || lookup(service, account).await.is_none()
}

/// What a program prints; `None` if it is missing or fails.
async fn run(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let work = async {
        let mut child = Command::new(find_program(program)?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut stdin = child.stdin.take()?;
        stdin.write_all(input.as_bytes()).await.ok()?;
        drop(stdin);
        let output = child.wait_with_output().await.ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim_end().to_owned())
    };
    timeout(TIMEOUT, work).await.ok()?
}
