//! A change for display: complete, or for large files the lines around it.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::FileDiff;
use crate::text::around;

impl FileDiff {
    /// Longer texts, in bytes, are shown only around the change.
    pub(super) const LARGE: usize = 256 << 10;
    /// Lines of context around the change.
    pub(super) const CONTEXT: usize = 50;

    /// Both texts for display, and how many lines before them are left out. Of large texts only the lines around the
    /// change are kept, because otherwise each edit would send the file twice.
    pub fn shown(&self) -> (Option<&str>, &str, usize) {
        match &self.old_text {
            Some(old) if old.len().max(self.new_text.len()) > Self::LARGE => {
                let (old, new, skipped) = around(old, &self.new_text, Self::CONTEXT);
                (Some(old), new, skipped)
            }
            old => (old.as_deref(), &self.new_text, 0),
        }
    }
}

impl Serialize for FileDiff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (old_text, new_text, _) = self.shown();
        let mut fields = serializer.serialize_struct("FileDiff", 3)?;
        fields.serialize_field("path", &self.path.to_string_lossy())?;
        fields.serialize_field("old_text", &old_text)?;
        fields.serialize_field("new_text", new_text)?;
        fields.end()
    }
}
