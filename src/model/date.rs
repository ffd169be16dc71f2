//! The date form of HTTP headers (RFC 9110 §5.6.7, the preferred form).

use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut time = words.next()?.split(':').map(|part| part.parse::<u64>().ok().filter(|n| *n < 61));
    let (hours, minutes, seconds) = (time.next()??, time.next()??, time.next()??);
    (words.next()? == "GMT" && (1..=31).contains(&day)).then_some(())?;
    // Years begin in March, so that the leap day is the last day of a year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(DAYS_BEFORE_1970)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400 + hours * 3600 + minutes * 60 + seconds))
}

/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: Option<u64>) {
        assert_eq!(parse(text), seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), "{text}");
    }

    #[test]
    fn dates_are_seconds_since_1970() {
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
        check("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199));
        check("Sun, 06 Nov 1994 08:49:37 CET", None);
        check("soon", None);
        check("Sun, 99 Nov 1994 08:49:37 GMT", None);
    }
}
