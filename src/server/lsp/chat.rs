//! Parses a chat file: a Markdown file whose last heading says whose turn it is.

use std::ops::Range;

use crate::text::Fences;
use crate::workspace::CHAT_FILE;

/// How many bytes of an existing chat file are given to a conversation that begins in the middle of it.
const EARLIER: usize = 65_536;

/// The heading above the person's messages.
pub(super) const YOU: &str = "## You";
/// The heading above an answer.
pub(super) const TANDEM: &str = "## tandem";

/// Whether a file is a chat file, by its name.
pub(super) fn is_chat(uri: &str) -> bool {
    uri.ends_with(CHAT_FILE)
}

/// The unanswered prompt in a chat file.
pub(super) fn prompt(text: &str) -> Option<&str> {
    let prompt = text.get(prompt_start(text)?..)?.trim();
    (!prompt.is_empty()).then_some(prompt)
}

/// Where the prompt begins: below the last heading of ours, if that is the person's; without one, below the file's title.
pub(super) fn prompt_start(text: &str) -> Option<usize> {
    let mut fences = Fences::default();
    let mut at = 0;
    let mut under = Some(0);
    for line in text.split_inclusive('\n') {
        let is_title =
            text.get(..at).is_some_and(|above| above.trim().is_empty()) && line.starts_with("# ");
        at += line.len();
        let line = line.trim_end();
        if fences.take(line) {
        } else if line.eq_ignore_ascii_case(YOU) || is_title {
            under = Some(at);
        } else if line.eq_ignore_ascii_case(TANDEM) {
            under = None;
        }
    }
    // A server that died in the middle of a code block left its fence open.
    under.or_else(|| fences.closing().and_then(|_| Some(last_heading(text)?.end)))
}

/// Whether the answer above the prompt ends with this notice.
pub(super) fn is_told(text: &str, notice: &str) -> bool {
    let above = prompt_start(text).and_then(|start| text.get(..start));
    let above = above.and_then(|above| above.trim_end().strip_suffix(YOU));
    above.is_some_and(|above| above.trim_end().ends_with(notice))
}

/// Where a running answer grows: above the heading of the next prompt, which stands below it, and the empty lines
/// before that heading.
pub(super) fn growing(text: &str) -> Option<usize> {
    let heading = last_heading(text)?;
    text.get(..heading.start)
        .map(|answer| answer.trim_end_matches(['\r', '\n']).len())
}

/// The line of the person's heading below the last answer, also where that answer is in the middle of a code block.
fn last_heading(text: &str) -> Option<Range<usize>> {
    let mut start = text.len();
    for line in text.split_inclusive('\n').rev() {
        let end = start;
        start -= line.len();
        let line = line.trim_end();
        if line.eq_ignore_ascii_case(YOU) {
            return Some(start..end);
        } else if line.eq_ignore_ascii_case(TANDEM) {
            return None;
        }
    }
    None
}

/// The conversation in a chat file before its prompt, if there was an answer; only the end of it if it is long.
pub(super) fn earlier(text: &str) -> Option<&str> {
    let before = text.get(..prompt_start(text)?)?;
    let before = before.trim_end().strip_suffix(YOU).unwrap_or(before).trim();
    let start = before.ceil_char_boundary(before.len().saturating_sub(EARLIER));
    before.get(start..).filter(|_| was_answered(before))
}

/// Whether there is an answer in a chat file.
pub(super) fn was_answered(text: &str) -> bool {
    text.lines()
        .any(|line| line.trim_end().eq_ignore_ascii_case(TANDEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(prompt(text), expected, "{text:?}");
    }

    #[test]
    fn the_prompt_is_the_text_under_the_last_user_heading() {
        check("## You\n\nwhy?\n", Some("why?"));
        check("why?\n", Some("why?"));
        check("# Notes\nwhy?", Some("why?"));
        check(
            "## You\n\none\n\n## tandem\n\nbecause\n\n## You\n\ntwo\n",
            Some("two"),
        );
        check("## You\r\n\r\nwhy?\r\n", Some("why?"));
    }

    #[test]
    fn a_chat_file_without_a_new_prompt_asks_nothing() {
        check("", None);
        check("## You\n\n  \n", None);
        check("## You\n\none\n\n## tandem\n\nbecause\n", None);
        check("## You\n\none\n\n## tandem\n\nbecause\n\n## You\n\n", None);
    }

    #[test]
    fn earlier_prompts_and_answers_are_sent() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(earlier(text), expected, "{text:?}");
        check(
            "## You\n\none\n\n## tandem\n\ntwo\n\n## You\n\nthree\n",
            Some("## You\n\none\n\n## tandem\n\ntwo"),
        );
        check("# Notes\n\n## You\n\none\n", None);
        check("one", None);
        let long = format!("## tandem\n\n{}x\n\n## You\n\nx", "ü".repeat(EARLIER));
        let end = earlier(&long).unwrap();
        assert!(
            end.ends_with("üx") && end.len() <= EARLIER,
            "its end: {} bytes",
            end.len()
        );
    }

    #[test]
    fn an_answer_cut_inside_code_does_not_swallow_the_next_prompt() {
        check(
            "why?\n\n## tandem\n\n```rust\n## You\nfn\n\n## You\n\nnext\n",
            Some("next"),
        );
        check("why?\n\n## tandem\n\n```rust\nfn\n", None);
    }

    #[test]
    fn headings_inside_code_blocks_are_code() {
        check(
            "## You\n\nwhat is\n```md\n## tandem\n```\n?",
            Some("what is\n```md\n## tandem\n```\n?"),
        );
    }

    #[test]
    fn an_answer_grows_above_the_heading_of_the_next_prompt() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                growing(text).and_then(|at| text.get(..at)),
                expected,
                "{text:?}"
            );
        };
        check(
            "## You\n\nwhy?\n\n## tandem\n\nBe\n\n## You\n\nnext",
            Some("## You\n\nwhy?\n\n## tandem\n\nBe"),
        );
        check(
            "## tandem\r\n\r\nBe\r\n\r\n## you\r\n",
            Some("## tandem\r\n\r\nBe"),
        );
        check(
            "## tandem\n\n```rust\nfn\n\n## You\n\n",
            Some("## tandem\n\n```rust\nfn"),
        );
        check("## You\n\nwhy?\n\n## tandem\n\nBe", None);
        check("why?", None);
    }

    #[test]
    fn other_headings_are_part_of_the_prompt_or_answer() {
        check("## You\n\n### Context\nx", Some("### Context\nx"));
        check("## You\n\nwhy?\n# install\nx", Some("why?\n# install\nx"));
        check("why?\n# install\nx", Some("why?\n# install\nx"));
        check("## You\n\none\n\n## tandem\n\n# Summary\ncut off", None);
    }
}
