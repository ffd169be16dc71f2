//! Where a URL leads.

use reqwest::redirect;
use url::{Host, Url};

/// Whether a URL leads to this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Whether an address leads to this machine.
pub fn is_local(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| is_loopback(&url))
}

/// Follows redirects that keep the method, the body and the origin; any other is returned as an answer that names its
/// target.
pub fn same_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps = matches!(attempt.status().as_u16(), 307 | 308);
    let same = attempt
        .previous()
        .last()
        .is_some_and(|last| last.origin() == attempt.url().origin());
    if keeps && same && attempt.previous().len() <= 3 {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
