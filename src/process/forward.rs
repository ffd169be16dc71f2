//! A port of a job, opened to the host: a listener on the host's loopback interface whose connections go to the job.
//!
//! Only a process inside the job's network can connect there, and this one cannot join that: it has several threads. A
//! helper, which is this program, joins it, makes the connections and hands their sockets over. It ends with its input,
//! which is the other end of a socket of this process, so that nothing is open when that is killed.

use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncWriteExt as _, Interest, copy_bidirectional};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Network, command};

/// How many connections a port has at a time; more wait.
const CONNECTIONS: usize = 64;
/// How long a connection inside the network may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A port that is open on the host. It closes when this is dropped.
pub(super) struct Forward {
    listener: TcpListener,
    helper: tokio::net::UnixStream,
    _process: tokio::process::Child,
    port: u16,
}

impl Forward {
    /// Opens `port` of a network with the help of `own`, this program.
    ///
    /// # Errors
    /// The helper or the listener cannot be started.
    pub async fn open(network: &Network, own: &Path, port: u16) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut helper = command(own);
        helper
            .args(["sandbox-exec", "--connect", "--join"])
            .args(network.places());
        helper.env_clear().stdin(OwnedFd::from(theirs));
        helper.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self {
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            _process: helper.spawn()?,
            helper: tokio::net::UnixStream::from_std(ours)?,
            port,
        })
    }

    /// The address on the host.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Passes connections on, until the helper fails.
    ///
    /// # Errors
    /// It did.
    pub async fn run(mut self) -> io::Result<()> {
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let permit = Arc::clone(&permits).acquire_owned().await;
            let (mut client, _) = self.listener.accept().await?;
            while connections.try_join_next().is_some() {}
            // Without a socket the job refuses, and so does this: by closing.
            if let Some(mut server) = self.connect().await? {
                connections.spawn(async move {
                    let _closed = copy_bidirectional(&mut client, &mut server).await;
                    drop(permit);
                });
            }
        }
    }

    /// A connection to the job; `None` if nothing listens there.
    async fn connect(&mut self) -> io::Result<Option<tokio::net::TcpStream>> {
        self.helper.write_all(&self.port.to_be_bytes()).await?;
        let helper = &self.helper;
        let answer = helper.async_io(Interest::READABLE, || receive(helper));
        let Some(socket) = answer.await? else {
            return Ok(None);
        };
        let socket = TcpStream::from(socket);
        socket.set_nonblocking(true)?;
        tokio::net::TcpStream::from_std(socket).map(Some)
    }
}

/// One answer of the helper: a byte, and the socket if there is one.
fn receive(helper: &tokio::net::UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(
        helper,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    }))
}

/// The helper: connects to the ports that it reads, and hands over the sockets, until its input ends.
///
/// # Errors
/// The input is not a socket, or the other side is gone.
pub(super) fn hand_over_connections() -> io::Result<()> {
    let mut server = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    loop {
        let mut port = [0; 2];
        match server.read_exact(&mut port) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let port = u16::from_be_bytes(port);
        let addresses = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        let socket = addresses
            .iter()
            .find_map(|address| TcpStream::connect_timeout(address, TIMEOUT).ok());
        let sockets: Vec<_> = socket.iter().map(TcpStream::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        sendmsg(
            &server,
            &[IoSlice::new(&[0])],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
    }
}
