//! Keys in the system's keyring, through each system's own program. Secrets stay behind the system's own prompt, and no
//! message bus client has to be built in.

use super::options::CommandLine;

/// The program that prints the key stored under `service`.
pub fn lookup(service: &str) -> CommandLine {
    command(
        &["secret-tool", "lookup", "service", service],
        &["security", "find-generic-password", "-w", "-s", service],
        &format!(
            "(New-Object {VAULT}).Retrieve({}, 'tandem').Password",
            literal(service)
        ),
    )
}

/// The program that asks for a key and stores it under `service`.
pub fn store(service: &str) -> CommandLine {
    let label = format!("--label=tandem-{service}");
    command(
        &["secret-tool", "store", &label, "service", service],
        &[
            "security",
            "add-generic-password",
            "-U",
            "-s",
            service,
            "-a",
            "tandem",
            "-w",
        ],
        &format!(
            "(New-Object {VAULT}).Add((New-Object Windows.Security.Credentials.PasswordCredential({}, 'tandem', \
             (Read-Host 'Key'))))",
            literal(service)
        ),
    )
}

/// The Credential Manager of Windows, as its PowerShell knows it.
const VAULT: &str = "Windows.Security.Credentials.PasswordVault";

/// A text as PowerShell reads it.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace(['\'', '\u{2018}', '\u{2019}'], "''"))
}

fn command(linux: &[&str], macos: &[&str], windows: &str) -> CommandLine {
    if cfg!(windows) {
        let load = format!(
            "[void][{VAULT}, Windows.Security.Credentials, ContentType = WindowsRuntime]; {windows}"
        );
        return CommandLine::of(&["powershell.exe", "-NoLogo", "-NoProfile", "-Command", &load]);
    }
    CommandLine::of(if cfg!(target_os = "macos") {
        macos
    } else {
        linux
    })
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn keyring_names_are_not_interpreted() {
        assert_eq!(
            literal("work'); Remove-Item x; ('"),
            "'work''); Remove-Item x; ('''"
        );
    }
}
