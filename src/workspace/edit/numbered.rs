//! Line numbers that a model copied from what it read into what it quotes.

use super::Replacement;

/// Separators between a number and its line.
const MARKS: [char; 7] = ['\t', '→', '|', '│', ':', '.', ')'];

/// `edit` without line numbers, if every line of the text to replace has one and they are consecutive. They are removed
/// from the new text too if it has them.
pub(super) fn plain(edit: &Replacement) -> Option<Replacement> {
    let (old_text, first) = without(&edit.old_text)?;
    let new_text = match without(&edit.new_text) {
        Some((new_text, new_first)) if new_first == first => new_text,
        _ => edit.new_text.clone(),
    };
    edit.reread(old_text, new_text)
}

/// A text without the numbers at the start of its lines, and the first of them.
fn without(text: &str) -> Option<(String, usize)> {
    let mut first = None;
    let mut next = None;
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (number, rest) = numbered(line)?;
        if next.is_some_and(|next| next != number) {
            return None;
        }
        next = Some(number + 1);
        first = first.or(next.map(|next| next - 1));
        plain.push_str(rest);
    }
    first
        .filter(|_| !plain.trim().is_empty())
        .map(|first| (plain, first))
}

/// What follows the hash of a line after its number: `7#KW|text` (oh-my-pi).
fn anchored(rest: &str) -> &str {
    const LONGEST: usize = 4;
    let hash = rest.strip_prefix('#').and_then(|rest| rest.split_once('|'));
    let is_hash = |hash: &str| {
        (1..=LONGEST).contains(&hash.len()) && hash.bytes().all(|it| it.is_ascii_alphanumeric())
    };
    match hash {
        Some((hash, text)) if is_hash(hash) => rest.split_at(rest.len() - text.len() - 1).1,
        _ => rest,
    }
}

fn numbered(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start_matches(' ');
    let line = line.strip_prefix('L').unwrap_or(line);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = line.split_at_checked(digits)?;
    if digits > 0 && rest.trim_matches(['\r', '\n', ' ']).is_empty() {
        // An empty line, of which only the number was quoted.
        return Some((number.parse().ok()?, rest.trim_start_matches(' ')));
    }
    let rest = anchored(rest);
    let mark = rest.trim_start_matches(' ');
    let is_spaced = mark.len() < rest.len();
    let Some(text) = mark.strip_prefix(MARKS) else {
        // `cat -n` and others put blanks in between.
        return Some((number.parse().ok()?, rest.strip_prefix("  ")?));
    };
    // `7 | text` has a blank on both sides.
    let text = text.strip_prefix(' ').filter(|_| is_spaced).unwrap_or(text);
    Some((number.parse().ok()?, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_are_stripped_if_each_line_has_one() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                without(text).map(|(plain, _)| plain).as_deref(),
                expected,
                "{text:?}"
            );
        };
        check("1\ta\n2\t  b\n", Some("a\n  b\n"));
        check("  9→a\n 10→\n 11→b", Some("a\n\nb"));
        check("7 | a", Some("a"));
        check("7: a", Some(" a"));
        check("7#KW|  a\n8#b1|b", Some("  a\nb"));
        check("L7: a\nL8: b", Some(" a\n b"));
        check("1. a\n2.   b", Some(" a\n   b"));
        check("     1  a\n     2      b", Some("a\n    b"));
        check("2\ta\n3\n4\tb", Some("a\n\nb"));
        check("1\n2\n", None);
        check("L: a", None);
        check("1\ta\n3\tb", None);
        check("1\ta\nb", None);
        check("a", None);
        check("", None);
    }
}
