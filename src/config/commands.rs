//! The person's own slash commands: `commands/NAME.md` in the folder of the user's configuration.

use std::io::Read as _;
use std::path::Path;

/// Longer files are ignored, in bytes.
const LONGEST: u64 = 64 * 1024;
/// At most this many are offered.
const MOST: usize = 100;
/// Replaced by the text after the command.
const ARGUMENTS: &str = "$ARGUMENTS";

/// A prompt with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommand {
    /// The name after the slash.
    pub name: String,
    /// The prompt.
    text: String,
}

impl UserCommand {
    /// Its first line, as a description.
    pub fn description(&self) -> &str {
        let mut lines = self
            .text
            .lines()
            .map(|line| line.trim_start_matches('#').trim());
        lines.find(|line| !line.is_empty()).unwrap_or(&self.name)
    }

    /// Whether it contains `$ARGUMENTS`.
    pub fn takes_arguments(&self) -> bool {
        self.text.contains(ARGUMENTS)
    }

    /// The prompt with the arguments inserted, or appended if it has no placeholder.
    pub fn prompt(&self, arguments: &str) -> String {
        if self.takes_arguments() {
            self.text.replace(ARGUMENTS, arguments)
        } else {
            format!("{}\n\n{arguments}", self.text.trim_end())
                .trim_end()
                .to_owned()
        }
    }
}

/// The commands in a folder, by name. Files that cannot be read or have an unusual name are skipped.
pub(super) fn read(folder: &Path) -> Vec<UserCommand> {
    let Ok(files) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut commands: Vec<_> = paths.filter_map(|path| command(&path)).collect();
    commands.sort_by(|one, other| one.name.cmp(&other.name));
    commands.truncate(MOST);
    commands
}

fn command(path: &Path) -> Option<UserCommand> {
    let name = path.file_stem()?.to_str()?;
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path)
        .ok()?
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .ok()?;
    let fits = text.len() as u64 <= LONGEST && !text.trim().is_empty();
    fits.then(|| UserCommand {
        name: name.to_owned(),
        text,
    })
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests write the files themselves"
)]
mod tests {
    use super::*;

    #[test]
    fn command_files_are_named_by_their_file_names() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "fix.md",
                "# Fix an issue\nLook at $ARGUMENTS, then fix $ARGUMENTS.",
            ),
            ("a-b.md", "\nSay it briefly.\n"),
            ("not plain.md", "x"),
            ("empty.md", " \n"),
            ("notes.txt", "x"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        std::fs::write(folder.path().join("long.md"), "x".repeat(70_000)).unwrap();
        let commands = read(folder.path());
        assert_eq!(
            commands
                .iter()
                .map(|command| command.name.as_str())
                .collect::<Vec<_>>(),
            ["a-b", "fix"]
        );
        assert_eq!(commands[0].description(), "Say it briefly.");
        assert_eq!(commands[0].prompt("why?"), "\nSay it briefly.\n\nwhy?");
        assert_eq!(commands[1].description(), "Fix an issue");
        assert_eq!(
            commands[1].prompt("#7"),
            "# Fix an issue\nLook at #7, then fix #7."
        );
        assert_eq!(read(&folder.path().join("nowhere")), []);
    }
}
