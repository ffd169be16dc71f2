//! Lines that stand in for text a model omitted (`// ... rest of the file unchanged`). Pure.
//!
//! They are recognized by form: a comment, or words between dots, that says only that something is missing; or, in any
//! language, a comment with dots at one of its ends, or one that says that something stays as it was, that is all that
//! stands where several lines were.

use std::time::Duration;

use similar::DiffOp;

use crate::text::Tokens;

const TIMEOUT: Duration = Duration::from_millis(100);

/// How a comment begins, or a note between brackets.
const COMMENTS: &[&str] = &[
    "//", "#", "--", "/*", "* ", "<!--", "{/*", ";", "%", "[", "{#", "(", "' ", "\" ", "REM ",
];
const DOTS: [&str; 2] = ["...", "…"];
/// Words that say that something is missing.
const MISSING: &str =
    "rest remaining remainder existing unchanged omitted truncated previous same before";
/// Words that say what becomes of it. Without dots there is one of them, or nothing but a kind of text.
const STATES: &str = "unchanged omitted remain remains stay stays continue continues goes here above below same brevity keep";
/// Kinds of text.
const TEXTS: &str = "code file function functions method methods class classes implementation implementations content \
    contents body logic lines section sections page component components imports tests definitions everything";
/// The kinds of text that need neither dots nor a state: `rest of the file`.
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
    says_so(old, new).or_else(|| replaces(old, new))
}

/// A comment with dots at one of its ends that is all that stands in the place of several lines, or one in the place of
/// code that says that something stays; beside that one, neighbors may be changed.
fn replaces<'a>(old: &str, new: &'a str) -> Option<&'a str> {
    let says_stays = |line: &&str| {
        let words = words(comment(line).unwrap_or_default());
        let mut first = words.iter().skip_while(|word| *word == "the").take(1);
        has(&words, MISSING) && (has(&words, STATES) || first.any(|word| word == "rest"))
    };
    let may_replace = |line: &&str| {
        let inside = comment(line).unwrap_or_default();
        let has_dots = begins_with_dots(inside) || ends_with_dots(inside);
        has_dots && inside.contains(char::is_alphabetic) || says_stays(line)
    };
    // Nearly no text has one, so that comparing costs nothing.
    new.lines().find(may_replace)?;
    // Between dots at the end of a text that got shorter, wherever the comparison puts it.
    let is_between = |line: &&str| {
        let inside = comment(line).unwrap_or_default();
        begins_with_dots(inside) && ends_with_dots(inside)
    };
    let is_new = |line: &&str| !old.lines().any(|before| before == *line);
    let last = new.lines().rfind(|line| !line.trim().is_empty());
    let is_shorter = new.lines().count() < old.lines().count();
    if let Some(line) = last.filter(is_between).filter(is_new)
        && is_shorter
    {
        return Some(line);
    }
    let lines = Tokens::compare(old.lines().collect(), new.lines().collect(), TIMEOUT);
    let replaced = |op: &DiffOp| {
        let said = |(_, line): &(usize, &&str)| !line.trim().is_empty();
        let gone = lines.old.get(op.old_range())?.iter().enumerate();
        let instead = lines.new.get(op.new_range())?.iter().enumerate();
        let (gone, instead): (Vec<_>, Vec<_>) =
            (gone.filter(said).collect(), instead.filter(said).collect());
        // Beside lines that are only changed, dots may say anything.
        let is_alone = instead.len() == 1;
        let (at, line) = *instead
            .iter()
            .find(|(_, line)| is_alone || says_stays(line))?;
        let is_changed = |(other, new): &(usize, &&str)| {
            let first = |line: &str| words(line).into_iter().next();
            *other == at || gone.iter().any(|(_, old)| first(old) == first(new))
        };
        let is_note = |(_, line): &(usize, &&str)| comment(line).is_some();
        let is_all = gone.len() > instead.len()
            && instead.iter().all(is_changed)
            && may_replace(line)
            && !(says_stays(line) && gone.iter().all(is_note));
        is_all.then_some(op.new_range().start + at)
    };
    new.lines().nth(lines.ops.iter().find_map(replaced)?)
}

fn says_so<'a>(old: &str, new: &'a str) -> Option<&'a str> {
    let (mut before, mut is_yaml, mut is_fenced) = ("", false, false);
    let mut lines = new.lines().peekable();
    while let Some(line) = lines.next() {
        is_yaml |= line == "---";
        is_fenced ^= line.trim_start().starts_with("```");
        let begins = |marks: &[&str], line: &str| {
            let line = line.trim_start();
            marks.iter().any(|mark| line.starts_with(mark))
        };
        // Alone, dots are a body in Python, end a document in YAML and the parameters of a function in C, and go on with an
        // example.
        let is_body = is_yaml && lines.peek().is_none_or(|next| *next == "---")
            || lines.peek().is_some_and(|next| begins(&[")"], next))
            || begins(&[">>>", "..."], before)
            || before.ends_with([':', '"', '\''])
            || before.is_empty() && line.starts_with(' ');
        let is_dots = DOTS.contains(&comment(line).unwrap_or(line.trim()));
        let is_one = if is_dots {
            // Examples in documentation leave something out.
            let is_example = is_fenced || begins(&["///", "//!"], line);
            !is_example && (comment(line).is_some() || !is_body)
        } else {
            is_placeholder(line) && !ends_sentence(before, line)
        };
        if is_one && !old.lines().any(|before| before.trim() == line.trim()) {
            return Some(line);
        }
        if !line.trim().is_empty() {
            before = line.trim_end();
        }
    }
    None
}

/// Whether a comment ends a sentence of the one `before` it: `/// Otherwise it is⏎/// unchanged.`
fn ends_sentence(before: &str, line: &str) -> bool {
    let is_open = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || c == ',');
    comment(before).is_some_and(is_open) && line.ends_with('.') && !ends_with_dots(line)
}

/// The words of a text in lowercase.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn has(words: &[String], list: &str) -> bool {
    words
        .iter()
        .any(|word| list.split_whitespace().any(|it| it == word))
}

/// What a comment says, without its marks.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim();
    let inside = COMMENTS
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .map(|rest| rest.trim_start_matches(['/', '*', '#', '-', '!']))?;
    let is_end = |c: char| c.is_whitespace() || "*/->})]%#".contains(c);
    Some(inside.trim().trim_end_matches(is_end))
}

fn begins_with_dots(text: &str) -> bool {
    DOTS.iter().any(|dots| text.starts_with(dots))
}

fn ends_with_dots(text: &str) -> bool {
    DOTS.iter().any(|dots| text.ends_with(dots))
}

fn is_placeholder(line: &str) -> bool {
    let line = line.trim();
    // Without a following blank the dots are the spread operator.
    let is_noted = || line.starts_with("...[") && line.ends_with(']');
    let is_bare = || ["... ", "… "].iter().any(|dots| line.starts_with(dots)) || is_noted();
    let Some(inside) = comment(line).or_else(|| is_bare().then_some(line)) else {
        return false;
    };
    if DOTS.contains(&inside) {
        return true;
    }
    let words = words(inside);
    if words.is_empty() || words.len() > 12 {
        return false;
    }
    let has = |list| has(&words, list);
    let is_one_of = |word: &String| {
        [MISSING, STATES, TEXTS, BETWEEN]
            .iter()
            .any(|list| list.split_whitespace().any(|it| it == word))
    };
    let ends = ends_with_dots(inside);
    let is_only = words.iter().all(is_one_of);
    if begins_with_dots(inside) {
        return has(MISSING) || is_only && (ends || has(TEXTS));
    }
    let said = words.join(" ");
    // The other words are one noun at most, and say nothing about what happens to it.
    let others = words.iter().filter(|word| !is_one_of(word)).count();
    let is_rest = said.trim_start_matches("the ").starts_with("rest of ") && others < 2;
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
            "...[truncated]",
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

    /// Omissions in languages that no list here has, in each syntax of comments and at each place of a text.
    #[test]
    fn a_comment_with_dots_for_omitted_lines_is_a_placeholder_in_any_language() {
        let words = [
            "Rest des Codes bleibt gleich",
            "fichier sinon inchangé",
            "el resto sigue igual",
            "il resto rimane invariato",
            "o restante permanece igual",
            "de rest blijft hetzelfde",
            "остальной код без изменений",
            "решта коду без змін",
            "其余代码保持不变",
            "其餘程式碼不變",
            "残りのコードは変更なし",
            "나머지 코드는 동일",
            "بقية الكود كما هي",
            "שאר הקוד ללא שינוי",
            "बाकी कोड वही रहेगा",
            "phần còn lại giữ nguyên",
            "kodun geri kalanı aynı",
            "reszta kodu bez zmian",
            "as in the original",
            "snip",
        ];
        let comments = [
            ("//", ""),
            ("#", ""),
            ("--", ""),
            ("/*", " */"),
            ("<!--", " -->"),
            ("{/*", " */}"),
            (";", ""),
            ("%", ""),
        ];
        let old = ["a = 1", "b = 2", "", "c = 3", "d = 4", "e = 5", "f = 6"];
        for words in words {
            for (begin, end) in comments {
                for said in [
                    format!("... {words} ..."),
                    format!("{words}..."),
                    format!("… {words}"),
                    format!("{words} …"),
                ] {
                    let line = format!("{begin} {said}{end}");
                    for range in [0..2, 1..4, 3..6, 3..7] {
                        let mut new = old.map(str::to_owned).to_vec();
                        new.splice(range, [line.clone()]);
                        assert_eq!(added(&old.join("\n"), &new.join("\n")), Some(line.as_str()));
                    }
                    // In the place of one line, beside new code, or added, it may say anything.
                    let mut beside = old.map(str::to_owned).to_vec();
                    beside.splice(3..6, [line.clone(), "x = 9".to_owned()]);
                    let mut one = old.map(str::to_owned).to_vec();
                    one.splice(3..4, [line.clone()]);
                    let mut more = old.map(str::to_owned).to_vec();
                    more.insert(4, line.clone());
                    for new in [beside, one, more] {
                        assert_eq!(replaces(&old.join("\n"), &new.join("\n")), None, "{line}");
                    }
                }
            }
        }
        for rest in ["// rest of the items", "<!-- The rest of it -->", "# rest"] {
            let old = "a = 1\nb = 2\nc = 3";
            assert_eq!(added(old, &format!("a = 1\n{rest}")), Some(rest));
            assert_eq!(added(old, &format!("{old}\n{rest}")), None, "{rest}");
            let old = "<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>";
            let changed = format!("<ul class=\"x\">\n{rest}\n</ul>");
            assert_eq!(added(old, &changed), Some(rest), "beside a changed line");
            let new = format!("<ol>\n{rest}\n</ul>");
            assert_eq!(added(old, &new), None, "beside a new line");
        }
        for (old, new) in [
            ("x = 1\ny = 2\nz = 3", "x = 1\n# see y.py"),
            ("x = 1\ny = 2\nz = 3", "x = 1\nprint('Loading...')"),
            ("# a\n# b ...\n# c", "# a b c"),
            ("// a\n// b", "// the rest of a and b"),
            ("", "# Waiting ...\nwait()"),
        ] {
            assert_eq!(added(old, new), None, "{new}");
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
        assert_eq!(added("x\n", "/// ... rest ...\n"), Some("/// ... rest ..."));
        for body in [
            "def f():\n    ...\n",
            "class A:\n    \"\"\"A.\"\"\"\n    ...\n",
            "    ...\n",
            "int f(\n    const char *format,\n    ...\n);\n",
            "# Use\n```rust\nfn main() {\n    // ...\n}\n```\n",
            "/// # fn f() {\n///     ...\n/// # }\n",
            "/// Otherwise the value is\n/// unchanged.\n",
        ] {
            assert_eq!(added("x\n", body), None);
        }
    }
}
