//! The marks at the edges of an answer, an argument or a message: what may be cut off there, by its shape. Pure.

use super::Kind::{Argument, Calls, Named, Stop};
use super::{
    ALL, BRACKETS, CLOSING, Kind, LONGEST_NAMESPACE, LONGEST_TOKEN, QUOTE, SIGNS, after, begins,
    begins_spelling, ends, find, is_bar, is_of_name, may_become, names, opened, pairs, spelled,
    split_name,
};

/// The speaker, if the tokens around the word are gone, and the heading of an answer in Alpaca's template.
const SPEAKERS: [&str; 2] = ["assistant", "response"];
/// The senders of messages in chat templates.
pub(crate) const SENDERS: [&str; 6] = ["assistant", "model", "user", "system", "developer", "tool"];

/// The kinds of marks that surround an argument. Thoughts and the parts of an answer do not.
const AROUND_ARGUMENTS: [Kind; 4] = [Calls, Named, Argument, Stop];

fn is_sender(word: &str) -> bool {
    SENDERS.iter().any(|it| it.eq_ignore_ascii_case(word))
}

/// What follows a mark that ends something of a call or an answer: a row of the table, or a token. A sender may follow
/// a token.
pub(crate) fn after_end<'a>(text: &'a str, kinds: &[Kind]) -> Option<&'a str> {
    if let Some(rest) = ends(kinds).find_map(|end| after(text, end)) {
        return Some(rest);
    }
    if let Some(rest) = odd_closing(text) {
        return Some(rest);
    }
    let (_, rest) = token(text)?;
    let mut sent = SENDERS
        .iter()
        .filter_map(|sender| spelled(rest.trim_start(), sender));
    let sent = sent.find(|rest| !rest.starts_with(char::is_lowercase));
    Some(sent.map_or(rest, |rest| rest.strip_prefix(':').unwrap_or(rest)))
}

/// What follows a closing tag with any name; the last one may have been cut.
fn closing(text: &str) -> Option<&str> {
    let (_, name) = opened(text).filter(|(open, _)| *open == "</")?;
    let (name, rest) = split_name(name);
    let end = rest.trim_start_matches(' ');
    let ended = end.strip_prefix('>').or_else(|| spelled(end, CLOSING));
    let cut = || end.trim().is_empty().then_some("");
    (!name.is_empty()).then(|| ended.or_else(cut))?
}

/// The same, spelled as in no file.
fn odd_closing(text: &str) -> Option<&str> {
    let (close, _) = BRACKETS[1];
    spelled(text, close).and_then(|_| closing(text))
}

/// What follows a mark that stands at an edge of an answer, where nothing began what it ends: besides those of the table
/// and tokens any closing tag.
pub(crate) fn after_edge(text: &str) -> Option<&str> {
    after_end(text, &ALL).or_else(|| closing(text))
}

/// What follows all such marks that a text begins with.
pub(crate) fn after_edges(text: &str) -> &str {
    let mut rest = text;
    while let Some(after) = after_edge(rest) {
        rest = after.trim();
    }
    rest
}

/// What follows a mark that an answer begins with and that says nothing: whatever may stand at an [edge](after_edge),
/// where no call follows, or the word for who speaks as a line of its own. A mark that is only mentioned is followed by
/// a blank and no capital letter.
pub(crate) fn after_header(text: &str) -> Option<&str> {
    if let Some(rest) = speaker(text) {
        let end = rest.trim_start_matches([' ', '\t']);
        return end.strip_prefix([':', '\n']).map(str::trim_start);
    }
    let headers = ["<|start|>", "<|from|>"];
    let may_address = headers.iter().any(|it| after(text, it).is_some());
    let rest = after_edge(text).filter(|_| !may_address && !begins_call(text))?;
    // It may be an unknown mark of a call.
    let may_call =
        |(name, rest): (&str, &str)| names::is_head(name) || rest.trim_start().starts_with('{');
    (!is_spoken_of(rest) && !token(text).is_some_and(may_call)).then_some(rest)
}

/// What follows the word for who speaks, or for an answer as a heading.
fn speaker(text: &str) -> Option<&str> {
    let heading = text.trim_start_matches(['#', ' ']);
    if heading.len() == text.len() {
        return spelled(text, SPEAKERS[0]);
    }
    let mut rests = SPEAKERS.iter().filter_map(|it| spelled(heading, it));
    rests.find(|rest| rest.starts_with(':') || rest.is_empty())
}

/// Whether a text may become what [`after_header`] skips, or is it so far and may become a call.
pub(crate) fn may_become_header(text: &str) -> bool {
    let is_undecided = |rest: &str| {
        rest.bytes().all(|it| it == b' ')
            || may_become_sender(rest)
            || begins(&[Calls, Named]).any(|mark| may_become(text, mark))
    };
    let heading = text.trim_start_matches(['#', ' ']);
    !text.is_empty()
        && (may_become_end(text, &ALL)
            || SPEAKERS.iter().any(|it| begins_spelling(heading, it))
            || speaker(text).is_some_and(|rest| rest.trim().is_empty())
            || after_edge(text).is_some_and(is_undecided))
}

/// Whether a sender begins with a text.
pub(crate) fn may_become_sender(text: &str) -> bool {
    SENDERS.iter().any(|sender| begins_spelling(text, sender))
}

/// Whether a text begins with a message of somebody else, after the ends of the previous one; `None` if it may:
/// `<|im_end|>\n<|im_start|>user`, `<|user|>`, `[INST]`.
pub(crate) fn begins_foreign(text: &str) -> Option<bool> {
    const REQUEST: &str = "[INST]";
    let senders = &SENDERS[2..];
    let mut rest = text;
    loop {
        if rest.starts_with(REQUEST) {
            return Some(true);
        }
        if rest.is_empty() || begins_spelling(rest, REQUEST) || may_become_end(rest, &[Stop]) {
            return None;
        }
        let named = token(rest).map(|(name, after)| (name, after.trim_start()));
        if let Some((name, after)) = named
            && senders.iter().any(|it| it.eq_ignore_ascii_case(name))
        {
            return (!after.is_empty()).then_some(true);
        }
        // One of GPT-OSS has a channel and more.
        if let Some((name, after)) = named
            && names::is_message(name)
            && name != "start"
        {
            if senders.iter().any(|it| begins_spelling(after, it)) {
                return None;
            }
            let mut sent = senders.iter().filter_map(|it| spelled(after, it));
            return Some(sent.any(|rest| !rest.starts_with(is_of_name)));
        }
        match after_end(rest, &[Stop]) {
            Some(after) => rest = after.trim_start(),
            None => return Some(false),
        }
    }
}

/// Whose message an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    Model,
    Other,
}

/// Who speaks after the header between `text` and `rest`, if it says so.
pub(crate) fn speaker_of_header(text: &str, rest: &str) -> Option<Speaker> {
    let header = text.split_at(text.len() - rest.len()).0.to_lowercase();
    let is_own = SENDERS[..2].iter().any(|it| header.contains(it));
    let other = opens_foreign(text).then_some(Speaker::Other);
    other.or(is_own.then_some(Speaker::Model))
}

/// Whether a text begins with the mark of somebody else's message, by its name or the sender behind it, or of what a call
/// gave: `<|user|>`, `<seed:bos>tool`, `[TOOL_RESULTS]`.
fn opens_foreign(text: &str) -> bool {
    let name = text.strip_prefix(['<', '[']).unwrap_or_default();
    let has_bar = name.starts_with(is_bar);
    let (name, rest) = split_name(name.trim_start_matches(is_bar));
    let rest = rest.trim_start_matches(is_bar).strip_prefix(['>', ']']);
    let is_other = |word: &str| SENDERS[2..].iter().any(|it| it.eq_ignore_ascii_case(word));
    let is_sent = |rest: &str| {
        let word = rest.trim_start().split(|c| !is_of_name(c)).next();
        token(text).is_some() && word.is_some_and(is_other)
    };
    let is_named = names::is_of_other(name) || has_bar && is_other(name);
    rest.is_some_and(|rest| is_named || is_sent(rest))
}

/// Whether a text begins with the mark of a call or of a message.
pub(crate) fn begins_another(text: &str) -> bool {
    begins_call(text) || token(text).is_some_and(|(name, _)| names::is_message(name))
}

/// Whether a text begins with the mark of a call.
pub(crate) fn begins_call(text: &str) -> bool {
    begins(&[Calls, Named]).any(|mark| after(text, mark).is_some())
}

/// Whether a sentence ends with a character.
pub(crate) fn ends_sentence(character: char) -> bool {
    matches!(
        character,
        '.' | '!' | '?' | '…' | '。' | '！' | '？' | '．' | '｡'
    )
}

/// Whether the text after a mark talks about it: a blank is followed by neither the beginning of a sentence nor another mark.
pub(crate) fn is_spoken_of(rest: &str) -> bool {
    let next = rest.trim_start_matches(' ');
    let begins = |c: char| c.is_uppercase() || matches!(c, '<' | '[' | '\n');
    next.len() < rest.len() && !next.starts_with(begins)
}

/// Whether a text is the beginning of a mark that ends an answer.
pub(crate) fn may_become_end(text: &str, kinds: &[Kind]) -> bool {
    let is_token = text.strip_prefix(['<', '[']).is_some_and(|inside| {
        let is_free = text.starts_with('<') || inside.starts_with(is_bar);
        inside.len() < LONGEST_TOKEN
            && inside.chars().all(|c| {
                if is_free {
                    is_bar(c) || is_in_token(c)
                } else {
                    is_upper(c)
                }
            })
    });
    is_token || ends(kinds).any(|end| may_become(text, end))
}

/// The name of the token that a text begins with, and what follows: `<|eot_id|>`, `<|turn>`, `<channel|>`, `<eos>`,
/// `[|endofturn|]`, `[/INST]`. Its shape decides, or its name.
fn token(text: &str) -> Option<(&str, &str)> {
    let (inside, close) = match text.strip_prefix('<') {
        Some(inside) => (inside, '>'),
        None => (text.strip_prefix('[')?, ']'),
    };
    let near = inside.floor_char_boundary(LONGEST_TOKEN);
    let at = inside.split_at(near).0.find(close)?;
    let (whole, rest) = (inside.split_at(at).0, inside.split_at(at + 1).1);
    let name = whole.trim_matches(|c| is_bar(c) || matches!(c, ' ' | '\\' | '/'));
    let begun = whole.trim_start_matches('/');
    let bars = [begun.starts_with(is_bar), whole.ends_with(is_bar)];
    let plain = name.rsplit(':').next().unwrap_or(name);
    let is_one = if close == '>' {
        bars.contains(&true) || names::is_bare(plain) || names::is_numbered(name)
    } else {
        bars == [true; 2]
            || name.chars().all(is_upper)
                && (whole.starts_with('/')
                    || names::is_bare(name)
                    || name.contains('_') && names::is_numbered(name))
    };
    let is_name = !name.is_empty() && name.chars().all(is_in_token);
    let is_named = is_name && (!name.contains(' ') || bars == [true; 2]);
    (is_one && is_named).then_some((name, rest))
}

/// The token at the end of the part of an answer that begins with one, and what follows that: `<|begin_of_box|>` and
/// `<|end_of_box|>`.
pub(crate) fn part(text: &str) -> Option<(String, &str)> {
    let (name, inside) = token(text).filter(|_| bare(text).is_none())?;
    Some((names::end_of_part(name)?, inside))
}

/// A part of an answer that a text begins with, without its tokens, and what follows; `None` where it may go on.
pub(crate) fn framed(text: &str) -> Option<(&str, Option<&str>)> {
    const LONGEST: usize = 512;
    let (end, inside) = part(text)?;
    let (own, rest) = match find(inside, &end) {
        Some((from, to)) => (inside.split_at(from).0, Some(inside.split_at(to).1)),
        None => (inside.trim_end(), None),
    };
    // A message begins with its sender, and what may be a call with a bracket.
    let first = own.split(|c: char| !c.is_alphanumeric()).next();
    let is_more = first.is_some_and(is_sender) || own.starts_with(['{', '[']);
    let is_one = own.trim() == own && !is_more && own.len() < LONGEST;
    is_one.then_some((own, rest))
}

/// What a token without bars has in its brackets.
fn is_upper(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '_' | '/')
}

/// Characters allowed between the bars of a token.
fn is_in_token(c: char) -> bool {
    is_of_name(c) || " -.\\".contains(c)
}

/// An argument without the marks of calls that end it, where nothing in it begins them: they belong to what was around
/// it. A text with another token of the kind is about tokens, and stays.
pub(crate) fn without_ends(text: &str) -> &str {
    cut(text, &|here| {
        after_end(here, &AROUND_ARGUMENTS).filter(|_| !is_code(here))
    })
}

/// Whether a text begins with a bracket of code or of a section's heading (`cache[TOOL_RESULT]`, `ids + [EOS]`): only a
/// slash or a bar makes a mark of it.
fn is_code(text: &str) -> bool {
    let inside = text.strip_prefix('[');
    inside.is_some_and(|it| it.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether a text has one of the marks that `ends` has, or what begins it: another token, or a tag of its name.
pub(crate) fn has_any(text: &str, ends: &str) -> bool {
    let has_token = || rests(text).any(|rest| token(rest).is_some());
    rests(ends).any(|mark| {
        let name = opened(mark).map_or("", |(_, name)| split_name(name).0);
        !name.is_empty() && tags(text, name).next().is_some()
            || token(mark).is_some() && has_token()
            || is_begun(text, mark)
    })
}

/// An answer without the marks at its end. A mark that is only mentioned follows a word and a blank.
pub(crate) fn without_edges(text: &str) -> &str {
    cut(text, &|here| {
        let line = text.split_at(text.len() - here.len()).0;
        let line = line.rsplit('\n').next().unwrap_or_default();
        let last = line.trim_end();
        let is_spoken_of = last.len() < line.len() && last.ends_with(char::is_alphanumeric);
        after_edge(here)
            .or_else(|| unfinished(here).then_some(""))
            .filter(|_| !is_spoken_of)
    })
}

/// Whether a text is the beginning of a token that has its bar.
fn unfinished(text: &str) -> bool {
    let inside = text.trim_end().strip_prefix('<');
    let name = inside.and_then(|it| it.strip_prefix(is_bar));
    let name = name.map(|it| it.trim_end_matches(is_bar));
    name.is_some_and(|it| it.starts_with(char::is_alphabetic) && it.chars().all(is_of_name))
}

/// The name of the token without bars that a text begins with.
fn bare(text: &str) -> Option<&str> {
    let (name, rest) = token(text)?;
    let (mark, _) = text.split_at(text.len() - rest.len());
    Some(name).filter(|_| !mark.contains(is_bar))
}

/// Whether a text begins with a token that may be a word of the text, too.
fn is_word(text: &str) -> bool {
    bare(text).is_some_and(names::may_be_type)
}

/// A text without marks at its end that nothing in it begins; `after` reads one of them.
fn cut<'a>(text: &'a str, after: &dyn Fn(&'a str) -> Option<&'a str>) -> &'a str {
    let mut end = text.trim_end().len();
    let mut cut = Vec::new();
    for (at, _) in text.rmatch_indices(SIGNS) {
        if at + 4 * LONGEST_NAMESPACE < end {
            break;
        }
        let (before, here) = text.split_at(at);
        // The beginning of an argument that never came does not begin anything.
        let is_begin = |begin| Some((self::after(here, begin)?, true));
        let begun = || begins(&[Argument]).find_map(is_begin);
        // A row of a vocabulary has others beside it, and a type its own word before it.
        let word = before
            .rsplit(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let is_type = !word.is_empty() && !is_sender(word);
        let is_row = || before.ends_with('\n') && text.lines().filter(|it| is_word(it)).count() > 1;
        // Text after a blank belongs to its line: `#include <vector3>`.
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_in_line = line.ends_with(char::is_whitespace) && !line.trim().is_empty();
        if is_word(here) && (is_type || is_row()) || is_in_line && bare(here).is_some() {
            continue;
        }
        // The JSON around a token for quotes ends after it.
        let is_quote = self::after(here, QUOTE).is_some();
        let last = |c: char| c.is_whitespace() || is_quote && matches!(c, '}' | ']' | ')');
        if let Some((rest, is_begin)) = after(here).map(|rest| (rest, false)).or_else(begun)
            && text.len() - rest.trim_start_matches(last).len() >= end
        {
            end = before.trim_end().len();
            cut.push((at, is_begin));
        }
    }
    // An argument begins only after the end of another: `Vec<Args>`.
    while cut.pop_if(|(_, is_begin)| *is_begin).is_some() {}
    let cut: Vec<usize> = cut.into_iter().map(|(at, _)| at).collect();
    let Some(first) = cut.last() else {
        return text;
    };
    let (rest, marks) = text.split_at(*first);
    // Text that names a mark is about it.
    let is_orphan = |at: &usize| {
        let mark = text.split_at(*at).1;
        !is_begun(rest, mark) && !rest.contains(mark.trim_end())
    };
    if cut.iter().all(is_orphan) && !marks.is_empty() {
        rest
    } else {
        text
    }
}

/// Whether a text begins more elements of a name than it ends.
pub(crate) fn is_open(text: &str, name: &str) -> bool {
    let (begun, ended): (Vec<_>, Vec<_>) = tags(text, name).partition(|open| *open == "<");
    begun.len() > ended.len()
}

/// The rests of a text that begin with the first character of a mark.
fn rests(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(SIGNS).map(|(at, _)| text.split_at(at).1)
}

/// How each tag of a text with this name opens: `<` or `</`.
fn tags<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    text.match_indices(['<', ']']).filter_map(move |(at, _)| {
        let (open, rest) = opened(text.split_at(at).1)?;
        let rest = spelled(rest, name)?;
        (!rest.starts_with(is_of_name)).then_some(open)
    })
}

/// Whether a text begins what `end` begins with the end of: it has the tag, or another token.
fn is_begun(text: &str, end: &str) -> bool {
    if let Some(("</", name)) = opened(end) {
        let name = name.split_at(name.find(|c| !is_of_name(c)).unwrap_or(0)).0;
        return is_open(text, name);
    }
    if let Some(name) = end.strip_prefix("[/").and(bare(end)) {
        let begin = format!("[{name}").to_lowercase();
        return text.to_lowercase().contains(&begin);
    }
    let opens: String = end.chars().take(2).collect();
    let rows = pairs(&ALL).filter(|(_, its)| after(end, its).is_some());
    let mut begins = rows
        .map(|(begin, _)| begin)
        .filter(|begin| !begin.is_empty());
    token(end).is_some() && find(text, &opens).is_some()
        || begins.any(|begin| find(text, begin).is_some())
}
