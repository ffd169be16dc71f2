//! How a terminal would show a part of a program's output. The model reads the text alone.

use std::ops::Range;

/// The look of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// The color; `None` for the usual one.
    pub color: Option<Color>,
    /// The color behind it.
    pub background: Option<Color>,
    /// How strong it is.
    pub weight: Weight,
    /// Whether it is in italics.
    pub italic: bool,
    /// Whether it is underlined.
    pub underline: bool,
}

/// How strong a text is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weight {
    /// As usual.
    #[default]
    Usual,
    /// Bold.
    Bold,
    /// Dim.
    Dim,
}

/// A color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// One of the terminal's own 16, whose look the person's theme decides.
    Terminal(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

/// A part of a text that is shown in a style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Styled {
    /// The part, in bytes.
    pub range: Range<usize>,
    /// Its look.
    pub style: Style,
}

impl Styled {
    /// What of it is in `part` of the text, if that part begins at `at`.
    pub fn within(&self, part: &Range<usize>, at: usize) -> Option<Self> {
        let (start, end) = (
            self.range.start.max(part.start),
            self.range.end.min(part.end),
        );
        (start < end).then(|| Self {
            range: start - part.start + at..end - part.start + at,
            style: self.style,
        })
    }
}

impl Style {
    /// Applies a control sequence that selects graphics (SGR, ECMA-48 8.3.117). Unknown numbers change nothing.
    pub fn select(&mut self, numbers: impl IntoIterator<Item = u16>) {
        let mut numbers = numbers.into_iter().peekable();
        if numbers.peek().is_none() {
            *self = Self::default();
        }
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.weight = Weight::Bold,
                2 => self.weight = Weight::Dim,
                3 => self.italic = true,
                4 => self.underline = true,
                22 => self.weight = Weight::Usual,
                23 => self.italic = false,
                24 => self.underline = false,
                30..=37 => self.color = terminal(number - 30),
                38 => self.color = extended(&mut numbers),
                39 => self.color = None,
                40..=47 => self.background = terminal(number - 40),
                48 => self.background = extended(&mut numbers),
                49 => self.background = None,
                90..=97 => self.color = terminal(number - 82),
                100..=107 => self.background = terminal(number - 92),
                _ => {}
            }
        }
    }

    /// The numbers that select it, starting without a style, as [`Style::select`] reads them.
    pub fn numbers(self) -> String {
        let weight = match self.weight {
            Weight::Usual => None,
            Weight::Bold => Some("1"),
            Weight::Dim => Some("2"),
        };
        let color = |color, base: u16| match color {
            Color::Terminal(number @ ..8) => (base + u16::from(number)).to_string(),
            Color::Terminal(number) => (base + 52 + u16::from(number)).to_string(),
            Color::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue}", base + 8),
        };
        let fonts = [
            weight,
            self.italic.then_some("3"),
            self.underline.then_some("4"),
        ];
        let colors = [
            self.color.map(|it| color(it, 30)),
            self.background.map(|it| color(it, 40)),
        ];
        let fonts = fonts.into_iter().flatten().map(str::to_owned);
        let numbers: Vec<_> = fonts.chain(colors.into_iter().flatten()).collect();
        numbers.join(";")
    }
}

fn terminal(number: u16) -> Option<Color> {
    u8::try_from(number).ok().map(Color::Terminal)
}

/// One of 256 colors (`5;N`), or any (`2;R;G;B`).
fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<Color> {
    let mut byte = || numbers.next().and_then(|number| u8::try_from(number).ok());
    match byte()? {
        5 => Some(match byte()? {
            number @ ..16 => Color::Terminal(number),
            number @ 16..232 => {
                let level = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
                let number = number - 16;
                Color::Rgb(level(number / 36), level(number / 6 % 6), level(number % 6))
            }
            number => {
                let gray = 8 + 10 * (number - 232);
                Color::Rgb(gray, gray, gray)
            }
        }),
        2 => Some(Color::Rgb(byte()?, byte()?, byte()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(numbers: &[u16], expected: Style) {
        let mut style = Style::default();
        style.select(numbers.iter().copied());
        assert_eq!(style, expected, "{numbers:?}");
    }

    fn colored(color: Color) -> Style {
        Style {
            color: Some(color),
            ..Style::default()
        }
    }

    #[test]
    fn graphics_are_selected() {
        check(&[31], colored(Color::Terminal(1)));
        check(&[97], colored(Color::Terminal(15)));
        check(&[38, 5, 9], colored(Color::Terminal(9)));
        check(&[38, 5, 208], colored(Color::Rgb(255, 135, 0)));
        check(&[38, 5, 255], colored(Color::Rgb(238, 238, 238)));
        check(&[38, 2, 1, 2, 3], colored(Color::Rgb(1, 2, 3)));
        check(
            &[31, 44, 39],
            Style {
                background: Some(Color::Terminal(4)),
                ..Style::default()
            },
        );
        check(
            &[1, 2, 3, 4, 22],
            Style {
                italic: true,
                underline: true,
                ..Style::default()
            },
        );
        for nothing in [
            &[31, 1, 0][..],
            &[],
            &[77],
            &[38, 5],
            &[38, 2, 999, 0, 0],
            &[38],
        ] {
            check(nothing, Style::default());
        }
    }

    #[test]
    fn parts_of_a_text_keep_their_styles() {
        let styled = Styled {
            range: 4..9,
            style: colored(Color::Terminal(1)),
        };
        let within = |part: Range<usize>, at| styled.within(&part, at).map(|styled| styled.range);
        assert_eq!(within(0..20, 0), Some(4..9));
        assert_eq!(within(6..20, 100), Some(100..103));
        assert_eq!(within(0..5, 2), Some(6..7));
        assert_eq!(within(9..20, 0), None);
    }
}
