//! Code fences of Markdown ([CommonMark](https://spec.commonmark.org/0.31.2/#fenced-code-blocks), but with any
//! indentation, as in lists): finds a fence for a text that may contain fences itself, and tells which lines of a text
//! are inside one.

/// The shortest run of backticks or tildes that is a fence.
const SHORTEST: usize = 3;

/// A fence longer than any in `text`, so that the text cannot close it.
pub fn fence(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(SHORTEST.max(longest + 1))
}

/// Tracks, line by line, whether a text is inside a fence.
#[derive(Debug, Default, Clone)]
pub struct Fences {
    /// Character and length of the open fence.
    open: Option<(char, usize)>,
}

impl Fences {
    /// Takes the next line; returns whether it is code or the fence around it.
    pub fn take(&mut self, line: &str) -> bool {
        let line = line.trim();
        let mark = line.chars().next().unwrap_or_default();
        let length = line.len() - line.trim_start_matches(mark).len();
        let is_fence = matches!(mark, '`' | '~') && length >= SHORTEST;
        let rest = line.trim_start_matches(mark);
        match self.open {
            None if is_fence && !(mark == '`' && rest.contains('`')) => {
                self.open = Some((mark, length));
            }
            None => return false,
            Some((open, least))
                if is_fence && mark == open && length >= least && rest.is_empty() =>
            {
                self.open = None;
            }
            Some(_) => {}
        }
        true
    }

    /// Whether a fence is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The line that closes the open fence, if one is open.
    pub fn closing(&self) -> Option<String> {
        self.open
            .map(|(mark, length)| mark.to_string().repeat(length))
    }
}

/// The text without an enclosing Markdown fence, which many models add; the closing fence may still be missing.
pub fn unfenced(answer: &str) -> &str {
    let text = answer.trim_start_matches(['\r', '\n']);
    let Some(first) = text.trim_start().strip_prefix("```") else {
        return text;
    };
    let Some((_language, body)) = first.split_once('\n') else {
        return "";
    };
    match body.trim_end().strip_suffix("```") {
        Some(body) if body.is_empty() || body.ends_with('\n') => body,
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, code: &str, closing: Option<&str>) {
        let mut fences = Fences::default();
        let found: String = text
            .lines()
            .map(|line| if fences.take(line) { 'c' } else { '.' })
            .collect();
        assert_eq!(
            (found.as_str(), fences.closing().as_deref()),
            (code, closing),
            "{text}"
        );
    }

    #[test]
    fn lines_in_fences_are_code() {
        check("a\n```rust\nb\n```\nc", ".ccc.", None);
        check("- a\n\n      ~~~\n      b\n      ~~~\n", "..ccc", None);
        check("```\n~~~\n```", "ccc", None);
        check("`a` and ```b``` c\n``` d ``` e", "..", None);
    }

    #[test]
    fn a_fence_is_closed_by_a_bare_fence_of_its_length() {
        check("````md\n```rust\n```\n````\na", "cccc.", None);
        check("```\n```rust\na", "ccc", Some("```"));
        check("~~~~ x\na", "cc", Some("~~~~"));
    }

    #[test]
    fn a_text_cannot_close_the_fence_around_it() {
        for text in ["", "a", "```", " ````\nx\n ````", "~~~", "a `b` ``c``"] {
            let fence = fence(text);
            check(
                &format!("{fence}\n{text}\n{fence}\nout"),
                &("c".repeat(text.lines().count().max(1) + 2) + "."),
                None,
            );
        }
    }

    #[test]
    fn a_fence_around_the_answer_is_stripped_while_streaming() {
        for (answer, expected) in [
            ("x = 1", "x = 1"),
            ("```rust\nx = 1\n```\n", "x = 1\n"),
            ("```", ""),
            ("```rust\nx =", "x ="),
            ("\n    x", "    x"),
            ("see ```x```", "see ```x```"),
        ] {
            assert_eq!(unfenced(answer), expected, "{answer:?}");
        }
    }
}
