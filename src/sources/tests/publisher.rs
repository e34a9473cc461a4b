//! A client that publishes messages.
use bytes::{Bytes, BytesMut};
use rmqtt_codec::types::{Publish, QoS};
use rmqtt_codec::v3::{Codec, Connect, Packet};
use std::num::NonZeroU16;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::codec::{Decoder as _, Encoder as _};

/// The maximum number of messages that the broker has not acknowledged.
const WINDOW: usize = 100;

/// A connected client with MQTT 3.1.1.
pub(super) struct Publisher {
    stream: TcpStream,
    codec: Codec,
    input: BytesMut,
    last_id: u16,
    unacknowledged: usize,
}

impl Publisher {
    pub(super) async fn connect(port: u16, name: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let codec = Codec::default();
        let input = BytesMut::new();
        let mut publisher = Self { stream, codec, input, last_id: 0, unacknowledged: 0 };
        let connect = Connect { clean_session: true, client_id: name.into(), ..Connect::default() };
        publisher.send(Packet::Connect(Box::new(connect))).await;
        assert!(matches!(publisher.receive().await, Packet::ConnectAck(_)));
        publisher
    }

    /// Publishes with QoS 1. The broker may acknowledge it later.
    pub(super) async fn send_message(&mut self, topic: &str, payload: &[u8], retain: bool) {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        let publish = Publish {
            dup: false,
            retain,
            qos: QoS::AtLeastOnce,
            topic: topic.into(),
            packet_id: NonZeroU16::new(self.last_id),
            payload: Bytes::copy_from_slice(payload),
            properties: None,
        };
        self.send(Packet::Publish(Box::new(publish))).await;
        self.unacknowledged += 1;
        if self.unacknowledged >= WINDOW {
            self.receive_acknowledgement().await;
        }
    }

    /// Waits until the broker has acknowledged everything.
    pub(super) async fn finish(&mut self) {
        while self.unacknowledged > 0 {
            self.receive_acknowledgement().await;
        }
    }

    /// Publishes with QoS 1, and waits for the acknowledgement.
    pub(super) async fn publish(&mut self, topic: &str, payload: impl AsRef<[u8]>) {
        self.send_message(topic, payload.as_ref(), false).await;
        self.finish().await;
    }

    async fn receive_acknowledgement(&mut self) {
        let packet = self.receive().await;
        assert!(matches!(packet, Packet::PublishAck { .. }), "{packet:?}");
        self.unacknowledged -= 1;
    }

    async fn send(&mut self, packet: Packet) {
        let mut output = BytesMut::new();
        self.codec.encode(packet, &mut output).unwrap();
        self.stream.write_all(&output).await.unwrap();
    }

    async fn receive(&mut self) -> Packet {
        loop {
            if let Some((packet, _)) = self.codec.decode(&mut self.input).unwrap() {
                return packet;
            }
            let got = self.stream.read_buf(&mut self.input).await.unwrap();
            assert!(got > 0, "the broker closed the connection");
        }
    }
}
