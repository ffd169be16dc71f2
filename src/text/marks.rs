//! The marks that model families write around calls and thoughts and at the ends of answers: the one table of them. Pure.
//!
//! Models and servers spell a mark in more than one way. So letters are compared without case, the bars and blanks of
//! tokens (`｜`, `▁`) are those of ASCII, a tag may stand in any namespace (`<minimax:tool_call>`, `<｜DSML｜invoke`), with
//! its slash anywhere before the name, and its brackets may be tokens (Kimi K3) or follow one (`MiniMax` M3).
//!
//! The tokens that only begin or end an answer are no rows but a rule: `<|`, a name, `|>`. So are the names of most marks around
//! calls: in a row, `*` is a name made of the [words](names) for calls, in any order (`tool_calls`, `start_action`), and
//! `^` one that ends them (`/tool_call`, `tool_call_end`); for `+` one of the words is enough (`function`), and `?` is a word
//! for thoughts.

mod names;

use std::borrow::Cow;

pub(crate) use self::names::{THOUGHTS, is_name_of_calls, words};

/// What a mark stands around.
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

/// The beginning of a mark, its end, what it stands around, and the model families that write it.
pub(crate) type Mark = (&'static str, &'static str, Kind, &'static str);

/// All marks. Where one mark begins with another, it is above it.
#[rustfmt::skip]
pub(crate) const MARKS: &[Mark] = &[
    ("[*]", "[^]", Calls, "Mistral, LM Studio, MiniMax"),
    ("<|*|>", "<|^|>", Calls, "DeepSeek, Kimi, Phi, LFM, Command, InternLM, Solar, Llama 4, Apertus"),
    ("<|*>", "<*|>", Calls, "Gemma 4"),
    ("<*>", "</*>", Calls, "Hermes, Qwen, GLM, MiniMax, Seed, Hunyuan, Nemotron, Granite, Claude, LongCat"),
    ("<|python_tag|>", "<|eom_id|>", Calls, "Llama 3"),
    ("<start_function_call>", "<end_function_call>", Calls, "FunctionGemma"),
    ("<|plugin|>", "<|action_end|>", Calls, "InternLM"),
    ("function call<|role_sep|>", "<|message_sep|>", Calls, "GigaChat"),
    ("<|recipient|>", "<|stop|>", Calls, "Functionary"),
    ("<|content_invoke_tool_json|>", "<|end_message|>", Calls, "Inkling"),
    ("✿FUNCTION✿:", "✿RESULT✿", Calls, "Qwen 1.5"),
    ("<calls>", "</calls>", Calls, "DeepSeek"),
    ("<tools>", "</tools>", Calls, "Qwen 2.5"),
    ("<function>", "</function>", Calls, "Llama 3"),
    ("<invoke>", "</invoke>", Calls, "MiniMax"),
    ("<|channel|>", "<|call|>", Named, "GPT-OSS"),
    ("<function=", "</function>", Named, "Qwen Coder, Llama 3"),
    ("<invoke name=", "</invoke>", Named, "Claude, DeepSeek, MiniMax"),
    ("<+ name=", "</+>", Named, "Qwen, Claude, Hermes, Grok"),
    ("<+ tool=", "</+>", Named, "Kimi K3"),
    ("<parameter name=", "</parameter>", Argument, "Claude, DeepSeek, MiniMax"),
    ("<parameter=", "</parameter>", Argument, "Qwen Coder"),
    ("<arg_key>", "</arg_key>", Argument, "GLM"),
    ("<arg_value>", "</arg_value>", Argument, "GLM"),
    ("<argument key=", "</argument>", Argument, "Kimi K3"),
    ("<parameters>", "</parameters>", Argument, "Cline"),
    ("<![CDATA[", "]]>", Argument, "Cline"),
    ("<arguments>", "</arguments>", Argument, "Hermes"),
    (QUOTE, QUOTE, Argument, "Gemma 4"),
    ("<args>", "</args>", Argument, "Roo"),
    ("<|tool_call_argument_begin|>", "<|tool_call_argument_end|>", Argument, "Kimi"),
    ("<?>", "</?>", Thoughts, "DeepSeek, Qwen, GLM, Seed, Claude, Gemini, Gemma, Llama 3"),
    ("<|inner_prefix|>", "<|inner_suffix|>", Thoughts, "Apertus"),
    ("<|START_THINKING|>", "<|END_THINKING|>", Thoughts, "Command"),
    ("<|think|>", "<|end|>", Thoughts, "Solar"),
    ("<|content_thinking|>", "<|end_message|>", Thoughts, "Inkling"),
    ("<|thinking|>", "<|/thinking|>", Thoughts, "Granite"),
    ("[THINK]", "[/THINK]", Thoughts, "Mistral"),
    ("◁think▷", "◁/think▷", Thoughts, "Kimi"),
    ("<|channel>thought\n", "<channel|>", Thoughts, "Gemma 4"),
    ("<answer>", "</answer>", Header, "Hunyuan"),
    ("<role>assistant</role>", "<|role_end|>", Header, "Ling"),
    ("[gMASK]<sop>", "<|endoftext|>", Header, "GLM"),
    ("[|assistant|]", "[|endofturn|]", Header, "EXAONE"),
    ("<|open|>message<|sep|>", MESSAGE_ENDS[0], Header, "Kimi K3"),
    ("<|open|>response<|sep|>", MESSAGE_ENDS[1], Header, "Kimi K3"),
    ("]~b]ai", "[e~[", Header, "MiniMax"),
    ("<bos>", "<eos>", Stop, "Gemma, Seed"),
    ("<s>", "</s>", Stop, "Mistral, Llama 2"),
    ("", "[EOS]", Stop, "Mistral"),
    ("", "[/INST]", Stop, "Mistral, Llama 2"),
    ("", "</^>", Stop, "Hermes, Qwen"),
    ("", "]<]minimax[>[", Stop, "MiniMax M3"),
];

fn of_kinds(kinds: &[Kind]) -> impl Iterator<Item = &'static Mark> + Clone {
    MARKS.iter().filter(|(_, _, kind, _)| kinds.contains(kind))
}

/// The beginnings of marks of some kinds.
pub(crate) fn begins(kinds: &[Kind]) -> impl Iterator<Item = &'static str> + Clone {
    of_kinds(kinds)
        .map(|(begin, _, _, _)| *begin)
        .filter(|begin| !begin.is_empty())
}

/// The ends of marks of some kinds.
pub(crate) fn ends(kinds: &[Kind]) -> impl Iterator<Item = &'static str> + Clone {
    of_kinds(kinds).map(|(_, end, _, _)| *end)
}

/// What follows the mark that a text begins with.
pub(crate) fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    spelled(text, mark).or_else(|| {
        let (open, name) = tag(mark)?;
        let (spelling, rest) = opened(text)?;
        (spelling == open).then(|| spelled(rest, name))?
    })
}

/// Where a mark stands in a text, in bytes.
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
    let text = match spelled(text, SEPARATOR) {
        Some("") => return true,
        Some(rest) => rest,
        None if begins_spelling(text, SEPARATOR) => return true,
        None => text,
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
        let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic());
        let bracket = nothing
            .or_else(|| opened(here).filter(|(_, name)| is_name(name)))
            .or_else(|| Some((">", spelled(here, CLOSING)?)));
        let (bracket, after) = bracket.unwrap_or_else(|| here.split_at(1));
        plain.push_str(bracket);
        rest = after;
        // The number behind the name, if it has one.
        let name = rest
            .split_at(
                rest.find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(0),
            )
            .0;
        if let Some(after) = rest.strip_prefix(name).and_then(suffixed)
            && bracket.starts_with('<')
            && after.starts_with('>')
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

/// What follows a mark that ends an answer or stands at the end of one: a row of the table, or a token. A token may have
/// a sender behind it.
pub(crate) fn after_end<'a>(text: &'a str, kinds: &[Kind]) -> Option<&'a str> {
    if let Some(rest) = ends(kinds).find_map(|end| after(text, end)) {
        return Some(rest);
    }
    let (_, rest) = token(text)?;
    let mut sent = SENDERS.iter().filter_map(|sender| spelled(rest, sender));
    let sent = sent.find(|rest| !rest.starts_with(char::is_lowercase));
    Some(sent.unwrap_or(rest))
}

/// What follows a mark that an answer begins with and that says nothing: whatever may [end](after_end) one, where no call
/// follows. One that is spoken of has a blank and no capital letter behind it.
pub(crate) fn after_header(text: &str) -> Option<&str> {
    let rest = after_end(text, &ALL).filter(|_| !begins_call(text))?;
    let next = rest.trim_start_matches(' ');
    let is_spoken_of = next.len() < rest.len() && !next.starts_with(is_next);
    // It may be an unknown mark of a call.
    let may_call =
        |(name, rest): (&str, &str)| names::is_head(name) || rest.trim_start().starts_with('{');
    (!is_spoken_of && !token(text).is_some_and(may_call)).then_some(rest)
}

/// Whether a text may become what [`after_header`] skips, or is it so far and may become a call.
pub(crate) fn may_become_header(text: &str) -> bool {
    let is_undecided = |rest: &str| {
        rest.bytes().all(|it| it == b' ')
            || may_become_sender(rest)
            || begins(&[Calls, Named]).any(|mark| may_become(text, mark))
    };
    !text.is_empty()
        && (may_become_end(text, &ALL) || after_end(text, &ALL).is_some_and(is_undecided))
}

/// Whether a sender begins with a text.
pub(crate) fn may_become_sender(text: &str) -> bool {
    SENDERS.iter().any(|sender| begins_spelling(text, sender))
}

/// Whether a text begins with a mark of a call, or a token that one of GPT-OSS or Functionary begins with.
fn begins_call(text: &str) -> bool {
    let headers = ["<|start|>", "<|from|>"];
    let mut marks = begins(&[Calls, Named]).chain(headers);
    marks.any(|mark| after(text, mark).is_some())
}

/// Whether a text begins with the mark of a call or of a message.
pub(crate) fn begins_another(text: &str) -> bool {
    let is_message = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("start") || name.contains("begin")
    };
    begins_call(text) || token(text).is_some_and(|(name, _)| is_message(name))
}

/// What may follow a mark that is not spoken of.
fn is_next(character: char) -> bool {
    character.is_uppercase() || matches!(character, '<' | '[' | '\n')
}

/// Whether a text is the beginning of a mark that ends an answer.
pub(crate) fn may_become_end(text: &str, kinds: &[Kind]) -> bool {
    let is_token = text.strip_prefix('<').is_some_and(|inside| {
        inside.len() < LONGEST_TOKEN && inside.chars().all(|c| is_bar(c) || is_of_name(c))
    });
    is_token || ends(kinds).any(|end| may_become(text, end))
}

/// How the names of tokens begin that need no bars: Gemma's, `Idefics`', `TeleChat`'s.
const BARE: [&str; 3] = ["start_of_", "end_of_", "_end"];
/// The names of tokens that a tokenizer keeps for later; a number follows (Gemma, Nemotron).
const RESERVED: [&str; 3] = ["unused", "extra_id_", "special_"];

/// The name of the token that a text begins with, and what follows: `<|eot_id|>`, `<|turn>`, `<channel|>`.
fn token(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('<')?;
    let opened = inside.strip_prefix(is_bar);
    let inside = opened.unwrap_or(inside);
    let end = inside.find(|c| !is_of_name(c))?;
    let (name, rest) = inside.split_at(end);
    let closed = rest.strip_prefix(is_bar);
    let rest = closed.unwrap_or(rest).strip_prefix('>')?;
    let is_one = opened.or(closed).is_some()
        || BARE.iter().any(|it| name.starts_with(it))
        || is_reserved(name);
    (is_one && !name.is_empty() && end < LONGEST_TOKEN).then_some((name, rest))
}

fn is_reserved(name: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    let mut numbers = RESERVED.iter().filter_map(|it| spelled(name, it));
    numbers.any(is_number)
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_▁/\":".contains(c)
}

/// A text without the marks that end it, where nothing in it begins them: they belong to what was around it. A text
/// with another token of the kind is about tokens, and stays.
pub(crate) fn without_ends(text: &str) -> &str {
    let mut end = text.trim_end().len();
    let mut cut = Vec::new();
    for (at, _) in text.rmatch_indices(['<', '[', ']', '◁', '✿']) {
        if at + 4 * LONGEST_NAMESPACE < end {
            break;
        }
        let (before, here) = text.split_at(at);
        // The beginning of an argument that never came is none.
        let begun = || begins(&[Argument]).find_map(|begin| after(here, begin));
        // A row of a vocabulary has others beside it.
        let is_row = || {
            let is_reserved = |line: &str| token(line).is_some_and(|(name, _)| is_reserved(name));
            before.ends_with('\n') && text.lines().filter(|line| is_reserved(line)).count() > 1
        };
        // The JSON that a token for quotes stands in ends behind it.
        let is_quote = after(here, QUOTE).is_some();
        let last = |c: char| c.is_whitespace() || is_quote && matches!(c, '}' | ']' | ')');
        if let Some(rest) = after_end(here, &ALL).or_else(begun)
            && !is_row()
            && text.len() - rest.trim_start_matches(last).len() >= end
        {
            end = before.trim_end().len();
            cut.push(at);
        }
    }
    let Some(first) = cut.last() else {
        return text;
    };
    let (rest, marks) = text.split_at(*first);
    let is_orphan = |at: &usize| !is_begun(rest, text.split_at(*at).1);
    if cut.iter().all(is_orphan) && !marks.is_empty() {
        rest
    } else {
        text
    }
}

/// Whether a text begins what `end` begins with the end of: it has the tag, or another token.
fn is_begun(text: &str, end: &str) -> bool {
    if let Some(("</", name)) = opened(end) {
        let name = name.split_at(name.find(|c| !is_of_name(c)).unwrap_or(0)).0;
        let is_tag = |(at, _)| {
            let rest = opened(text.split_at(at).1).filter(|(open, _)| *open == "<");
            let rest = rest.and_then(|(_, rest)| spelled(rest, name));
            rest.is_some_and(|rest| !rest.starts_with(is_of_name))
        };
        return text.match_indices(['<', ']']).any(is_tag);
    }
    let opens: String = end.chars().take(2).collect();
    let rows = MARKS
        .iter()
        .filter(|(_, its, _, _)| after(end, its).is_some());
    let mut begins = rows
        .map(|(begin, _, _, _)| *begin)
        .filter(|begin| !begin.is_empty());
    token(end).is_some() && find(text, &opens).is_some()
        || begins.any(|begin| find(text, begin).is_some())
}

/// Whose messages chat templates have.
const SENDERS: [&str; 6] = ["assistant", "model", "user", "system", "developer", "tool"];
/// The longest namespace of a tag, in bytes.
const LONGEST_NAMESPACE: usize = 24;
/// The places of such names in a mark.
const BEGINNING: char = '*';
const ENDING: char = '^';
const WORD: char = '+';
const THOUGHT: char = '?';

fn is_place(character: char) -> bool {
    matches!(character, BEGINNING | ENDING | WORD | THOUGHT)
}

/// Whether a name stands in a place of a mark for names.
fn fits(name: &str, place: char) -> bool {
    match place {
        THOUGHT => names::THOUGHTS.contains(&name.to_lowercase().as_str()),
        WORD if names::is_head(name) => true,
        place => names::is_name(name, place == ENDING),
    }
}

/// The longest name of a token, in bytes.
const LONGEST_TOKEN: usize = 40;
/// What follows a namespace without a colon: `<longcat_arg_key>`, `<dots_function_call>`.
const SPACED: [&str; 4] = ["*>", "arg_key>", "arg_value>", "?>"];
/// What `MiniMax` M3 writes before each tag.
const SEPARATOR: &str = "]<]minimax[>[";
/// The brackets of Kimi K3, and what closes both.
const BRACKETS: [(&str, &str); 3] = [("<|open|>", "<"), ("<|close|>", "</"), ("<\\/", "</")];
const MESSAGE_ENDS: [&str; 2] = ["<|close|>message<|sep|>", "<|close|>response<|sep|>"];
const CLOSING: &str = "<|sep|>";
/// The quotes of Gemma 4.
const QUOTE: &str = "<|\"|>";
const ALL: [Kind; 6] = [Calls, Named, Argument, Thoughts, Header, Stop];

/// A text behind the name that it begins with, as far as it goes.
fn split_name(text: &str) -> (&str, &str) {
    let is_part = |c: char| is_of_name(c) && c != '"';
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

fn spelled<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let mut characters = text.chars();
    for wanted in mark.chars() {
        let before = characters.as_str();
        if is_place(wanted) {
            characters = placed(before, wanted)?.chars();
            continue;
        }
        if folded(characters.next()?) != folded(wanted) {
            let rest = (wanted == '>' && mark != CLOSING).then(|| closed(before))??;
            characters = rest.chars();
        }
    }
    Some(characters.as_str())
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
    spelled(text, CLOSING).or_else(|| suffixed(text)?.strip_prefix('>'))
}

/// What follows the number of a checkpoint behind the name of a tag: `<arg_key:6124c78e>` (Hunyuan 4).
fn suffixed(text: &str) -> Option<&str> {
    const SHORTEST: usize = 4;
    let number = text.strip_prefix(':')?;
    let rest = number.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    (number.len() - rest.len() >= SHORTEST).then_some(rest)
}

/// Whether a text is the beginning of that number.
fn may_be_suffix(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|number| number.bytes().all(|it| it.is_ascii_hexdigit()))
}

fn begins_spelling(text: &str, mark: &str) -> bool {
    let mut wanted = mark.chars();
    let mut characters = text.chars();
    loop {
        let rest = characters.as_str();
        let Some(it) = characters.next() else {
            return true;
        };
        match wanted.next() {
            Some(wanted) if is_place(wanted) => {
                let (name, after) = split_name(rest);
                if after.is_empty() && wanted == THOUGHT {
                    let name = name.to_lowercase();
                    let (word, suffix) = name.split_at(name.find(':').unwrap_or(name.len()));
                    return if suffix.is_empty() {
                        names::THOUGHTS.iter().any(|it| it.starts_with(word))
                    } else {
                        names::THOUGHTS.contains(&word) && may_be_suffix(suffix)
                    };
                }
                if after.is_empty() {
                    let (known, left) = names::in_words(name);
                    let mut next =
                        words().filter(|word| !known.is_empty() || names::may_be_first(word));
                    let suffix = name.rfind(':').map(|at| name.split_at(at).1);
                    return next.any(|word| word.starts_with(&left))
                        || !known.is_empty() && suffix.is_some_and(may_be_suffix);
                }
                match placed(rest, wanted) {
                    Some(after) => characters = after.chars(),
                    None => return false,
                }
            }
            Some(wanted) if folded(wanted) == folded(it) => {}
            Some('>') if mark != CLOSING => {
                let Some(after) = closed(rest) else {
                    return begins_spelling(rest, CLOSING) || may_be_suffix(rest);
                };
                characters = after.chars();
            }
            _ => return false,
        }
    }
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

/// Whether a mark is a token, which occurs in no prose, rather than a tag.
pub(crate) fn is_token(mark: &str) -> bool {
    tag(mark).is_none()
}

/// Whether a text begins with a tag whose spelling occurs in no prose: with bars, or with tokens for its brackets.
pub(crate) fn is_odd(text: &str) -> bool {
    let inside = text.trim_start_matches(['<', '/', ' ']);
    opened(text).is_some() && inside.starts_with(|c| is_bar(c) || c == ']')
}

fn without_namespace(inside: &str) -> Option<&str> {
    let name = inside.strip_prefix('/').unwrap_or(inside);
    if let Some((space, rest)) = name.split_once('_')
        && space.chars().all(|c| c.is_ascii_alphanumeric())
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
