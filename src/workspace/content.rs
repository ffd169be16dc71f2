//! Decodes and encodes text without loss: UTF-8, UTF-16 with a byte order mark, and windows-1252 (Latin-1) as the last
//! resort.

use std::borrow::Cow;

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::domain::{Charset, Stored};

/// The line breaks of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    /// `\n`, or no line break at all.
    Lf,
    /// `\r\n` throughout.
    Crlf,
    /// `\r` throughout.
    Cr,
    /// More than one kind.
    Mixed,
}

impl LineEnding {
    /// The line breaks of `text`.
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (mut lf, mut crlf, mut cr) = (false, false, false);
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            match (
                bytes.get(at),
                bytes.get(at + 1),
                at.checked_sub(1).and_then(|before| bytes.get(before)),
            ) {
                (Some(b'\r'), Some(b'\n'), _) => crlf = true,
                (Some(b'\r'), ..) => cr = true,
                (_, _, Some(b'\r')) => {}
                _ => lf = true,
            }
        }
        match (lf, crlf, cr) {
            (_, false, false) => Self::Lf,
            (false, true, false) => Self::Crlf,
            (false, false, true) => Self::Cr,
            _ => Self::Mixed,
        }
    }

    /// The line break itself; `\n` for a mixed text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf | Self::Mixed => "\n",
            Self::Crlf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

/// The text of `bytes` without the byte order mark, and how it is stored; `None` if they are not text.
pub fn decode(bytes: Vec<u8>) -> Option<(String, Stored)> {
    let stored = |charset, bom| Stored {
        charset,
        bom,
        ..Stored::default()
    };
    if let Some((encoding, mark)) = encoding_rs::Encoding::for_bom(&bytes) {
        let charset = match encoding {
            encoding if encoding == UTF_16LE => Charset::Utf16Le,
            encoding if encoding == UTF_16BE => Charset::Utf16Be,
            _ => Charset::Utf8,
        };
        // An odd byte or a lone surrogate could not be written back unchanged.
        let text =
            encoding.decode_without_bom_handling_and_without_replacement(bytes.get(mark..)?)?;
        return Some((text.into_owned(), stored(charset, true)));
    }
    if memchr::memchr(0, &bytes).is_some() {
        return None;
    }
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Some((text, stored(Charset::Utf8, false))),
        Err(error) => error,
    };
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f);
    if error.as_bytes().iter().any(is_control) {
        return None;
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(error.as_bytes());
    Some((text.into_owned(), stored(Charset::Latin1, false)))
}

impl Stored {
    /// Whether the encoding is another one.
    pub fn is_recoded(self, other: Self) -> bool {
        (self.charset, self.bom) != (other.charset, other.bom)
    }

    /// Whether a file with `text` in this encoding is read in the same one: ASCII does not tell that it is Latin-1.
    pub fn is_told_by(self, text: &str) -> bool {
        self.charset != Charset::Latin1
            || self
                .encode(text)
                .is_ok_and(|bytes| std::str::from_utf8(&bytes).is_err())
    }

    /// Whether an editor that shows `text` took the file for UTF-8: its replacement characters represent bytes that would be
    /// lost on saving.
    pub fn is_misread_as(self, text: &str) -> bool {
        self.charset == Charset::Latin1 && text.contains(char::REPLACEMENT_CHARACTER)
    }

    /// The bytes of `text` in this encoding.
    ///
    /// # Errors
    /// The first character that cannot be encoded.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, char> {
        let mark: &[u8] = match (self.bom, self.charset) {
            (false, _) | (_, Charset::Latin1) => b"",
            (true, Charset::Utf8) => b"\xef\xbb\xbf",
            (true, Charset::Utf16Le) => b"\xff\xfe",
            (true, Charset::Utf16Be) => b"\xfe\xff",
        };
        let body: Cow<'_, [u8]> = match self.charset {
            Charset::Utf8 => text.as_bytes().into(),
            Charset::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Charset::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Charset::Latin1 => latin1(text)?,
        };
        if mark.is_empty() {
            return Ok(body);
        }
        Ok([mark, &body].concat().into())
    }

    /// How `text` is stored, for people, such as `UTF-8 with BOM, CRLF`.
    pub fn shown(self, text: &str) -> String {
        let charset = match self.charset {
            Charset::Utf8 if self.bom => "UTF-8 with BOM",
            Charset::Utf8 => UTF_8.name(),
            Charset::Utf16Le => UTF_16LE.name(),
            Charset::Utf16Be => UTF_16BE.name(),
            Charset::Latin1 => "Latin-1",
        };
        let line_ending = match LineEnding::of(text) {
            LineEnding::Lf => "LF",
            LineEnding::Crlf => "CRLF",
            LineEnding::Cr => "CR",
            LineEnding::Mixed => "mixed line endings",
        };
        format!("{charset}, {line_ending}")
    }
}

fn latin1(text: &str) -> Result<Cow<'_, [u8]>, char> {
    let (bytes, _, replaced) = WINDOWS_1252.encode(text);
    if replaced {
        let missing = text
            .chars()
            .find(|character| WINDOWS_1252.encode(character.encode_utf8(&mut [0; 4])).2);
        return Err(missing.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Ok(bytes)
}
