//! The system calls that sandboxed commands must not use: those that leave the sandbox, and those that reopen what it
//! closes.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// Calls that no build, test or version control needs: mounts and namespaces, kernel keyrings, kernel tracing, machine
/// administration (root in a container may be allowed that here), and `io_uring`, which would bypass this filter.
/// `clone3` cannot be inspected; C libraries fall back to `clone`.
const CALLS: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_settime,
    libc::SYS_clone3,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
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
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
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

/// `ioctl` requests that type into a terminal.
const TYPING: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */];

/// Socket pairs that can send to other addresses than their peer.
const ADDRESSABLE: [libc::c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];
/// The bits of a socket type that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// The newest call that was looked at here: `removexattrat` of Linux 6.13, with one number on all architectures. Later ones
/// seem not to exist, as in an older kernel, nor do those of x32, the second call table of x86-64, whose numbers are larger.
const NEWEST: u32 = 466;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Which sockets a command may create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Any: network and file system are its own.
    Own,
    /// Internet sockets: programs outside listen on local ones, which may have a name in the network instead of a file.
    Network,
    /// None, except to query the kernel about its interfaces.
    None,
}

impl Sockets {
    /// Those of a command with its own file system, and with its own network unless it has the host's.
    pub fn inside(network: bool) -> Self {
        if network { Self::Network } else { Self::Own }
    }

    fn domains(self) -> &'static [libc::c_int] {
        match self {
            Self::Own => &[
                libc::AF_UNIX,
                libc::AF_INET,
                libc::AF_INET6,
                libc::AF_NETLINK,
            ],
            Self::Network => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            Self::None => &[libc::AF_NETLINK],
        }
    }
}

/// One filter for everything: refused calls seem not to exist.
///
/// # Errors
/// The processor is not supported.
pub(super) fn whole(sockets: Sockets) -> io::Result<BpfProgram> {
    let mut rules = calls()?;
    rules.extend(other_sockets(sockets)?);
    compile(rules, libc::ENOSYS)
}

/// The same as two filters, so that refused sockets report a permission error.
///
/// # Errors
/// The processor is not supported.
pub(super) fn parts(sockets: Sockets) -> io::Result<[BpfProgram; 2]> {
    Ok([
        compile(calls()?, libc::ENOSYS)?,
        compile(other_sockets(sockets)?, libc::EACCES)?,
    ])
}

fn compile(rules: Rules, refusal: libc::c_int) -> io::Result<BpfProgram> {
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(io::Error::other)?;
    let refusal = SeccompAction::Errno(refusal.unsigned_abs());
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch).map_err(io::Error::other)?;
    let filter: BpfProgram = filter.try_into().map_err(io::Error::other)?;
    // The first word is the call number.
    let head = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, NEWEST, 1),
        step(libc::BPF_RET | libc::BPF_K, unknown, 0),
    ];
    Ok(head.into_iter().chain(filter).collect())
}

/// An instruction of a filter; if its comparison fails, `skip` instructions are skipped.
fn step(code: u32, k: u32, skip: u8) -> sock_filter {
    sock_filter {
        code: u16::try_from(code).expect("codes are small"),
        jt: 0,
        jf: skip,
        k,
    }
}

fn calls() -> io::Result<Rules> {
    let mut rules: Rules = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule(vec![(0, SeccompCmpOp::MaskedEq(flag), flag)])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<io::Result<_>>()?);
    let typing = TYPING
        .iter()
        .map(|request| rule(vec![(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, typing.collect::<io::Result<_>>()?);
    Ok(rules)
}

fn other_sockets(sockets: Sockets) -> io::Result<Rules> {
    let others = sockets
        .domains()
        .iter()
        .map(|domain| (0, SeccompCmpOp::Ne, u64::from(domain.unsigned_abs())));
    let mut rules = Rules::from([(libc::SYS_socket, vec![rule(others.collect())?])]);
    if sockets != Sockets::Own {
        let pairs = ADDRESSABLE.iter().map(|kind| {
            rule(vec![(
                1,
                SeccompCmpOp::MaskedEq(SOCKET_TYPE),
                u64::from(kind.unsigned_abs()),
            )])
        });
        rules.insert(libc::SYS_socketpair, pairs.collect::<io::Result<_>>()?);
    }
    Ok(rules)
}

/// A rule that matches if all of `(argument, comparison, value)` do.
fn rule(conditions: Vec<(u8, SeccompCmpOp, u64)>) -> io::Result<SeccompRule> {
    let conditions = conditions
        .into_iter()
        .map(|(argument, comparison, value)| {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
                .map_err(io::Error::other)
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

    fn refused(errno: libc::c_int) -> u32 {
        libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
    }

    /// The kernel's decision about a call, for the instructions that filters use.
    fn verdict(program: &BpfProgram, call: i64, arguments: &[i64]) -> u32 {
        let mut data = vec![u32::try_from(call).unwrap(), ARCH, 0, 0];
        let both = |argument: &i64| {
            [argument & 0xffff_ffff, argument >> 32].map(|half| u32::try_from(half).unwrap())
        };
        data.extend(arguments.iter().flat_map(both));
        data.resize(16, 0);
        let (mut at, mut word) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            at += 1;
            let holds = match u32::from(code) {
                0x20 => {
                    word = data[k as usize / 4];
                    continue;
                }
                0x54 => {
                    word &= k;
                    continue;
                }
                0x05 => {
                    at += k as usize;
                    continue;
                }
                0x06 => return k,
                0x15 => word == k,
                0x25 => word > k,
                0x35 => word >= k,
                other => panic!("an unknown step {other:#x}"),
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    #[cfg(target_arch = "x86_64")]
    const ARCH: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const ARCH: u32 = 0xc000_00b7;
    #[cfg(target_arch = "riscv64")]
    const ARCH: u32 = 0xc000_00f3;

    #[test]
    fn escapes_are_refused_and_builds_are_not() {
        let filter = whole(Sockets::Own).unwrap();
        let check = |call: i64, arguments: &[i64], expected: u32| {
            assert_eq!(
                verdict(&filter, call, arguments),
                expected,
                "{call} {arguments:?}"
            );
        };
        let no = refused(libc::ENOSYS);
        for call in CALLS {
            check(*call, &[], no);
        }
        check(i64::from(NEWEST), &[], ALLOWED);
        let open_tree_attr = 467;
        let of_x32 = 0x4000_0000 | libc::SYS_openat;
        for call in [open_tree_attr, of_x32, i64::from(u32::MAX)] {
            check(call, &[], no);
        }
        check(libc::SYS_openat, &[], ALLOWED);
        check(
            libc::SYS_clone,
            &[i64::from(
                libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            )],
            ALLOWED,
        );
        check(
            libc::SYS_clone,
            &[i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD)],
            no,
        );
        check(libc::SYS_ioctl, &[0, 0x5401], ALLOWED);
        check(libc::SYS_ioctl, &[0, 0x5412], no);
        // The kernel compares the lower half of an `int`.
        check(libc::SYS_ioctl, &[0, 0x1_0000_5412], no);
        check(libc::SYS_socket, &[i64::from(libc::AF_UNIX)], ALLOWED);
        for family in [
            libc::AF_VSOCK,
            libc::AF_ALG,
            libc::AF_PACKET,
            libc::AF_BLUETOOTH,
        ] {
            check(libc::SYS_socket, &[i64::from(family)], no);
        }
    }

    #[test]
    fn outside_programs_are_unreachable() {
        let check = |sockets: Sockets, call: i64, arguments: [libc::c_int; 2], expected: u32| {
            let verdict = verdict(&parts(sockets).unwrap()[1], call, &arguments.map(i64::from));
            assert_eq!(verdict, expected, "{sockets:?} {call} {arguments:?}");
        };
        let (no, flags) = (
            refused(libc::EACCES),
            libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
        );
        for sockets in [Sockets::Network, Sockets::None] {
            check(
                sockets,
                libc::SYS_socket,
                [libc::AF_UNIX, libc::SOCK_STREAM],
                no,
            );
            check(
                sockets,
                libc::SYS_socket,
                [libc::AF_NETLINK, libc::SOCK_RAW],
                ALLOWED,
            );
            for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
                check(
                    sockets,
                    libc::SYS_socketpair,
                    [libc::AF_UNIX, kind | flags],
                    ALLOWED,
                );
            }
            // Such a pair can be connected to a third socket.
            for kind in ADDRESSABLE {
                check(sockets, libc::SYS_socketpair, [libc::AF_UNIX, kind], no);
                check(
                    sockets,
                    libc::SYS_socketpair,
                    [libc::AF_UNIX, kind | flags],
                    no,
                );
            }
        }
        check(
            Sockets::Network,
            libc::SYS_socket,
            [libc::AF_INET6, libc::SOCK_STREAM],
            ALLOWED,
        );
        check(
            Sockets::None,
            libc::SYS_socket,
            [libc::AF_INET6, libc::SOCK_STREAM],
            no,
        );
        check(
            Sockets::Own,
            libc::SYS_socketpair,
            [libc::AF_UNIX, libc::SOCK_DGRAM],
            ALLOWED,
        );
    }
}
