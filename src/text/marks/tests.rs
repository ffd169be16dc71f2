use super::*;

/// The spellings of a mark.
fn spellings(mark: &str) -> Vec<String> {
    let mark = &mark
        .replace('*', "tool_call")
        .replace('^', "end_tool_call")
        .replace('+', "function")
        .replace('?', "think")
        .replace('%', "end_think")
        .replace('$', "final_answer");
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
                "‖DSML‖",
                "¦DSML¦",
                "｜｜DSML｜｜ ",
            ]
            .map(|space| format!("{open}{space}{name}")),
        );
        let slash = open.trim_start_matches('<');
        let bracket = if slash.is_empty() {
            "<|open|>"
        } else {
            "<|close|>"
        };
        all.extend([
            format!("<|DSML|{slash}{name}"),
            format!("<｜{slash}DSML｜{name}"),
            format!("< {slash} | DSML | {name}"),
            format!("{SEPARATOR}{open}{name}"),
            format!("{bracket}{}", name.replace('>', CLOSING)),
        ]);
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
    let is_around_calls = |text: &str| begins(&[Calls]).any(|mark| after(text, mark) == Some(""));
    for text in [
        "<|tool▁calls▁begin｜>",
        "<|tool_calls_section_begin|>",
        "<|START_ACTION|>",
        "<toolcall>",
        "<longcat_tool_call>",
        "[TOOL_REQUEST]",
        "<|python_start|>",
        "<|tool_call>",
        "<|tool_call:begin|>",
    ] {
        assert!(is_around_calls(text), "{text}");
    }
    for text in [
        "<code>",
        "<section>",
        "[tools]",
        "<action>",
        "<|tool_sep|>",
        "<|tool_response|>",
        "<start_code>",
        "<|tool_call_end|>",
        "<tool_choice>",
    ] {
        assert!(!is_around_calls(text), "{text}");
    }
}

#[test]
fn ends_that_nothing_begins_are_cut_off() {
    let rows = MARKS
        .iter()
        .filter(|(_, _, kind)| !matches!(kind, Thoughts | Header));
    for (begin, end, _) in rows {
        let spelled = spellings(end).into_iter();
        for end in spelled.map(|end| {
            end.replace("[end_", "[/")
                .replace("[END_", "[/")
                .replace("[end▁", "[/")
        }) {
            assert_eq!(without_ends(&format!("x = 1\n{end}")), "x = 1\n", "{end}");
            assert_eq!(
                without_ends(&format!("x = 1\n{end}\n</invoke>\n")),
                "x = 1\n",
                "{end}"
            );
            let begin = spellings(begin).swap_remove(0);
            let text = format!("{begin}x{end}");
            if !begin.is_empty() {
                assert_eq!(without_ends(&text), text);
            }
        }
    }
    for text in [
        "<p>x</p>",
        "a</b>",
        "[x]",
        "<think>x</think>\n",
        "    </SentimentAnalysis>",
        "x\n</response>\n",
        "messages += [tool_result]",
        "return cache[TOOL_RESULT]\n",
        "results: list[ToolResult]",
        "ids = [BOS] + ids + [EOS]",
        "[a]\n[TOOL_OUTPUT]\n",
        "type A = Vec<Args>",
        "props: Props<Parameters>\n",
    ] {
        assert_eq!(without_ends(text), text);
    }
}

/// Scanning the rest of the text for each mark would take hours.
#[test]
fn many_tags_are_searched_in_linear_time() {
    let tags = "<parameter=a>".repeat(100_000);
    assert_eq!(find(&tags, "<tool_call>"), None);
}
