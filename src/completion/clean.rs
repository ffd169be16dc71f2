//! Turns a model's answer into a suggestion: no more than belongs in the gap.

use crate::workspace::Excerpt;

/// Whether something follows on the line of the place: then only the rest of the line is suggested.
pub(super) fn is_inside_line(excerpt: &Excerpt) -> bool {
    !rest_of_line(excerpt).is_empty()
}

fn rest_of_line(excerpt: &Excerpt) -> &str {
    excerpt
        .after
        .split(['\n', '\r'])
        .next()
        .unwrap_or_default()
        .trim()
}

/// The suggestion, which is empty if there is nothing to insert.
pub(super) fn suggestion(answer: &str, excerpt: &Excerpt) -> String {
    let mut text = answer.replace('\r', "");
    let rest = rest_of_line(excerpt);
    if rest.is_empty() {
        without_next_line(&mut text, excerpt);
    } else {
        text.truncate(text.find('\n').unwrap_or(text.len()));
        if surplus(&text) > 0
            && let Some(kept) = text.trim_end().strip_suffix(rest)
        {
            text.truncate(kept.len());
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Ends the text where the document continues with its next line. A line of only brackets may occur in the middle, too.
fn without_next_line(text: &mut String, excerpt: &Excerpt) {
    let next = excerpt
        .after
        .lines()
        .map(str::trim_end)
        .find(|line| !line.is_empty());
    let Some(next) = next else {
        return;
    };
    let kept = text.trim_end();
    let is_telling = next.contains(char::is_alphanumeric);
    let goes_on = |rest: &str| {
        let line = rest.lines().next().unwrap_or_default();
        line.trim_end() == next && (is_telling || line.len() == rest.len())
    };
    let mut ends = kept.match_indices('\n').map(|(end, _)| end);
    let end = ends.find(|end| kept.get(end + 1..).is_some_and(goes_on));
    text.truncate(end.unwrap_or(text.len()));
}

/// How many more brackets are closed than opened.
fn surplus(text: &str) -> i32 {
    text.chars()
        .map(|c| i32::from(matches!(c, ')' | ']' | '}')) - i32::from(matches!(c, '(' | '[' | '{')))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, after: &str, expected: &str) {
        let excerpt = Excerpt {
            path: None,
            language: String::new(),
            offset: 0,
            before: String::new(),
            after: after.to_owned(),
        };
        assert_eq!(suggestion(answer, &excerpt), expected);
    }

    #[test]
    fn suggestions_stop_at_text_that_follows() {
        check(" 1;\n", "\nfoo\n", " 1;");
        check("\n    1\n}\n", "\n}\n", "\n    1");
        check("\n    1\n    }\n", "\n}\n", "\n    1\n    }");
        check("a\n}\nb\n}\n", "\n}\n", "a\n}\nb");
        // What Qwen2.5-Coder-1.5B-Instruct wrote.
        check(
            "a + b\n\n\nprint(add(1, 2))\n```\n\nIn this code",
            "\n\n\nprint(add(1, 2))\n",
            "a + b",
        );
        check("a, b)", ")\n", "a, b");
        check("f(a)", ")\n", "f(a)");
        check("a, b);\nmore", ");\n", "a, b");
        check("x\r\ny\r\n", "", "x\ny");
        check("  \n\n", "", "");
    }
}
