//! Any patch on any text: nothing panics, and what a patch adds or takes away is all that changes. An input is the text,
//! NUL, the patch.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::workspace::Change;
use tandem::workspace::edit::apply;
use tandem::workspace::patch::{Action, Line, parse};

fuzz_target!(|input: &str| {
    let (text, patch) = input.split_once('\0').unwrap_or(("", input));
    let Ok(files) = parse(patch) else { return };
    assert!(!files.is_empty(), "a patch of nothing");
    for file in files {
        let Action::Update { chunks, .. } = file.action else { continue };
        let changes = chunks.iter().flat_map(|chunk| &chunk.lines).any(|line| !matches!(line, Line::Context(_)));
        let Ok(outcome) = apply(text, &Change::Patch(chunks)) else { continue };
        assert!(changes || *outcome.new_text == *text, "a patch without a change changed something");
        let mut rebuilt = String::new();
        let mut end = 0;
        for place in &outcome.places {
            assert!(place.range.start >= end, "places overlap or are out of order");
            rebuilt.push_str(text.get(end..place.range.start).expect("a place begins between characters"));
            rebuilt.push_str(&place.new_text);
            end = place.range.end;
        }
        rebuilt.push_str(text.get(end..).expect("a place ends between characters"));
        assert_eq!(rebuilt, *outcome.new_text, "bytes outside the places changed");
    }
});
