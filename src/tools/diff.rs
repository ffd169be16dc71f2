//! A change as it is shown: whole, or of large files the lines around what changed.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::FileDiff;
use crate::text::around;

impl FileDiff {
    /// A text that is longer, in bytes, is shown around what changed only.
    pub(super) const LARGE: usize = 256 << 10;
    /// So many lines around it.
    pub(super) const CONTEXT: usize = 50;

    /// Both texts as they are shown: whole, but of large ones the lines around what changed, or each edit would send
    /// the file twice.
    #[must_use]
    pub fn shown(&self) -> (Option<&str>, &str) {
        match &self.old_text {
            Some(old) if old.len().max(self.new_text.len()) > Self::LARGE => {
                let (old, new) = around(old, &self.new_text, Self::CONTEXT);
                (Some(old), new)
            }
            old => (old.as_deref(), &self.new_text),
        }
    }
}

impl Serialize for FileDiff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (old_text, new_text) = self.shown();
        let mut fields = serializer.serialize_struct("FileDiff", 3)?;
        fields.serialize_field("path", &self.path)?;
        fields.serialize_field("old_text", &old_text)?;
        fields.serialize_field("new_text", new_text)?;
        fields.end()
    }
}
