//! Generated edits: a file with many similar lines, in any encoding, and a model that misquotes some of them slightly.
//!
//! The oracle does not share the engine's views: it compares lines, pass by pass, and says where the edit must apply or
//! that it must be refused.

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, any, prop_oneof};
use proptest::strategy::Strategy as _;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::super::*;
use crate::domain::Charset;
use crate::domain::Stored;
use crate::workspace::content::decode;

/// No word begins or ends with another, so a line is never found inside another.
const WORDS: [&str; 6] = [
    "alpha(1);",
    "beta = 'x';",
    "gamma { y }",
    "“delta” – é",
    "zeta  zeta",
    "\\omega",
];

#[derive(Debug, Clone)]
struct Case {
    /// The indentation, word and line break of each line.
    lines: Vec<(usize, usize, usize)>,
    format: Stored,
    /// Which lines the model quotes.
    from: usize,
    count: usize,
    /// How it misquotes them.
    drift: Vec<Drift>,
}

#[derive(Debug, Clone, Copy)]
enum Drift {
    LineEndings,
    TrailingBlanks,
    Deeper,
    Shallower,
    PlainQuotes,
    WideBlanks,
}

fn cases() -> impl proptest::strategy::Strategy<Value = Case> {
    let indentation = prop_oneof![Just(0_usize), Just(4), Just(8)];
    let ending = prop_oneof![8 => Just(0_usize), 1 => Just(1), 1 => Just(2)];
    let charset = prop_oneof![
        Just(Charset::Utf8),
        Just(Charset::Utf16Le),
        Just(Charset::Utf16Be)
    ];
    let format = (charset, any::<bool>()).prop_map(|(charset, bom)| Stored {
        charset,
        bom: bom || charset != Charset::Utf8,
        ..Stored::default()
    });
    let drift = prop_oneof![
        Just(Drift::LineEndings),
        Just(Drift::TrailingBlanks),
        Just(Drift::Deeper),
        Just(Drift::Shallower),
        Just(Drift::PlainQuotes),
        Just(Drift::WideBlanks),
    ];
    let lines = vec((indentation, 0..WORDS.len(), ending), 1..16);
    (
        lines,
        format,
        0..16_usize,
        1..4_usize,
        vec(drift, 0..3),
        0..3_usize,
    )
        .prop_map(|(mut lines, format, from, count, drift, main)| {
            // Most files have one kind of line break; a few lines may have another.
            for line in &mut lines {
                line.2 = if line.2 == 0 { main } else { line.2 - 1 };
            }
            let from = from % lines.len();
            Case {
                count: count.min(lines.len() - from),
                lines,
                format,
                from,
                drift,
            }
        })
}

impl Case {
    fn lines(&self) -> Vec<(String, &'static str)> {
        let line = |&(indentation, word, ending): &(usize, usize, usize)| {
            (
                " ".repeat(indentation) + WORDS[word],
                ["\n", "\r\n", "\r"][ending],
            )
        };
        self.lines.iter().map(line).collect()
    }

    /// The lines as the model quotes them.
    fn quoted(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.lines()[self.from..self.from + self.count]
            .iter()
            .map(|line| line.0.clone())
            .collect();
        for drift in &self.drift {
            for line in &mut lines {
                *line = match drift {
                    Drift::LineEndings => line.clone(),
                    Drift::TrailingBlanks => format!("{line}  "),
                    Drift::Deeper => format!("    {line}"),
                    Drift::Shallower => line.strip_prefix("    ").unwrap_or(line).to_owned(),
                    Drift::PlainQuotes => line.replace(['“', '”'], "\"").replace('–', "-"),
                    Drift::WideBlanks => line
                        .replace(" = ", "  =  ")
                        .replace("zeta  zeta", "zeta zeta"),
                };
            }
        }
        lines
    }
}

/// A line as a pass compares it.
fn seen(line: &str, strategy: Strategy) -> String {
    let mut line = line.to_owned();
    if strategy >= Strategy::TrailingBlanks {
        line = line.trim_end().to_owned();
    }
    if strategy >= Strategy::Indentation {
        line = line.trim_start().to_owned();
    }
    if strategy >= Strategy::Unicode {
        line = line.replace(['“', '”'], "\"").replace('–', "-");
    }
    if strategy >= Strategy::InnerBlanks {
        line = line
            .split(' ')
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
    }
    line
}

/// The first line to replace; `None` if the edit must be refused.
fn expected(lines: &[(String, &str)], quoted: &[String], line_break: &str) -> Option<usize> {
    for strategy in &Strategy::PASSES[..6] {
        let matches = |window: &[(String, &str)]| {
            let ends_alike = window[1..]
                .iter()
                .zip(window)
                .all(|(_, (_, ending))| *ending == line_break);
            let is_exact = *strategy == Strategy::Exact;
            (!is_exact || ends_alike)
                && std::iter::zip(window, quoted).enumerate().all(
                    |(number, ((line, _), quoted))| {
                        let (line, quoted) = (seen(line, *strategy), seen(quoted, *strategy));
                        // The first line may be quoted without its beginning.
                        if number == 0 {
                            line.ends_with(&quoted)
                        } else {
                            line == quoted
                        }
                    },
                )
        };
        let places: Vec<usize> = (0..=lines.len() - quoted.len())
            .filter(|&at| matches(&lines[at..at + quoted.len()]))
            .collect();
        match places.as_slice() {
            [] => {}
            [place] => return Some(*place),
            _ => return None,
        }
    }
    None
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let lines = case.lines();
    let quoted = case.quoted();
    let joined = |lines: &[(String, &str)]| {
        lines
            .iter()
            .flat_map(|(line, ending)| [line, *ending])
            .collect::<String>()
    };
    let bytes = case.format.encode(&joined(&lines)).unwrap().into_owned();
    let (text, format) = decode(bytes.clone()).unwrap();
    let line_break = if case
        .drift
        .iter()
        .any(|drift| matches!(drift, Drift::LineEndings))
    {
        "\r\n"
    } else {
        "\n"
    };
    let edit = Replacement {
        old_text: quoted.join(line_break),
        new_text: "NEW".to_owned(),
        count: Some(1),
    };
    let outcome = apply(&text, &Change::Edits(vec![edit]));
    let Some(at) = expected(&lines, &quoted, line_break) else {
        proptest::prop_assert!(outcome.is_err(), "{outcome:?}");
        return Ok(());
    };
    let after = format
        .encode(
            &outcome
                .map_err(|error| TestCaseError::fail(error.0))?
                .new_text,
        )
        .unwrap()
        .into_owned();
    // The text before and after is unchanged, with the new text in the one expected place.
    let last = at + quoted.len() - 1;
    let before = format.encode(&joined(&lines[..at])).unwrap().into_owned();
    let rest = joined(&lines[last + 1..]);
    let tail = Stored {
        bom: false,
        ..format
    }
    .encode(&format!("{}{rest}", lines[last].1))
    .unwrap()
    .into_owned();
    proptest::prop_assert!(after.starts_with(&before) && after.ends_with(&tail));
    let (changed, _) = decode(after).unwrap();
    let middle = changed.strip_prefix(joined(&lines[..at]).as_str()).unwrap();
    let middle = middle
        .strip_suffix(&format!("{}{rest}", lines[last].1))
        .unwrap();
    proptest::prop_assert_eq!(middle.trim_start_matches(' '), "NEW");
    Ok(())
}

#[test]
fn ten_thousand_generated_edits_land_correctly_or_not_at_all() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner.run(&cases(), |case| check(&case)).unwrap();
}
