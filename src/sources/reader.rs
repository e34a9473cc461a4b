//! Reads packets from the stream of a connection. Messages are read into memory only as far as they may be kept: the
//! rest of one that is too long, and the properties of all, are discarded while they are read.
use crate::capacity::{Reservation, SessionCapacity};
use crate::packets::Protocol;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use parking_lot::Mutex;
use std::io;
use std::num::NonZeroU16;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout};

/// The bytes that are read at once.
const BUFFER_BYTES: usize = 16 << 10;
/// The maximum length of the first packet of the broker.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// The maximum length of any other packet than PUBLISH. Such packets wait outside of the capacity for messages.
const MAX_CONTROL_BYTES: usize = 4 << 10;
/// The time in which a payload must arrive while other sessions wait for its capacity.
const PAYLOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The additional bytes of a payload that take another second.
const MIN_BYTES_PER_SECOND: usize = 64 << 10;
/// How often the reader checks after that whether other sessions wait.
const CAPACITY_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The bytes that are kept of a message that is too long.
pub(crate) const TRUNCATED_BYTES: usize = 64 << 10;
/// The type of PUBLISH in the upper half of the first byte.
const PUBLISH_TYPE: u8 = 3;
/// The bits of the first byte that have the QoS.
const QOS_MASK: u8 = 0b0110;
const QOS_1: u8 = 0b0010;
/// The first bytes of the packets that a broker may answer CONNECT with: CONNACK, DISCONNECT and AUTH.
const ANSWER_FIRST_BYTES: [u8; 3] = [0x20, 0xE0, 0xF0];

/// A packet of the broker.
#[derive(Debug)]
pub(crate) enum Frame {
    /// A message.
    Publish(Publish),
    /// The bytes of any other packet.
    Control(BytesMut),
}

/// A message.
#[derive(Debug)]
pub(crate) struct Publish {
    pub(crate) topic: String,
    /// The identifier to acknowledge it with; none with QoS 0.
    pub(crate) packet_id: Option<NonZeroU16>,
    /// The payload, or its beginning if it is too long.
    pub(crate) payload: Bytes,
    /// The length of the whole payload, if only its beginning was kept.
    pub(crate) truncated: Option<u64>,
    /// The capacity that it takes.
    pub(crate) reservation: Reservation,
}

/// Why no packet can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The broker closed the connection.
    #[error("the broker closed the connection")]
    Closed,
    /// The connection failed.
    #[error("reading from the broker failed: {0}")]
    Io(#[from] io::Error),
    /// The broker sent something that is not MQTT.
    #[error("the broker sent an invalid packet: {0}")]
    Malformed(&'static str),
    /// A message arrives so slowly that it holds up other sessions.
    #[error("the broker sends a message too slowly, and others wait for its memory")]
    TooSlow,
}

/// When the broker was last heard of.
#[derive(Debug, Clone)]
pub(crate) struct Activity(Arc<Mutex<Heard>>);

#[derive(Debug)]
struct Heard {
    last: Instant,
    /// Whether nothing is read at present, because there is no capacity.
    is_paused: bool,
}

impl Activity {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Heard { last: Instant::now(), is_paused: false })))
    }

    /// Returns how long the broker has been silent; zero while the gateway itself does not read.
    pub(crate) fn silence(&self) -> Duration {
        let heard = self.0.lock();
        if heard.is_paused { Duration::ZERO } else { heard.last.elapsed() }
    }

    /// Returns whether the gateway itself does not read at present.
    pub(crate) fn is_paused(&self) -> bool {
        self.0.lock().is_paused
    }

    fn note(&self, is_paused: bool) {
        let mut heard = self.0.lock();
        *heard = Heard { last: Instant::now(), is_paused };
    }
}

/// Reads the packets of one connection.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    stream: R,
    protocol: Protocol,
    buffer: BytesMut,
    /// Longer payloads are truncated.
    max_payload_bytes: usize,
    payload_timeout: Duration,
    activity: Activity,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Creates a reader of a stream.
    pub(crate) fn new(stream: R, protocol: Protocol, max_payload_bytes: usize) -> Self {
        let buffer = BytesMut::with_capacity(BUFFER_BYTES);
        let (payload_timeout, activity) = (PAYLOAD_TIMEOUT, Activity::new());
        Self { stream, protocol, buffer, max_payload_bytes, payload_timeout, activity }
    }

    /// Returns when the broker was last heard of, as a handle.
    pub(crate) fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// Reads the answer to CONNECT. Refuses any other packet before it is read, because the broker is not authenticated
    /// yet.
    ///
    /// # Errors
    /// The connection ended, or the broker sent something else.
    pub(crate) async fn read_answer(&mut self) -> Result<BytesMut, ReadError> {
        let (header_bytes, remaining) = self.read_header().await?;
        if !self.buffer.first().is_some_and(|first| ANSWER_FIRST_BYTES.contains(first)) {
            return Err(ReadError::Malformed("it comes before CONNACK"));
        }
        self.read_control(header_bytes, remaining, MAX_ANSWER_BYTES).await
    }

    /// Reads the next packet. Waits for the capacity for a message before it reads its payload.
    ///
    /// # Errors
    /// The connection ended, or the broker sent something that is not MQTT.
    pub(crate) async fn read_frame(
        &mut self,
        capacity: &SessionCapacity,
    ) -> Result<Frame, ReadError> {
        let (header_bytes, remaining) = self.read_header().await?;
        let first = self.buffer.first().copied().unwrap_or_default();
        if first >> 4 == PUBLISH_TYPE {
            self.buffer.advance(header_bytes);
            let body = Body { remaining };
            return Ok(Frame::Publish(self.read_publish(first, body, capacity).await?));
        }
        Ok(Frame::Control(self.read_control(header_bytes, remaining, MAX_CONTROL_BYTES).await?))
    }

    async fn read_control(
        &mut self,
        header_bytes: usize,
        remaining: usize,
        max_bytes: usize,
    ) -> Result<BytesMut, ReadError> {
        if remaining > max_bytes {
            return Err(ReadError::Malformed("it is too long"));
        }
        self.fill(header_bytes + remaining).await?;
        Ok(self.buffer.split_to(header_bytes + remaining))
    }

    /// Reads the fixed header into the buffer. Returns its length, and the length of what follows (MQTT 5, 2.1).
    async fn read_header(&mut self) -> Result<(usize, usize), ReadError> {
        self.fill(2).await?;
        let (length_bytes, remaining) = self.read_length(1).await?;
        Ok((1 + length_bytes, remaining))
    }

    /// Reads a variable byte integer that begins at this place of the buffer (MQTT 5, 1.5.5). Returns its length and
    /// its value.
    async fn read_length(&mut self, start: usize) -> Result<(usize, usize), ReadError> {
        let mut value = 0;
        for index in 0..4 {
            self.fill(start + index + 1).await?;
            let byte = self.buffer.get(start + index).copied().unwrap_or_default();
            value |= usize::from(byte & 0x7F) << (7 * index);
            if byte & 0x80 == 0 {
                return Ok((index + 1, value));
            }
        }
        Err(ReadError::Malformed("a length has more than four bytes"))
    }

    async fn read_publish(
        &mut self,
        first: u8,
        mut body: Body,
        capacity: &SessionCapacity,
    ) -> Result<Publish, ReadError> {
        let topic_bytes = usize::from(self.read_u16(&mut body).await?);
        body.take(topic_bytes)?;
        self.fill(topic_bytes).await?;
        let topic = String::from_utf8(self.buffer.split_to(topic_bytes).into())
            .map_err(|_| ReadError::Malformed("a topic is not UTF-8"))?;
        if topic.is_empty() {
            return Err(ReadError::Malformed("a message has no topic"));
        }
        let packet_id = match first & QOS_MASK {
            0 => None,
            QOS_1 => {
                let id = NonZeroU16::new(self.read_u16(&mut body).await?);
                Some(id.ok_or(ReadError::Malformed("a packet identifier is 0"))?)
            }
            _ => return Err(ReadError::Malformed("a message has a higher QoS than subscribed")),
        };
        if self.protocol == Protocol::V5 {
            let (length_bytes, properties_bytes) = self.read_length(0).await?;
            body.take(length_bytes)?;
            self.buffer.advance(length_bytes);
            body.take(properties_bytes)?;
            self.discard(properties_bytes).await?;
        }
        self.read_payload(topic, packet_id, body.remaining, capacity).await
    }

    async fn read_payload(
        &mut self,
        topic: String,
        packet_id: Option<NonZeroU16>,
        whole_bytes: usize,
        capacity: &SessionCapacity,
    ) -> Result<Publish, ReadError> {
        let is_too_long = whole_bytes > self.max_payload_bytes;
        let kept_bytes =
            if is_too_long { TRUNCATED_BYTES.min(self.max_payload_bytes) } else { whole_bytes };
        self.activity.note(true);
        let reservation = capacity.reserve(kept_bytes + topic.len()).await;
        self.activity.note(false);
        let seconds = u64::try_from(whole_bytes / MIN_BYTES_PER_SECOND).unwrap_or(u64::MAX);
        let limit = self.payload_timeout + Duration::from_secs(seconds);
        let read = async {
            let payload = self.read_bytes(kept_bytes).await?;
            self.discard(whole_bytes - kept_bytes).await?;
            Ok(payload)
        };
        let is_needed = || reservation.is_from_pool() && capacity.is_pool_needed();
        let payload = read_unless_needed(read, limit, is_needed).await?;
        let truncated = is_too_long.then_some(whole_bytes as u64);
        Ok(Publish { topic, packet_id, payload, truncated, reservation })
    }

    async fn read_u16(&mut self, body: &mut Body) -> Result<u16, ReadError> {
        body.take(2)?;
        self.fill(2).await?;
        Ok(self.buffer.get_u16())
    }

    /// Reads this number of bytes into memory of their own, so that a kept message does not keep the buffer.
    async fn read_bytes(&mut self, bytes: usize) -> Result<Bytes, ReadError> {
        let mut read = BytesMut::with_capacity(bytes);
        let buffered = bytes.min(self.buffer.len());
        read.put(self.buffer.split_to(buffered));
        while read.len() < bytes {
            let missing = bytes - read.len();
            let got = (&mut self.stream).take(missing as u64).read_buf(&mut read).await?;
            self.check_open(got)?;
        }
        Ok(read.freeze())
    }

    /// Reads this number of bytes and drops them.
    async fn discard(&mut self, mut bytes: usize) -> Result<(), ReadError> {
        loop {
            let buffered = bytes.min(self.buffer.len());
            self.buffer.advance(buffered);
            bytes -= buffered;
            if bytes == 0 {
                return Ok(());
            }
            self.fill(1).await?;
        }
    }

    /// Reads until the buffer has this number of bytes.
    async fn fill(&mut self, bytes: usize) -> Result<(), ReadError> {
        while self.buffer.len() < bytes {
            self.buffer.reserve((bytes - self.buffer.len()).max(BUFFER_BYTES));
            let got = self.stream.read_buf(&mut self.buffer).await?;
            self.check_open(got)?;
        }
        Ok(())
    }

    fn check_open(&self, got_bytes: usize) -> Result<(), ReadError> {
        if got_bytes == 0 {
            return Err(ReadError::Closed);
        }
        self.activity.note(false);
        Ok(())
    }
}

/// Awaits `read`. Past the time limit, gives up as soon as others need the capacity.
async fn read_unless_needed<T>(
    read: impl Future<Output = Result<T, ReadError>>,
    mut limit: Duration,
    is_needed: impl Fn() -> bool,
) -> Result<T, ReadError> {
    let mut read = pin!(read);
    loop {
        match timeout(limit, &mut read).await {
            Ok(read) => return read,
            Err(_) if is_needed() => return Err(ReadError::TooSlow),
            Err(_) => limit = CAPACITY_CHECK_INTERVAL,
        }
    }
}

/// What is left of a packet.
struct Body {
    remaining: usize,
}

impl Body {
    fn take(&mut self, bytes: usize) -> Result<(), ReadError> {
        let left = self.remaining.checked_sub(bytes);
        self.remaining = left.ok_or(ReadError::Malformed("it is shorter than its fields"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
