//! The code fence that a model put around what it quotes.

use super::Replacement;

/// `edit` without the fence around the text to replace, and around the new text if it has one too.
pub(super) fn plain(edit: &Replacement) -> Option<Replacement> {
    let old_text = inside(&edit.old_text)?.to_owned();
    let new_text = inside(&edit.new_text).unwrap_or(&edit.new_text).to_owned();
    edit.reread(old_text, new_text)
}

/// The lines in a fence that is all of `text`.
fn inside(text: &str) -> Option<&str> {
    let text = text.trim();
    let mark = ["```", "~~~"]
        .into_iter()
        .find(|mark| text.starts_with(mark))?;
    let (language, inside) = text
        .strip_prefix(mark)?
        .strip_suffix(mark)?
        .split_once('\n')?;
    let inside = inside.strip_suffix('\n').unwrap_or(inside);
    let is_one = !inside
        .lines()
        .any(|line| line.trim_start().starts_with(mark));
    let is_language = language
        .trim()
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "+-#.".contains(c));
    (is_one && is_language).then(|| inside.strip_suffix('\r').unwrap_or(inside))
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn a_fence_around_the_whole_text_is_removed() {
        for (text, expected) in [
            ("```python\nx = 1\n```", Some("x = 1")),
            ("```\n  a\n  b\n```\n", Some("  a\n  b")),
            ("~~~c++\nx\n~~~", Some("x")),
            ("```a b\nx\n```", None),
            ("```\na\n```\nb\n```\nc\n```", None),
            ("x = 1", None),
            ("``````", None),
        ] {
            assert_eq!(inside(text), expected, "{text:?}");
        }
    }
}
