//! How a file is stored, besides its text.

/// A character encoding of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8.
    #[default]
    Utf8,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
    /// windows-1252, a superset of Latin-1 in which every byte is a character.
    Latin1,
}

/// What is needed, in addition to its text, to restore a file exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// Its character encoding.
    pub charset: Charset,
    /// Whether it begins with a byte order mark.
    pub bom: bool,
    /// Its permission bits, where the file on the disk does not tell them.
    pub mode: Option<u32>,
    /// How many of the folders it is in were made for it.
    pub new_folders: usize,
}
