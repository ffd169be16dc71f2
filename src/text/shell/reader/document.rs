//! Here-documents.

use std::sync::{Arc, OnceLock};

use super::{ESCAPES, Read, Reader};
use crate::text::shell::{Unclear, Word};

/// A here-document whose text is to be read.
pub(super) struct Document {
    pub delimiter: String,
    pub is_quoted: bool,
    /// Whether tabs before its lines do not count.
    pub is_indented: bool,
    pub body: Arc<OnceLock<Word>>,
}

impl Reader<'_> {
    /// Reads its text.
    pub(super) fn document(&mut self, document: &Document) -> Read<()> {
        let mut text = String::new();
        loop {
            if self.rest.is_empty() {
                return Err(Unclear("lacks the end of a here-document"));
            }
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            let line = if document.is_indented {
                line.trim_start_matches('\t')
            } else {
                line
            };
            self.rest = rest;
            // bash joins it to the line before, other shells may not.
            let joined = text.trim_end_matches("\\\n");
            let is_joined = !document.is_quoted && joined.len() < text.len();
            let before = document.delimiter.strip_suffix(line);
            // An empty line ends nothing by itself.
            let may_end = |before: &str| !line.is_empty() || joined.ends_with(before);
            if is_joined && before.is_some_and(may_end) {
                return Err(Unclear(ESCAPES));
            }
            if line == document.delimiter {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        let mut body = Word::default();
        if document.is_quoted {
            body.push(&text);
        } else {
            self.within(&text, |reader| reader.double_quoted(&mut body, None))?;
        }
        _ = document.body.set(body);
        Ok(())
    }
}
