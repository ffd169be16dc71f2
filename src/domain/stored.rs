//! How a file is stored, besides its text.

use serde::{Deserialize, Serialize};

/// A character encoding of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charset {
    /// UTF-8.
    Utf8,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
    /// windows-1252, a superset of Latin-1 in which every byte is a character.
    Latin1,
}

/// What is needed besides its text to have a file as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Its character encoding.
    pub charset: Charset,
    /// Whether it begins with a byte order mark.
    pub bom: bool,
    /// Its permission bits, where they are to be set too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// How many of the folders it is in did not exist; it did not exist either then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_folders: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
