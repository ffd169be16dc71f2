//! The marks that model families write around calls and thoughts and at the ends of answers: the one table of them. Pure.
//!
//! Models and servers spell a mark in more than one way. So letters are compared without case, the bars and blanks of
//! tokens (`｜`, `▁`) are those of ASCII, and a tag may stand in any namespace (`<minimax:tool_call>`, `<｜DSML｜invoke`).

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
    ("[TOOL_CALLS]", "[/TOOL_CALLS]", Calls, "Mistral"),
    ("<|python_tag|>", "<|eom_id|>", Calls, "Llama 3"),
    ("<|python_start|>", "<|python_end|>", Calls, "Llama 4"),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", Calls, "Kimi"),
    ("<|tool_call_section_begin|>", "<|tool_call_section_end|>", Calls, "Kimi"),
    ("<|tool_calls_begin|>", "<|tool_calls_end|>", Calls, "DeepSeek"),
    ("<|tool_call_begin|>", "<|tool_call_end|>", Calls, "DeepSeek, Kimi"),
    ("<|tool_call|>", "<|/tool_call|>", Calls, "Phi, Granite"),
    ("<|tool_calls|>", "<|/tool_calls|>", Calls, "Phi"),
    ("<|tool_call_start|>", "<|tool_call_end|>", Calls, "LFM"),
    ("<|tool_call>", "<tool_call|>", Calls, "Gemma 4"),
    ("<start_function_call>", "<end_function_call>", Calls, "FunctionGemma"),
    ("<|START_ACTION|>", "<|END_ACTION|>", Calls, "Command"),
    ("<|action_start|>", "<|action_end|>", Calls, "InternLM"),
    ("<|plugin|>", "<|action_end|>", Calls, "InternLM"),
    ("<|tools_prefix|>", "<|tools_suffix|>", Calls, "Apertus"),
    ("<tool_call>", "</tool_call>", Calls, "Hermes, Qwen, GLM, MiniMax, Seed"),
    ("<tool_calls>", "</tool_calls>", Calls, "DeepSeek, Hunyuan"),
    ("<toolcall>", "</toolcall>", Calls, "Nemotron"),
    ("<tools>", "</tools>", Calls, "Qwen 2.5"),
    ("<tool_use>", "</tool_use>", Calls, "Claude"),
    ("<function_call>", "</function_call>", Calls, "Granite, EXAONE"),
    ("<function_calls>", "</function_calls>", Calls, "Claude, DeepSeek"),
    ("<functioncall>", "</functioncall>", Calls, "Glaive"),
    ("<function>", "</function>", Calls, "Llama 3"),
    ("<invoke>", "</invoke>", Calls, "MiniMax"),
    ("<|channel|>", "<|call|>", Named, "GPT-OSS"),
    ("<function=", "</function>", Named, "Qwen Coder, Llama 3"),
    ("<invoke name=", "</invoke>", Named, "Claude, DeepSeek, MiniMax"),
    ("<function name=", "</function>", Named, "Qwen"),
    ("<tool name=", "</tool>", Named, "Claude"),
    ("<call name=", "</call>", Named, "Claude"),
    ("<tool_call name=", "</tool_call>", Named, "Hermes"),
    ("<parameter name=", "</parameter>", Argument, "Claude, DeepSeek, MiniMax"),
    ("<parameter=", "</parameter>", Argument, "Qwen Coder"),
    ("<arg_key>", "</arg_key>", Argument, "GLM"),
    ("<arg_value>", "</arg_value>", Argument, "GLM"),
    ("<parameters>", "</parameters>", Argument, "Cline"),
    ("<arguments>", "</arguments>", Argument, "Hermes"),
    ("<args>", "</args>", Argument, "Roo"),
    ("<|tool_call_argument_begin|>", "<|tool_call_argument_end|>", Argument, "Kimi"),
    ("<think>", "</think>", Thoughts, "DeepSeek, Qwen, GLM, Seed"),
    ("<thinking>", "</thinking>", Thoughts, "Claude"),
    ("<thought>", "</thought>", Thoughts, "Gemini, Gemma"),
    ("<reasoning>", "</reasoning>", Thoughts, "Claude"),
    ("<scratchpad>", "</scratchpad>", Thoughts, "Claude"),
    ("<reflection>", "</reflection>", Thoughts, "Llama 3"),
    ("<|START_THINKING|>", "<|END_THINKING|>", Thoughts, "Command"),
    ("<|thinking|>", "<|/thinking|>", Thoughts, "Granite"),
    ("[THINK]", "[/THINK]", Thoughts, "Mistral"),
    ("◁think▷", "◁/think▷", Thoughts, "Kimi"),
    ("<|channel>thought\n", "<channel|>", Thoughts, "Gemma 4"),
    ("<|channel|>analysis<|message|>", "<|end|>", Thoughts, "GPT-OSS"),
    ("<|channel|>commentary<|message|>", "<|end|>", Thoughts, "GPT-OSS"),
    ("<|channel|>final<|message|>", "<|return|>", Header, "GPT-OSS"),
    ("<|start|>assistant", "<|end|>", Header, "GPT-OSS"),
    ("<|header_start|>assistant<|header_end|>", "<|eot|>", Header, "Llama 4"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>", Header, "Command"),
    ("<|assistant|>", "<|user|>", Header, "DeepSeek, GLM, Phi"),
    ("<|im_start|>assistant", "<|im_end|>", Header, "ChatML, Qwen"),
    ("<|start_header_id|>assistant<|end_header_id|>", "<|eot_id|>", Header, "Llama 3"),
    ("<start_of_turn>model", "<end_of_turn>", Header, "Gemma"),
    ("<|turn>model", "<turn|>", Header, "Gemma 4"),
    ("", "<|endoftext|>", Stop, "GPT, Qwen, Phi"),
    ("", "<|end_of_text|>", Stop, "Llama 3, Granite"),
    ("", "<|end_of_sentence|>", Stop, "DeepSeek"),
    ("", "<|end_of_turn_token|>", Stop, "Command"),
    ("", "<|endofturn|>", Stop, "EXAONE"),
    ("", "[|endofturn|]", Stop, "EXAONE"),
    ("", "<|role_end|>", Stop, "Ling"),
    ("", "<|observation|>", Stop, "GLM"),
    ("", "<|assistant|>", Stop, "GLM, Phi"),
    ("<bos>", "<eos>", Stop, "Gemma, Seed"),
    ("", "<|eos|>", Stop, "Grok"),
    ("<s>", "</s>", Stop, "Mistral, Llama 2"),
    ("", "[EOS]", Stop, "Mistral"),
    ("", "[e~[", Stop, "MiniMax"),
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
        spelled(without_namespace(text.strip_prefix(open)?)?, name)
    })
}

/// Where a mark stands in a text, in bytes.
pub(crate) fn find(text: &str, mark: &str) -> Option<(usize, usize)> {
    all(text, mark).next()
}

/// All places of a mark in a text.
pub(crate) fn all<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let first = mark.chars().next().unwrap_or('<');
    text.match_indices(first).filter_map(move |(at, _)| {
        let rest = after(text.split_at(at).1, mark)?;
        Some((at, text.len() - rest.len()))
    })
}

/// Whether a text is the beginning of a mark.
pub(crate) fn may_become(text: &str, mark: &str) -> bool {
    if begins_spelling(text, mark) {
        return true;
    }
    let Some((inside, name)) =
        tag(mark).and_then(|(open, name)| Some((text.strip_prefix(open)?, name)))
    else {
        return false;
    };
    match without_namespace(inside) {
        Some(rest) if !rest.is_empty() => begins_spelling(rest, name),
        _ => {
            inside.len() < LONGEST_NAMESPACE
                && inside
                    .chars()
                    .all(|c| is_bar(c) || c == ':' || c.is_ascii_alphanumeric())
        }
    }
}

/// How many bytes at the end of a text may be the beginning of a mark.
pub(crate) fn pending(text: &str, mark: &str) -> usize {
    let first = mark.chars().next().unwrap_or('<');
    let starts = text
        .rmatch_indices(first)
        .map(|(at, _)| text.split_at(at).1);
    starts
        .take_while(|rest| rest.len() < 4 * mark.len() + LONGEST_NAMESPACE)
        .filter(|rest| may_become(rest, mark))
        .last()
        .map_or(0, str::len)
}

/// A text without the marks that end it, where nothing in it begins them: they belong to what was around it. A text
/// with another token of the kind is about tokens, and stays.
pub(crate) fn without_ends(text: &str) -> &str {
    let mut rest = text;
    let mut cut = Vec::new();
    while let Some((before, end)) = last_end(rest.trim_end()) {
        rest = before;
        cut.push(end);
    }
    let begins = |begin: &str| !begin.is_empty() && find(rest, begin).is_some();
    let is_orphan = |end: &&str| {
        let opens: String = end.chars().take(2).collect();
        let is_about = is_token(end) && find(rest, &opens).is_some();
        let mut rows = MARKS.iter().filter(|(_, its, _, _)| its == end);
        !is_about && rows.all(|(begin, _, _, _)| !begins(begin))
    };
    if cut.iter().all(is_orphan) {
        rest
    } else {
        text
    }
}

/// The mark that ends a text, and what is before it.
fn last_end(text: &str) -> Option<(&str, &'static str)> {
    MARKS.iter().find_map(|(_, end, _, _)| {
        // In a namespace it may be longer.
        let most = 2 * end.len() + LONGEST_NAMESPACE;
        let from = text.floor_char_boundary(text.len().saturating_sub(most));
        let (start, stop) = all(text.split_at(from).1, end).last()?;
        let is_last = from + stop == text.len();
        is_last.then(|| (text.split_at(from + start).0, *end))
    })
}

/// The longest namespace of a tag, in bytes.
const LONGEST_NAMESPACE: usize = 16;

fn spelled<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let mut characters = text.chars();
    for wanted in mark.chars() {
        if folded(characters.next()?) != folded(wanted) {
            return None;
        }
    }
    Some(characters.as_str())
}

fn begins_spelling(text: &str, mark: &str) -> bool {
    let mut wanted = mark.chars();
    text.chars().all(|it| {
        wanted
            .next()
            .is_some_and(|wanted| folded(wanted) == folded(it))
    })
}

fn folded(character: char) -> char {
    match character {
        it if is_bar(it) => '|',
        '▁' => '_',
        other => other.to_ascii_lowercase(),
    }
}

fn is_bar(character: char) -> bool {
    matches!(character, '|' | '｜' | '│' | '￨')
}

/// How a tag opens, and its name with what follows; `None` for a token.
fn tag(mark: &str) -> Option<(&str, &str)> {
    let open = if mark.starts_with("</") { "</" } else { "<" };
    let name = mark.strip_prefix(open)?;
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some((open, name))
}

/// Whether a mark is a token, which occurs in no prose, rather than a tag.
pub(crate) fn is_token(mark: &str) -> bool {
    tag(mark).is_none()
}

fn without_namespace(inside: &str) -> Option<&str> {
    let name = inside.trim_start_matches(is_bar);
    let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let plain = rest
        .strip_prefix(':')
        .unwrap_or_else(|| rest.trim_start_matches(is_bar));
    let is_one = rest.len() < name.len() && plain.len() < rest.len();
    (is_one && inside.len() - plain.len() <= LONGEST_NAMESPACE).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spellings of a mark.
    fn spellings(mark: &str) -> Vec<String> {
        let mut all = vec![
            mark.to_owned(),
            mark.to_uppercase(),
            mark.replace('|', "｜"),
            mark.replace('_', "▁"),
        ];
        if let Some((open, name)) = tag(mark) {
            all.extend(
                [
                    "minimax:",
                    "seed:",
                    "｜DSML｜",
                    "|DSML|",
                    "||dsml||",
                    "DSML｜",
                ]
                .map(|space| format!("{open}{space}{name}")),
            );
        }
        all
    }

    #[test]
    fn marks_are_found_in_every_spelling_and_place() {
        let all_marks = begins(&[Calls, Named, Argument, Thoughts, Header])
            .chain(ends(&[Calls, Named, Argument, Thoughts, Header, Stop]));
        for mark in all_marks {
            for spelled in spellings(mark) {
                assert_eq!(after(&format!("{spelled}x"), mark), Some("x"), "{spelled}");
                assert_eq!(
                    find(&format!("é {spelled}x"), mark),
                    Some((3, 3 + spelled.len())),
                    "{spelled}"
                );
                for (at, _) in spelled.char_indices().skip(1) {
                    assert!(may_become(spelled.split_at(at).0, mark), "{spelled} {at}");
                    assert_eq!(
                        pending(&format!("é {}", spelled.split_at(at).0), mark),
                        at,
                        "{spelled} {at}"
                    );
                }
            }
        }
        for text in ["<tool>", "<b:", "a < b", "<tool_cal>", "<http://tool_call>"] {
            assert_eq!(after(text, "<tool_call>"), None, "{text}");
        }
    }

    #[test]
    fn ends_that_nothing_begins_are_cut_off() {
        for (begin, end, _, _) in MARKS {
            for end in spellings(end) {
                assert_eq!(without_ends(&format!("x = 1\n{end}")), "x = 1\n", "{end}");
                assert_eq!(
                    without_ends(&format!("x = 1\n{end}\n</invoke>\n")),
                    "x = 1\n",
                    "{end}"
                );
                let text = format!("{begin}x{end}");
                if !begin.is_empty() {
                    assert_eq!(without_ends(&text), text);
                }
            }
        }
        for text in ["<p>x</p>", "a</b>", "[x]", "<think>x</think>\n"] {
            assert_eq!(without_ends(text), text);
        }
    }
}
