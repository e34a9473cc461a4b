//! `/admin/sources`: the sources, the state of their connections, and a test of a connection.
use super::configured::SettingGroup;
use super::frame::{Frame, PageReply, PageResult, Section};
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_resources::source::{
    ConnectionStatus, Source, SourceConnection, SourceSubscription, SourceTest,
};
use penstock_service::sources;
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
    let rows = all.into_iter().flat_map(|Source { name, connections, .. }| {
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
    let Source { name, url, account, warnings, connections, subscriptions, .. } = source;
    // The sections of the connections have their errors.
    let errors: Vec<_> = connections.iter().filter_map(|one| one.error.clone()).collect();
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
    let SourceTest { ok, protocol, cause, milliseconds, .. } = result;
    Ok(if ok {
        let words = format!(
            "The broker accepted a connection with MQTT {} in {milliseconds} ms.",
            protocol.unwrap_or("5")
        );
        PageReply::redirect(&page, words)
    } else {
        let cause = cause.unwrap_or_default();
        PageReply::redirect_with_error(&page, format!("The connection failed: {cause}"))
    })
}

impl Row {
    fn from_connection(source: &str, connection: SourceConnection) -> Self {
        let (class, words) = match connection.state {
            ConnectionStatus::Connected if connection.error.is_some() => ("warn", "waiting"),
            ConnectionStatus::Connected => ("good", "connected"),
            ConnectionStatus::Disconnected => ("bad", "disconnected"),
            ConnectionStatus::Off => ("warn", "off"),
        };
        Self {
            source: source.to_owned(),
            business_object: connection.business_object,
            id: connection.business_object_id,
            class,
            state: words,
            error_age: connection.error_at.as_deref().map(words::format_age).unwrap_or_default(),
            error: connection.error.map(|error| error.replace('`', "")),
            connected: connection
                .connected_since
                .map_or_else(|| "–".to_owned(), |at| words::format_age(&at)),
            protocol: match connection.protocol {
                Some("3.1.1") => "MQTT 3.1.1",
                Some(_) => "MQTT 5",
                None => "–",
            },
            rate: words::format_number(connection.messages_per_minute),
            last: connection.last_message.map_or_else(
                || "none yet".to_owned(),
                |at| format!("{} ago", words::format_age(&at)),
            ),
            received: words::format_number(connection.received),
            acknowledged: words::format_number(connection.acknowledged),
            dead_letters: words::format_number(connection.dead_letters),
            dropped: words::format_number(connection.dropped),
            waiting: match connection.waiting_messages {
                0 => "none".to_owned(),
                messages => format!(
                    "{}, {}",
                    words::format_number(messages),
                    words::format_size(connection.waiting_bytes)
                ),
            },
            client_id: connection.client_id,
        }
    }
}

impl From<SourceSubscription> for SubscriptionRow {
    fn from(subscription: SourceSubscription) -> Self {
        let SourceSubscription { topic, business_object, mode, fields } = subscription;
        let fields: Vec<String> =
            fields.into_iter().map(|(field, value)| format!("{field}: {value}")).collect();
        Self { topic, business_object, mode, fields: fields.join(", ") }
    }
}
