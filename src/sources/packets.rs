//! The packets of MQTT 5 and 3.1.1 behind one type, except PUBLISH, which [`crate::reader`] reads.
//!
//! No full client fits, because acknowledgements wait for a commit, and a full gateway stops reading its socket.
//! rumqttc reads a whole packet and ends the connection if it is too long, and rumqttc-next has a client of its own for
//! each version of the protocol. The codec belongs to the broker RMQTT, which is maintained and decodes what unknown
//! clients send. Of the others, that of rumqttc (last release 2025-11) misreads properties after a subscription
//! identifier, mqttrs has no MQTT 5, mqtt-proto uses `unsafe` with uninitialized memory, and mqute-codec panics on some
//! values.
mod reason;

use bytes::BytesMut;
use reason::{describe_reason, describe_refusal, find_remedy};
use rmqtt_codec::types::{Protocol as Level, QoS};
use rmqtt_codec::v5::{RetainHandling, SubscriptionOptions};
use rmqtt_codec::{v3, v5};
use std::num::NonZeroU16;
use std::time::Duration;
use tokio_util::codec::Decoder as _;

/// The first byte of a CONNACK packet.
const CONNACK_FIRST_BYTE: u8 = 0x20;
/// The length of a CONNACK packet of MQTT 3.1.1; that of MQTT 5 is longer.
const CONNACK_V311_BYTES: usize = 4;
/// The reason code of MQTT 5 for a version of the protocol that the broker does not support.
const UNSUPPORTED_PROTOCOL_VERSION: u8 = 0x84;
/// The reason code of MQTT 5 for a connection that another client with the same client id replaces.
const SESSION_TAKEN_OVER: u8 = 0x8E;

/// A version of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// MQTT 5
    V5,
    /// MQTT 3.1.1
    V311,
}

impl Protocol {
    /// Returns the name of the version.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V5 => "5",
            Self::V311 => "3.1.1",
        }
    }
}

/// What a client sends first.
#[derive(Clone)]
pub(crate) struct ConnectRequest {
    pub(crate) client_id: String,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    /// Whether the broker drops the session of this client id that it may have.
    pub(crate) is_clean_start: bool,
    pub(crate) keep_alive_seconds: u16,
    /// How long the broker keeps the session after the connection. MQTT 3.1.1 does not have it.
    pub(crate) session_expiry: Duration,
    /// How many messages may wait for their acknowledgement. MQTT 3.1.1 does not have it.
    pub(crate) receive_maximum: u16,
}

impl std::fmt::Debug for ConnectRequest {
    /// Omits the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectRequest").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// A packet from the broker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// The answer to CONNECT.
    ConnAck(ConnAck),
    /// The answer to SUBSCRIBE.
    SubAck {
        packet_id: NonZeroU16,
        /// For each topic filter why it was refused.
        refusals: Vec<Option<String>>,
    },
    /// The answer to UNSUBSCRIBE.
    UnsubAck {
        packet_id: NonZeroU16,
        /// For each topic filter why it was refused; empty with MQTT 3.1.1.
        refusals: Vec<Option<String>>,
    },
    /// The answer to PINGREQ.
    PingResp,
    /// The broker closes the connection, for this reason.
    Disconnect(String),
    /// The broker closes the connection because another client connected with the same client id.
    TakenOver(String),
    /// A packet that a client without QoS 2 and without published messages does not get.
    Unexpected,
}

/// The answer to CONNECT.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConnAck {
    /// The broker accepted the connection.
    Accepted {
        /// Whether it has kept the session of an earlier connection.
        is_session_present: bool,
        /// The keep-alive interval that it asks for.
        keep_alive_seconds: Option<u16>,
        /// How long it keeps the session after the connection, if it differs from the request.
        session_expiry: Option<Duration>,
    },
    /// The broker does not support the version of the protocol.
    UnsupportedProtocol,
    /// The broker refused the connection, for this reason.
    Refused(String),
}

/// Encodes and decodes the packets of one connection.
#[derive(Debug)]
pub(crate) enum Codec {
    /// Those of MQTT 5.
    V5(v5::Codec),
    /// Those of MQTT 3.1.1.
    V311(v3::Codec),
}

impl Codec {
    /// Creates the codec of a version.
    pub(crate) fn new(protocol: Protocol) -> Self {
        match protocol {
            Protocol::V5 => Self::V5(v5::Codec::default()),
            Protocol::V311 => Self::V311(v3::Codec::default()),
        }
    }

    /// Returns the version.
    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::V5(_) => Protocol::V5,
            Self::V311(_) => Protocol::V311,
        }
    }

    /// Decodes a whole packet other than PUBLISH.
    ///
    /// # Errors
    /// Why the bytes are not a valid packet.
    pub(crate) fn decode(&mut self, mut frame: BytesMut) -> Result<Packet, String> {
        // A broker without MQTT 5 answers with a packet of MQTT 3.1.1.
        let is_v311 =
            frame.first() == Some(&CONNACK_FIRST_BYTE) && frame.len() == CONNACK_V311_BYTES;
        let decoded = match self {
            Self::V5(_) if is_v311 => {
                v3::Codec::default().decode(&mut frame).map(convert_v311).map(refuse_v311)
            }
            Self::V5(codec) => codec.decode(&mut frame).map(convert_v5),
            Self::V311(codec) => codec.decode(&mut frame).map(convert_v311),
        };
        match decoded {
            Ok(Some(packet)) => Ok(packet),
            Ok(None) => Err("a packet is shorter than its fields".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Encodes CONNECT.
    ///
    /// # Errors
    /// A value is longer than the protocol allows.
    pub(crate) fn connect(
        &mut self,
        request: &ConnectRequest,
        output: &mut BytesMut,
    ) -> Result<(), String> {
        let client_id = request.client_id.clone().into();
        let username = request.username.clone().map(Into::into);
        let password = request.password.clone().map(Into::into);
        let v5 = || v5::Connect {
            clean_start: request.is_clean_start,
            keep_alive: request.keep_alive_seconds,
            session_expiry_interval_secs: u32::try_from(request.session_expiry.as_secs())
                .unwrap_or(u32::MAX),
            receive_max: NonZeroU16::new(request.receive_maximum),
            client_id,
            username,
            password,
            ..v5::Connect::default()
        };
        match self {
            Self::V5(codec) => encode(codec, v5::Packet::Connect(Box::new(v5())), output),
            Self::V311(codec) => {
                let v5::Connect { client_id, username, password, .. } = v5();
                let connect = v3::Connect {
                    protocol: Level::default(),
                    clean_session: request.is_clean_start,
                    keep_alive: request.keep_alive_seconds,
                    client_id,
                    username,
                    password,
                    ..v3::Connect::default()
                };
                encode(codec, v3::Packet::Connect(Box::new(connect)), output)
            }
        }
    }

    /// Encodes SUBSCRIBE with QoS 1. With MQTT 5 the broker sends retained messages only if a subscription is new.
    ///
    /// # Errors
    /// A topic filter is longer than the protocol allows.
    pub(crate) fn subscribe(
        &mut self,
        packet_id: NonZeroU16,
        topics: &[String],
        output: &mut BytesMut,
    ) -> Result<(), String> {
        let topics = topics.iter().map(|topic| topic.as_str().into());
        match self {
            Self::V5(codec) => {
                let options = SubscriptionOptions {
                    qos: QoS::AtLeastOnce,
                    no_local: false,
                    retain_as_published: false,
                    retain_handling: RetainHandling::AtSubscribeNew,
                };
                let subscribe = v5::Subscribe {
                    packet_id,
                    id: None,
                    user_properties: Vec::new(),
                    topic_filters: topics.map(|topic| (topic, options)).collect(),
                };
                encode(codec, v5::Packet::Subscribe(subscribe), output)
            }
            Self::V311(codec) => {
                let topic_filters = topics.map(|topic| (topic, QoS::AtLeastOnce)).collect();
                encode(codec, v3::Packet::Subscribe { packet_id, topic_filters }, output)
            }
        }
    }

    /// Encodes UNSUBSCRIBE.
    ///
    /// # Errors
    /// A topic filter is longer than the protocol allows.
    pub(crate) fn unsubscribe(
        &mut self,
        packet_id: NonZeroU16,
        topics: &[String],
        output: &mut BytesMut,
    ) -> Result<(), String> {
        let topic_filters = topics.iter().map(|topic| topic.as_str().into()).collect();
        match self {
            Self::V5(codec) => {
                let user_properties = Vec::new();
                let unsubscribe = v5::Unsubscribe { packet_id, user_properties, topic_filters };
                encode(codec, v5::Packet::Unsubscribe(unsubscribe), output)
            }
            Self::V311(codec) => {
                encode(codec, v3::Packet::Unsubscribe { packet_id, topic_filters }, output)
            }
        }
    }

    /// Encodes PUBACK.
    ///
    /// # Errors
    /// None; the codec requires the result.
    pub(crate) fn puback(
        &mut self,
        packet_id: NonZeroU16,
        output: &mut BytesMut,
    ) -> Result<(), String> {
        match self {
            Self::V5(codec) => {
                let acknowledgement = v5::PublishAck { packet_id, ..v5::PublishAck::default() };
                encode(codec, v5::Packet::PublishAck(acknowledgement), output)
            }
            Self::V311(codec) => encode(codec, v3::Packet::PublishAck { packet_id }, output),
        }
    }

    /// Encodes PINGREQ.
    ///
    /// # Errors
    /// None; the codec requires the result.
    pub(crate) fn pingreq(&mut self, output: &mut BytesMut) -> Result<(), String> {
        match self {
            Self::V5(codec) => encode(codec, v5::Packet::PingRequest, output),
            Self::V311(codec) => encode(codec, v3::Packet::PingRequest, output),
        }
    }

    /// Encodes DISCONNECT. The broker keeps the session as CONNECT has asked.
    ///
    /// # Errors
    /// None; the codec requires the result.
    pub(crate) fn disconnect(&mut self, output: &mut BytesMut) -> Result<(), String> {
        match self {
            Self::V5(codec) => {
                let disconnect = v5::Disconnect {
                    reason_code: v5::DisconnectReasonCode::NormalDisconnection,
                    session_expiry_interval_secs: None,
                    server_reference: None,
                    reason_string: None,
                    user_properties: Vec::new(),
                };
                encode(codec, v5::Packet::Disconnect(disconnect), output)
            }
            Self::V311(codec) => encode(codec, v3::Packet::Disconnect, output),
        }
    }
}

fn encode<P, C>(codec: &mut C, packet: P, output: &mut BytesMut) -> Result<(), String>
where
    C: tokio_util::codec::Encoder<P>,
    C::Error: std::fmt::Display,
{
    codec.encode(packet, output).map_err(|error| error.to_string())
}

fn convert_v5(decoded: Option<(v5::Packet, u32)>) -> Option<Packet> {
    let (packet, _) = decoded?;
    Some(match packet {
        v5::Packet::ConnectAck(answer) => Packet::ConnAck(match u8::from(answer.reason_code) {
            0 => ConnAck::Accepted {
                is_session_present: answer.session_present,
                keep_alive_seconds: answer.server_keepalive_sec,
                session_expiry: answer
                    .session_expiry_interval_secs
                    .map(|seconds| Duration::from_secs(seconds.into())),
            },
            UNSUPPORTED_PROTOCOL_VERSION => ConnAck::UnsupportedProtocol,
            code => refuse(code, answer.reason_string.as_deref()),
        }),
        v5::Packet::SubscribeAck(answer) => {
            let why = answer.reason_string.as_deref();
            let codes = answer.status.iter().map(|status| u8::from(*status));
            let refusals = codes.map(|code| describe_refusal(code, why)).collect();
            Packet::SubAck { packet_id: answer.packet_id, refusals }
        }
        v5::Packet::UnsubscribeAck(answer) => {
            let why = answer.reason_string.as_deref();
            let codes = answer.status.iter().map(|status| u8::from(*status));
            let refusals = codes.map(|code| (code >= 0x80).then(|| describe_reason(code, why)));
            Packet::UnsubAck { packet_id: answer.packet_id, refusals: refusals.collect() }
        }
        v5::Packet::PingResponse => Packet::PingResp,
        v5::Packet::Disconnect(message) => {
            let code = u8::from(message.reason_code);
            let why = describe_reason(code, message.reason_string.as_deref());
            if code == SESSION_TAKEN_OVER {
                Packet::TakenOver(why)
            } else {
                Packet::Disconnect(why)
            }
        }
        _ => Packet::Unexpected,
    })
}

fn convert_v311(decoded: Option<(v3::Packet, u32)>) -> Option<Packet> {
    let (packet, _) = decoded?;
    Some(match packet {
        v3::Packet::ConnectAck(answer) => Packet::ConnAck(match answer.return_code {
            v3::ConnectAckReason::ConnectionAccepted => ConnAck::Accepted {
                is_session_present: answer.session_present,
                keep_alive_seconds: None,
                session_expiry: None,
            },
            v3::ConnectAckReason::UnacceptableProtocolVersion => ConnAck::UnsupportedProtocol,
            v3::ConnectAckReason::IdentifierRejected => refuse(0x85, None),
            v3::ConnectAckReason::ServiceUnavailable => refuse(0x88, None),
            v3::ConnectAckReason::BadUserNameOrPassword => refuse(0x86, None),
            v3::ConnectAckReason::NotAuthorized => refuse(0x87, None),
            v3::ConnectAckReason::Reserved => refuse(0x80, None),
        }),
        v3::Packet::SubscribeAck { packet_id, status } => {
            let refusals = status.iter().map(|status| match status {
                v3::SubscribeReturnCode::Success(qos) => describe_refusal(qos.value(), None),
                v3::SubscribeReturnCode::Failure => describe_refusal(0x80, None),
            });
            Packet::SubAck { packet_id, refusals: refusals.collect() }
        }
        v3::Packet::UnsubscribeAck { packet_id } => {
            Packet::UnsubAck { packet_id, refusals: Vec::new() }
        }
        v3::Packet::PingResponse => Packet::PingResp,
        _ => Packet::Unexpected,
    })
}

/// Some old brokers accept MQTT 5 as if it were MQTT 3.1.1, and cannot read the packets that follow.
fn refuse_v311(packet: Option<Packet>) -> Option<Packet> {
    match packet {
        Some(Packet::ConnAck(ConnAck::Accepted { .. })) => {
            Some(Packet::ConnAck(ConnAck::UnsupportedProtocol))
        }
        packet => packet,
    }
}

fn refuse(code: u8, given: Option<&str>) -> ConnAck {
    let remedy = find_remedy(code).map(|remedy| format!("; {remedy}")).unwrap_or_default();
    ConnAck::Refused(describe_reason(code, given) + &remedy)
}

#[cfg(test)]
mod tests;
