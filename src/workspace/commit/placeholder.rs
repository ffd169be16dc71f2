//! Lines that stand in for text a model omitted (`// ... rest of the file unchanged`). Pure.
//!
//! They are recognized by form: a comment, or words between dots, that says only that something is missing.

/// How a comment begins.
const COMMENTS: &[&str] = &["//", "#", "--", "/*", "<!--", "{/*", ";", "%", "[", "{#"];
/// Words of which a line between dots contains at least one.
const MISSING: &[&str] = &[
    "rest",
    "existing",
    "remaining",
    "remains",
    "unchanged",
    "same",
    "previous",
    "omitted",
    "before",
    "code",
    "implementation",
    "truncated",
];
/// Beginnings of a line without leading dots.
const BEGINNINGS: &[&str] = &[
    "existing code",
    "rest of the code",
    "rest of code",
    "rest of the file",
    "rest of file",
    "rest of the function",
    "rest of the class",
    "rest of the implementation",
    "rest of the content",
    "rest unchanged",
    "remaining code",
    "the rest of the code",
    "the rest of the file",
    "the rest remains",
    "the rest is unchanged",
    "previous code",
    "other code",
    "unchanged code",
    "code unchanged",
    "same as before",
    "keep the rest",
    "code omitted",
    "rest omitted",
    "omitted for brevity",
    "other methods remain",
    "other methods unchanged",
    "other functions remain",
    "other functions unchanged",
    "previous implementation",
    "unchanged",
];
/// Words that may follow without making it a sentence.
const ENDS: &[&str] = &[
    "unchanged",
    "same",
    "here",
    "omitted",
    "before",
    "above",
    "below",
    "remains",
    "stays",
    "the",
    "is",
    "as",
    "goes",
    "continues",
    "for",
    "brevity",
];

/// The first placeholder line of `new` that is not in `old`.
pub(super) fn added<'a>(old: &str, new: &'a str) -> Option<&'a str> {
    let mut found = new.lines().filter(|line| is_placeholder(line));
    found.find(|line| !old.lines().any(|before| before.trim() == line.trim()))
}

fn is_placeholder(line: &str) -> bool {
    let line = line.trim();
    let inside = COMMENTS
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .map(|rest| rest.trim_start_matches(['/', '*', '#', '-', '!']));
    let has_dots = |text: &str| text.starts_with("...") || text.starts_with('…');
    let inside = match inside {
        Some(inside) => inside.trim(),
        // Without a following blank the dots are the spread operator.
        None if ["... ", "… "].iter().any(|dots| line.starts_with(dots)) => line,
        None => return false,
    };
    let words: Vec<String> = inside
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() || words.len() > 10 {
        return false;
    }
    let is_missing = words.iter().any(|word| MISSING.contains(&word.as_str()));
    if has_dots(inside) {
        // `... other functions ...`
        let is_closed = inside.ends_with("...") || inside.ends_with('…');
        return is_missing || is_closed && words.iter().any(|word| word == "other");
    }
    let said = words.join(" ");
    let said = said.strip_prefix("todo ").unwrap_or(&said);
    let begins = |word: &str| said.starts_with(word);
    if said.ends_with("omitted for brevity")
        || said.ends_with(" unchanged") && (begins("rest of ") || begins("the rest of "))
    {
        return true;
    }
    BEGINNINGS.iter().any(|beginning| {
        let rest = said
            .strip_prefix(beginning)
            .filter(|rest| rest.is_empty() || rest.starts_with(' '));
        rest.is_some_and(|rest| {
            rest.split(' ')
                .all(|word| word.is_empty() || ENDS.contains(&word))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_lines_are_recognized() {
        for line in [
            "# ... existing code ...",
            "// ... rest of the file unchanged",
            "    # ... rest of the code remains unchanged ...",
            "<!-- ... rest of the page ... -->",
            "/* … existing code … */",
            "// rest of the code here",
            "// existing code...",
            "-- rest unchanged",
            "# (rest of the file unchanged)",
            "... rest of the implementation ...",
            "[... rest of file unchanged ...]",
            "// Rest of the code remains the same",
            "{/* ... existing code ... */}",
            "// keep the rest as is",
            "# (code omitted for brevity)",
            "// other methods remain unchanged",
            "# (unchanged)",
            "# TODO: rest of the implementation remains unchanged",
            "# ... other functions ...",
            "-- rest of query unchanged",
            "// unchanged code above",
            "# [previous implementation continues]",
            "# (remaining functions omitted for brevity)",
        ] {
            assert!(is_placeholder(line), "{line}");
        }
    }

    #[test]
    fn code_and_comments_are_not_placeholders() {
        for line in [
            "...",
            "    ...",
            "def f(self): ...",
            "call(*rest)",
            "let [first, ...rest] = list;",
            "const all = { ...existing, code };",
            "    ...existing,",
            "# This keeps the existing code path alive",
            "// the rest of the code relies on this being sorted",
            "// Loading existing items...",
            "# ... and so on",
            "// other methods",
            "# unchanged since 2019",
            "# ... other than that it is done",
            "# previous implementations were slower",
            "# keep the rest of the tokens for later",
            "print('... existing code ...')",
            "// the rest of the file is read later",
        ] {
            assert!(!is_placeholder(line), "{line}");
        }
    }

    #[test]
    fn existing_placeholders_may_stay() {
        assert_eq!(
            added(
                "# ... existing code ...\n",
                "  # ... existing code ...\nx\n"
            ),
            None
        );
        assert_eq!(added("x\n", "y\n# ... rest ...\n"), Some("# ... rest ..."));
    }
}
