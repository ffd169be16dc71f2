//! Keys in the system's keyring, through each system's own program. Secrets stay behind the system's own prompt, and no
//! message bus client has to be built in.

use super::options::CommandLine;

/// The Credential Manager of Windows, as its PowerShell knows it.
const VAULT: &str = "Windows.Security.Credentials.PasswordVault";

/// The program that prints the key stored under `service`.
pub(super) fn lookup(service: &str) -> CommandLine {
    if cfg!(windows) {
        let line = format!(
            "[void][{VAULT}, Windows.Security.Credentials, ContentType = WindowsRuntime]; \
             (New-Object {VAULT}).Retrieve({}, 'tandem').Password",
            literal(service)
        );
        return CommandLine::of(&["powershell.exe", "-NoLogo", "-NoProfile", "-Command", &line]);
    }
    if cfg!(target_os = "macos") {
        return CommandLine::of(&["security", "find-generic-password", "-w", "-s", service]);
    }
    CommandLine::of(&["secret-tool", "lookup", "service", service])
}

/// A text as PowerShell reads it.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace(['\'', '\u{2018}', '\u{2019}'], "''"))
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
