//! Packets are read as far as they may be kept.
use super::*;
use crate::capacity::Capacity;
use rmqtt_codec::types::{Publish as Sent, QoS};
use rmqtt_codec::{v3, v5};
use std::io::Cursor;
use std::task::{Context, Waker};
use tokio::io::AsyncWriteExt as _;
use tokio_util::codec::Encoder as _;

fn encode(protocol: Protocol, topic: &str, id: Option<u16>, payload: &[u8]) -> Vec<u8> {
    let mut properties = v5::PublishProperties::default();
    properties.user_properties.push(("unit".into(), "x".repeat(3_000).into()));
    let sent = Box::new(Sent {
        dup: false,
        retain: true,
        qos: if id.is_some() { QoS::AtLeastOnce } else { QoS::AtMostOnce },
        topic: topic.into(),
        packet_id: id.and_then(NonZeroU16::new),
        payload: Bytes::copy_from_slice(payload),
        properties: Some(properties),
    });
    let mut output = BytesMut::new();
    match protocol {
        Protocol::V5 => v5::Codec::default().encode(v5::Packet::Publish(sent), &mut output),
        Protocol::V311 => v3::Codec::default().encode(v3::Packet::Publish(sent), &mut output),
    }
    .unwrap();
    output.to_vec()
}

fn capacity() -> SessionCapacity {
    Capacity::new(8 << 20, 1).for_session(1_000)
}

async fn read_message<R: AsyncRead + Unpin>(reader: &mut Reader<R>) -> Publish {
    match reader.read_frame(&capacity()).await.unwrap() {
        Frame::Publish(message) => message,
        Frame::Control(bytes) => panic!("{bytes:?}"),
    }
}

#[tokio::test]
async fn messages_are_read_whole_and_their_properties_are_discarded() {
    for protocol in [Protocol::V5, Protocol::V311] {
        let long = vec![b'x'; 100_000];
        let mut sent = encode(protocol, "plant/1", Some(7), b"{}");
        sent.extend(encode(protocol, "plant/2", None, &long));
        sent.extend([0xD0, 0]);
        let mut reader = Reader::new(Cursor::new(sent), protocol, 100_000);
        let first = read_message(&mut reader).await;
        assert_eq!((first.topic.as_str(), first.packet_id), ("plant/1", NonZeroU16::new(7)));
        assert_eq!((&first.payload[..], first.truncated), (&b"{}"[..], None));
        let second = read_message(&mut reader).await;
        assert_eq!((second.payload.len(), second.packet_id), (100_000, None));
        let frame = reader.read_frame(&capacity()).await.unwrap();
        assert!(matches!(frame, Frame::Control(bytes) if bytes[..] == [0xD0, 0]));
        let end = reader.read_frame(&capacity()).await;
        assert!(matches!(end, Err(ReadError::Closed)));
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_is_cut_and_the_next_one_is_whole() {
    for protocol in [Protocol::V5, Protocol::V311] {
        let long: Vec<u8> = (0..3_000_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut sent = encode(protocol, "long", Some(1), &long);
        sent.extend(encode(protocol, "next", Some(2), b"next"));
        let mut reader = Reader::new(Cursor::new(sent), protocol, 1 << 20);
        let cut = read_message(&mut reader).await;
        assert_eq!(&cut.payload[..], &long[..TRUNCATED_BYTES]);
        assert_eq!(cut.truncated, Some(3_000_000));
        let next = read_message(&mut reader).await;
        assert_eq!((next.topic.as_str(), &next.payload[..]), ("next", &b"next"[..]));
    }
}

#[tokio::test]
async fn a_slow_message_holds_capacity_only_while_nobody_needs_it() {
    // The share of a session is smaller than the message.
    let capacity = Capacity::new(1 << 20, 64);
    let (session, other) = (capacity.for_session(10), capacity.for_session(10));
    let sent = encode(Protocol::V311, "slow", Some(1), &[b'x'; 10_000]);
    let (before, rest) = sent.split_at(100);
    for is_needed in [false, true] {
        let (mut broker, stream) = tokio::io::duplex(64 << 10);
        let mut reader = Reader::new(stream, Protocol::V311, 1 << 20);
        reader.payload_timeout = Duration::ZERO;
        broker.write_all(before).await.unwrap();
        let mut reading = pin!(reader.read_frame(&session));
        // It waits for the rest of the message, and holds the capacity for all of it.
        let mut context = Context::from_waker(Waker::noop());
        assert!(reading.as_mut().poll(&mut context).is_pending());
        let all = capacity.max_message_bytes() * 2;
        let mut waiting = pin!(other.reserve(all));
        if is_needed {
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            let read = reading.await;
            assert!(matches!(read, Err(ReadError::TooSlow)), "{read:?}");
        } else {
            broker.write_all(rest).await.unwrap();
            let read = reading.await;
            assert!(read.is_ok(), "{read:?}");
        }
    }
}

#[tokio::test]
async fn only_an_answer_to_connect_is_read_first() {
    for (bytes, is_read) in
        [(&[0x20, 2, 0, 0][..], true), (&[0xE0, 0], true), (&[0x30, 0xFF, 0xFF, 0x7F], false)]
    {
        let mut reader = Reader::new(Cursor::new(bytes), Protocol::V311, 100);
        assert_eq!(reader.read_answer().await.is_ok(), is_read, "{bytes:?}");
    }
    let control = [&[0x90, 0x81, 0x20][..], &[0; 4097]].concat();
    let mut reader = Reader::new(Cursor::new(control), Protocol::V311, 100);
    let read = reader.read_frame(&capacity()).await;
    assert!(matches!(read, Err(ReadError::Malformed("it is too long"))), "{read:?}");
}

#[tokio::test]
async fn a_packet_that_contradicts_its_length_is_refused() {
    for (bytes, expected) in [
        (&[0x32, 3, 0, 9, b'a'][..], "it is shorter than its fields"),
        (&[0x32, 5, 0, 1, b'a', 0, 0], "a packet identifier is 0"),
        (&[0x34, 5, 0, 1, b'a', 0, 1], "a message has a higher QoS than subscribed"),
        (&[0x30, 2, 0, 0], "a message has no topic"),
        (&[0x30, 3, 0, 1, 0xFF], "a topic is not UTF-8"),
        (&[0x20, 0xFF, 0xFF, 0xFF, 0xFF, 1], "a length has more than four bytes"),
        (&[0x20, 0xFF, 0xFF, 0xFF, 0x7F], "it is too long"),
    ] {
        let mut reader = Reader::new(Cursor::new(bytes), Protocol::V311, 100);
        let read = reader.read_frame(&capacity()).await;
        let Err(ReadError::Malformed(why)) = read else { panic!("{bytes:?}: {read:?}") };
        assert_eq!(why, expected);
    }
}

#[tokio::test]
async fn arbitrary_bytes_never_panic() {
    use rand::Rng as _;
    let mut random = rand::rng();
    for _ in 0..50_000 {
        let length = random.random_range(0..60_usize);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
        if let Some(first) = bytes.first_mut() {
            *first = 0x30 | (*first & 0xF);
        }
        for protocol in [Protocol::V5, Protocol::V311] {
            let mut reader = Reader::new(Cursor::new(bytes.clone()), protocol, 10);
            while reader.read_frame(&capacity()).await.is_ok() {}
        }
    }
}
