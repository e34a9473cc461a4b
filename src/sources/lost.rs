//! Why connections were lost, and whether another client with the same client id takes them again and again.
use crate::handshake::is_end;
use crate::packets::Protocol;
use crate::reader::ReadError;
use std::time::Duration;

/// A connection that lasted this long was a success, so that the next failure is the first one again.
const STABLE_CONNECTION: Duration = Duration::from_secs(5);
/// After so many connections in a row that the broker closed soon, another client probably took them. A broker of MQTT
/// 3.1.1 only closes them (MQTT 3.1.1, 3.1.4-2).
const SUSPICIOUS_CLOSINGS: u64 = 3;
const REMEDY: &str =
    "give each gateway its own service.gateway-id, and each source its own client-id";

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The broker says that another client connected with the same client id.
    TakenOver,
    /// A broker of MQTT 3.1.1, which gives no reasons, closed it.
    Closed,
    /// For any other cause.
    Other,
}

/// Why a connection was lost, or was not opened.
#[derive(Debug)]
pub(crate) struct LostConnection {
    cause: String,
    end: End,
}

impl From<String> for LostConnection {
    fn from(cause: String) -> Self {
        Self { cause, end: End::Other }
    }
}

impl From<ReadError> for LostConnection {
    fn from(error: ReadError) -> Self {
        let is_closed = match &error {
            ReadError::Closed => true,
            ReadError::Io(error) => is_end(error),
            ReadError::Malformed(_) | ReadError::TooSlow => false,
        };
        let end = if is_closed { End::Closed } else { End::Other };
        Self { cause: error.to_string(), end }
    }
}

impl LostConnection {
    /// The broker gave the session to another client.
    pub(crate) fn taken_over(cause: String) -> Self {
        Self { cause, end: End::TakenOver }
    }

    /// Takes the version of the protocol into account. With MQTT 5 the broker names another client (3.1.4-3), so a connection
    /// that it only closes has another cause, such as the network, and the next attempt need not wait.
    pub(crate) fn over(self, protocol: Protocol) -> Self {
        let end = match (self.end, protocol) {
            (End::Closed, Protocol::V5) => End::Other,
            (end, _) => end,
        };
        Self { end, ..self }
    }

    /// Describes the cause for the operator. `is_contested` says that another client probably takes the session.
    pub(crate) fn describe(self, is_contested: bool, client_id: &str) -> String {
        let Self { cause, end } = self;
        match end {
            End::TakenOver => format!("{cause}: {client_id:?}; {REMEDY}"),
            End::Closed if is_contested => format!(
                "{cause}, several times in a row soon after it had accepted the connection; either another client uses the \
                 client id {client_id:?}, or the broker does not allow what the gateway subscribes to, or the network \
                 ends connections; {REMEDY}"
            ),
            End::Closed | End::Other => cause,
        }
    }
}

/// The failures of a session in a row, which decide how long the next attempt waits.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: u64,
    /// Connections in a row that the broker ended soon for another client, or without a reason.
    ended_soon: u64,
}

impl Failures {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the end of a connection that lasted so long; `None` if it was not opened. Returns whether another client probably
    /// takes the session again and again.
    ///
    /// Then a connection is no success, however long it lasted: that is only how long the other client has waited, at most
    /// `max_delay`. If both connected again at once, they would end each other's connections for ever.
    pub(crate) fn add(
        &mut self,
        lost: &LostConnection,
        lasted: Option<Duration>,
        max_delay: Duration,
    ) -> bool {
        let mut is_contested = false;
        if let Some(lasted) = lasted {
            let is_soon = lasted <= 2 * max_delay;
            self.ended_soon = match lost.end {
                End::TakenOver | End::Closed if is_soon => self.ended_soon + 1,
                _ => 0,
            };
            is_contested = match lost.end {
                End::TakenOver => is_soon,
                End::Closed => self.ended_soon >= SUSPICIOUS_CLOSINGS,
                End::Other => false,
            };
            if lasted >= STABLE_CONNECTION && !is_contested {
                self.count = 0;
            }
        }
        self.count += 1;
        is_contested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_DELAY: Duration = Duration::from_mins(1);

    /// Returns after each of these ends the number of failures, and whether the session is contested.
    fn add_all(ends: &[(End, u64)]) -> Vec<(u64, bool)> {
        let mut failures = Failures::default();
        let add = |(end, seconds): &(End, u64)| {
            let lost = LostConnection { cause: String::new(), end: *end };
            let is_contested = failures.add(&lost, Some(Duration::from_secs(*seconds)), MAX_DELAY);
            (failures.count(), is_contested)
        };
        ends.iter().map(add).collect()
    }

    #[test]
    fn a_session_that_another_client_takes_again_and_again_waits_longer_each_time() {
        let ends = [(End::TakenOver, 20), (End::TakenOver, 60), (End::TakenOver, 1)];
        assert_eq!(add_all(&ends), [(1, true), (2, true), (3, true)]);
        // Without a reason, some closings are those of a broker that restarts.
        let ends = [(End::Closed, 20), (End::Closed, 60), (End::Closed, 60), (End::Closed, 40)];
        assert_eq!(add_all(&ends), [(1, false), (1, false), (2, true), (3, true)]);
    }

    #[test]
    fn only_a_broker_of_mqtt_3_1_1_takes_a_connection_without_a_reason() {
        for (protocol, expected) in [(Protocol::V311, true), (Protocol::V5, false)] {
            let mut failures = Failures::default();
            let mut add = || {
                let lost = LostConnection::from(ReadError::Closed).over(protocol);
                failures.add(&lost, Some(Duration::from_secs(9)), MAX_DELAY)
            };
            assert_eq!([add(), add(), add()], [false, false, expected]);
            assert_eq!(failures.count(), if expected { 2 } else { 1 });
        }
        let taken = LostConnection::taken_over(String::new()).over(Protocol::V5);
        assert_eq!(taken.end, End::TakenOver);
    }

    #[test]
    fn after_a_long_connection_or_another_cause_the_count_begins_again() {
        let ends = [(End::TakenOver, 9), (End::TakenOver, 3_600), (End::TakenOver, 9)];
        assert_eq!(add_all(&ends), [(1, true), (1, false), (2, true)]);
        let ends = [(End::Closed, 9), (End::Closed, 9), (End::Other, 9), (End::Closed, 9)];
        assert_eq!(add_all(&ends), [(1, false); 4]);
        let mut failures = Failures::default();
        let refused = LostConnection::from("refused".to_owned());
        assert!(
            !failures.add(&refused, None, MAX_DELAY) && !failures.add(&refused, None, MAX_DELAY)
        );
        assert_eq!(failures.count(), 2);
    }
}
