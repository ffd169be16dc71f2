//! `sandbox-exec` of macOS, with a textual profile. Implemented from Apple's documentation, not yet tested on a Mac.

use std::collections::BTreeSet;
#[cfg(target_os = "macos")]
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use super::Confined;

/// Hosts and name resolution, but not other programs' local sockets.
const NETWORK: &str = "(allow network*)(deny network-outbound (remote unix-socket))\
    (allow network-outbound (literal \"/private/var/run/mDNSResponder\"))";
/// This machine. A connection's destination is its remote end; its local end is unknown before it is established.
const LOCAL: &str = "(allow network-bind network-inbound (local ip \"localhost:*\"))\
    (allow network-outbound (remote ip \"localhost:*\"))";

/// The services a command may talk to. Any other one works for whoever asks: the launcher starts programs outside the
/// sandbox, the keychain and the clipboard hand out what is in them.
const SERVICES: [&str; 15] = [
    "com.apple.FSEvents",
    "com.apple.PowerManagement.control",
    "com.apple.SystemConfiguration.configd",
    "com.apple.bsd.dirhelper",
    "com.apple.cfprefsd.agent",
    "com.apple.cfprefsd.daemon",
    "com.apple.diagnosticd",
    "com.apple.logd",
    "com.apple.logd.events",
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
    "com.apple.trustd",
    "com.apple.trustd.agent",
];
/// Additional services for host names and certificates.
const NETWORK_SERVICES: [&str; 3] = [
    "com.apple.SystemConfiguration.DNSConfiguration",
    "com.apple.networkd",
    "com.apple.ocspd",
];

#[cfg(target_os = "macos")]
pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// What every program needs.
const BASE: &str = "(version 1)(deny default)(allow process-exec)(allow process-fork)(allow process-info* (target same-sandbox))\
    (allow signal (target same-sandbox))(allow sysctl-read)(allow ipc-posix*)(allow file-read-metadata)(allow file-ioctl)(allow pseudo-tty)\
    (allow file-read* (literal \"/\") (subpath \"/System\") (subpath \"/Library\") (subpath \"/private/etc\")\
    (subpath \"/private/var/select\") (subpath \"/private/var/db\") (subpath \"/Applications/Xcode.app\") (subpath \"/dev\"))\
    (allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))";

/// `argv` run by `sandbox-exec`.
#[cfg(target_os = "macos")]
pub(super) fn held(confined: &Confined<'_>, argv: Vec<OsString>) -> Vec<OsString> {
    let head = [
        OsString::from(PROGRAM),
        "-p".into(),
        profile(confined).into(),
    ];
    head.into_iter().chain(argv).collect()
}

/// The rules; for a path with several rules the last one applies.
pub(super) fn profile(confined: &Confined<'_>) -> String {
    let mut profile = BASE.to_owned();
    let mut add = |what: &str, filter: &str, place: &Path| {
        let place = place
            .display()
            .to_string()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        write!(profile, "({what} ({filter} \"{place}\"))")
            .expect("writing to a string cannot fail");
    };
    let mut rule = |what: &str, place: &Path| add(what, "subpath", place);
    for place in &confined.places.system {
        rule("allow file-read*", place);
    }
    for place in confined
        .home
        .into_iter()
        .flat_map(|home| confined.places.home.iter().map(|place| home.join(place)))
    {
        rule("allow file-read*", &place);
    }
    let scratch = [confined.scratch.temporary(), confined.scratch.home()];
    for place in confined
        .roots
        .iter()
        .map(|root| root.real())
        .chain(scratch.iter().map(AsRef::as_ref))
    {
        rule("allow file-read* file-write*", place);
    }
    for place in &confined.pins.read_only {
        rule("deny file-write*", place);
    }
    for place in confined.hidden.iter().chain(&confined.places.secrets) {
        rule("deny file-read* file-write*", place);
    }
    // A rule is about a path: in a folder that was moved, what is protected could be changed, and moved back.
    let protected = confined.pins.fixed.iter().chain(&confined.pins.read_only);
    let fixed: BTreeSet<&Path> = protected.flat_map(|place| place.ancestors()).collect();
    for place in fixed {
        add("deny file-write-unlink", "literal", place);
    }
    profile.push_str(if confined.network { NETWORK } else { LOCAL });
    let more: &[&str] = if confined.network {
        &NETWORK_SERVICES
    } else {
        &[]
    };
    for service in SERVICES.iter().chain(more) {
        write!(profile, "(allow mach-lookup (global-name \"{service}\"))")
            .expect("writing to a string cannot fail");
    }
    profile
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Places, Scratch};
    use super::*;
    use crate::changes::Pins;
    use crate::workspace::Root;

    #[test]
    fn protected_paths_are_denied_after_the_workspace_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let pins = Pins {
            fixed: vec![root.real().join("sub/.git")],
            read_only: vec![root.real().join(".git/hooks")],
            ..Pins::default()
        };
        let (places, hidden) = (Places::default(), ["/home/me/\"state".into()]);
        let scratch = Scratch::new(Some(&folder.path().join("state"))).unwrap();
        let confined = |network: bool| Confined {
            roots: std::slice::from_ref(&root),
            pins: &pins,
            lent: &[],
            hidden: &hidden,
            home: None,
            places: &places,
            stand_ins: &[],
            scratch: &scratch,
            cwd: root.real(),
            network,
            session: None,
        };
        let profile = super::profile(&confined(false));
        let at = |text: &str| {
            profile
                .find(text)
                .unwrap_or_else(|| panic!("{text} is not in {profile}"))
        };
        let real = root.real().display();
        assert!(
            at(&format!(
                "(allow file-read* file-write* (subpath \"{real}\"))"
            )) < at(&format!(
                "(deny file-write* (subpath \"{real}/.git/hooks\"))"
            ))
        );
        for fixed in [".git", "sub", "sub/.git"] {
            at(&format!(
                "(deny file-write-unlink (literal \"{real}/{fixed}\"))"
            ));
        }
        at("(deny file-read* file-write* (subpath \"/home/me/\\\"state\"))");
        at("(allow network-outbound (remote ip \"localhost:*\"))");
        at("(allow mach-lookup (global-name \"com.apple.logd\"))");
        for reaching in [
            "networkd",
            "launchservices",
            "SecurityServer",
            "pasteboard",
            "(allow mach-lookup)",
            "(allow process*)",
        ] {
            assert!(!profile.contains(reaching), "{reaching}");
        }
        assert!(!profile.contains("(allow network*"), "{profile}");
        let profile = super::profile(&confined(true));
        let at = |text: &str| {
            profile
                .find(text)
                .unwrap_or_else(|| panic!("{text} is not in {profile}"))
        };
        assert!(at("(allow network*)") < at("(deny network-outbound (remote unix-socket))"));
    }
}
