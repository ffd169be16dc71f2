//! The marks that model families write around calls and thoughts and at the ends of answers: the one table of them. Pure.
//!
//! Models and servers spell a mark in more than one way. So letters are compared without case, the bars and blanks of
//! tokens (`｜`, `▁`) are those of ASCII, a tag may stand in any namespace (`<minimax:tool_call>`, `<｜DSML｜invoke`), with
//! its slash anywhere before the name, and its brackets may be tokens (Kimi K3) or follow one (`MiniMax` M3).
//!
//! The tokens that only begin or end an answer are not rows but a rule: `<|`, a name, `|>`. So are the names of most
//! marks around calls: in a row, `*` is a name made of the [words](names) for calls, in any order (`tool_calls`,
//! `start_action`), and `^` one that ends them (`/tool_call`, `tool_call_end`); for `+` one of the words is enough
//! (`function`). A name of thoughts is `?`, one that ends them `%`, one of an answer `$`.

mod edges;
mod names;

use std::borrow::Cow;

pub(crate) use self::edges::{
    SENDERS, Speaker, after_edge, after_edges, after_end, after_header, begins_another,
    begins_call, begins_foreign, ends_sentence, framed, has_any, is_open, is_spoken_of,
    may_become_end, may_become_header, may_become_sender, part, speaker_of_header, without_edges,
    without_ends,
};
pub(crate) use self::names::{THOUGHTS, is_kind_of_call, is_name_of_calls, words};

/// What a mark encloses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Calls.
    Calls,
    /// One call, whose name follows the beginning.
    Named,
    /// An argument.
    Argument,
    /// Thoughts.
    Thoughts,
    /// The answer proper; says nothing.
    Header,
    /// Nothing: it ends an answer, or says who speaks next.
    Stop,
}

use Kind::{Argument, Calls, Header, Named, Stop, Thoughts};

/// The beginning of a mark, its end, and what it encloses.
pub(crate) type Mark = (&'static str, &'static str, Kind);

/// All marks, and the model families that write them. Where one mark begins with another, it is above it.
#[rustfmt::skip]
pub(crate) const MARKS: &[Mark] = &[
    ("[*]", "[^]", Calls), // Mistral, LM Studio, MiniMax
    ("<|*|>", "<|^|>", Calls), // DeepSeek, Kimi, Phi, LFM, Command, InternLM, Solar, Llama 4, Apertus
    ("<|*>", "<*|>", Calls), // Gemma 4
    ("<*>", "</*>", Calls), // Hermes, Qwen, GLM, MiniMax, Seed, Hunyuan, Nemotron, Granite, Claude, LongCat
    ("<|python_tag|>", "<|eom_id|>", Calls), // Llama 3
    ("<start_function_call>", "<end_function_call>", Calls), // FunctionGemma
    ("<*>", "<end_of_*>", Calls), // Hunyuan 3
    ("<|plugin|>", "<|action_end|>", Calls), // InternLM
    ("function call<|role_sep|>", "<|message_sep|>", Calls), // GigaChat
    ("<|recipient|>", "<|stop|>", Calls), // Functionary
    ("<|content_invoke_tool_json|>", "<|end_message|>", Calls), // Inkling
    ("✿FUNCTION✿:", "✿RESULT✿", Calls), // Qwen 1.5
    ("<calls>", "</calls>", Calls), // DeepSeek
    ("<tools>", "</tools>", Calls), // Qwen 2.5
    ("<function>", "</function>", Calls), // Llama 3
    ("<invoke>", "</invoke>", Calls), // MiniMax
    ("<|channel|>", "<|call|>", Named), // GPT-OSS
    ("<function=", "</function>", Named), // Qwen Coder, Llama 3
    ("<invoke name=", "</invoke>", Named), // Claude, DeepSeek, MiniMax
    ("<+ name=", "</+>", Named), // Qwen, Claude, Hermes, Grok
    ("<+ tool=", "</+>", Named), // Kimi K3
    ("<parameter name=", "</parameter>", Argument), // Claude, DeepSeek, MiniMax
    ("<parameter=", "</parameter>", Argument), // Qwen Coder
    ("<arg_key>", "</arg_key>", Argument), // GLM
    ("<arg_value>", "</arg_value>", Argument), // GLM
    ("<argument key=", "</argument>", Argument), // Kimi K3
    ("<parameters>", "</parameters>", Argument), // Cline
    ("<![CDATA[", "]]>", Argument), // Cline
    ("<arguments>", "</arguments>", Argument), // Hermes
    (QUOTE, QUOTE, Argument), // Gemma 4
    ("<args>", "</args>", Argument), // Roo
    ("<|tool_call_argument_begin|>", "<|tool_call_argument_end|>", Argument), // Kimi
    ("<?>", "</?>", Thoughts), // DeepSeek, Qwen, GLM, Seed, Claude, Gemini, Gemma, Llama 3
    ("<?>", "<%>", Thoughts), // DeepSeek, Qwen, GLM, Seed, Claude, Gemini, Gemma, Llama 3
    ("<|?|>", "<|%|>", Thoughts), // Command, Granite
    ("<|?|>", "<|end|>", Thoughts), // Solar
    ("<|?|>", "<|end_message|>", Thoughts), // Inkling
    ("<|inner_prefix|>", "<|inner_suffix|>", Thoughts), // Apertus
    ("[?]", "[/?]", Thoughts), // Mistral
    ("◁?▷", "◁/?▷", Thoughts), // Kimi
    ("<|channel>thought", "<channel|>", Thoughts), // Gemma 4
    ("<$>", "</$>", Header), // Hunyuan
    ("<role>assistant</role>", "<|role_end|>", Header), // Ling
    ("[gMASK]<sop>", "<|endoftext|>", Header), // GLM
    ("<|open|>message<|sep|>", MESSAGE_ENDS[0], Header), // Kimi K3
    ("<|open|>response<|sep|>", MESSAGE_ENDS[1], Header), // Kimi K3
    ("]~b]ai", "[e~[", Header), // MiniMax
    ("<s>", "</s>", Stop), // Mistral, Llama 2
    ("", "</^>", Stop), // Hermes, Qwen
    ("", "]<]minimax[>[", Stop), // MiniMax M3
];

/// The beginnings and ends of marks of some kinds.
pub(crate) fn pairs(kinds: &[Kind]) -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let rows = MARKS.iter().filter(|(_, _, kind)| kinds.contains(kind));
    rows.map(|(begin, end, _)| (*begin, *end))
}

/// The beginnings of marks of some kinds.
pub(crate) fn begins(kinds: &[Kind]) -> impl Iterator<Item = &'static str> + Clone {
    pairs(kinds)
        .map(|(begin, _)| begin)
        .filter(|begin| !begin.is_empty())
}

/// The ends of marks of some kinds.
pub(crate) fn ends(kinds: &[Kind]) -> impl Iterator<Item = &'static str> + Clone {
    pairs(kinds).map(|(_, end)| end)
}

/// The beginnings of arguments that their key follows, and the ends.
pub(crate) fn keyed() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    pairs(&[Argument]).filter(|(begin, _)| begin.ends_with('='))
}

/// The name after a mark that a text begins with, the attributes after that, and what follows the tag.
pub(crate) fn named<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (name, inside) = after(text, mark)?.split_once('>')?;
    let (name, attributes) = name.split_once("\" ").unwrap_or((name, ""));
    let name = name.trim_end_matches('/').trim();
    Some((name.trim_matches(['"', '\'']), attributes, inside))
}

/// What follows the mark that a text begins with.
pub(crate) fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    spelled(text, mark).or_else(|| {
        let (open, name) = tag(mark)?;
        let (spelling, rest) = opened(text)?;
        (spelling == open).then(|| spelled(rest, name))?
    })
}

/// Where a mark is in a text, in bytes.
pub(crate) fn find(text: &str, mark: &str) -> Option<(usize, usize)> {
    all(text, mark).next()
}

/// All places of a mark in a text.
pub(crate) fn all<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let first = firsts(mark);
    text.match_indices(move |c| first.contains(&c))
        .filter_map(move |(at, _)| {
            let rest = after(text.split_at(at).1, mark)?;
            Some((at, text.len() - rest.len()))
        })
}

/// What the spellings of a mark begin with.
fn firsts(mark: &str) -> [char; 2] {
    let first = mark.chars().next().unwrap_or('<');
    let separated = tag(mark).and_then(|_| SEPARATOR.chars().next());
    [first, separated.unwrap_or(first.to_ascii_uppercase())]
}

/// Whether a text is the beginning of a mark.
pub(crate) fn may_become(text: &str, mark: &str) -> bool {
    if begins_spelling(text, mark) {
        return true;
    }
    let Some((open, name)) = tag(mark) else {
        return false;
    };
    if let Some((spelling, rest)) = opened(text)
        && spelling == open
        && begins_spelling(rest, name)
    {
        return true;
    }
    let text = match spell(text, SEPARATOR) {
        Ok("") | Err(true) => return true,
        Ok(rest) => rest,
        Err(false) => text,
    };
    begins_spelling(text, open)
        || BRACKETS
            .iter()
            .any(|(token, _)| begins_spelling(text, token))
        || text.strip_prefix('<').is_some_and(|inside| {
            inside.len() < LONGEST_NAMESPACE
                && inside
                    .chars()
                    .all(|c| is_fill(c) || c == ':' || c.is_ascii_alphanumeric())
        })
}

/// Whether a text begins with a mark, or is the beginning of one.
pub(crate) fn may_begin(text: &str, mark: &str) -> bool {
    after(text, mark).is_some() || may_become(text, mark)
}

/// How many bytes at the end of a text may be the beginning of a mark.
pub(crate) fn pending(text: &str, mark: &str) -> usize {
    let first = firsts(mark);
    let starts = text
        .rmatch_indices(|c| first.contains(&c))
        .map(|(at, _)| text.split_at(at).1);
    starts
        .take_while(|rest| rest.len() < 4 * mark.len() + LONGEST_NAMESPACE + LONGEST_TOKEN)
        .filter(|rest| may_become(rest, mark))
        .last()
        .map_or(0, str::len)
}

/// Whether a text is the name of a tag in the table, with what follows it. Files have tags in namespaces, too.
fn is_of_table(text: &str) -> bool {
    let marks = MARKS.iter().flat_map(|(begin, end, _)| [begin, end]);
    let mut names = marks.filter_map(|mark| tag(mark)?.1.split([' ', '=', '>']).next());
    names.any(|name| {
        let rest = spelled(text, name);
        rest.is_some_and(|it| !it.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// A text whose tags are spelled the plain way.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'<', b']', rest.as_bytes()) {
        let (before, here) = rest.split_at(at);
        plain.push_str(before);
        let separated = || spelled(here, SEPARATOR).filter(|after| !after.starts_with('<'));
        let ended = MESSAGE_ENDS.iter().find_map(|end| spelled(here, end));
        let nothing = ended.or_else(separated).map(|after| ("", after));
        let is_name = |name: &str| {
            let (head, _) = here.split_at(here.len() - name.len());
            // Code has what looks like a namespace: `Box<A | B>`.
            let mut brackets = BRACKETS.iter().flat_map(|(token, open)| [token, open]);
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && (brackets.any(|it| head.ends_with(it)) || is_of_table(name))
        };
        let bracket = nothing
            .or_else(|| opened(here).filter(|(_, name)| is_name(name)))
            .or_else(|| Some((">", spelled(here, CLOSING)?)));
        let (bracket, after) = bracket.unwrap_or_else(|| here.split_at(1));
        plain.push_str(bracket);
        rest = after;
        // The number after the name, if it has one.
        let name = rest
            .split_at(
                rest.find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(0),
            )
            .0;
        if let Some(after) = rest.strip_prefix(name).and_then(suffixed)
            && bracket.starts_with('<')
            && after.starts_with('>')
            && is_of_table(rest)
        {
            plain.push_str(name);
            rest = after;
        }
    }
    if plain.is_empty() {
        return rest.into();
    }
    plain.push_str(rest);
    plain.into()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_▁/\":".contains(c)
}

/// What marks begin with.
pub(crate) const SIGNS: [char; 5] = ['<', '[', ']', '◁', '✿'];

/// Whether a text has one of them. Nearly none has, and each token of an answer is asked.
pub(crate) fn has_sign(text: &str) -> bool {
    // The others begin with this byte.
    let may_be_other = || memchr::memchr(0xe2, text.as_bytes()).is_some();
    memchr::memchr3(b'<', b'[', b']', text.as_bytes()).is_some()
        || may_be_other() && text.contains(SIGNS)
}

/// The longest namespace of a tag, in bytes.
const LONGEST_NAMESPACE: usize = 24;
/// The places of such names in a mark.
const PLACES: &str = "*^+?%$";
const ENDING: char = '^';
const WORD: char = '+';
const THOUGHT: char = '?';
const THOUGHT_END: char = '%';
const ANSWER: char = '$';

fn is_place(character: char) -> bool {
    PLACES.contains(character)
}

/// Whether a name stands in a place of a mark for names.
fn fits(name: &str, place: char) -> bool {
    match place {
        THOUGHT | THOUGHT_END => names::is_thought(name, place == THOUGHT_END),
        ANSWER => names::is_answer(name),
        WORD if names::is_head(name) => true,
        place => names::is_name(name, place == ENDING),
    }
}

/// The longest name of a token, in bytes.
const LONGEST_TOKEN: usize = 40;
/// What follows a namespace without a colon: `<longcat_arg_key>`, `<dots_function_call>`.
const SPACED: [&str; 3] = ["*>", "arg_key>", "arg_value>"];
/// What `MiniMax` M3 writes before each tag.
const SEPARATOR: &str = "]<]minimax[>[";
/// The brackets of Kimi K3, and what closes both.
const BRACKETS: [(&str, &str); 3] = [("<|open|>", "<"), ("<|close|>", "</"), ("<\\/", "</")];
const MESSAGE_ENDS: [&str; 2] = ["<|close|>message<|sep|>", "<|close|>response<|sep|>"];
const CLOSING: &str = "<|sep|>";
/// The quotes of Gemma 4.
const QUOTE: &str = "<|\"|>";
const ALL: [Kind; 6] = [Calls, Named, Argument, Thoughts, Header, Stop];

/// The name that a text begins with, as far as it goes, and the rest.
fn split_name(text: &str) -> (&str, &str) {
    let is_part = |c: char| is_of_name(c) && c != '"';
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// What follows a mark that a text begins with in one of its spellings.
fn spelled<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    spell(text, mark).ok()
}

/// Whether a text is the beginning of a mark in one of its spellings.
fn begins_spelling(text: &str, mark: &str) -> bool {
    spell(text, mark).map_or_else(|may_become| may_become, str::is_empty)
}

#[cfg(test)]
thread_local! {
    /// How many texts were compared with a mark.
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What follows a mark that a text begins with, or whether it may become one.
fn spell<'a>(text: &'a str, mark: &str) -> Result<&'a str, bool> {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
    let mut rest = text;
    for wanted in mark.chars() {
        let mut characters = rest.chars();
        let it = characters.next().ok_or(true)?;
        rest = if is_place(wanted) {
            placed(rest, wanted).ok_or_else(|| may_be_placed(rest, wanted))?
        } else if folded(wanted) == folded(it) {
            characters.as_str()
        } else if wanted == '>' && mark != CLOSING {
            let is_blank = || rest.bytes().all(|it| it == b' ');
            let may_be = || is_blank() || begins_spelling(rest, CLOSING) || may_be_suffix(rest);
            closed(rest).ok_or_else(may_be)?
        } else {
            return Err(false);
        };
    }
    Ok(rest)
}

/// Whether a text is the beginning of a name for this place.
fn may_be_placed(text: &str, place: char) -> bool {
    let (name, after) = split_name(text);
    if matches!(place, THOUGHT | THOUGHT_END | ANSWER) {
        return after.is_empty() && name.len() < LONGEST_TOKEN;
    }
    let (known, left) = names::in_words(name);
    let mut next = words().filter(|word| !known.is_empty() || names::may_be_first(word));
    let suffix = name.rfind(':').map(|at| name.split_at(at).1);
    let is_next = next.any(|word| word.starts_with(&left));
    after.is_empty() && (is_next || !known.is_empty() && suffix.is_some_and(may_be_suffix))
}

/// What follows the name that a text begins with, if it may stand in this place.
fn placed(text: &str, place: char) -> Option<&str> {
    let (name, rest) = split_name(text);
    if fits(name, place) {
        return Some(rest);
    }
    let (name, rest) = text.split_at(name.rfind(':')?);
    fits(name, place).then_some(rest)
}

/// What follows the end of a tag that is spelled in another way.
fn closed(text: &str) -> Option<&str> {
    let blank = || text.trim_start_matches(' ').strip_prefix('>');
    let suffixed = || suffixed(text)?.strip_prefix('>');
    spelled(text, CLOSING).or_else(suffixed).or_else(blank)
}

/// What follows the number or name of a checkpoint after the name of a tag: `<arg_key:6124c78e>`,
/// `<tool_call:opensource>` (Hunyuan).
fn suffixed(text: &str) -> Option<&str> {
    const SHORTEST: usize = 4;
    let number = text.strip_prefix(':')?;
    let rest = number.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    (number.len() - rest.len() >= SHORTEST).then_some(rest)
}

/// Whether a text is the beginning of that number.
fn may_be_suffix(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|number| number.bytes().all(|it| it.is_ascii_alphanumeric()))
}

fn folded(character: char) -> char {
    match character {
        it if is_bar(it) => '|',
        '▁' => '_',
        other => other.to_ascii_lowercase(),
    }
}

pub(crate) fn is_bar(character: char) -> bool {
    matches!(character, '|' | '｜' | '│' | '￨' | '‖' | '¦' | '❘' | '∣')
}

/// What may stand around the namespace of a tag.
fn is_fill(character: char) -> bool {
    is_bar(character) || matches!(character, ' ' | '/')
}

/// How a tag opens, and its name with what follows; `None` for a token.
fn tag(mark: &str) -> Option<(&str, &str)> {
    let open = if mark.starts_with("</") { "</" } else { "<" };
    let name = mark.strip_prefix(open)?;
    name.starts_with(|c: char| c.is_ascii_alphabetic() || is_place(c))
        .then_some((open, name))
}

/// How the tag opens that a text begins with, in any spelling, and its name with what follows.
fn opened(text: &str) -> Option<(&'static str, &str)> {
    let text = spelled(text, SEPARATOR).unwrap_or(text);
    let bracket = |(token, open): &(&str, &'static str)| Some((*open, spelled(text, token)?));
    if let Some(found) = BRACKETS.iter().find_map(bracket) {
        return Some(found);
    }
    let inside = text.strip_prefix('<')?;
    let rest = without_namespace(inside).unwrap_or(inside);
    let (head, _) = inside.split_at(inside.len() - rest.len());
    match rest.strip_prefix('/') {
        Some(rest) => Some(("</", rest)),
        None => Some((if head.contains('/') { "</" } else { "<" }, rest)),
    }
}

/// Whether a mark is a token, which occurs in no prose, rather than a tag or a label (`✿FUNCTION✿:`).
pub(crate) fn is_token(mark: &str) -> bool {
    tag(mark).is_none() && !mark.ends_with(':')
}

/// Whether a text begins with a tag whose spelling occurs in no prose: with bars, or with tokens for its brackets.
pub(crate) fn is_odd(text: &str) -> bool {
    let inside = text.trim_start_matches(['<', '/', ' ']);
    opened(text).is_some() && inside.starts_with(|c| is_bar(c) || c == ']')
}

fn without_namespace(inside: &str) -> Option<&str> {
    let name = inside.strip_prefix('/').unwrap_or(inside);
    let behind = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let (space, _) = name.split_at(name.len() - behind.len());
    if let Some(rest) = behind.strip_prefix('_')
        && !space.is_empty()
        && !words().any(|word| word.eq_ignore_ascii_case(space))
        && SPACED
            .iter()
            .any(|mark| spelled(rest, mark).is_some() || begins_spelling(rest, mark))
    {
        return Some(rest);
    }
    let name = inside.trim_start_matches(is_fill);
    let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let plain = rest
        .strip_prefix(':')
        .unwrap_or_else(|| rest.trim_start_matches(is_fill));
    let (head, _) = inside.split_at(inside.len() - plain.len());
    let is_one = rest.len() < name.len() && plain.len() < rest.len();
    let is_one = is_one && plain.starts_with(|c: char| c == '/' || c.is_ascii_alphabetic());
    (is_one && head.contains(|c| is_bar(c) || c == ':') && head.len() <= LONGEST_NAMESPACE)
        .then_some(plain)
}

#[cfg(test)]
mod tests;
