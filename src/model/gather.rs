//! Joins the chunks of a body that have arrived together.
//!
//! A connection yields one chunk at a time, and the next one only after its own task has run. A small task asks for them,
//! so that what polls the whole turn is woken once for a read of the socket rather than for each chunk in it.

use std::future::poll_fn;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Failure;

/// At most about this much is joined, in bytes.
const LARGEST: usize = 64 << 10;

/// The same bytes in fewer pieces, and then the same error. It stays at its end. Dropping it drops the body.
pub(super) fn gather(
    body: impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin + 'static,
) -> BoxStream<'static, Result<Bytes, Failure>> {
    let (sender, mut receiver) = mpsc::channel(1);
    let mut task = JoinSet::new();
    task.spawn(relay(body, sender));
    stream::poll_fn(move |context| {
        // The task ends with the set that owns it.
        let _owned = &task;
        receiver.poll_recv(context)
    })
    .boxed()
}

/// Stops at the end of the body, at its error, or when nobody receives any more.
async fn relay(
    mut body: impl Stream<Item = Result<Bytes, Failure>> + Unpin,
    sender: mpsc::Sender<Result<Bytes, Failure>>,
) {
    let mut gathered = BytesMut::new();
    let mut next = body.next().await;
    while let Some(Ok(bytes)) = next {
        gathered.extend_from_slice(&bytes);
        step_back().await;
        let ready = if gathered.len() < LARGEST {
            body.next().now_or_never()
        } else {
            None
        };
        next = if let Some(next) = ready {
            next
        } else {
            if sender.send(Ok(gathered.split().freeze())).await.is_err() {
                return;
            }
            body.next().await
        };
    }
    if !gathered.is_empty() && sender.send(Ok(gathered.freeze())).await.is_err() {
        return;
    }
    if let Some(error) = next {
        _ = sender.send(error).await;
    }
}

/// Lets ready tasks run. Unlike tokio's `yield_now` it does not poll for I/O first, which would cost a system call per
/// chunk.
async fn step_back() {
    let mut stepped = false;
    poll_fn(|context| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fault;

    fn chunks(count: usize, bytes: usize) -> Vec<Result<Bytes, Failure>> {
        (0..count)
            .map(|n| Ok(Bytes::from(vec![u8::try_from(n % 251).unwrap(); bytes])))
            .collect()
    }

    #[tokio::test]
    async fn ready_chunks_are_joined_up_to_a_bound() {
        let sent = chunks(1000, 700);
        let whole: Vec<u8> = sent.iter().flatten().flatten().copied().collect();
        let pieces: Vec<_> = gather(stream::iter(sent))
            .map(Result::unwrap)
            .collect()
            .await;
        assert!((10..=12).contains(&pieces.len()), "{}", pieces.len());
        assert!(pieces.iter().all(|piece| piece.len() < LARGEST + 700));
        assert_eq!(pieces.concat(), whole);
    }

    #[tokio::test]
    async fn a_chunk_alone_does_not_wait_for_the_next() {
        let mut body = gather(stream::iter(chunks(1, 9)).chain(stream::pending()));
        assert_eq!(body.next().await.unwrap().unwrap().len(), 9);
    }

    #[tokio::test]
    async fn an_error_follows_the_bytes_before_it() {
        let broken = chunks(3, 1)
            .into_iter()
            .chain([Err(fault::cut_off("reset"))]);
        let mut body = gather(stream::iter(broken));
        assert_eq!(body.next().await.unwrap().unwrap(), [0, 1, 2].as_slice());
        assert!(body.next().await.unwrap().is_err());
        assert!(body.next().await.is_none() && body.next().await.is_none());
    }

    #[tokio::test]
    async fn dropping_it_drops_the_body() {
        let (held, mut watch) = mpsc::channel::<()>(1);
        let body = stream::pending().inspect(move |_: &Result<Bytes, Failure>| _ = &held);
        drop(gather(body));
        assert!(watch.recv().await.is_none());
    }
}
