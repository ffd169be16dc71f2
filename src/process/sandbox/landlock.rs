//! Landlock: the kernel's own sandbox, where namespaces are not available. It only knows what is allowed, and applies
//! to the calling thread and its children.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, Scope, path_beneath_rules,
};

use super::Restriction;
use super::seccomp::{self, Sockets};

/// The newest supported version; older kernels have a subset.
const NEWEST: ABI = ABI::V9;
/// Before this version, truncating files was not restricted.
const OLDEST: ABI = ABI::V3;

/// Whether this kernel supports it.
///
/// # Errors
/// It does not, with the reason.
pub(super) fn probe() -> io::Result<()> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let rules = rules
        .handle_access(AccessFs::from_all(OLDEST))
        .map_err(io::Error::other)?;
    rules.create().map_err(io::Error::other)?;
    Ok(())
}

/// Restricts this thread and what it starts from now on.
///
/// # Errors
/// The kernel refuses; nothing may be started then.
pub(super) fn restrict(to: &Restriction) -> io::Result<()> {
    probe()?;
    rules(to)
        .and_then(RulesetCreated::restrict_self)
        .map_err(io::Error::other)?;
    let sockets = if to.network {
        Sockets::Network
    } else {
        Sockets::None
    };
    for filter in seccomp::parts(sockets)? {
        seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
    }
    Ok(())
}

fn rules(to: &Restriction) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !to.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    // Devices cannot be created, not even by root.
    let write = AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    rules
        .create()?
        .add_rules(path_beneath_rules(&to.read, AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules(&to.write, write))
}
