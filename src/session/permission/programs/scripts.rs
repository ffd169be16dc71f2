//! Scripts of `sed` and `awk`, and whether they only change text.

use super::{OPEN, name};

/// Whether all of a `sed` script is addresses and commands that only change text.
fn is_plain_sed(script: &str) -> bool {
    // A bracket may hide the delimiter.
    let field = |rest: &mut std::str::Chars<'_>, delimiter: char| {
        let mut text = String::new();
        while let Some(next) = rest.next() {
            match next {
                '\\' => text.extend(rest.next()),
                '\n' => return false,
                _ if next == delimiter => {
                    let open = text
                        .rfind('[')
                        .map_or("]", |at| text.get(at..).unwrap_or_default());
                    return open.contains(']') && !text.contains("[]") && !text.contains("[^]");
                }
                _ => text.push(next),
            }
        }
        false
    };
    let ends = |rest: &std::str::Chars<'_>| {
        let next = rest.as_str().trim_start_matches(' ').chars().next();
        next.is_none_or(|next| ";}\n".contains(next))
    };
    let mut rest = script.chars();
    while let Some(next) = rest.next() {
        let is_plain = match next {
            ' ' | ';' | '\n' | '{' | '}' | '!' | ',' | '$' | '+' | '~' | '0'..='9' => true,
            '/' => field(&mut rest, '/'),
            's' => rest.next().is_some_and(|delimiter| {
                let is_read = delimiter.is_ascii_punctuation()
                    && delimiter != '\\'
                    && field(&mut rest, delimiter)
                    && field(&mut rest, delimiter);
                let flags = |c: char| c.is_ascii_digit() || "gpiI".contains(c);
                rest = rest.as_str().trim_start_matches(flags).chars();
                is_read && ends(&rest)
            }),
            ':' | 'b' | 't' | 'T' => {
                let label = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let named = rest.as_str().trim_start_matches(' ');
                rest = named.trim_start_matches(label).chars();
                ends(&rest)
            }
            next => "=dDgGhHlnNpPqQx".contains(next) && ends(&rest),
        };
        if !is_plain {
            return false;
        }
    }
    true
}

/// Whether the arguments of `sed` or `awk` are a script that starts nothing; `None` for another program.
pub(super) fn is_plain_script(name: &str, arguments: &[String]) -> Option<bool> {
    let is_awk = match name {
        "awk" | "gawk" | "mawk" | "nawk" => true,
        "sed" => false,
        _ => return None,
    };
    let (mut scripts, mut operands) = (Vec::new(), Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-') else {
            operands.push(word);
            continue;
        };
        if is_awk {
            if !letters.starts_with(['F', 'v']) {
                return Some(false);
            }
            if letters.len() == 1 {
                words.next();
            }
        } else if letters.ends_with('e') && !letters.starts_with('i') {
            scripts.extend(words.next());
        }
        let known = |letters: &str| letters.chars().all(|letter| "Einrsuz".contains(letter));
        if !is_awk
            && !letters.starts_with('i')
            && !known(letters.strip_suffix('e').unwrap_or(letters))
        {
            return Some(false);
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    let is_plain = |script: &&String| {
        // An indirect call: a variable holds the function's name, which may be put together. Blanks may follow the `@`.
        let calls = |(at, _)| {
            let is_between = |c: char| c.is_whitespace() || c == '\\';
            let name = script.get(at + 1..).unwrap_or_default();
            let name = name.trim_start_matches(is_between);
            name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        };
        if script.contains(OPEN) {
            false
        } else if is_awk {
            let starts = script.replace("||", "").contains('|') || script.contains("system");
            !starts && !script.match_indices('@').any(calls)
        } else {
            is_plain_sed(script)
        }
    };
    Some(!scripts.is_empty() && scripts.iter().all(is_plain))
}

/// Whether it is `sed` or `awk`.
pub(in crate::session::permission) fn is_script(program: &str) -> bool {
    is_plain_script(&name(program), &[]).is_some()
}
