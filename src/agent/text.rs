//! Texts inside other texts: truncated, and fenced so that they cannot break out.

use crate::text::fence;

/// The first `limit` bytes of a text, with a note of how much is missing and why.
pub fn cut(text: &str, limit: usize, why: &str) -> String {
    let (head, rest) = text.split_at(text.floor_char_boundary(limit));
    if rest.is_empty() {
        head.to_owned()
    } else {
        format!("{head}\n… ({} bytes left out: {why})", rest.len())
    }
}

/// A text in a fence longer than any inside it, so that the text cannot close it.
pub(super) fn fenced(heading: &str, text: &str) -> String {
    let fence = fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{heading}:\n{fence}\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_truncated_with_a_notice() {
        assert_eq!(cut("short", 9, "why"), "short");
        assert_eq!(cut("ééé", 3, "why"), "é\n… (4 bytes left out: why)");
    }
}
