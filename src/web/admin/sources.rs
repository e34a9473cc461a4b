//! `/admin/sources`: the sources, the state of their connections, and a test of a connection.
use super::configured::SettingGroup;
use super::frame::{Frame, PageReply, PageResult, Section};
use super::words;
use askama::Template;
use jiff::Timestamp;
use penstock_base::Role;
use penstock_config::Subscription;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_service::sources::{
    self, ConnectionInfo, ConnectionStatus, ConnectionTest, SourceInfo,
};
use salvo::{Depot, Request, handler};

#[derive(Template)]
#[template(path = "admin/sources.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
}

/// A connection of a source.
struct Row {
    source: String,
    business_object: String,
    /// The id of the Business Object; `None` if it is not defined.
    id: Option<String>,
    class: &'static str,
    state: &'static str,
    error: Option<String>,
    error_age: String,
    connected: String,
    protocol: &'static str,
    rate: String,
    last: String,
    received: String,
    acknowledged: String,
    dead_letters: String,
    dropped: String,
    waiting: String,
    client_id: String,
}

#[derive(Template)]
#[template(path = "admin/source.html")]
struct One {
    frame: Frame,
    name: String,
    url: String,
    account: Option<String>,
    warnings: Vec<String>,
    connections: Vec<Row>,
    subscriptions: Vec<SubscriptionRow>,
    /// `None` if the viewer may not see settings.
    settings: Option<SettingGroup>,
}

/// A subscription.
struct SubscriptionRow {
    topic: String,
    business_object: String,
    mode: &'static str,
    fields: String,
}

/// Shows the connections of all sources.
#[handler]
pub(crate) async fn list_sources(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Sources);
    let all = sources::list_sources(&gateway(depot)?, caller(depot))?;
    let rows = all.into_iter().flat_map(|SourceInfo { name, connections, .. }| {
        connections.into_iter().map(move |connection| Row::from_connection(&name, connection))
    });
    Ok(PageReply::show(&List { rows: rows.collect(), frame }))
}

/// Shows one source.
#[handler]
pub(crate) async fn show_source(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let source = sources::read_source(&gateway(depot)?, caller(depot), name)?;
    let SourceInfo { name, url, account, warnings, connections, subscriptions, .. } = source;
    // The sections of the connections have their errors.
    let errors: Vec<_> = connections
        .iter()
        .filter_map(|one| Some(one.state.error.as_ref()?.message.clone()))
        .collect();
    let is_shown = |warning: &String| errors.iter().any(|error| warning.ends_with(error.as_str()));
    let warnings = warnings.into_iter().filter(|warning| !is_shown(warning)).collect();
    let connections =
        connections.into_iter().map(|connection| Row::from_connection(&name, connection));
    let frame = Frame::new(req, depot, Section::Sources);
    let is_admin = frame.may(Role::Admin);
    Ok(PageReply::show(&One {
        settings: is_admin.then(|| SettingGroup::of_source(state(depot).settings(), &name)),
        connections: connections.collect(),
        subscriptions: subscriptions.into_iter().map(SubscriptionRow::from).collect(),
        frame,
        name,
        url,
        account,
        warnings,
    }))
}

/// Tests the connection of one source.
#[handler]
pub(crate) async fn test_source(req: &mut Request, depot: &mut Depot) -> PageResult {
    let name = path_parameter(req, "name").to_owned();
    let result = sources::test_source(&gateway(depot)?, caller(depot), &name).await?;
    let page = format!("/admin/sources/{name}");
    let ConnectionTest { ok, protocol, cause, duration } = result;
    Ok(if ok {
        let words = format!(
            "The broker accepted a connection with MQTT {} in {} ms.",
            protocol.unwrap_or("5"),
            duration.as_millis()
        );
        PageReply::redirect(&page, words)
    } else {
        let cause = cause.unwrap_or_default();
        PageReply::redirect_with_error(&page, format!("The connection failed: {cause}"))
    })
}

impl Row {
    fn from_connection(source: &str, connection: ConnectionInfo) -> Self {
        let ConnectionInfo {
            business_object,
            business_object_id,
            status,
            state,
            messages_per_minute,
        } = connection;
        let (class, words) = match status {
            ConnectionStatus::Connected if state.error.is_some() => ("warn", "waiting"),
            ConnectionStatus::Connected => ("good", "connected"),
            ConnectionStatus::Disconnected => ("bad", "disconnected"),
            ConnectionStatus::Off => ("warn", "off"),
        };
        let age = |at: Timestamp| words::format_duration(words::seconds_since(at));
        Self {
            source: source.to_owned(),
            business_object,
            id: business_object_id,
            class,
            state: words,
            error_age: state.error.as_ref().map(|error| age(error.at)).unwrap_or_default(),
            error: state.error.map(|error| error.message.replace('`', "")),
            connected: state.connected_since.map_or_else(|| "–".to_owned(), age),
            protocol: match state.protocol {
                Some("3.1.1") => "MQTT 3.1.1",
                Some(_) => "MQTT 5",
                None => "–",
            },
            rate: words::format_number(messages_per_minute),
            last: state
                .last_message_at
                .map_or_else(|| "none yet".to_owned(), |at| format!("{} ago", age(at))),
            received: words::format_number(state.received),
            acknowledged: words::format_number(state.acknowledged),
            dead_letters: words::format_number(state.dead_letters),
            dropped: words::format_number(state.dropped),
            waiting: match state.waiting_messages {
                0 => "none".to_owned(),
                messages => format!(
                    "{}, {}",
                    words::format_number(messages),
                    words::format_size(state.waiting_bytes)
                ),
            },
            client_id: state.client_id,
        }
    }
}

impl From<Subscription> for SubscriptionRow {
    fn from(subscription: Subscription) -> Self {
        let Subscription { topic, business_object, mode, fields } = subscription;
        let fields: Vec<String> =
            fields.into_iter().map(|(field, value)| format!("{field}: {value}")).collect();
        Self { topic, business_object, mode, fields: fields.join(", ") }
    }
}
