//! Lines that stand in for text a model omitted (`// ... rest of the file unchanged`). Pure.
//!
//! They are recognized by form: a comment, or words between dots, that says only that something is missing.

/// How a comment begins, or a note between brackets.
const COMMENTS: &[&str] = &[
    "//", "#", "--", "/*", "<!--", "{/*", ";", "%", "[", "{#", "(",
];
/// Words that say that something is missing.
const MISSING: &str =
    "rest remaining remainder existing unchanged omitted truncated previous same before";
/// Words that say what becomes of it. Without dots there is one of them, or nothing but a kind of text.
const STATES: &str = "unchanged omitted remain remains stay stays continue continues goes here above below same brevity keep";
/// Kinds of text.
const TEXTS: &str = "code file function functions method methods class classes implementation implementations content \
    contents body logic lines section sections page component components imports tests definitions everything";
/// Those of them that say it without dots or a state: `rest of the file`.
const WHOLE: &[&str] = &[
    "code",
    "file",
    "function",
    "class",
    "implementation",
    "content",
];
/// Words between those.
const BETWEEN: &str = "other the of is are as it its this in to all and for before with no not changes change todo will be was were";

/// The first placeholder line of `new` that is not in `old`.
pub(super) fn added<'a>(old: &str, new: &'a str) -> Option<&'a str> {
    let mut before = "";
    let mut found = new.lines().filter(|line| {
        // Alone, dots are a body in Python.
        let is_body =
            before.ends_with([':', '"', '\'']) || before.is_empty() && line.starts_with(' ');
        if !line.trim().is_empty() {
            before = line.trim_end();
        }
        is_placeholder(line) || is_dots(line.trim()) && !is_body
    });
    found.find(|line| !old.lines().any(|before| before.trim() == line.trim()))
}

fn is_dots(text: &str) -> bool {
    matches!(text, "..." | "…")
}

fn is_placeholder(line: &str) -> bool {
    let line = line.trim();
    let inside = COMMENTS
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .map(|rest| rest.trim_start_matches(['/', '*', '#', '-', '!']));
    let inside = match inside {
        Some(inside) => inside.trim(),
        // Without a following blank the dots are the spread operator.
        None if ["... ", "… "].iter().any(|dots| line.starts_with(dots)) => line,
        None => return false,
    };
    let is_end = |c: char| c.is_whitespace() || "*/->})]%#".contains(c);
    let inside = inside.trim_end_matches(is_end);
    if is_dots(inside) {
        return true;
    }
    let words: Vec<String> = inside
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() || words.len() > 12 {
        return false;
    }
    let has = |list: &str| {
        words
            .iter()
            .any(|word| list.split_whitespace().any(|it| it == word))
    };
    let is_one_of = |word: &String| {
        [MISSING, STATES, TEXTS, BETWEEN]
            .iter()
            .any(|list| list.split_whitespace().any(|it| it == word))
    };
    let begins = inside.starts_with("...") || inside.starts_with('…');
    let ends = inside.ends_with("...") || inside.ends_with('…');
    let is_only = words.iter().all(is_one_of);
    if begins {
        return has(MISSING) || is_only && (ends || has(TEXTS));
    }
    let said = words.join(" ");
    let is_rest = said.trim_start_matches("the ").starts_with("rest of ");
    if said.ends_with("omitted for brevity") || is_rest && said.ends_with(" unchanged") {
        return true;
    }
    let is_whole = words
        .last()
        .is_some_and(|word| WHOLE.contains(&word.as_str()));
    let is_state = has(STATES) && (has(TEXTS) || has(MISSING)) || is_whole || ends;
    is_only && has(MISSING) && (is_state || words.len() == 1 && has("unchanged"))
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
            "// rest of methods remain the same",
            "(unchanged code ...)",
            "<!-- ... -->",
            "# ...",
            "/* rest of the imports stay the same */",
            "// (existing tests unchanged)",
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
        assert_eq!(added("x\n", "y\n...\nz\n"), Some("..."));
        for body in [
            "def f():\n    ...\n",
            "class A:\n    \"\"\"A.\"\"\"\n    ...\n",
            "    ...\n",
        ] {
            assert_eq!(added("x\n", body), None);
        }
    }
}
