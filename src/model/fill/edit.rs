//! Rewriting the lines around the cursor: the prompts of models that were trained to predict the next edit.
//!
//! Sources: the example of `sweepai/sweep-next-edit-1.5B`, and Zed's crate `zeta_prompt`.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Failure, Gap, Snippet, fault};
use crate::domain::EditFormat;
use crate::text::{around, unified};

/// How many unchanged lines are shown around an edit.
const CONTEXT: usize = 3;
/// The longest edit that is shown, in bytes; a longer one is a paste or another branch.
const LONGEST: usize = 4 << 10;

/// Parts of names without punctuation, and the formats of these models. The first match wins.
const FORMATS: [(&str, EditFormat); 4] = [
    ("sweep", EditFormat::Sweep),
    ("zeta21", EditFormat::Zeta21),
    ("zeta2", EditFormat::Zeta2),
    ("zeta", EditFormat::Zeta),
];

const CURSORS: [&str; 2] = ["<|user_cursor|>", "<|user_cursor_is_here|>"];
const BEGINNINGS: [&str; 2] = ["<|editable_region_start|>", "<|marker_1|>"];
const ENDS: [&str; 6] = [
    "<|file_sep|>",
    "<|endoftext|>",
    "<|editable_region_end|>",
    ">>>>>>> UPDATED",
    "<|marker_",
    "<[end▁of▁sentence]>",
];

const ZETA: &str = "### Instruction:\nYou are a code completion assistant and your task is to analyze user edits and \
    then rewrite an excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking into \
    account the cursor location.\n\n### User Edits:\n\n";

/// Lines to rewrite, with the context that a model sees. Line breaks are `\n`.
#[derive(Debug)]
pub struct Rewrite {
    /// The file's name.
    pub name: String,
    /// The text before the lines.
    pub before: String,
    /// The lines.
    pub window: String,
    /// The cursor's offset in them.
    pub cursor: usize,
    /// The text after them.
    pub after: String,
    /// What stood there before the last edit.
    pub earlier: String,
    /// The last edits, oldest first.
    pub edits: Vec<PastEdit>,
    /// Texts of other files that may help.
    pub others: Vec<Snippet>,
}

/// A document before and after an edit.
#[derive(Debug)]
pub struct PastEdit {
    /// The file's name.
    pub name: String,
    /// The text before.
    pub old: Arc<str>,
    /// The text after.
    pub new: Arc<str>,
}

/// The format of the model of this name.
///
/// # Errors
/// The name is not one of a model for edits.
pub fn edit_format(model: &str) -> Result<EditFormat, Failure> {
    let mut name = model.to_ascii_lowercase();
    name.retain(char::is_alphanumeric);
    let known = FORMATS.iter().find(|(part, _)| name.contains(part));
    known.map(|(_, format)| *format).ok_or_else(|| {
        let why = format!(
            "`next-edit` needs a model trained to predict edits, and `{model}` is not known as one — set \
            `edit-format` in the section [completion] of config.toml"
        );
        fault::invalid(&why)
    })
}

/// The lines that an answer puts in the place of `window`; `None` if it has none, or if the marks of the formats are in
/// the document itself.
pub fn rewritten(answer: &str, window: &str) -> Option<String> {
    let mut marks = CURSORS.iter().chain(&BEGINNINGS).chain(&ENDS);
    if marks.any(|mark| window.contains(mark)) {
        return None;
    }
    let mut text = answer.replace('\r', "");
    for mark in BEGINNINGS {
        if let Some(at) = text.find(mark) {
            text.drain(..at + mark.len());
        }
    }
    for mark in ENDS {
        text.truncate(text.find(mark).unwrap_or(text.len()));
    }
    for mark in CURSORS {
        text = text.replace(mark, "");
    }
    if text.starts_with('\n') && !window.starts_with('\n') {
        text.remove(0);
    }
    (!text.trim().is_empty()).then_some(text)
}

impl Rewrite {
    /// The prompt in a format; `max_tokens` limits the lines that change.
    pub fn prompt(&self, format: EditFormat, max_tokens: u64) -> Gap {
        let (before, stop) = match format {
            EditFormat::Sweep => (self.sweep(), ENDS[0]),
            EditFormat::Zeta => (self.zeta(), ENDS[2]),
            EditFormat::Zeta2 => (self.seed("<<<<<<< CURRENT\n", "=======\n"), ENDS[3]),
            EditFormat::Zeta21 => (self.seed(BEGINNINGS[1], "<|marker_2|>\n"), "<|marker_2|>"),
        };
        Gap {
            before,
            stop: Some(stop),
            // The lines that stay have to be written again, and three bytes of code are about a token.
            max_tokens: max_tokens + self.window.len() as u64 / 3,
            is_prompt: true,
            ..Gap::default()
        }
    }

    fn sweep(&self) -> String {
        let mut prompt = String::new();
        let mut file = |name: &str, text: &str| {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            prompt.extend(["<|file_sep|>", name, "\n", text, end]);
        };
        for Snippet { name, text } in &self.others {
            file(name, text);
        }
        for PastEdit { name, old, new } in &self.edits {
            let (old, new, _) = around(old, new, CONTEXT);
            if old.len() + new.len() <= LONGEST {
                let (old, new) = (old.trim_matches('\n'), new.trim_matches('\n'));
                file(
                    &format!("{name}.diff"),
                    &format!("original:\n{old}\nupdated:\n{new}"),
                );
            }
        }
        let name = &self.name;
        file(&format!("original/{name}"), &self.earlier);
        file(&format!("current/{name}"), &self.window);
        prompt.extend(["<|file_sep|>updated/", name, "\n"]);
        prompt
    }

    fn zeta(&self) -> String {
        let edits = self.diffs();
        let edits = edits.map(|(name, diff)| format!("User edited {name}:\n```diff\n{diff}\n```"));
        let start = if self.before.is_empty() {
            "<|start_of_file|>\n"
        } else {
            ""
        };
        let window = self.with_cursor(CURSORS[1]);
        let [window, after] = [&window, &self.after].map(|text| text.trim_end_matches('\n'));
        format!(
            "{ZETA}{}\n\n### User Excerpt:\n\n```{}\n{start}{}{}\n{window}\n{}\n{after}\n```\n\n### Response:\n",
            edits.collect::<Vec<_>>().join("\n\n"),
            self.name,
            self.before,
            BEGINNINGS[0],
            ENDS[2],
        )
    }

    /// The prompt of a Seed-Coder model: the suffix, then the prefix with the lines to rewrite in it.
    fn seed(&self, begin: &str, end: &str) -> String {
        let line_end = if self.after.ends_with('\n') { "" } else { "\n" };
        let mut prompt = format!("<[fim-suffix]>{}{line_end}<[fim-prefix]>", self.after);
        for Snippet { name, text } in &self.others {
            prompt.extend(["<filename>", name, "\n", text, "\n\n"]);
        }
        if !self.edits.is_empty() {
            prompt.push_str("<filename>edit_history\n");
            for (name, diff) in self.diffs() {
                let _ = writeln!(prompt, "--- a/{name}\n+++ b/{name}\n{diff}");
            }
            prompt.push('\n');
        }
        let window = self.with_cursor(CURSORS[0]);
        let (name, before) = (&self.name, &self.before);
        let _ = write!(
            prompt,
            "<filename>{name}\n{before}{begin}{window}{end}<[fim-middle]>"
        );
        prompt
    }

    /// The edits as unified diffs without a last line break.
    fn diffs(&self) -> impl Iterator<Item = (&str, String)> {
        self.edits.iter().filter_map(|PastEdit { name, old, new }| {
            let diff = unified(old, new, CONTEXT);
            (diff.len() <= LONGEST).then(|| (name.as_str(), diff.trim_end_matches('\n').to_owned()))
        })
    }

    fn with_cursor(&self, mark: &str) -> String {
        let mut window = self.window.clone();
        window.insert_str(self.cursor.min(window.len()), mark);
        window
    }
}
