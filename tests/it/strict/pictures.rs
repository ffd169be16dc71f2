//! Images from a person and from tool results, in every API: fresh, with another model, and in a summary.

use serde_json::json;

use super::rows::Row;
use super::server::Act;
use super::voice::Said;
use super::{Play, SIDE_BY_SIDE, look, say};
use crate::driver::side_by_side;

/// A session in which a person attaches an image, and the model reads another.
fn with_pictures(rows: &[Row]) -> Play {
    const PIXEL: &[u8] =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    let mut play = Play::begin(rows);
    std::fs::write(play.world.path().join("dot.png"), PIXEL).unwrap();
    let calls = vec![("read_file", json!({ "path": "dot.png" }))];
    play.strict.add([
        Act::Say(Said {
            text: "Reading.",
            calls,
            pauses: false,
        }),
        say("A dot."),
    ]);
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" });
    let prompt = json!([{ "type": "text", "text": "what is this?" }, image]);
    let id = play.client.ask(
        "session/prompt",
        json!({ "sessionId": play.session, "prompt": prompt }),
    );
    play.end(id);
    play
}

/// Whether the last request contains the person's image and that of the result.
fn pictures(play: &Play) -> (usize, usize) {
    let last = play.last();
    (
        last.raw.matches("AAAA\"").count(),
        last.raw.matches("iVBORw0KGgo").count(),
    )
}

/// Models of all APIs that accept images.
const SEEING: [Row; 8] = [
    ("openai", "gpt-5.5"),
    ("anthropic", "claude-sonnet-4-6"),
    ("gemini", "gemini-3.5-flash"),
    ("openrouter", "anthropic/claude-sonnet-5"),
    ("mistral", "mistral-large-latest"),
    ("moonshot", "kimi-k2.6"),
    ("xai", "grok-4.3"),
    ("github", "openai/gpt-4.1"),
];

#[test]
fn pictures_go_in_the_words_of_each_dialect_and_into_results_where_they_may() {
    for row in SEEING {
        let play = with_pictures(&[row]);
        assert_eq!(pictures(&play), (1, 1), "{row:?}: {}", play.last().raw);
    }
}

#[test]
fn images_reach_the_next_model_and_a_summary_mentions_them() {
    let play = |index: usize| {
        let rows = [SEEING[index], SEEING[(index + 1) % SEEING.len()]];
        let mut play = with_pictures(&rows);
        play.switch(rows[1]);
        play.turn("and now?", [look("Looking."), say("The same dot.")]);
        assert_eq!(pictures(&play), (1, 1), "{rows:?}: {}", play.last().raw);
        play.turn(
            "THE-REQUEST about @long.rs",
            [
                look("Now."),
                Act::Overflow,
                look("Where was I?"),
                say("Done."),
            ],
        );
        let requests = play.strict.requests();
        let summary = requests
            .iter()
            .rev()
            .find(|(request, _)| request.is_summary())
            .expect("a summary was asked for");
        let raw = &summary.0.raw;
        assert!(
            raw.contains("(an image, image/png)") && !raw.contains("AAAA\""),
            "{rows:?}: {raw}"
        );
        assert!(
            play.last().raw.contains("THE-REQUEST"),
            "{rows:?}: {}",
            play.last().raw
        );
    };
    side_by_side(SIDE_BY_SIDE, (0..SEEING.len()).collect(), play);
}
