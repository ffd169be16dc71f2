//! The system calls a command in a sandbox has no use for: those that leave it, and those that open what it closes.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls that no build, test or version control makes: mounts and namespaces, kernel keyrings, tracing of the kernel,
/// and `io_uring`, which would go past this filter. `clone3` cannot be looked into; C libraries use `clone` instead.
const CALLS: &[libc::c_long] = &[
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clone3,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Flags of `clone` that make namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Requests of `ioctl` that type into a terminal.
const TYPING: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The kinds of sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Any to talk to programs: the network and the file system are its own.
    Own,
    /// To hosts: programs outside listen on local ones.
    Network,
    /// None at all, but for asking the kernel about its interfaces.
    None,
}

impl Sockets {
    fn domains(self) -> &'static [libc::c_int] {
        match self {
            Self::Own => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            Self::Network => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            Self::None => &[libc::AF_NETLINK],
        }
    }
}

/// One filter for everything: what is refused seems not to exist.
///
/// # Errors
/// On a processor that the filter cannot be made for.
pub(super) fn whole(sockets: Sockets) -> io::Result<BpfProgram> {
    let mut rules = calls()?;
    rules.extend(other_sockets(sockets)?);
    compile(rules, libc::ENOSYS)
}

/// The same as two filters, so that a socket is refused with words about permission.
///
/// # Errors
/// On a processor that the filter cannot be made for.
pub(super) fn parts(sockets: Sockets) -> io::Result<[BpfProgram; 2]> {
    Ok([compile(calls()?, libc::ENOSYS)?, compile(other_sockets(sockets)?, libc::EACCES)?])
}

fn compile(rules: Rules, refusal: libc::c_int) -> io::Result<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let refusal = SeccompAction::Errno(refusal.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

fn calls() -> io::Result<Rules> {
    let mut rules: Rules = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule(vec![(0, SeccompCmpOp::MaskedEq(flag), flag)])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<io::Result<_>>()?);
    let typing = TYPING.iter().map(|request| rule(vec![(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, typing.collect::<io::Result<_>>()?);
    Ok(rules)
}

fn other_sockets(sockets: Sockets) -> io::Result<Rules> {
    let others = sockets.domains().iter().map(|domain| (0, SeccompCmpOp::Ne, u64::from(domain.unsigned_abs())));
    Ok(Rules::from([(libc::SYS_socket, vec![rule(others.collect())?])]))
}

/// A rule that holds where all of `(argument, comparison, value)` do.
fn rule(conditions: Vec<(u8, SeccompCmpOp, u64)>) -> io::Result<SeccompRule> {
    let conditions = conditions
        .into_iter()
        .map(|(argument, comparison, value)| {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value).map_err(io::Error::other)
        })
        .collect::<io::Result<_>>()?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// A filter as the kernel reads it.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    program
        .iter()
        .flat_map(|step| {
            let [code0, code1] = step.code.to_ne_bytes();
            let [k0, k1, k2, k3] = step.k.to_ne_bytes();
            [code0, code1, step.jt, step.jf, k0, k1, k2, k3]
        })
        .collect()
}
