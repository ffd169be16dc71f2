//! What leaks into arguments from the envelope of a call: marks that end it, and other arguments. Pure.
//!
//! Servers split an envelope at its marks, and models write marks in places where theirs do not expect them. What is
//! cut off here has no beginning in the argument, so no file has it by itself. The texts of a replacement are parts of a
//! file: there [the file decides](bare).

use serde_json::Value;

use super::super::names;
use super::foreign::{is_argument, means, meant_by};
use crate::text::Fields;
use crate::text::marks::{self, Kind};
use crate::text::repair::{self, PATCH, PATCH_ARGUMENT};

/// How many arguments may have been swallowed.
const SWALLOWED: usize = 8;

/// Cuts marks off keys and the ends of texts. An argument that another one has swallowed becomes its own again.
pub(super) fn repair(fields: &mut Fields, properties: &Fields) {
    for (key, value) in std::mem::take(fields) {
        let is_ours = meant_by(&key, properties).is_some();
        let clean = names::bare(&key);
        // A value may have got into its key.
        let value = match key.rsplit_once("<arg_value>") {
            Some((_, own)) if value == "" => own.into(),
            _ => value,
        };
        if is_ours || meant_by(clean, properties).is_none() || fields.contains_key(clean) {
            fields.insert(key, value);
        } else {
            fields.insert(clean.to_owned(), value);
        }
    }
    let names: Vec<String> = fields.keys().cloned().collect();
    for name in names {
        for _ in 0..SWALLOWED {
            let Some(Value::String(text)) = fields.get(&name) else {
                break;
            };
            let is_missing = |key: &str| {
                meant_by(key, properties).is_some_and(|ours| {
                    !fields
                        .keys()
                        .any(|name| meant_by(name, properties) == Some(ours))
                })
            };
            let text = marks::plain(text).into_owned();
            if let Some(own) = before_copy(&text, fields, &name) {
                fields.insert(name, own.into());
                break;
            }
            let Some((own, key, rest)) = swallowed(&text, &name, &is_missing) else {
                break;
            };
            fields.insert(name.clone(), own.into());
            fields.insert(key.to_owned(), rest.into());
        }
    }
    let is_document = fields
        .values()
        .any(|value| value.as_str().is_some_and(is_document));
    for (name, value) in fields.iter_mut() {
        let Some(ours) = meant_by(name, properties) else {
            continue;
        };
        let Value::String(text) = &*value else {
            continue;
        };
        let inside = headless(unwrapped(text, ours), ours);
        let clean = match ours {
            "old_text" | "new_text" => inside,
            PATCH_ARGUMENT => Some(without_end(inside, ours, is_document))
                // Before a line of a file, there is a sign or a blank.
                .filter(|patch| patch.ends_with('\n') || patch.trim_end().ends_with(PATCH.1))
                .unwrap_or(inside),
            "content" => {
                let clean = without_end(inside, ours, is_document);
                without_end(unfenced(clean, is_document), ours, is_document)
            }
            "command" => uncoded(without_end(inside, ours, is_document)),
            _ => without_end(inside, ours, is_document),
        };
        if let Some(lines) = (ours == "content")
            .then(|| without_numbers(clean))
            .flatten()
        {
            *value = lines.into();
            continue;
        }
        if clean.len() < text.len() && !clean.trim().is_empty() {
            // A line break before the mark belongs to the mark, unless the text is a file's.
            let clean = if ours == "content" {
                clean
            } else {
                clean.strip_suffix('\n').unwrap_or(clean)
            };
            *value = clean.into();
        }
    }
}

/// The texts of a replacement without trailing marks that nothing in them opens. The caller compares them with the file,
/// in which an end may have its beginning elsewhere.
pub(crate) fn bare<'a>(old_text: &'a str, new_text: &'a str) -> [&'a str; 2] {
    let replaces_lines = old_text.ends_with('\n');
    let clean = |(text, ours)| without_end(text, ours, false);
    let texts = [(old_text, "old_text"), (new_text, "new_text")];
    let [old, new] = texts.map(clean);
    // Before a line of the file, the end of a line that only the new text has is its own.
    if old == old_text && new_text.ends_with('\n') && !new.ends_with('\n') {
        return [old_text, new_text];
    }
    [(old_text, old), (new_text, new)].map(|(text, clean)| {
        if clean.len() == text.len() || clean.trim().is_empty() {
            return text;
        }
        // A line break before the mark belongs to the mark, unless whole lines are replaced.
        let line = clean.strip_suffix('\n').filter(|_| !replaces_lines);
        line.unwrap_or(clean)
    })
}

/// A text without the trailing marks that it does not open itself.
fn without_end<'a>(text: &'a str, ours: &str, is_document: bool) -> &'a str {
    let clean = without_marks(before_next(text, ours, is_document), ours, is_document);
    let line = clean.rsplit('\n').next().unwrap_or_default();
    let is_of_file = ours == "content" || ours.ends_with("_text");
    // The last word of a sentence or a setting is not a mark; several are.
    let is_word = |c: char| c.is_whitespace() || c == '=';
    let is_one = || text.split_at(clean.len()).1.matches(['<', '[']).count() < 2;
    if is_of_file && !line.trim().is_empty() && line.ends_with(is_word) && is_one() {
        return text;
    }
    clean
}

/// The text in the element that an argument of one line came in: `<path>a.rs</path>`, `<![CDATA[a.rs]]>`.
fn unwrapped<'a>(text: &'a str, ours: &str) -> &'a str {
    const OF_ONE_LINE: [&str; 3] = ["path", "cwd", "command"];
    let line = text.trim();
    let cdata = || line.strip_prefix("<![CDATA[")?.strip_suffix("]]>");
    let element = || {
        let (name, inside) = line.strip_prefix('<')?.split_once('>')?;
        let inside = inside.strip_suffix('>')?.strip_suffix(name)?;
        inside.strip_suffix("</")
    };
    let mut quotes = ["<|\"|>", "<escape>"].into_iter();
    let quoted = quotes.find_map(|quote| line.strip_prefix(quote)?.strip_suffix(quote));
    // A token for quotes surrounds only arguments. What is left between two of them is not a file's name.
    let half = || {
        let inside = line.trim_matches(['<', '|', '"', '>']);
        let is_half = inside.len() + 1 < line.len() && line.contains('|') && !inside.contains('|');
        (ours == "path" && is_half).then_some(inside)
    };
    let of_line = || cdata().or_else(element).or_else(half);
    quoted
        .or_else(|| OF_ONE_LINE.contains(&ours).then(of_line)?)
        .unwrap_or(text)
}

/// The key of an argument whose mark a text begins with, without attributes, and what follows it.
fn keyed(text: &str) -> Option<(&str, &str)> {
    let (key, _, rest) = marks::keyed().find_map(|(begin, _)| marks::named(text, begin))?;
    Some((key, rest))
}

/// A text without the mark that begins its argument, where it has the end of it too.
fn headless<'a>(text: &'a str, ours: &str) -> &'a str {
    let begun = text.trim_start();
    let named = keyed(begun).filter(|(key, _)| means(key, ours));
    let inside = named.map(|(_, inside)| inside);
    let inside = inside.or_else(|| marks::after(begun, "<arg_value>"));
    let own = |inside| Some(marks::without_ends(inside)).filter(|own| own.len() < inside.len());
    inside.and_then(own).unwrap_or(text)
}

/// A text without the marks at its end that nothing in it begins: those of a family, the end of the argument's own tag,
/// and the tags that end after one of them.
fn without_marks<'a>(text: &'a str, ours: &str, is_document: bool) -> &'a str {
    // The beginning of an argument that never came, and of its tag.
    let tags = marks::begins(&[Kind::Argument]).filter(|begin| !marks::is_token(begin));
    let mut clean = marks::without_ends(text);
    let mut begins = tags.map(|begin| marks::pending(clean, begin));
    let begun = begins.find(|length| *length > SHORTEST_BEGINNING);
    let mut rest = clean.split_at(clean.len() - begun.unwrap_or(0)).0;
    for _ in 0..ENDS {
        let before = marks::without_ends(rest);
        if before.len() < rest.len() {
            (clean, rest) = (before, before);
            continue;
        }
        let Some((before, tag)) = ended(rest) else {
            break;
        };
        rest = before;
        // A file does not use another tool's word for an argument, and a document does not end what it never began.
        let is_foreign =
            || tag.contains('_') && is_argument(tag) || is_document && clean.len() < text.len();
        // `</body>` is a word of a page, too.
        let is_its = match ours {
            // No file ends an element with a two-part name that it never began.
            "content" => names::squash(tag).contains(ours) || tag.contains('_'),
            _ => means(tag, ours),
        };
        if is_its || is_foreign() {
            clean = before;
        }
    }
    // What still ends something that it never began is a part of a page, and so are its other ends.
    if clean.len() == text.len() || ended(clean).is_some() {
        return text;
    }
    without_json(clean)
}

/// How many marks may end a text.
const ENDS: usize = 16;

/// What is before the closing tag that a text ends with and never began, and the name of it.
fn ended(text: &str) -> Option<(&str, &str)> {
    let (before, tag) = text.trim_end().strip_suffix('>')?.rsplit_once("</")?;
    let is_name = tag
        .chars()
        .all(|c| c.is_alphanumeric() || "_-:".contains(c));
    (is_name && !marks::is_open(before, own_name(tag))).then_some((before, tag))
}

/// The name of a tag without its namespace.
fn own_name(tag: &str) -> &str {
    tag.rsplit(':').next().unwrap_or(tag)
}

/// From how many bytes on the end of a text is the beginning of a tag.
const SHORTEST_BEGINNING: usize = 4;

/// A text from which marks were cut, without the end of the JSON around it, which nothing in the text begins.
fn without_json(text: &str) -> &str {
    let inside = text.trim_end().trim_end_matches(['}', ']', ')']);
    let has_more = |signs: &str| {
        let mut counts = signs.chars().map(|sign| text.matches(sign).count());
        counts.next() < counts.next()
    };
    let mut quotes = ["<|\"|>", "\""].into_iter();
    quotes
        .find_map(|quote| inside.strip_suffix(quote))
        .filter(|_| ["{}", "[]", "()"].iter().any(|signs| has_more(signs)))
        .unwrap_or(text)
}

/// The argument's own text, if it ends with a copy of another argument of the call.
fn before_copy<'a>(text: &'a str, fields: &Fields, name: &str) -> Option<&'a str> {
    text.rmatch_indices('<').find_map(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let (key, value) = keyed(rest)?;
        let own = marks::without_ends(value).trim();
        let is_copy = key != name && fields.get(key).is_some_and(|it| it == own);
        is_copy.then(|| before.strip_suffix("\n\n").unwrap_or(before.trim_end()))
    })
}

/// The argument's own text, and the key and the text of the one that it swallowed: one that the call does not have, in
/// the form of a family and after the end of the argument. An argument of one line that is not a command needs no end
/// before the next line.
fn swallowed<'a>(
    text: &'a str,
    name: &str,
    is_missing: &dyn Fn(&str) -> bool,
) -> Option<(&'a str, &'a str, &'a str)> {
    let own = |at: usize| {
        let (before, line) = (text.split_at(at).0, text.trim().lines().next());
        let is_line = before.ends_with('\n') && Some(before.trim()) == line;
        let own = own(before.trim_end(), name);
        own.or(line.filter(|_| is_line && !means(name, "command")))
    };
    text.match_indices('<').find_map(|(at, _)| {
        let rest = text.split_at(at).1;
        let (key, value) = keyed(rest)
            .or_else(|| {
                let (key, rest) = marks::after(rest, "<arg_key>")?.split_once("</arg_key>")?;
                Some((key.trim(), marks::after(rest.trim_start(), "<arg_value>")?))
            })
            .or_else(|| rest.strip_prefix('<')?.split_once('>'))?;
        is_missing(key).then(|| Some((own(at)?, key, value.strip_prefix('\n').unwrap_or(value))))?
    })
}

/// A text without the end of an argument, of a family or of its own, that it ends with.
fn own<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let ended = |end: &str| {
        let (from, to) = marks::all(text, end).last()?;
        (to == text.len()).then(|| text.split_at(from).0)
    };
    let family = marks::ends(&[Kind::Argument]).find_map(ended);
    family.or_else(|| ended(&format!("</{name}>")))
}

/// A text up to the marks that end its argument, where another argument, call or message follows them: nothing in the
/// text begins what they end. A call that was cut needs none before it.
fn before_next<'a>(text: &'a str, name: &str, is_document: bool) -> &'a str {
    let mut begins = text
        .match_indices(['<', '[', ']'])
        .map(|(at, _)| text.split_at(at));
    let found = begins.find_map(|(before, rest)| {
        let is_call = marks::begins_call(rest);
        let is_argument = || {
            keyed(rest).is_some()
                || rest
                    .split_once('>')
                    .is_some_and(|(tag, _)| tag.contains('_') && !tag.contains(' '))
        };
        let is_message = !is_call && marks::begins_another(rest);
        if (is_call || is_message) && !is_document && is_cut(before, rest) {
            return Some(before);
        }
        if !is_call && !is_message && !is_argument() || is_quoted(before) {
            return None;
        }
        let ended = before.trim_end();
        // An element may end before another one, but no argument, nor what is a token.
        let clean = marks::without_ends(ended);
        let (_, mark) = ended.split_at(clean.len().min(ended.len()));
        let mark = mark.trim_start();
        let is_end = marks::ends(&[Kind::Argument]).any(|end| marks::after(mark, end).is_some());
        let is_token = || !mark.starts_with("</") && !marks::begins_another(mark);
        // A template of messages has the ends of them, but no end of an argument.
        if (is_call || is_message) && is_end || is_call && !mark.is_empty() && is_token() {
            return Some(clean);
        }
        let own = own(ended, name)?;
        let tag = ended.strip_prefix(own)?.trim_matches(['<', '/', '>']);
        (!own.contains(&format!("<{tag}"))).then_some(own)
    });
    found.unwrap_or(text)
}

/// Whether a text ends in a code fence or after a backtick.
fn is_quoted(text: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap_or_default();
    let is_odd = |count: usize| count % 2 == 1;
    is_odd(text.matches("```").count()) || is_odd(line.matches('`').count())
}

/// Whether a call is all of the last line and its JSON is not complete.
fn is_cut(before: &str, call: &str) -> bool {
    let is_cut = call
        .find("{\"")
        .is_some_and(|at| repair::first_value(call.split_at(at).1).is_none());
    is_cut && !call.contains('\n') && before.ends_with('\n')
}

/// The text of a file whose every line has its number and an arrow before it, as other agents show files.
fn without_numbers(text: &str) -> Option<String> {
    let lines = text.split_inclusive('\n').zip(1_usize..);
    let own = lines.map(|(line, number)| {
        let (before, own) = line.split_once('→')?;
        (before.trim_start().parse() == Ok(number)).then_some(own)
    });
    own.collect::<Option<String>>()
        .filter(|own| own.contains('\n'))
}

/// Whether a name is one of a text in which code fences are part of what it says.
fn is_document(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["md", "mdx", "markdown", "rst", "adoc", "txt"]
        .contains(&extension.to_ascii_lowercase().as_str())
}

/// The command that is marked as code: in a shell, the backticks would run what it prints.
fn uncoded(command: &str) -> &str {
    let line = command.trim();
    let inside = line.trim_matches('`');
    let is_span = line.starts_with('`') && line.ends_with('`') && !inside.contains(['`', '\n']);
    if is_span {
        inside
    } else {
        crate::text::unfenced(command)
    }
}

/// The text of a file without the code fence around it, or the one that only ends it.
fn unfenced(text: &str, is_document: bool) -> &str {
    const FENCE: &str = "```";
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with(FENCE))
        .count();
    let trimmed = text.trim_end();
    match trimmed.strip_suffix(FENCE) {
        Some(inside) if fences == 1 && inside.ends_with('\n') => inside,
        Some(inside) if fences == 2 && !is_document && text.starts_with(FENCE) => inside
            .split_once('\n')
            .map_or(text, |(_language, inside)| inside),
        _ => text,
    }
}
