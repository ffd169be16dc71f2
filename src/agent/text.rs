//! Texts inside other texts: truncated, fenced so that they cannot break out, and found again.

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

/// The blocks that [`fenced`] wrote under headings that begin with `heading`: each complete block, and the text inside
/// it.
pub(super) fn fenced_blocks<'t>(text: &'t str, heading: &str) -> Vec<(&'t str, &'t str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(heading)) {
        let begin = from + at;
        from = begin + heading.len();
        let is_line = begin == 0
            || text
                .get(..begin)
                .is_some_and(|before| before.ends_with('\n'));
        if let Some((whole, inside)) = is_line.then(|| block(text.get(begin..)?)).flatten() {
            from = begin + whole.len();
            found.push((whole, inside));
        }
    }
    found
}

/// The block at the beginning of `text`.
fn block(text: &str) -> Option<(&str, &str)> {
    let (heading, rest) = text.split_once(":\n")?;
    let (fence, body) = rest.split_once('\n')?;
    let is_fence = fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`');
    let end = body
        .find(&format!("\n{fence}"))
        .filter(|_| is_fence && !heading.contains('\n'))?;
    let whole = heading.len() + 2 + fence.len() + 1 + end + 1 + fence.len();
    Some((text.get(..whole)?, body.get(..end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_truncated_with_a_notice() {
        assert_eq!(cut("short", 9, "why"), "short");
        assert_eq!(cut("ééé", 3, "why"), "é\n… (4 bytes left out: why)");
    }

    #[test]
    fn fenced_text_can_be_extracted() {
        let rules = fenced(
            "Instructions from /w/AGENTS.md. They",
            "Use tabs.\n```\ncode\n```",
        );
        let text = format!(
            "fix it\n\n{rules}\n\nNot Instructions from here:\n{}",
            fenced("I said", "hello")
        );
        assert_eq!(
            fenced_blocks(&text, "Instructions from "),
            [(rules.as_str(), "Use tabs.\n```\ncode\n```")]
        );
        assert_eq!(
            fenced_blocks(&text, "I said")
                .first()
                .map(|(_, inside)| *inside),
            Some("hello")
        );
        assert_eq!(fenced_blocks("I said: no fence", "I said"), []);
    }
}
