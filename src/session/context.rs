//! Adds context to a prompt: instructions from `AGENTS.md`, mentions (files, lines, folders, what the editor knows,
//! resources of MCP servers), and the invoked skill.
//!
//! Invariants: no file outside the workspace is read by reference (except the person's own `AGENTS.md`, which no
//! repository can name); files that may hold secrets are left to `read_file`, which requires approval; context added to
//! a message stays in it, so that the beginning of requests never changes.
//!
//! Instructions grant no permission.

mod complete;
mod mention;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use self::mention::{Mention, mentions};
use super::extensions::{Extensions, TIMEOUT};
use super::{Attachment, Focus, Prompt};
use crate::agent::text::cut;
use crate::agent::{Guidance, INSTRUCTIONS_FILE as FILE, Rules};
use crate::domain::Image;
use crate::text::display::counted;
use crate::tools;
use crate::workspace::{FileError, News, PathError, Skill, StateFolder, Workspace, WorkspacePath};
pub use complete::Completer;
pub use mention::typed_mention;

/// The maximum size of a mention, in bytes, in a window of any size.
const MENTIONED: usize = 64 << 10;
/// How much of the person's own instructions is read, in bytes: more than is used, so that truncation is noticed.
const LARGEST: u64 = 64 << 10;
/// The maximum number of mentions in one prompt.
const MENTIONS: usize = 20;
/// The maximum number of changed files that are listed.
const NEWS: usize = 20;

/// What context is made from.
pub(super) struct Context {
    pub workspace: Workspace,
    pub skills: Arc<[Skill]>,
    /// The folder of the person's own `AGENTS.md`.
    pub own_files: Option<PathBuf>,
    pub guidance: Guidance,
}

impl Context {
    /// Adds the context to a prompt; mentions have up to `most` bytes.
    pub async fn attach(&self, prompt: &mut Prompt, extensions: &mut Extensions, most: usize) {
        let (until, servers_until) = (Instant::now() + TIMEOUT, extensions.until());
        let (mut parts, mentioned) = split(std::mem::take(&mut prompt.parts));
        for part in &mut parts {
            if let Attachment::Skill(name) = part
                && let Some(skill) = self.skills.iter().find(|skill| skill.name == *name)
                && let Ok(Ok(text)) =
                    timeout_at(until, tools::load_skill(&self.workspace, skill, None)).await
            {
                *part = Attachment::Shown {
                    heading: format!("The skill {}", skill.name),
                    text,
                };
            }
        }
        let mut seen = Vec::new();
        for (mention, named) in mentioned {
            if seen.contains(&mention) || seen.len() == MENTIONS {
                continue;
            }
            if let Mention::Place { name, .. } = &mention
                && let Some(read) = extensions.resource(name, servers_until, most).await
            {
                match read {
                    Ok(read) => parts.extend(read),
                    Err(why) => parts.push(note(&format!("{name} was not included: {why}"))),
                }
            } else {
                let focus = prompt.focus.as_ref();
                let came = timeout_at(until, self.mentioned(&mention, focus, most)).await;
                parts.extend(came.ok().flatten().or(named));
            }
            seen.push(mention);
        }
        let mut rules = self.instructions().await;
        for part in &parts {
            if let Attachment::Excerpt { name, .. } = part
                && let Ok(path) = self.workspace.resolve(name)
            {
                rules.extend(self.guidance.about(&self.workspace, &path).await);
            }
        }
        parts.extend(timeout_at(until, self.news()).await.ok().flatten());
        for rules in rules {
            prompt.parts.push(Attachment::Note(rules.to_string()));
        }
        prompt.parts.extend(parts);
    }

    /// Changes by others to files the model has read, so that it does not rely on outdated text.
    async fn news(&self) -> Option<Attachment> {
        let news = self.workspace.news().await;
        if news.is_empty() {
            return None;
        }
        let mut names = Vec::new();
        for News { path, gone } in news.iter().take(NEWS) {
            let deleted = if *gone { " (deleted)" } else { "" };
            names.push(format!(
                "{}{deleted}",
                complete::shown(&self.workspace, path)
            ));
        }
        if news.len() > NEWS {
            names.push(format!("{} more", news.len() - NEWS));
        }
        Some(note(&format!(
            "changed since you read them: {}",
            names.join(", ")
        )))
    }

    /// The workspace's and the person's instructions, unless the model has them.
    async fn instructions(&self) -> Vec<Rules> {
        let mut found = Vec::new();
        if let Some(own) = &self.own_files
            && let Ok(folder) = StateFolder::existing(own.clone()).await
            && let Ok(text) = folder.beginning(FILE, LARGEST).await
            && let path = own.join(FILE)
            && self.guidance.is_new(&path)
        {
            found.push(Rules::new(&path, &text));
        }
        found.extend(self.guidance.everywhere(&self.workspace).await);
        found
    }

    /// The attachment for a mention, or a note saying why there is none; `None` for unknown mentions.
    async fn mentioned(
        &self,
        mention: &Mention,
        focus: Option<&Focus>,
        most: usize,
    ) -> Option<Attachment> {
        match (mention, focus) {
            (Mention::Place { name, lines }, _) => self.place(name, *lines, most).await,
            (Mention::Selection, Some(Focus { path, lines, .. })) => {
                self.place(path.to_str()?, Some(*lines), most).await
            }
            (Mention::Selection, None) => Some(note("the editor does not report the selection")),
            (Mention::Diagnostics, _) => Some(match tools::problems(&self.workspace).await {
                Some(text) => {
                    let heading = "Diagnostics, as the editor shows them".to_owned();
                    Attachment::Shown {
                        heading,
                        text: cut(&text, most, "fix these first"),
                    }
                }
                None => note("the editor does not report diagnostics"),
            }),
        }
    }

    async fn place(
        &self,
        name: &str,
        lines: Option<(u32, u32)>,
        most: usize,
    ) -> Option<Attachment> {
        let path = match self.workspace.resolve(name) {
            Ok(path) => path,
            Err(PathError::Outside { .. })
                if Path::new(name).is_absolute() || name.contains("..") =>
            {
                return Some(note(&format!(
                    "{name} is outside the workspace and was not included"
                )));
            }
            Err(_) => return None,
        };
        if path.is_secret() {
            return Some(note(&format!(
                "{name} may contain secrets and was not included; read it with read_file, which requires approval"
            )));
        }
        let text = match self.workspace.read(&path).await {
            Ok(file) => file.text,
            Err(FileError::Special(_, "a directory")) => return self.folder(path, most).await,
            Err(FileError::Binary(..)) => return self.image(path, name).await,
            // Only in a folder that exists: `@angular/core` is not a path.
            Err(missing @ FileError::NotFound(_))
                if name.contains('/') && path.parent().is_ok() =>
            {
                return Some(note(&missing.to_string()));
            }
            Err(_) => return None,
        };
        let (text, lines) = match lines.map(|lines| excerpt(&text, lines)) {
            None => (text, None),
            Some(Ok((text, lines))) => (text.into(), Some(lines)),
            Some(Err(problem)) => return Some(note(&format!("{name} {problem}"))),
        };
        Some(Attachment::Excerpt {
            name: complete::shown(&self.workspace, &path),
            lines,
            text: cut(&text, most, "read_file shows the rest"),
        })
    }

    /// An image; for any other file that is not text, a note saying why it is not attached.
    async fn image(&self, path: WorkspacePath, name: &str) -> Option<Attachment> {
        let bytes = path.bytes().await.ok()?;
        Some(match Image::format(&bytes) {
            Some(_) if bytes.len() > Image::LARGEST => note(&format!(
                "{name} is too large for an image and was not included"
            )),
            Some(mime_type) => Attachment::Image(Image::new(mime_type, &bytes)),
            None => note(&format!("{name} is not text and was not included")),
        })
    }

    async fn folder(&self, path: WorkspacePath, most: usize) -> Option<Attachment> {
        let heading = format!(
            "Contents of the directory {}",
            complete::shown(&self.workspace, &path)
        );
        let workspace = self.workspace.clone();
        let tree = tokio::task::spawn_blocking(move || tools::tree(&workspace, &path))
            .await
            .ok()?
            .ok()?;
        Some(Attachment::Shown {
            heading,
            text: cut(&tree, most, "list_files shows the rest"),
        })
    }
}

/// The maximum size of a mention, in bytes: a quarter of a model's window, at four bytes a token.
pub(super) fn most_of_a_mention(window: Option<u64>) -> usize {
    window
        .and_then(|window| usize::try_from(window).ok())
        .map_or(MENTIONED, |window| window.min(MENTIONED))
}

/// Splits a prompt into fixed parts and mentions: written ones, or attached by the editor, whose part stays if nothing
/// is found.
fn split(all: Vec<Attachment>) -> (Vec<Attachment>, Vec<(Mention, Option<Attachment>)>) {
    let (mut parts, mut mentioned) = (Vec::new(), Vec::new());
    for part in all {
        match &part {
            Attachment::Mention { name, lines } => {
                let (name, lines) = (name.clone(), *lines);
                mentioned.push((Mention::Place { name, lines }, Some(part)));
                continue;
            }
            Attachment::Text(text) => {
                mentioned.extend(mentions(text).into_iter().map(|mention| (mention, None)));
            }
            _ => {}
        }
        parts.push(part);
    }
    (parts, mentioned)
}

fn note(words: &str) -> Attachment {
    Attachment::Note(format!("({words})"))
}

/// These lines of a text, as far as they exist; `Err` if the first does not.
fn excerpt(text: &str, lines: (u32, u32)) -> Result<(String, (u32, u32)), String> {
    let (first, last) = lines;
    let wanted = text
        .split_inclusive('\n')
        .skip(first as usize - 1)
        .take((last - first) as usize + 1);
    let lines: Vec<&str> = wanted.collect();
    if let Ok(count @ 1..) = u32::try_from(lines.len()) {
        return Ok((lines.concat(), (first, first + count - 1)));
    }
    let lines = counted(text.lines().count(), "line");
    Err(format!("has only {lines}, not {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_start_at_one_and_end_with_the_text() {
        let check = |lines: (u32, u32), expected: Result<(&str, (u32, u32)), &str>| {
            assert_eq!(
                excerpt("a\r\nb\nc", lines),
                expected
                    .map(|(text, lines)| (text.to_owned(), lines))
                    .map_err(str::to_owned),
                "{lines:?}"
            );
        };
        check((1, 2), Ok(("a\r\nb\n", (1, 2))));
        check((2, 9), Ok(("b\nc", (2, 3))));
        check((4, 9), Err("has only 3 lines, not 4"));
    }
}
