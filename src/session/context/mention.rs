//! The syntax of mentions: `@src/main.rs`, `@src/`, `@"my notes.md"`, `@src/main.rs#L3-L7`, `@diagnostics`,
//! `@selection`. Pure. Invariant: [`mentions`] reads back what [`written`] produces.

/// Something a person mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mention {
    /// A file or folder.
    Place {
        /// Its path.
        name: String,
        /// The first and last line, counted from 1; `None` for all lines.
        lines: Option<(u32, u32)>,
    },
    /// The diagnostics the editor shows.
    Diagnostics,
    /// The editor's selection.
    Selection,
}

/// Characters allowed between a space and an `@`.
const BEFORE: [char; 6] = ['(', '[', '{', '"', '\'', '`'];
/// Characters that end a sentence rather than a name.
const BEHIND: [char; 12] = [',', ';', ':', '.', '!', '?', ')', ']', '}', '"', '\'', '`'];

/// The mentions in `text`, in order.
pub(super) fn mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some((skipped, behind)) = rest.split_once('@') {
        before = skipped.chars().next_back().unwrap_or(before);
        let read = if before.is_whitespace() || BEFORE.contains(&before) {
            mention(behind)
        } else {
            None
        };
        (before, rest) = ('@', behind);
        if let Some((mention, behind)) = read {
            found.push(mention);
            rest = behind;
        }
    }
    found
}

/// The incomplete mention at the end of `text`: from the first `@` on that can begin it, because names may contain others.
pub fn typed_mention(text: &str) -> Option<&str> {
    text.match_indices('@').find_map(|(at, _)| {
        let (before, query) = text.split_at(at);
        let query = query.strip_prefix('@')?;
        let begins = before
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || BEFORE.contains(&c));
        let is_open = match query.strip_prefix('"') {
            Some(quoted) => !quoted.contains(['"', '\n']),
            None => !query.contains(char::is_whitespace),
        };
        (begins && is_open).then_some(query)
    })
}

/// The mention after an `@`, and the rest of the text.
fn mention(text: &str) -> Option<(Mention, &str)> {
    if let Some((name, behind)) = text
        .strip_prefix('"')
        .and_then(|quoted| quoted.split_once('"'))
    {
        let is_name = !name.is_empty() && !name.contains('\n');
        let (fragment, behind) = word(behind);
        let lines = fragment.strip_prefix('#').and_then(lines);
        return is_name.then(|| {
            (
                Mention::Place {
                    name: name.to_owned(),
                    lines,
                },
                behind,
            )
        });
    }
    let (word, behind) = word(text);
    let mention = match word {
        _ if word.is_empty() || word.starts_with('@') => return None,
        "diagnostics" => Mention::Diagnostics,
        "selection" => Mention::Selection,
        _ => {
            let place = word
                .rsplit_once('#')
                .and_then(|(name, fragment)| Some((name, Some(lines(fragment)?))));
            let (name, lines) = place.unwrap_or((word, None));
            Mention::Place {
                name: name.to_owned(),
                lines,
            }
        }
    };
    Some((mention, behind))
}

/// The first word of `text` without sentence punctuation, and the text from the next space on.
fn word(text: &str) -> (&str, &str) {
    let (word, behind) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    (word.trim_end_matches(BEHIND), behind)
}

/// `L3-L7`, `L3-7` or `L3`.
fn lines(fragment: &str) -> Option<(u32, u32)> {
    let (first, last) = fragment.split_once('-').unwrap_or((fragment, fragment));
    let first = first.strip_prefix('L')?.parse().ok()?;
    let last = last.strip_prefix('L').unwrap_or(last).parse().ok()?;
    (0 < first && first <= last).then_some((first, last))
}

/// How a path is mentioned, without the `@`; `None` if it cannot be written.
pub(super) fn written(name: &str) -> Option<String> {
    let plain = Mention::Place {
        name: name.to_owned(),
        lines: None,
    };
    let ways = [name.to_owned(), format!("\"{name}\"")];
    let is_read_back = |way: &String| mention(way) == Some((plain.clone(), ""));
    // A quoted name extends to the next quote, wherever that is.
    ways.into_iter()
        .skip(usize::from(name.starts_with('"')))
        .find(is_read_back)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(name: &str, lines: Option<(u32, u32)>) -> Mention {
        Mention::Place {
            name: name.to_owned(),
            lines,
        }
    }

    #[test]
    fn words_starting_with_an_at_sign_are_mentions() {
        let check =
            |text: &str, expected: &[Mention]| assert_eq!(mentions(text), expected, "{text}");
        let plain = |name| place(name, None);
        check(
            "look at @src/main.rs, (@b.rs) and \"@c d\"",
            &[plain("src/main.rs"), plain("b.rs"), plain("c")],
        );
        check("mail me@example.com @ once, @@twice", &[]);
        check(
            "@src/ and\n@\"my notes.md\"?",
            &[plain("src/"), plain("my notes.md")],
        );
        check(
            "@a.rs#L3-L7, @b.rs#L3.",
            &[place("a.rs", Some((3, 7))), place("b.rs", Some((3, 3)))],
        );
        check(
            "@\"a b\"#L3-7: @c#d",
            &[place("a b", Some((3, 7))), plain("c#d")],
        );
        check("@a#L0 @b#L7-L3", &[plain("a#L0"), plain("b#L7-L3")]);
        check(
            "fix @diagnostics in @selection.",
            &[Mention::Diagnostics, Mention::Selection],
        );
        check(
            "@./diagnostics @\"selection\"",
            &[plain("./diagnostics"), plain("selection")],
        );
        check("@\"never closed", &[plain("\"never")]);
    }

    #[test]
    fn the_mention_being_typed_may_contain_at_signs() {
        let check = |text: &str, expected| assert_eq!(typed_mention(text), expected, "{text}");
        check("see @src/ma", Some("src/ma"));
        check("@packages/@scope/f", Some("packages/@scope/f"));
        check("(@\"@scope/my f", Some("\"@scope/my f"));
        check("@a @\"b c\" and @", Some(""));
        check("me@example.com", None);
        check("@\"my notes.md\"", None);
    }

    #[test]
    fn mentions_are_quoted_if_necessary() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(written(name).as_deref(), expected, "{name}");
        };
        check("src/main.rs", Some("src/main.rs"));
        check("my notes.md", Some("\"my notes.md\""));
        check("odd)", Some("\"odd)\""));
        check("a#L3", Some("\"a#L3\""));
        check("diagnostics", Some("\"diagnostics\""));
        check("a\" b", None);
    }

    proptest! {
        #[test]
        fn written_mentions_parse_back(name in "\\PC{1,12}", first in 1..99u32, more in 0..9u32) {
            if let Some(written) = written(&name) {
                let last = first + more;
                let text = format!("see (@{written}#L{first}-L{last}), @{written} too");
                prop_assert_eq!(mentions(&text), [place(&name, Some((first, last))), place(&name, None)]);
            }
        }
    }
}
