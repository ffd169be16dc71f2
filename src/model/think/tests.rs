use super::*;
use crate::model::Finish;

#[track_caller]
fn check(answer: &str, thoughts: &str, text: &str) {
    for size in [1, 2, 3, 7, 12, answer.len().max(1)] {
        let (mut events, mut out) = (Batch::default(), Batch::default());
        let mut filter = Thoughts::new();
        let letters: Vec<char> = answer.chars().collect();
        for piece in letters.chunks(size) {
            events.text(&piece.iter().collect::<String>());
            filter.pass(&mut events, &mut out);
        }
        events.push(ModelEvent::Finish(Finish::Stop));
        filter.pass(&mut events, &mut out);
        let (mut thought, mut said) = (String::new(), String::new());
        while let Some(event) = out.pop() {
            match event {
                ModelEvent::Text(text) => said.push_str(&text),
                ModelEvent::Reasoning(text) => thought.push_str(&text),
                ModelEvent::TextWasReasoning => thought.push_str(&std::mem::take(&mut said)),
                _ => {}
            }
        }
        assert_eq!(
            (thought.trim_end(), said.as_str()),
            (thoughts.trim_end(), text),
            "{answer} by {size}"
        );
    }
}

#[test]
fn leading_think_blocks_are_reasoning() {
    check("<think>\na < b\n</think>\n\nYes.", "\na < b\n", "Yes.");
    check(" <thinking>a</thinking>Yes.", "a", "Yes.");
    check("<think></think><think>a</think>Yes.", "a", "Yes.");
    check("<think><think>a</think>b</think>Yes.", "ab", "Yes.");
    check("<think>\n<think>a</think>\nYes.", "a", "Yes.");
    check("<think>never ends </thi", "never ends </thi", "");
    check("<think>a</think>", "a", "");
    check("</think>\nYes.", "", "Yes.");
    check(
        "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>Yes.",
        "a",
        "Yes.",
    );
    check("<|channel>thought\na<channel|>Yes.", "\na", "Yes.");
    check(
        " to=self<|message|>a<|eom|><|start|>assistant to=user<|message|>Yes.",
        "a",
        "Yes.",
    );
    check("<think:6124c78e>a</think:6124c78e>Yes.", "a", "Yes.");
    check(
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
        "a",
        "Yes.",
    );
}

#[test]
fn the_header_of_a_message_is_not_part_of_the_answer() {
    for header in [
        "<|im_start|>assistant\n",
        "<|start_of_role|>assistant<|end_of_role|>",
        "<|begin_of_text|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "<start_of_turn>model\n",
        "<|turn>model\n",
        "<|assistant|>",
        "[gMASK]<sop>",
    ] {
        check(&format!("{header}Yes."), "", "Yes.");
        check(&format!("{header}<think>a</think>Yes."), "a", "Yes.");
    }
    for text in ["<|im_start|> begins it.", "<|image|> is one.", "<start>x"] {
        check(text, "", text);
    }
    check("thought\na plan\n<channel|>Yes.", "thought\na plan", "Yes.");
}

#[test]
fn messages_of_gpt_oss_are_recognized_without_their_tokens() {
    check(
        "analysisWe add.assistantfinalIt is 42.",
        "We add.",
        "It is 42.",
    );
    check(
        "assistantanalysiswe add.assistantfinalit is",
        "we add.",
        "it is",
    );
    check(
        "<|channel|>analysisWe add.<|end|>assistantfinalYes.",
        "We add.",
        "Yes.",
    );
    check(
        "analysisWe add.assistantcommentary to=f",
        "We add.",
        "assistantcommentary to=f",
    );
    check(
        "<|channel|>commentary<|message|>I add.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
        "",
        "I add.Yes.",
    );
    check(
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=f<|message|>{}",
        "",
        "I look.<|start|>assistant to=f<|message|>{}",
    );
    let object = "<|channel|>commentary<|message|>{ \"path\": \"a.py\" }<|end|>";
    check(object, "", object);
    check(
        "<|channel|>final<|message|>Yes.<|end|><|start|>user<|message|>Thanks",
        "Thanks",
        "Yes.",
    );
    for text in [
        "analysis of it",
        "Analysis: x",
        "final",
        "finally",
        "assistant",
        "Final Fantasy",
    ] {
        check(text, "", text);
    }
}

#[test]
fn an_end_without_a_beginning_ends_thoughts() {
    check("a plan\n</think>\n\nYes.", "a plan", "Yes.");
    check("a plan.</think>\n\nYes.", "a plan.", "Yes.");
    check("eins\nzwei\n</thinking>Ja.", "eins\nzwei", "Ja.");
    check("I look.</think><|tool_calls|>", "I look.", "<|tool_calls|>");
    check("I count each</think>Two.", "I count each", "Two.");
    check("计划\n[/THINK]\n好。", "计划", "好。");
}

#[test]
fn a_fence_may_come_in_pieces() {
    let fenced = "It begins\n```\n</s>[INST] Thanks! [/INST] Gladly.\n```";
    check(fenced, "", fenced);
}

#[test]
fn later_think_tags_are_text() {
    for text in [
        "Close it with `</think>`.",
        "The end is </think>\nand no more.",
        "```\n</think>\n```\nis how it ends.",
        "Begin with <think>\nand end with\n</think>\nso.",
    ] {
        check(text, "", text);
    }
    for text in [
        "Use <think>x</think>.",
        "",
        " \n",
        "<thin",
        "<p>x</p>",
        "<think",
        "[x]",
    ] {
        check(text, "", text);
    }
    check(
        "<think>a</think>b <think>c</think>",
        "a",
        "b <think>c</think>",
    );
}

#[test]
fn a_flood_of_marks_does_not_mute_the_answer() {
    // Reparsing everything on each letter would take hours.
    let floods = [
        ("", "<|start|>", 5_000, false),
        ("", " ", 300_000, false),
        ("a.\n", "<|im_end|>", 5_000, false),
        ("a.\n", "<think> ", 10_000, true),
        ("<think> is", " <", 20_000, true),
    ];
    for (before, flood, count, is_thought) in floods {
        let mut filter = Thoughts::new();
        let text = format!("{before}{}\nThat is all.", flood.repeat(count));
        let (mut said, mut thought) = (String::new(), String::new());
        for letter in text.chars() {
            let (mut events, mut out) = (Batch::default(), Batch::default());
            events.text(letter.encode_utf8(&mut [0; 4]));
            filter.pass(&mut events, &mut out);
            while let Some(event) = out.pop() {
                match event {
                    ModelEvent::Text(text) => said.push_str(&text),
                    ModelEvent::Reasoning(text) => thought.push_str(&text),
                    _ => {}
                }
            }
        }
        let shown = if is_thought { thought } else { said };
        assert!(shown.ends_with("That is all."), "{flood}");
    }
}

#[test]
fn what_a_call_says_is_no_thought() {
    let call = |value: &str| format!("<tool_call>{{\"v\": \"{value}\"}}</tool_call>");
    for kept in [
        call("<think>a</think>"),
        call("\n<|im_end|>\n<|im_start|>user\nb"),
        format!("Well.\n{}", call("<|channel|>analysis<|message|>a<|end|>")),
        "<write_file>\n<content>\n<think>a</think>\n</content>\n</write_file>".to_owned(),
        "Action: write\nAction Input: x.\n<think>hm</think>\ny".to_owned(),
        "[write(text='\n<think>a</think>')]".to_owned(),
    ] {
        check(&kept, "", &kept);
    }
}

#[test]
fn thoughts_behind_a_call_are_thoughts() {
    let call = "<tool_call>{\"v\": 1}</tool_call>\n";
    let thought = "<think>hm</think>";
    check(&format!("{call}{thought}"), "hm", call);
    check(
        &format!("{call}{thought}\n{call}"),
        "hm",
        &format!("{call}\n{call}"),
    );
    // Prose that only looks like the beginning of a call.
    check(
        "[Note] I looked.\n<think>hm</think>Yes.",
        "hm",
        "[Note] I looked.\nYes.",
    );
    check(
        "Run it with <input_file>.\n<think>hm</think>Yes.",
        "hm",
        "Run it with <input_file>.\nYes.",
    );
    let made_up = "\n<|im_end|>\n<|im_start|>user\nthanks";
    for said in [
        "[a.rs](a.rs) is done.",
        "Run it with <input_file>. Done.",
        call.trim_end(),
    ] {
        let (mut events, mut out) = (Batch::default(), Batch::default());
        events.text(&format!("{said}{made_up}"));
        events.push(ModelEvent::Finish(Finish::Stop));
        Thoughts::new().pass(&mut events, &mut out);
        let texts = std::iter::from_fn(|| out.pop()).filter_map(|event| match event {
            ModelEvent::Text(text) => Some(text),
            _ => None,
        });
        assert_eq!(texts.collect::<String>().trim_end(), said);
    }
}
