//! Any patch on any text: nothing panics, and what a patch adds or takes away is all that changes. An input is the text,
//! NUL, the patch.
#![no_main]

#[path = "../rebuilt.rs"]
mod rebuilt;

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
        rebuilt::check(text, &outcome);
    }
});
