//! Opens connections to a broker.
use crate::capacity::SessionCapacity;
use crate::packets::{Codec, ConnAck, ConnectRequest, Packet, Protocol};
use crate::reader::{ReadError, Reader};
use crate::stream::{self, Stream};
use bytes::BytesMut;
use penstock_config::Source;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::timeout;

/// The timeout of opening a connection, from the name of the host to CONNACK.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// The time in which a broker must take DISCONNECT.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What is needed to open a connection.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) source: Source,
    pub(crate) request: ConnectRequest,
    /// The capacity for the messages of the connection.
    pub(crate) capacity: SessionCapacity,
    /// Longer payloads are truncated.
    pub(crate) max_payload_bytes: usize,
}

/// An open connection.
pub(crate) struct Opened {
    pub(crate) reader: Reader<ReadHalf<Box<dyn Stream>>>,
    pub(crate) writer: WriteHalf<Box<dyn Stream>>,
    pub(crate) codec: Codec,
    /// Whether the broker has kept the session of an earlier connection.
    pub(crate) is_session_present: bool,
    /// How long the broker keeps the session after the connection, if it said that.
    pub(crate) session_expiry: Option<Duration>,
    /// The keep-alive interval that the broker and the gateway use.
    pub(crate) keep_alive: Duration,
}

enum HandshakeError {
    /// The broker does not support the version of the protocol.
    UnsupportedProtocol,
    /// The broker closed the connection before CONNACK.
    Closed,
    /// Any other cause.
    Other(String),
}

impl Endpoint {
    /// Opens a connection with MQTT 5, or with MQTT 3.1.1 if the broker does not support that. Some old brokers close
    /// the connection instead of an answer, so 3.1.1 is tried then too, unless `has_mqtt_5` says that the broker has
    /// accepted MQTT 5 before.
    ///
    /// # Errors
    /// What failed, and why.
    pub(crate) async fn open(&self, has_mqtt_5: bool) -> Result<Opened, String> {
        let is_closed = match self.open_with(Protocol::V5).await {
            Err(HandshakeError::UnsupportedProtocol) => false,
            Err(HandshakeError::Closed) if !has_mqtt_5 => true,
            opened => return opened.map_err(HandshakeError::describe),
        };
        match self.open_with(Protocol::V311).await {
            Err(_) if is_closed => Err(HandshakeError::Closed.describe()),
            opened => opened.map_err(HandshakeError::describe),
        }
    }

    async fn open_with(&self, protocol: Protocol) -> Result<Opened, HandshakeError> {
        match timeout(HANDSHAKE_TIMEOUT, self.shake_hands(protocol)).await {
            Ok(opened) => opened,
            Err(_) => Err(HandshakeError::Other(format!(
                "the broker did not accept the connection within {} s",
                HANDSHAKE_TIMEOUT.as_secs()
            ))),
        }
    }

    async fn shake_hands(&self, protocol: Protocol) -> Result<Opened, HandshakeError> {
        let stream = stream::open(&self.source).await.map_err(HandshakeError::Other)?;
        let (read, mut writer) = tokio::io::split(stream);
        let mut reader = Reader::new(read, protocol, self.max_payload_bytes);
        let mut codec = Codec::new(protocol);
        let mut output = BytesMut::new();
        codec.connect(&self.request, &mut output).map_err(HandshakeError::Other)?;
        // A broker that has closed the connection meanwhile may have sent an answer before.
        let sent = writer.write_all(&output).await;
        let frame = match reader.read_answer().await {
            Ok(frame) => frame,
            Err(ReadError::Closed) => return Err(HandshakeError::Closed),
            Err(ReadError::Io(error)) if sent.is_err() || is_end(&error) => {
                return Err(HandshakeError::Closed);
            }
            Err(error) => return Err(HandshakeError::Other(error.to_string())),
        };
        let packet = codec.decode(frame).map_err(|why| {
            HandshakeError::Other(format!("the broker sent an invalid packet: {why}"))
        })?;
        match packet {
            Packet::ConnAck(ConnAck::Accepted {
                is_session_present,
                keep_alive_seconds,
                session_expiry,
            }) => {
                let own = self.request.keep_alive_seconds;
                // 0 switches the broker's timeout off. The gateway still checks the connection.
                let seconds = keep_alive_seconds.filter(|seconds| *seconds > 0).unwrap_or(own);
                let keep_alive = Duration::from_secs(seconds.min(own).into());
                Ok(Opened { reader, writer, codec, is_session_present, session_expiry, keep_alive })
            }
            Packet::ConnAck(ConnAck::UnsupportedProtocol) => {
                Err(HandshakeError::UnsupportedProtocol)
            }
            Packet::ConnAck(ConnAck::Refused(why))
            | Packet::Disconnect(why)
            | Packet::TakenOver(why) => {
                Err(HandshakeError::Other(format!("the broker refused the connection: {why}")))
            }
            _ => Err(HandshakeError::Other("the broker did not answer with CONNACK".into())),
        }
    }
}

/// Returns whether an error means that the broker closed the connection.
pub(crate) fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof)
}

impl HandshakeError {
    fn describe(self) -> String {
        match self {
            Self::UnsupportedProtocol => {
                "the broker supports neither MQTT 5 nor MQTT 3.1.1".to_owned()
            }
            Self::Closed => "the broker closed the connection before it accepted it".to_owned(),
            Self::Other(why) => why,
        }
    }
}

impl Opened {
    /// Closes the connection in order.
    pub(crate) async fn close(mut self) {
        close(&mut self.codec, &mut self.writer).await;
    }
}

/// Sends DISCONNECT and closes the stream. An error changes nothing: the connection ends either way.
pub(crate) async fn close(codec: &mut Codec, writer: &mut WriteHalf<Box<dyn Stream>>) {
    let mut output = BytesMut::new();
    if codec.disconnect(&mut output).is_ok() {
        let _ = timeout(CLOSE_TIMEOUT, async {
            writer.write_all(&output).await?;
            writer.shutdown().await
        })
        .await;
    }
}
