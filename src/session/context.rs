//! What comes along with a prompt without being said: the instructions of `AGENTS.md`, and the files that are mentioned.
//!
//! Invariants: nothing outside the workspace is read by reference (the person's own `AGENTS.md` apart, which no
//! repository can name); what may hold secrets is left to `read_file`, which asks; what joined a message stays in it, so
//! the beginning of the requests never changes. Instructions grant no permission: those are not for the model to give.

use std::path::Path;
use std::time::Duration;

use super::{Actor, Attachment, Prompt};
use crate::workspace::{PathError, StateFolder};

const FILE: &str = "AGENTS.md";
/// The most bytes of one file of instructions.
const INSTRUCTIONS: usize = 32 << 10;
/// The most bytes of one mentioned file.
const MENTIONED: usize = 64 << 10;
/// The most files one prompt mentions.
const MENTIONS: usize = 20;
/// An editor that does not say what a file holds is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Actor {
    /// Puts into a prompt what comes along with it.
    pub(super) async fn complete(&self, prompt: &mut Prompt) {
        let mentioned: Vec<String> = prompt.parts.iter().flat_map(mentions).take(MENTIONS).collect();
        let mut files = Vec::new();
        for name in mentioned {
            files.extend(self.mentioned(&name).await);
        }
        prompt.parts.retain(|part| !matches!(part, Attachment::Mention { name } if is_in(&files, name)));
        prompt.parts.extend(files);
        if self.history.is_empty() {
            prompt.parts.splice(0..0, self.instructions().await);
        }
    }

    async fn instructions(&self) -> Vec<Attachment> {
        let mut found = Vec::new();
        if let Some(folder) = &self.own_files {
            let own = async { StateFolder::existing(folder.clone()).await?.beginning(FILE, LARGEST).await };
            found.extend(own.await.ok().map(|text| rules(&folder.join(FILE), &text)));
        }
        for root in self.workspace.roots() {
            let path = root.path().join(FILE);
            if let Ok(file) = self.workspace.resolve_path(&path)
                && let Ok(Ok(file)) = tokio::time::timeout(PATIENCE, self.workspace.peek(&file)).await
            {
                found.push(rules(&path, &file.marked()));
            }
        }
        found
    }

    /// The file of this name, or why it does not come along; `None` for what names no file.
    async fn mentioned(&self, name: &str) -> Option<Attachment> {
        let path = match self.workspace.resolve(name) {
            Ok(path) => path,
            Err(PathError::Outside { .. }) if Path::new(name).is_absolute() || name.contains("..") => {
                return Some(Attachment::Text(format!("({name} is outside the workspace and was not included)")));
            }
            Err(_) => return None,
        };
        if path.is_secret() {
            return Some(Attachment::Text(format!("({name} may hold secrets and was not included; read_file asks)")));
        }
        let read = tokio::time::timeout(PATIENCE, self.workspace.read(&path)).await.ok()?;
        let text = read.ok()?.text;
        let text = cut(&text, MENTIONED, "read_file shows the rest");
        Some(Attachment::Excerpt { name: path.display(), lines: None, text })
    }
}

/// More than is taken of the person's own instructions, so that what is cut is told.
const LARGEST: u64 = 64 << 10;

fn rules(path: &Path, text: &str) -> Attachment {
    let text = cut(text, INSTRUCTIONS, "it is longer than tandem takes");
    Attachment::Instructions { name: path.display().to_string(), text }
}

fn cut(text: &str, limit: usize, why: &str) -> String {
    let (head, rest) = text.split_at(text.floor_char_boundary(limit));
    if rest.is_empty() { head.to_owned() } else { format!("{head}\n… ({} bytes left out: {why})", rest.len()) }
}

/// The names a part of a prompt mentions: `@src/main.rs` in words, and what the editor attached by name.
fn mentions(part: &Attachment) -> Vec<String> {
    match part {
        Attachment::Mention { name } => vec![name.clone()],
        Attachment::Text(text) => text.split_whitespace().filter_map(mention).collect(),
        _ => Vec::new(),
    }
}

fn mention(word: &str) -> Option<String> {
    let name = word.trim_start_matches(['(', '[', '{', '"', '\'', '`']).strip_prefix('@')?;
    let name = name.trim_end_matches([',', ';', ':', '.', '!', '?', ')', ']', '}', '"', '\'', '`']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether the file came along.
fn is_in(files: &[Attachment], mentioned: &str) -> bool {
    files.iter().any(|file| matches!(file, Attachment::Excerpt { name, .. } if mentioned.ends_with(name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_begin_with_an_at_sign_are_mentions() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(mentions(&Attachment::Text(text.to_owned())), expected, "{text}");
        };
        check("look at @src/main.rs, (@b.rs) and \"@c d\"", &["src/main.rs", "b.rs", "c"]);
        check("mail me@example.com @ once", &[]);
    }

    #[test]
    fn what_is_too_long_is_cut_and_told() {
        assert_eq!(cut("short", 9, "why"), "short");
        assert_eq!(cut("ééé", 3, "why"), "é\n… (4 bytes left out: why)");
    }
}
