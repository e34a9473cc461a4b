//! Runs one connection: reads messages while earlier ones are stored, and acknowledges what is stored.
//!
//! All messages that wait become one batch. While it is stored, the next one is gathered. If it cannot be stored, it is
//! kept and stored later, and nothing of it is acknowledged.
mod batch;
mod subscribe;
mod subscribing;

use crate::capacity::SessionCapacity;
use crate::handshake::{self, Opened};
use crate::lost::LostConnection;
use crate::packets::{Codec, Packet};
use crate::reader::{Activity, Frame, Publish, Reader};
use crate::session::{Session, jittered_delay};
use crate::stream::Stream;
use batch::{Batch, Gathered};
use bytes::BytesMut;
use jiff::Timestamp;
use penstock_base::blocking::spawn_blocking;
use penstock_service::sources::{ConnectionError, NotStored, NotStoredCode, Stored};
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use subscribing::Subscribing;
use tokio::io::{AsyncRead, AsyncWriteExt as _, WriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// The maximum number of packets that are handled at once.
const MAX_PACKETS_AT_ONCE: usize = 64;

/// What the reading half passes on.
enum Received {
    Message(Publish),
    Packet(BytesMut),
    /// Nothing more can be read, for this cause.
    End(LostConnection),
}

type StoreResult = Result<Stored, NotStored>;

/// The batch that comes next in the order of acknowledgements.
enum Work {
    /// There is none.
    Idle,
    /// It is being stored.
    Storing(Batch, JoinHandle<StoreResult>),
    /// It could not be stored, and is stored again at this time.
    Waiting(Batch, Instant),
}

/// One connection.
pub(crate) struct Connection<'a> {
    session: &'a Session,
    writer: WriteHalf<Box<dyn Stream>>,
    codec: Codec,
    /// Encoded packets that were not sent yet.
    output: BytesMut,
    activity: Activity,
    keep_alive: Duration,
    subscribing: Subscribing,
    gathered: Gathered,
    work: Work,
    /// Failed attempts to store the current batch.
    failures: u64,
    /// Why the current batch could not be stored.
    store_error: Option<String>,
}

impl<'a> Connection<'a> {
    /// Runs a connection until the session has to end, and closes it in order.
    ///
    /// # Errors
    /// Why the connection was lost.
    pub(crate) async fn run(session: &'a Session, opened: Opened) -> Result<(), LostConnection> {
        let Opened { reader, writer, codec, is_session_present, keep_alive, .. } = opened;
        let (sender, inbox) = channel(MAX_PACKETS_AT_ONCE);
        let mut connection = Self {
            session,
            writer,
            codec,
            output: BytesMut::new(),
            activity: reader.activity(),
            keep_alive,
            subscribing: Subscribing::default(),
            gathered: Gathered::default(),
            work: Work::Idle,
            failures: 0,
            store_error: None,
        };
        let ended = tokio::select! {
            ended = connection.work(inbox, is_session_present) => ended,
            never = pass_on_frames(reader, &session.endpoint.capacity, sender) => match never {},
        };
        connection.finish().await;
        ended
    }

    /// Handles what arrives until the session has to end.
    ///
    /// # Errors
    /// Why the connection cannot continue.
    async fn work(
        &mut self,
        mut inbox: Receiver<Received>,
        is_session_present: bool,
    ) -> Result<(), LostConnection> {
        self.begin_subscribing(is_session_present).await?;
        let period = (self.keep_alive / 2).max(Duration::from_secs(1));
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut received = Vec::with_capacity(MAX_PACKETS_AT_ONCE);
        loop {
            self.start_storing();
            let subscribe_at = self.subscribing.repeat_at;
            tokio::select! {
                // A stop comes before the next batch, and a full inbox delays nothing else.
                biased;
                () = self.session.wait_for_stop() => return Ok(self.stop().await?),
                result = wait_for_store(&mut self.work) => self.end_storing(result).await?,
                _ = ticks.tick() => {
                    self.keep_alive(period).await?;
                    self.check_stalled().await;
                }
                () = sleep_until_some(subscribe_at) => self.subscribe_again().await?,
                _ = inbox.recv_many(&mut received, MAX_PACKETS_AT_ONCE) => {
                    self.handle_received(&mut received).await?;
                }
            }
        }
    }

    /// Handles messages and packets in the order in which they arrived.
    async fn handle_received(
        &mut self,
        received: &mut Vec<Received>,
    ) -> Result<(), LostConnection> {
        let mut messages = 0;
        let mut result = Ok(());
        for one in received.drain(..) {
            result = match one {
                Received::Message(message) => {
                    messages += 1;
                    let removed = &self.subscribing.removed;
                    self.gathered.push(message, &self.session.subscriptions, removed);
                    Ok(())
                }
                Received::Packet(frame) => self.handle_packet(frame).await,
                Received::End(lost) => Err(lost),
            };
            if result.is_err() {
                break;
            }
        }
        if messages > 0 {
            let (waiting_messages, waiting_bytes) = self.count_waiting();
            self.session.store.update_state(&mut |state| {
                state.received += messages;
                state.last_message_at = Some(Timestamp::now());
                (state.waiting_messages, state.waiting_bytes) = (waiting_messages, waiting_bytes);
            });
        }
        result
    }

    async fn handle_packet(&mut self, frame: BytesMut) -> Result<(), LostConnection> {
        let packet = self.codec.decode(frame);
        match packet.map_err(|why| format!("the broker sent an invalid packet: {why}"))? {
            Packet::SubAck { packet_id, refusals } => {
                Ok(self.finish_subscribe(packet_id, refusals).await?)
            }
            Packet::UnsubAck { packet_id, refusals } => {
                self.finish_unsubscribe(packet_id, &refusals).await;
                Ok(())
            }
            Packet::PingResp => Ok(()),
            Packet::Disconnect(why) => Err(why.into()),
            Packet::TakenOver(why) => Err(LostConnection::taken_over(why)),
            Packet::ConnAck(_) | Packet::Unexpected => {
                Err("the broker sent a packet that does not belong there".to_owned().into())
            }
        }
    }

    /// Begins to store the next batch, unless one is being stored or waits. Messages of removed subscriptions are only
    /// acknowledged.
    fn start_storing(&mut self) {
        let work = std::mem::replace(&mut self.work, Work::Idle);
        self.work = match work {
            Work::Idle => match self.gathered.take_batch(self.session) {
                Some(batch) => self.store(batch),
                None => Work::Idle,
            },
            work => work,
        };
    }

    fn store(&self, batch: Batch) -> Work {
        let (store, messages) = (self.session.store.clone(), batch.messages.clone());
        let capacity = self.session.endpoint.capacity.clone();
        let storing = tokio::spawn(async move {
            if messages.is_empty() {
                return Ok(Stored::default());
            }
            let permit = capacity.acquire_store_permit().await;
            let stored = spawn_blocking(move || {
                let stored = store.store_messages(&messages);
                drop(permit);
                stored
            });
            stored.await.unwrap_or_else(|error| Err(describe_lost_task(&error)))
        });
        Work::Storing(batch, storing)
    }

    /// Acknowledges the messages that were stored. Stores the rest of the batch again, or keeps it for later.
    async fn end_storing(&mut self, result: Option<StoreResult>) -> Result<(), String> {
        let (Work::Storing(batch, _) | Work::Waiting(batch, _)) =
            std::mem::replace(&mut self.work, Work::Idle)
        else {
            return Ok(());
        };
        match result {
            Some(Ok(stored)) => self.acknowledge(batch, stored).await,
            Some(Err(error)) => self.postpone(batch, error),
            // The delay is over.
            None => {
                self.work = self.store(batch);
                Ok(())
            }
        }
    }

    async fn acknowledge(&mut self, mut batch: Batch, stored: Stored) -> Result<(), String> {
        let rest = batch.split_unstored(stored.messages);
        let mut acknowledged = 0;
        for packet_id in batch.packet_ids() {
            self.codec.puback(packet_id, &mut self.output)?;
            acknowledged += 1;
        }
        let dropped = stored.dropped + batch.count_dropped() as u64;
        if dropped > 0 {
            tracing::warn!(
                client_id = self.session.client_id(),
                dropped,
                "Messages were acknowledged and dropped: of removed subscriptions, or invalid ones that \
                 service.limits.rejected.bytes leaves no space for."
            );
        }
        // The capacity is free before the broker sends more.
        drop(batch);
        if stored.messages > 0 {
            self.session.endpoint.capacity.use_pool();
        }
        self.work = rest.map_or(Work::Idle, |rest| self.store(rest));
        self.failures = 0;
        self.store_error = None;
        let (waiting_messages, waiting_bytes) = self.count_waiting();
        let error = self.describe_error();
        self.session.store.update_state(&mut |state| {
            state.dead_letters += stored.dead_letters;
            state.dropped += dropped;
            (state.waiting_messages, state.waiting_bytes) = (waiting_messages, waiting_bytes);
            set_error(&mut state.error, error.as_deref());
        });
        self.flush().await?;
        self.session.store.update_state(&mut |state| state.acknowledged += acknowledged);
        Ok(())
    }

    /// Keeps a batch that could not be stored.
    ///
    /// # Errors
    /// The connection has to end, so that others can use the capacity that its messages take, or because the source
    /// must not write at all. The broker sends the messages again.
    fn postpone(&mut self, batch: Batch, error: NotStored) -> Result<(), String> {
        let capacity = &self.session.endpoint.capacity;
        let is_holding_pool = batch.is_from_pool() || self.gathered.is_from_pool();
        // While the disk is full, the others cannot store messages either.
        let leaves_pool =
            error.code != NotStoredCode::DiskFull && is_holding_pool && capacity.is_pool_needed();
        if leaves_pool {
            capacity.leave_pool();
        }
        if leaves_pool || error.code == NotStoredCode::ReviewRequired {
            return Err(error.message);
        }
        self.failures += 1;
        if self.failures == 1 {
            tracing::warn!(
                client_id = self.session.client_id(),
                cause = error.message,
                "Messages of a source could not be stored; the gateway keeps them and tries again."
            );
        }
        self.show_store_error(error.message);
        let timings = &self.session.timings;
        let delay =
            jittered_delay(timings.first_store_delay, self.failures, timings.max_store_delay);
        self.work = Work::Waiting(batch, Instant::now() + delay);
        Ok(())
    }

    /// Lets a session that left the pool use it again once its messages can be stored. This is for a session that has no
    /// message to find that out with, because the next one is larger than its share.
    async fn check_stalled(&mut self) {
        let capacity = &self.session.endpoint.capacity;
        let is_stalled = self.activity.is_paused() && self.count_waiting() == (0, 0);
        if capacity.uses_pool() || !is_stalled {
            return;
        }
        let bytes = capacity.last_message_bytes();
        match self.session.run_blocking(move |store| store.check_storable(bytes)).await {
            Ok(()) => capacity.use_pool(),
            Err(error) => self.show_store_error(error.message),
        }
    }

    fn show_store_error(&mut self, message: String) {
        self.store_error = Some(message);
        let error = self.describe_error();
        self.session.store.update_state(&mut |state| {
            set_error(&mut state.error, error.as_deref());
        });
    }

    /// Returns the number and the bytes of the messages that are not stored.
    fn count_waiting(&self) -> (u64, u64) {
        let (messages, bytes) = match &self.work {
            Work::Idle => (0, 0),
            Work::Storing(batch, _) | Work::Waiting(batch, _) => (batch.len(), batch.bytes()),
        };
        ((messages + self.gathered.len()) as u64, (bytes + self.gathered.bytes()) as u64)
    }

    /// Returns the error to show, if there is one.
    fn describe_error(&self) -> Option<String> {
        self.store_error.clone().or_else(|| self.subscribing.describe_refusals())
    }

    /// Checks that the broker answers, and asks it to. `passed` is the time since the last check.
    async fn keep_alive(&mut self, passed: Duration) -> Result<(), String> {
        if !self.activity.is_paused() {
            self.subscribing.count_time(passed, self.session.timings.subscribe_timeout)?;
        }
        if self.activity.silence() > self.keep_alive * 3 / 2 {
            return Err(format!(
                "the broker has not answered for {} s",
                self.activity.silence().as_secs()
            ));
        }
        self.codec.pingreq(&mut self.output)?;
        self.flush().await
    }

    /// Sends what was encoded.
    async fn flush(&mut self) -> Result<(), String> {
        let sent = timeout(self.session.timings.write_timeout, async {
            self.writer.write_all_buf(&mut self.output).await?;
            self.writer.flush().await
        });
        match sent.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("sending to the broker failed: {error}")),
            Err(_) => Err("the broker takes nothing".to_owned()),
        }
    }

    /// Acknowledges the batch that is being stored, and closes the connection.
    async fn stop(&mut self) -> Result<(), String> {
        if let Work::Storing(..) = self.work {
            let result = wait_for_store(&mut self.work).await;
            self.end_storing(result).await?;
        }
        handshake::close(&mut self.codec, &mut self.writer).await;
        Ok(())
    }

    /// Waits for the batch that is being stored, so that it is not stored after messages of the next connection.
    async fn finish(&mut self) {
        if let Work::Storing(_, storing) = &mut self.work {
            let _ = storing.await;
        }
        self.work = Work::Idle;
        self.session.store.update_state(&mut |state| {
            (state.waiting_messages, state.waiting_bytes) = (0, 0);
        });
    }
}

/// Changes an error that is shown. One that stays the same keeps its time.
fn set_error(shown: &mut Option<ConnectionError>, error: Option<&str>) {
    if shown.as_ref().map(|shown| shown.message.as_str()) != error {
        *shown = error.map(ConnectionError::now);
    }
}

/// Waits until the batch is stored, or until the delay before the next attempt is over (`None`). Dropping this loses
/// nothing.
async fn wait_for_store(work: &mut Work) -> Option<StoreResult> {
    match work {
        Work::Idle => pending().await,
        Work::Storing(_, storing) => {
            Some(storing.await.unwrap_or_else(|error| Err(describe_lost_task(&error))))
        }
        Work::Waiting(_, until) => {
            sleep_until(*until).await;
            None
        }
    }
}

fn describe_lost_task(error: &JoinError) -> NotStored {
    let message = format!("storing messages ended without an answer: {error}");
    NotStored { code: NotStoredCode::Internal, message }
}

async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Reads packets and passes them on, until this future is dropped. Messages wait for their capacity here.
async fn pass_on_frames<R: AsyncRead + Unpin>(
    mut reader: Reader<R>,
    capacity: &SessionCapacity,
    sender: Sender<Received>,
) -> Infallible {
    loop {
        let received = match reader.read_frame(capacity).await {
            Ok(Frame::Publish(message)) => Received::Message(message),
            Ok(Frame::Control(bytes)) => Received::Packet(bytes),
            Err(error) => Received::End(error.into()),
        };
        let is_end = matches!(received, Received::End(_));
        // The receiver is gone only when this future is dropped too.
        let _ = sender.send(received).await;
        if is_end {
            pending::<()>().await;
        }
    }
}
