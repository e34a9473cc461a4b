//! Describes the reason codes of MQTT 5.
use std::fmt::Write as _;

/// The maximum bytes that are kept of a text of the broker. It is shown in the status, the log and events.
const MAX_TEXT_BYTES: usize = 200;

/// Returns why a subscription was refused; `None` if it was granted with QoS 1.
pub(super) fn describe_refusal(code: u8, given: Option<&str>) -> Option<String> {
    match code {
        0 => Some("the broker grants only QoS 0, so messages could be lost".to_owned()),
        1 | 2 => None,
        code => Some(describe_reason(code, given)),
    }
}

/// Returns what to do about a refused connection, by its reason code of MQTT 5 (2.4).
pub(super) fn find_remedy(code: u8) -> Option<&'static str> {
    match code {
        0x85 => Some("set `client-id`"),
        0x86 => Some("correct `username` and `password`"),
        0x87 => Some("check `username` and `password`, and what the broker allows this user"),
        _ => None,
    }
}

/// Describes a reason code of MQTT 5 (2.4), with the text that the broker gave.
pub(super) fn describe_reason(code: u8, given: Option<&str>) -> String {
    let reason = match code {
        0x00 => "the broker closed the connection",
        0x80 => "the broker gave no reason",
        0x81 => "the broker calls a packet malformed",
        0x82 => "the broker reports a protocol error",
        0x85 => "the broker refuses the client id",
        0x86 => "the user name or the password is wrong",
        0x87 => "not authorized",
        0x88 => "the broker is unavailable",
        0x89 => "the broker is busy",
        0x8A => "the broker bans this client",
        0x8B => "the broker shuts down",
        0x8D => "the broker received nothing for too long",
        0x8E => "another client connected with the same client id",
        0x8F => "the topic filter is invalid",
        0x95 => "a packet is too large for the broker",
        0x97 => "a quota is exceeded",
        0x98 => "an administrator closed the connection",
        0x9C | 0x9D => "the broker names another broker to use",
        0x9E => "the broker has no shared subscriptions",
        0xA2 => "the broker has no wildcard subscriptions",
        _ => "",
    };
    let mut text = match reason {
        "" => format!("reason code {code:#04x}"),
        reason => reason.to_owned(),
    };
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        let kept = given.get(..given.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default();
        let dots = if kept.len() < given.len() { "..." } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, " ({:?})", format!("{kept}{dots}"));
    }
    text
}
