//! The look of a command's output, as clients are sent it: beside the text, which stays plain.

use std::ops::Range;

use crate::domain::{Color, Style, Styled, Weight};
use crate::protocol::ext;

/// The styles of the parts of `text` that are shown, each from its place in what is shown.
pub(super) fn shown(
    text: &str,
    parts: &[(Range<usize>, usize)],
    display: &str,
    styles: &[Styled],
) -> Vec<ext::Styled> {
    let of_part = |(part, at): &(Range<usize>, usize)| {
        let whole = text.get(part.clone()) == display.get(*at..at + part.len());
        styles
            .iter()
            .filter(move |_| whole)
            .filter_map(|styled| styled.within(part, *at))
            .collect::<Vec<_>>()
    };
    let styles: Vec<Styled> = parts.iter().flat_map(of_part).collect();
    let (mut bytes, mut units) = (0, 0);
    let mut unit = |at: usize| {
        units += display
            .get(bytes..at)
            .unwrap_or_default()
            .encode_utf16()
            .count();
        bytes = at;
        units
    };
    styles
        .iter()
        .map(|styled| {
            wire(
                unit(styled.range.start),
                unit(styled.range.end),
                styled.style,
            )
        })
        .collect()
}

fn wire(start: usize, end: usize, style: Style) -> ext::Styled {
    let Style {
        color: front,
        background,
        weight,
        italic,
        underline,
    } = style;
    let (bold, dim) = (weight == Weight::Bold, weight == Weight::Dim);
    let fonts = [
        (bold, "bold"),
        (dim, "dim"),
        (italic, "italic"),
        (underline, "underline"),
    ];
    let font = fonts
        .into_iter()
        .filter_map(|(is_on, name)| is_on.then_some(name))
        .collect();
    ext::Styled {
        start,
        end,
        color: front.map(color),
        background: background.map(color),
        font,
    }
}

fn color(color: Color) -> String {
    match color {
        Color::Terminal(number) => number.to_string(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_counted_as_the_client_counts_and_only_of_what_it_is_shown() {
        let style = Style {
            color: Some(Color::Terminal(1)),
            weight: Weight::Bold,
            ..Style::default()
        };
        let styled = |range| Styled { range, style };
        let (text, styles) = ("é🎉 red, and more red", [styled(7..10), styled(21..24)]);
        let at = |parts: &[_], display: &str| {
            shown(text, parts, display, &styles)
                .iter()
                .map(|it| (it.start, it.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(at(&[(0..24, 0)], text), [(4, 7), (18, 21)]);
        assert_eq!(
            at(&[(0..8, 0), (22..24, 10)], "é🎉 r…ed"),
            [(4, 5)],
            "the second part is not there"
        );
        assert!(at(&[(0..24, 0)], "something else that is as long").is_empty());
        let one = shown(text, &[(0..24, 0)], text, &styles).remove(0);
        assert_eq!((one.color.as_deref(), one.font), (Some("1"), vec!["bold"]));
        assert_eq!(color(Color::Rgb(255, 135, 0)), "#ff8700");
    }
}
