//! Packets of brokers are decoded, whatever their version.
use super::*;

fn decode(protocol: Protocol, frame: &[u8]) -> Result<Packet, String> {
    Codec::new(protocol).decode(frame.into())
}

#[test]
fn a_broker_without_mqtt_5_is_recognized() {
    let unsupported = Packet::ConnAck(ConnAck::UnsupportedProtocol);
    assert_eq!(decode(Protocol::V5, &[0x20, 2, 0, 1]).as_ref(), Ok(&unsupported));
    assert_eq!(decode(Protocol::V5, &[0x20, 3, 0, 0x84, 0]).as_ref(), Ok(&unsupported));
    // It accepts the connection, and takes it for one of MQTT 3.1.1.
    assert_eq!(decode(Protocol::V5, &[0x20, 2, 0, 0]).as_ref(), Ok(&unsupported));
    let Ok(Packet::ConnAck(ConnAck::Refused(why))) = decode(Protocol::V311, &[0x20, 2, 0, 5])
    else {
        panic!("a refusal is decoded");
    };
    let expected =
        "not authorized; check `username` and `password`, and what the broker allows this user";
    assert_eq!(why, expected);
}

#[test]
fn answers_to_subscriptions_name_the_refused_ones() {
    let packet_id = NonZeroU16::new(7).unwrap();
    let answer = decode(Protocol::V5, &[0x90, 6, 0, 7, 0, 1, 0x87, 0]).unwrap();
    let Packet::SubAck { packet_id: id, refusals } = answer else { panic!("{answer:?}") };
    assert_eq!(id, packet_id);
    assert_eq!((refusals[0].as_deref(), refusals[1].as_deref()), (None, Some("not authorized")));
    assert!(refusals[2].as_deref().unwrap().contains("QoS 0"));
    let answer = decode(Protocol::V311, &[0x90, 4, 0, 7, 1, 0x80]).unwrap();
    let Packet::SubAck { refusals, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((refusals.len(), refusals[0].is_none(), refusals[1].is_some()), (2, true, true));
}

#[test]
fn a_refused_unsubscription_is_recognized() {
    let answer = decode(Protocol::V5, &[0xB0, 6, 0, 7, 0, 0, 0x11, 0x87]).unwrap();
    let Packet::UnsubAck { refusals, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(refusals, [None, None, Some("not authorized".to_owned())]);
}

#[test]
fn the_text_of_a_broker_is_cut() {
    let text = "é".repeat(5_000);
    let described = describe_reason(0x87, Some(&text));
    assert!(described.starts_with("not authorized (\"éé"), "{described}");
    assert!(described.ends_with("...\")") && described.len() < 250, "{described}");
}

#[test]
fn a_password_is_never_shown() {
    let request = ConnectRequest {
        client_id: "penstock".to_owned(),
        username: Some("plant".to_owned()),
        password: Some("secret".to_owned()),
        is_clean_start: false,
        keep_alive_seconds: 1,
        session_expiry: Duration::ZERO,
        receive_maximum: 1,
    };
    assert!(!format!("{request:?}").contains("secret"));
}

#[test]
fn a_broker_may_close_the_connection_without_a_reason() {
    let bare = decode(Protocol::V5, &[0xE0, 0]).unwrap();
    assert_eq!(bare, Packet::Disconnect("the broker closed the connection".into()));
    let taken = decode(Protocol::V5, &[0xE0, 2, 0x8E, 0]).unwrap();
    let expected = "another client connected with the same client id";
    assert_eq!(taken, Packet::TakenOver(expected.into()));
}

#[test]
fn arbitrary_bytes_never_panic() {
    use rand::Rng as _;
    let mut random = rand::rng();
    for round in 0..200_000_u32 {
        let length = random.random_range(0..40_usize);
        let mut frame: Vec<u8> = (0..length + 2).map(|_| random.random()).collect();
        // Most frames have a valid length, so that their fields are decoded.
        if round % 4 > 0 {
            frame[1] = u8::try_from(length).unwrap();
        }
        for protocol in [Protocol::V5, Protocol::V311] {
            let _ = decode(protocol, &frame);
        }
    }
}
