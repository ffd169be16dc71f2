//! Any text and any edits of it: nothing panics, what is outside the places keeps every byte, and a text that is there
//! once is found where it is. An input is the text, then old and new texts in turn, with NUL between them.
#![no_main]

#[path = "../rebuilt.rs"]
mod rebuilt;

use libfuzzer_sys::fuzz_target;
use tandem::workspace::edit::{Strategy, apply};
use tandem::workspace::{Change, Replacement};

fuzz_target!(|input: &str| {
    let mut parts = input.split('\0');
    let text = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let edits: Vec<Replacement> = rest.chunks_exact(2).map(replacement).collect();
    let result = apply(text, &Change::Edits(edits.clone()));
    if let Ok(outcome) = &result {
        rebuilt::check(text, outcome);
    }
    if let [only] = &edits[..] {
        one(text, only, result.ok().and_then(|outcome| outcome.strategy));
    }
});

/// What is there twice as it stands is refused; what is there once is found so.
fn one(text: &str, edit: &Replacement, found: Option<Strategy>) {
    let hits = text.match_indices(&edit.old_text).count();
    if edit.old_text.is_empty() || edit.old_text == edit.new_text {
        return;
    }
    if hits > 1 {
        assert_eq!(found, None, "one of {hits} was taken");
    }
    // Half a CRLF is never a place by itself.
    let cuts_a_line_break = edit.old_text.starts_with('\n') || edit.old_text.ends_with('\r');
    if hits == 1 && found.is_some() && !cuts_a_line_break {
        assert_eq!(found, Some(Strategy::Exact), "something else than what is there was taken");
    }
}

fn replacement(pair: &[&str]) -> Replacement {
    Replacement { old_text: pair[0].to_owned(), new_text: pair[1].to_owned(), replace_all: false }
}
