//! The VS Code extension of this version, which a released program carries: the editor's own command line installs and
//! removes it.

#![expect(
    clippy::disallowed_methods,
    reason = "the editor installs its extensions, which are in no workspace"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// The package; a program that was not built for a release has none.
#[cfg(feature = "vsix")]
pub const PACKAGE: Option<&[u8]> = Some(include_bytes!(env!("TANDEM_VSIX")));
/// The package; a program that was not built for a release has none.
#[cfg(not(feature = "vsix"))]
pub const PACKAGE: Option<&[u8]> = None;

/// Its name for the editor: publisher and extension.
pub const NAME: &str = "tandem.tandem";

/// Installs the package in `editor`.
///
/// # Errors
/// This program has no package, or the editor refuses it; the error is the editor's message.
pub fn install(editor: &Path, package: Option<&[u8]>) -> anyhow::Result<()> {
    let package = package.context(
        "this program was built without the extension; build it: npm --prefix editors/vscode ci && \
         npm --prefix editors/vscode run package && code --install-extension editors/vscode/tandem.vsix",
    )?;
    let mut file = tempfile::Builder::new()
        .prefix("tandem-")
        .suffix(".vsix")
        .tempfile()?;
    file.write_all(package)?;
    // The editor opens it by name, which Windows refuses while it is open for writing.
    let file = file.into_temp_path();
    ask(
        editor,
        &["--install-extension", &file.to_string_lossy(), "--force"],
    )
}

/// Removes the extension from `editor`.
///
/// # Errors
/// The editor's message if it refuses.
pub fn remove(editor: &Path) -> anyhow::Result<()> {
    ask(editor, &["--uninstall-extension", NAME])
}

fn ask(editor: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(editor)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let output = output.with_context(|| format!("starting {}", editor.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!(
        "{} {}: {}",
        editor.display(),
        arguments.first().copied().unwrap_or_default(),
        said.trim()
    )
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::*;

    /// An editor that records what it is asked.
    fn editor(folder: &Path, end: &str) -> PathBuf {
        let program = folder.join("code");
        let text = format!(
            "#!/bin/sh\necho \"$1\" >>{0}/asked\ncp \"$2\" {0}/package 2>/dev/null\n{end}\n",
            folder.display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn the_editor_installs_and_removes_the_extension() {
        let folder = tempfile::tempdir().unwrap();
        let program = editor(folder.path(), "exit 0");
        install(&program, Some(b"package")).unwrap();
        remove(&program).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("asked")).unwrap(),
            "--install-extension\n--uninstall-extension\n"
        );
        assert_eq!(fs::read(folder.path().join("package")).unwrap(), b"package");
    }

    #[test]
    fn installation_failures_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let program = editor(folder.path(), "echo 'needs VS Code ^1.91.0' >&2; exit 1");
        let error = install(&program, Some(b"package")).unwrap_err().to_string();
        assert!(error.contains("needs VS Code ^1.91.0"), "{error}");
        assert!(
            install(&program, None)
                .unwrap_err()
                .to_string()
                .contains("built without the extension")
        );
        assert!(
            install(&folder.path().join("gone"), Some(b"x"))
                .unwrap_err()
                .to_string()
                .contains("gone")
        );
    }
}
