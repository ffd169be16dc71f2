//! Places of a change as what they are: all that differs.

use tandem::workspace::edit::Outcome;

/// Fails where the new text is not the old one with the places replaced, in their order.
pub fn check(text: &str, outcome: &Outcome) {
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
