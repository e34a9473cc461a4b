//! Starts and stops the sessions of all sources.
use crate::capacity::Capacity;
use crate::handshake::Endpoint;
use crate::message_store::GatewayStore;
use crate::packets::ConnectRequest;
use crate::reader::TRUNCATED_BYTES;
use crate::session::{Session, Timings, jittered_delay};
use crate::subscriptions::Subscriptions;
use penstock_config::{Settings, Source};
use penstock_resources::source::SourceTest;
use penstock_service::blocking::run_blocking;
use penstock_service::gateway::Gateway;
use penstock_service::sources::{SessionId, list_sessions, store_session};
use rand::Rng as _;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The keep-alive interval that the gateway asks for.
const KEEP_ALIVE_SECONDS: u16 = 30;

/// The running sessions of all sources.
#[derive(Debug)]
pub struct Sources {
    stop: watch::Sender<bool>,
    sessions: JoinSet<()>,
}

impl Sources {
    /// Starts a session for each source and Business Object of the settings, and ends those that the settings no
    /// longer have.
    pub fn start(gateway: &Arc<Gateway>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut sessions = JoinSet::new();
        let settings = &gateway.settings;
        let count = settings.sources.values().map(|source| source.business_objects().len()).sum();
        let capacity = Capacity::new(settings.limits.source_bytes, count);
        let mut current = BTreeSet::new();
        for (name, source) in &settings.sources {
            for business_object in source.business_objects() {
                let client_id =
                    source.session_client_id(&gateway.gateway_id, name, business_object);
                let id = SessionId { source: name.clone(), client_id: client_id.clone() };
                current.insert(id.clone());
                gateway.sources.update(name, business_object, |state| {
                    state.client_id.clone_from(&client_id);
                });
                let session = Session {
                    endpoint: create_endpoint(settings, source, &client_id, &capacity),
                    subscriptions: Subscriptions::select(source, business_object),
                    store: Arc::new(GatewayStore {
                        gateway: gateway.clone(),
                        business_object: business_object.to_owned(),
                        id,
                    }),
                    timings: Timings::default(),
                    stopped: stopped.clone(),
                };
                sessions.spawn(session.run());
            }
        }
        if count > 0 {
            sessions.spawn(end_removed_sessions(gateway.clone(), current, stopped));
        }
        // Without the gateway itself, which has the tester.
        let (settings, gateway_id) = (settings.clone(), gateway.gateway_id.clone());
        gateway.sources.set_tester(Arc::new(move |name| {
            let (settings, gateway_id) = (settings.clone(), gateway_id.clone());
            Box::pin(async move { test_connection(&settings, &gateway_id, &name).await })
        }));
        Self { stop, sessions }
    }

    /// Ends all sessions: each finishes the batch that is being stored, acknowledges it, and closes its connection.
    pub async fn stop(mut self) {
        // Sending fails if no session is left.
        let _ = self.stop.send(true);
        while self.sessions.join_next().await.is_some() {}
    }
}

fn create_endpoint(
    settings: &Settings,
    source: &Source,
    client_id: &str,
    capacity: &Capacity,
) -> Endpoint {
    let body_bytes = usize::try_from(settings.limits.body_bytes).unwrap_or(usize::MAX);
    // What can never be held is truncated too. A topic has less than 64 KiB. The minimum of the setting leaves more than
    // a truncated payload.
    let holdable_bytes = capacity.max_message_bytes().saturating_sub(TRUNCATED_BYTES);
    let holdable_bytes = holdable_bytes.max(TRUNCATED_BYTES);
    Endpoint {
        source: source.clone(),
        request: ConnectRequest {
            client_id: client_id.to_owned(),
            username: source.username.clone(),
            password: source.password.clone(),
            is_clean_start: false,
            keep_alive_seconds: KEEP_ALIVE_SECONDS,
            session_expiry: source.session_expiry,
            receive_maximum: source.receive_maximum,
        },
        capacity: capacity.for_session(source.receive_maximum),
        max_payload_bytes: body_bytes.min(holdable_bytes),
    }
}

/// Creates an endpoint for a connection whose session ends with it.
fn create_passing_endpoint(settings: &Settings, source: &Source, client_id: &str) -> Endpoint {
    let capacity = Capacity::new(settings.limits.source_bytes, 1);
    let mut endpoint = create_endpoint(settings, source, client_id, &capacity);
    endpoint.request.is_clean_start = true;
    endpoint.request.session_expiry = Duration::ZERO;
    endpoint
}

/// Connects to the broker of this source with a client id of its own, and disconnects.
async fn test_connection(settings: &Settings, gateway_id: &str, name: &str) -> SourceTest {
    let begun = Instant::now();
    let end = |protocol, cause: Option<String>| SourceTest {
        source: name.to_owned(),
        ok: cause.is_none(),
        protocol,
        cause,
        milliseconds: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    let Some(source) = settings.sources.get(name) else {
        return end(None, Some(format!("there is no source {name:?}")));
    };
    let number: u32 = rand::rng().random();
    // Some brokers let in only client ids that begin like those of the sessions. No session has an id with "-test_".
    let client_id = format!("{}-test_{number:08x}", source.common_client_id(gateway_id, name));
    let opened = create_passing_endpoint(settings, source, &client_id).open(false).await;
    let (protocol, cause) = match opened {
        Ok(opened) => {
            let protocol = opened.codec.protocol().name();
            opened.close().await;
            (Some(protocol), None)
        }
        Err(cause) => (None, Some(cause)),
    };
    end(protocol, cause)
}

/// Ends the sessions of Business Objects without a subscription, so that the broker keeps no messages for them.
/// Retries until all of them have ended.
async fn end_removed_sessions(
    gateway: Arc<Gateway>,
    current: BTreeSet<SessionId>,
    mut stopped: watch::Receiver<bool>,
) {
    let Timings { first_connect_delay, max_connect_delay, .. } = Timings::default();
    for failures in 1.. {
        let ended = tokio::select! {
            ended = try_end_removed_sessions(&gateway, &current) => ended,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let Err(cause) = ended else { return };
        if failures == 1 {
            tracing::warn!(
                cause,
                "Ending a session without subscriptions failed; the gateway tries again. Until then its broker keeps messages."
            );
        }
        tokio::select! {
            () = sleep(jittered_delay(first_connect_delay, failures, max_connect_delay)) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}

/// Ends those of the stored sessions that are not current and have the client ids of this gateway, as far as it can.
///
/// # Errors
/// Why one is left.
async fn try_end_removed_sessions(
    gateway: &Arc<Gateway>,
    current: &BTreeSet<SessionId>,
) -> Result<(), String> {
    let reader = gateway.clone();
    let sessions = run_blocking(move || list_sessions(&reader)).await;
    let sessions =
        sessions.map_err(|error| format!("reading the sessions of the sources failed: {error}"))?;
    let mut ended = Ok(());
    for id in sessions {
        if current.contains(&id) {
            continue;
        }
        // Without the source there is no broker to connect to. It drops the session when that expires.
        if let Some(source) = gateway.settings.sources.get(&id.source) {
            if !source.is_session_client_id(&gateway.gateway_id, &id.source, &id.client_id) {
                // It has an earlier client id, or belongs to the gateway that this one is a copy of. Ending it would drop
                // the messages that the broker keeps for that gateway.
                continue;
            }
            let endpoint = create_passing_endpoint(&gateway.settings, source, &id.client_id);
            match endpoint.open(false).await {
                Ok(opened) => opened.close().await,
                Err(cause) => {
                    ended = Err(format!("{id}: {cause}"));
                    continue;
                }
            }
        }
        let writer = gateway.clone();
        let forgotten = id.clone();
        let stored = run_blocking(move || store_session(&writer, &forgotten, None)).await;
        match stored {
            Ok(()) => tracing::info!(%id, "A session without subscriptions was ended."),
            Err(error) => ended = Err(format!("{id}: {error}")),
        }
    }
    ended
}
