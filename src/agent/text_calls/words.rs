//! What the words before a call say about it. Pure.
//!
//! Words only take power away: a call that they make an example is not run, and what they announce runs only if it
//! changes nothing.

/// Words of the line before a call that make it an example.
const EXAMPLES: &[&str] = &[
    "for example",
    "as an example",
    "example call",
    "example of",
    "example:",
    "e.g.",
    "for instance",
    "would look",
    "looks like this",
    "look like this",
    "looks so:",
    "looks as follows",
    "would write",
    "such a call",
    "this form:",
    "this form ",
    "the form:",
    "the form ",
    "the syntax",
    "beispiel",
    "par exemple",
    "por ejemplo",
    "ad esempio",
    "например",
    "例如",
    "比如",
    "例えば",
    "예를 들어",
];

/// Words of the sentence before a call that speak of calls instead of making one.
const THEORY: &[&str] = &[
    "example",
    "sample",
    "template",
    "syntax",
    "format",
    "would",
    "could",
    "might",
    "you can",
    "one can",
    "can be",
    "like so",
    "like this",
    "as follows",
    "written",
    "called",
    "documented",
    "expects",
    "illustrat",
    "demonstrat",
    "hypothetical",
    "würde",
    "könnte",
    "sähe",
    "so aus",
    "serait",
    "pourrait",
    "ressemble",
    "comme suit",
    "comme ceci",
    "sería",
    "podría",
    "como sigue",
    "formato",
    "sarebbe",
    "potrebbe",
    "выглядит",
    "формат",
    "如下",
    "格式",
    "示例",
    "这样",
    "次のよう",
    "形式",
    "다음과 같",
    "형식",
];

/// How a sentence begins that says what its speaker is about to do.
const INTENTIONS: &[&str] = &[
    "i'll ",
    "i’ll ",
    "i will ",
    "i'm going to ",
    "i’m going to ",
    "i am going to ",
    "i need to ",
    "let me ",
    "let's ",
    "let’s ",
    "now i",
    "now let",
    "next, i",
    "next i",
    "first, i",
    "first, let",
    "first i",
    "then i",
    "ok, let",
    "okay, let",
    "sure, let",
    "to do this, i",
    "ich lese ",
    "ich schaue ",
    "ich sehe ",
    "voy a ",
    "je vais ",
];

/// The same within a sentence.
const RESOLVES: &[&str] = &[" i'll ", " i’ll ", " i will ", " let me ", " so i "];
/// Somebody else's intention.
const QUOTING: &[&str] = &["would", "could", "might", " say", "example"];

/// Intentions to explain.
const SHOWING: &[&str] = &["show you", "example", "illustrat", "demonstrat", "explain", "describe"];

/// Whether the text before a call says that it is an example.
pub(super) fn make_an_example(before: &str) -> bool {
    let (line, sentence) = last(before);
    let is_title = before.lines().rev().filter(|line| !line.trim().is_empty()).take(3).any(|line| {
        let line = line.trim_start();
        (line.starts_with('#') || line.starts_with("**")) && line.to_lowercase().contains("example")
    });
    let is_about_it = line.ends_with([':', '：']) || has(&sentence, &["call", "tool"]);
    let is_theory = if intends(&sentence) { has(&sentence, SHOWING) } else { is_about_it && has(&sentence, THEORY) };
    is_title || is_theory || has(&line, EXAMPLES)
}

/// Whether the text before a call ends with the intention to make it.
pub(super) fn announce(before: &str) -> bool {
    let (_, sentence) = last(before);
    intends(&sentence) && !has(&sentence, SHOWING) && !has(&sentence, &["show", "how "])
}

fn intends(sentence: &str) -> bool {
    INTENTIONS.iter().any(|begin| sentence.starts_with(begin)) || has(sentence, RESOLVES) && !has(sentence, QUOTING)
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// The last line that is not blank and its last sentence, in lower case.
fn last(text: &str) -> (String, String) {
    let line = text.trim_end().rsplit('\n').next().unwrap_or_default().to_lowercase();
    let end = line.trim_end_matches([' ', ':', '.', '!', '…', '*']);
    let begin = [". ", "! ", "? "].iter().filter_map(|mark| Some(end.rfind(mark)? + mark.len())).max();
    let sentence = end.split_at(begin.unwrap_or_default()).1.trim_start_matches(['-', '*', ' ', '#']).to_owned();
    (line, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaking_of_a_call_makes_it_an_example() {
        for text in [
            "For example:",
            "A call would look like this:\n\n",
            "You can call it like so:",
            "The model could write:",
            "It is called as follows:",
            "I would write it with:",
            "Let me show you how to write it:",
            "I read the docs. The format is:",
            "A model would say: I'll read it:",
            "## Example\n\nReading a file:",
            "**Example**\n",
            "Ein Aufruf sähe so aus:",
            "Un appel ressemblerait à ceci :",
            "调用格式如下：",
            "呼び出しは次のようになります：\n\n",
        ] {
            assert!(make_an_example(text) && !announce(text), "{text}");
        }
    }

    #[test]
    fn an_intention_is_no_example() {
        for text in [
            "Let me look at it:",
            "I'll read the file first.",
            "That could fail. Let me check what it would do:",
            "Now I edit it like this:",
            "The tests (e.g. a) fail.\nI will read them.",
            "This would break the build.",
            "The format is wrong, so I'll rewrite it:",
            "**Step 1**: I'll read it.",
            "I'm going to read `src/lib.rs`:",
        ] {
            assert!(!make_an_example(text), "{text}");
        }
        assert!(announce("The bug is there.\n\nLet me read it:\n\n"));
        assert!(!announce("The bug is there."));
        assert!(!announce(""));
    }
}
