//! The shell that reads a command line: bash where there is one. On Windows that is Git's, else PowerShell, else `cmd`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use crate::text::shell::Dialect;

/// A shell that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellProgram {
    /// The language of its command lines.
    pub dialect: Dialect,
    /// The program.
    pub program: PathBuf,
}

impl ShellProgram {
    /// The shell for commands that get these variables.
    pub(super) fn find(variables: &BTreeMap<String, String>) -> Self {
        if cfg!(windows) {
            let get = |name: &str| {
                variables
                    .get(name)
                    .map(String::as_str)
                    .filter(|value| !value.is_empty())
            };
            return find_on_windows(get, |path| Path::new(path).is_file());
        }
        // Models write for bash, so it is bash where there is one.
        let bash = ["/bin/bash", "/usr/bin/bash"]
            .into_iter()
            .find(|shell| Path::new(shell).exists());
        Self {
            dialect: Dialect::Posix,
            program: bash.unwrap_or("/bin/sh").into(),
        }
    }

    /// What runs `line`: the program and its arguments.
    ///
    /// # Errors
    /// When the shell cannot read a line like this.
    pub(super) fn argv(&self, line: &str) -> io::Result<Vec<OsString>> {
        let program = self.program.clone().into_os_string();
        let arguments: Vec<String> = match self.dialect {
            Dialect::Posix => vec!["-c".into(), line.into()],
            Dialect::PowerShell => {
                let options =
                    ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"].map(str::to_owned);
                options.into_iter().chain([power_shell(line)]).collect()
            }
            Dialect::Cmd if line.trim().contains('\n') => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "cmd reads one line; join the commands with `&&`",
                ));
            }
            // With `/s` everything between the first and the last quote is the line, as it is.
            Dialect::Cmd => {
                vec![
                    "/d".into(),
                    "/s".into(),
                    "/c".into(),
                    format!("\"chcp 65001>nul & {}\"", line.trim()),
                ]
            }
        };
        Ok(std::iter::once(program)
            .chain(arguments.into_iter().map(OsString::from))
            .collect())
    }
}

/// The line with UTF-8 as its output and, as its end, the exit code a shell would give.
fn power_shell(line: &str) -> String {
    format!(
        "[Console]::OutputEncoding = [Text.UTF8Encoding]::new($false); $ProgressPreference = 'SilentlyContinue'\n\
         {line}\n\
         if ($?) {{ exit 0 }}; if ($LASTEXITCODE) {{ exit $LASTEXITCODE }}; exit 1"
    )
}

/// Git's bash, PowerShell 7, Windows' own PowerShell, `cmd`: the first that is there. WSL's `bash.exe` is none of them,
/// since it runs in another system.
fn find_on_windows<'a>(
    get: impl Fn(&str) -> Option<&'a str>,
    is_file: impl Fn(&str) -> bool,
) -> ShellProgram {
    let found = |dialect, program: String| ShellProgram {
        dialect,
        program: program.into(),
    };
    if let Some(bash) = gits_bash(&get, &is_file) {
        return found(Dialect::Posix, bash);
    }
    let installed = get("PROGRAMFILES").map(|folder| format!("{folder}\\PowerShell\\7\\pwsh.exe"));
    let system = get("SYSTEMROOT").unwrap_or("C:\\Windows");
    let own = format!("{system}\\System32\\WindowsPowerShell\\v1.0\\powershell.exe");
    let mut shells = on_path(get("PATH"), "pwsh.exe")
        .chain(installed)
        .chain([own]);
    if let Some(shell) = shells.find(|path| is_file(path)) {
        return found(Dialect::PowerShell, shell);
    }
    found(
        Dialect::Cmd,
        get("COMSPEC").map_or_else(|| format!("{system}\\System32\\cmd.exe"), str::to_owned),
    )
}

/// The bash that came with Git.
fn gits_bash<'a>(
    get: impl Fn(&str) -> Option<&'a str>,
    is_file: impl Fn(&str) -> bool,
) -> Option<String> {
    // `git.exe` is in `Git\cmd`, `Git\bin` or `Git\mingw64\bin`.
    let git = on_path(get("PATH"), "git.exe").find(|path| is_file(path));
    let above = |path: &str, levels| {
        path.rsplitn(levels + 1, '\\')
            .nth(levels)
            .map(str::to_owned)
    };
    let beside = git
        .into_iter()
        .flat_map(|git| [above(&git, 2), above(&git, 3)])
        .flatten();
    let usual = get("PROGRAMFILES").map(|folder| format!("{folder}\\Git"));
    let own = get("LOCALAPPDATA").map(|folder| format!("{folder}\\Programs\\Git"));
    let mut places = beside
        .chain(usual)
        .chain(own)
        .map(|folder| format!("{folder}\\bin\\bash.exe"));
    places.find(|path| is_file(path))
}

/// Where the search path may have a program; folders that are not absolute are left out, since they could mean the workspace.
fn on_path(path: Option<&str>, program: &str) -> impl Iterator<Item = String> {
    let folders = path
        .unwrap_or_default()
        .split(';')
        .map(|folder| folder.trim_matches('"').trim_end_matches('\\'));
    let is_absolute = |folder: &&str| folder.starts_with("\\\\") || folder.get(1..3) == Some(":\\");
    folders
        .filter(is_absolute)
        .map(move |folder| format!("{folder}\\{program}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], files: &[&str], dialect: Dialect, program: &str) {
        let get = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| *value)
        };
        let expected = ShellProgram {
            dialect,
            program: program.into(),
        };
        assert_eq!(find_on_windows(get, |path| files.contains(&path)), expected);
    }

    #[test]
    fn windows_uses_git_bash_powershell_or_cmd() {
        let path = (
            "PATH",
            r#"tools;.;C:\Windows\System32;"D:\Apps\Git\cmd\";C:\ps"#,
        );
        let usual = ("PROGRAMFILES", r"C:\Program Files");
        let (bash, git) = (r"D:\Apps\Git\bin\bash.exe", r"D:\Apps\Git\cmd\git.exe");
        let power = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";
        check(&[path, usual], &[git, bash, power], Dialect::Posix, bash);
        check(
            &[path, usual],
            &[r"C:\Program Files\Git\bin\bash.exe"],
            Dialect::Posix,
            r"C:\Program Files\Git\bin\bash.exe",
        );
        let deep = ("PATH", r"C:\Git\mingw64\bin");
        check(
            &[deep],
            &[r"C:\Git\mingw64\bin\git.exe", r"C:\Git\bin\bash.exe"],
            Dialect::Posix,
            r"C:\Git\bin\bash.exe",
        );
        // WSL's, and one the workspace may have brought along.
        check(
            &[path],
            &[r"C:\Windows\System32\bash.exe", power, r"tools\git.exe"],
            Dialect::PowerShell,
            power,
        );
        check(
            &[path],
            &[r"C:\ps\pwsh.exe", power],
            Dialect::PowerShell,
            r"C:\ps\pwsh.exe",
        );
        check(
            &[("COMSPEC", r"D:\w\cmd.exe")],
            &[],
            Dialect::Cmd,
            r"D:\w\cmd.exe",
        );
        check(&[], &[], Dialect::Cmd, r"C:\Windows\System32\cmd.exe");
    }

    #[test]
    fn lines_are_quoted_for_each_shell() {
        let argv = |dialect, line: &str| {
            let shell = ShellProgram {
                dialect,
                program: "shell".into(),
            };
            shell.argv(line).map(|words| {
                words
                    .iter()
                    .map(|word| word.to_string_lossy().into_owned())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            argv(Dialect::Posix, "echo \"a b\"").unwrap(),
            ["shell", "-c", "echo \"a b\""]
        );
        let cmd = argv(Dialect::Cmd, "echo \"a b\" & dir\n").unwrap();
        assert_eq!(
            cmd,
            [
                "shell",
                "/d",
                "/s",
                "/c",
                "\"chcp 65001>nul & echo \"a b\" & dir\""
            ]
        );
        assert!(
            argv(Dialect::Cmd, "dir\ndel x")
                .unwrap_err()
                .to_string()
                .contains("one line")
        );
        let power = argv(Dialect::PowerShell, "Get-Item x # all").unwrap();
        assert!(
            power[5].contains("\nGet-Item x # all\n") && power[4] == "-Command",
            "{power:?}"
        );
    }
}
