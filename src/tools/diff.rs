//! A change for display: complete, or for large files the lines around it.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use std::borrow::Cow;

use super::FileDiff;
use crate::text::{around, unified};
use crate::workspace::notebook;

impl FileDiff {
    /// Longer texts, in bytes, are shown only around the change.
    pub(super) const LARGE: usize = 256 << 10;
    /// Lines of context around the change.
    pub(super) const CONTEXT: usize = 50;

    /// Both texts for display, and how many lines before them are left out. Of large texts only the lines around the
    /// change are kept, because otherwise each edit would send the file twice.
    pub fn shown(&self) -> (Option<String>, String, usize) {
        match self.as_read() {
            (Some(old), new) if old.len().max(new.len()) > Self::LARGE => {
                let (old, new, skipped) = around(&old, &new, Self::CONTEXT);
                (Some(old.to_owned()), new.to_owned(), skipped)
            }
            (old, new) => (old.map(Cow::into_owned), new.into_owned(), 0),
        }
    }

    /// As a short unified diff.
    pub fn unified(&self) -> String {
        let (old, new) = self.as_read();
        unified(&old.unwrap_or_default(), &new, 3)
    }

    /// Both texts as the model reads them: notebooks as cells.
    pub(super) fn as_read(&self) -> (Option<Cow<'_, str>>, Cow<'_, str>) {
        notebook::change_as_read(&self.path, self.old_text.as_deref(), &self.new_text)
    }
}

impl Serialize for FileDiff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (old_text, new_text, _) = self.shown();
        let mut fields = serializer.serialize_struct("FileDiff", 3)?;
        fields.serialize_field("path", &self.path.to_string_lossy())?;
        fields.serialize_field("old_text", &old_text)?;
        fields.serialize_field("new_text", &new_text)?;
        fields.end()
    }
}
