//! The date form of HTTP headers (RFC 9110 §5.6.7, the preferred form).

use std::time::SystemTime;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let words: Vec<&str> = text.split(' ').collect();
    let [_weekday, day, month, year, time, "GMT"] = *words.as_slice() else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    humantime::parse_rfc3339(&format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: Option<u64>) {
        assert_eq!(
            parse(text),
            seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            "{text}"
        );
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
