//! Maps earlier log targets to current ones. Earlier versions were one crate, and log filters that operators configured
//! still name its modules.

/// An earlier target, and the targets that replace it. The first match counts, so a longer target comes before
/// a shorter one.
const EARLIER_TARGETS: [(&str, &[&str]); 28] = [
    ("penstock::app", &["penstock_cli::app"]),
    ("penstock::auth::later", &["penstock_auth::deferred_writes"]),
    ("penstock::auth", &["penstock_auth"]),
    ("penstock::business_object::json", &["penstock_base::json"]),
    ("penstock::business_object::changes", &["penstock_model::change_feed"]),
    ("penstock::business_object", &["penstock_model"]),
    ("penstock::characters", &["penstock_base::characters"]),
    ("penstock::cli", &["penstock_cli"]),
    ("penstock::clock", &["penstock_base::clock"]),
    ("penstock::commit", &["penstock_base::commit"]),
    ("penstock::config", &["penstock_config"]),
    ("penstock::disk", &["penstock_base::disk"]),
    ("penstock::events", &["penstock_base::events"]),
    ("penstock::export", &["penstock_export"]),
    ("penstock::fault", &["penstock_base::error"]),
    ("penstock::files", &["penstock_base::files"]),
    ("penstock::gateway", &["penstock_service::gateway"]),
    ("penstock::graphql", &["penstock_graphql"]),
    ("penstock::http::ingest", &["penstock_api::ingest", "penstock_service::ingestions"]),
    ("penstock::http", &["penstock_http", "penstock_api", "penstock_web", "penstock_service"]),
    ("penstock::memory", &["penstock_base::memory"]),
    ("penstock::mend", &["penstock_service::recovery"]),
    ("penstock::network", &["penstock_base::network"]),
    ("penstock::rdf", &["penstock_model::rdf"]),
    ("penstock::telemetry", &["penstock_base::telemetry"]),
    ("penstock::time", &["penstock_base::time"]),
    ("penstock::time_zone", &["penstock_base::time_zone"]),
    ("penstock_store::tidy", &["penstock_store::maintenance"]),
];

/// Returns a filter of tracing's `EnvFilter` with the earlier targets replaced by the current ones.
pub(super) fn replace_earlier_targets(filter: &str) -> String {
    let directives: Vec<String> = filter.split(',').flat_map(replace_target).collect();
    directives.join(",")
}

/// Returns the name of a target in the status. It is the name that earlier versions used, so that alerts keep working.
pub(super) fn part_of_target(target: &str) -> String {
    let begins = |today: &&str| {
        target.strip_prefix(*today).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let found = EARLIER_TARGETS
        .iter()
        .flat_map(|(earlier, targets)| targets.iter().map(move |today| (earlier, today)));
    let found = found.filter(|(_, today)| begins(today)).max_by_key(|(_, today)| today.len());
    let part = found
        .map_or_else(|| target.to_owned(), |(earlier, today)| target.replacen(today, earlier, 1));
    part.strip_prefix("penstock::").map_or(part.clone(), str::to_owned)
}

fn replace_target(directive: &str) -> Vec<String> {
    let text = directive.trim_start();
    let found = EARLIER_TARGETS.iter().find_map(|(earlier, targets)| {
        let rest = text.strip_prefix(earlier)?;
        // `penstock::time` is not the beginning of `penstock::time_zone`.
        let ends = rest.is_empty() || rest.starts_with(['=', '[']) || rest.starts_with("::");
        ends.then_some((targets, rest))
    });
    match found {
        Some((targets, rest)) => targets.iter().map(|target| format!("{target}{rest}")).collect(),
        None => vec![directive.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::{part_of_target, replace_earlier_targets};

    #[test]
    fn earlier_targets_reach_the_crates_of_today() {
        for (earlier, today) in [
            ("info", "info"),
            ("penstock=debug", "penstock=debug"),
            ("penstock::export=debug", "penstock_export=debug"),
            ("penstock::export", "penstock_export"),
            (
                "warn,penstock::business_object::ingest::run=trace",
                "warn,penstock_model::ingest::run=trace",
            ),
            ("penstock::business_object::json=info", "penstock_base::json=info"),
            ("penstock::time_zone=info", "penstock_base::time_zone=info"),
            (
                "penstock::gateway[request{path=x}]=debug",
                "penstock_service::gateway[request{path=x}]=debug",
            ),
            (
                "penstock::http::namespaces=debug",
                "penstock_http::namespaces=debug,penstock_api::namespaces=debug,\
                 penstock_web::namespaces=debug,penstock_service::namespaces=debug",
            ),
            (
                "penstock::http[request{path=x}]=debug",
                "penstock_http[request{path=x}]=debug,penstock_api[request{path=x}]=debug,\
                 penstock_web[request{path=x}]=debug,penstock_service[request{path=x}]=debug",
            ),
            (
                "penstock::http::ingest=debug",
                "penstock_api::ingest=debug,penstock_service::ingestions=debug",
            ),
            (
                "penstock::business_object::changes::cursor=info",
                "penstock_model::change_feed::cursor=info",
            ),
            ("penstock_store::tidy=debug", "penstock_store::maintenance=debug"),
            ("penstock_store=debug,salvo_core=warn", "penstock_store=debug,salvo_core=warn"),
        ] {
            assert_eq!(replace_earlier_targets(earlier), today);
        }
    }

    #[test]
    fn the_status_names_parts_as_earlier_versions_did() {
        for (target, part) in [
            ("penstock_export::deliver", "export::deliver"),
            ("penstock_model::ingest::run", "business_object::ingest::run"),
            ("penstock_model::rdf::load", "rdf::load"),
            ("penstock_service::ingestions", "http::ingest"),
            ("penstock_service::rdf", "http::rdf"),
            ("penstock_service::gateway", "gateway"),
            ("penstock_base::clock", "clock"),
            ("penstock_auth::deferred_writes", "auth::later"),
            ("penstock_store::maintenance", "penstock_store::tidy"),
            ("penstock_cli::app::tls", "app::tls"),
            ("penstock_service::gateway::status", "gateway::status"),
            ("penstock_service::namespaces", "http::namespaces"),
            ("penstock_api::ingest", "http::ingest"),
            ("penstock_store::store", "penstock_store::store"),
            ("hyper::proto", "hyper::proto"),
        ] {
            assert_eq!(part_of_target(target), part);
        }
    }
}
