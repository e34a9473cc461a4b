//! `penstock load FILE`
use super::dump::{choose_format, format_graph, format_option, graph_option};
use super::{control, data_dir, output, serve};
use clap::{Arg, ArgMatches, Command};
use oxrdf::{GraphName, NamedNode};
use penstock_auth::Authorized;
use penstock_config::Settings;
use penstock_model::rdf::{self, Format, LoadError, LoadOptions, LoadProgress, LoadTarget};
use penstock_service::gateway::data_events;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    let iri = |name: &'static str, help: &'static str| {
        output::value_argument(name, "IRI", help).value_parser(rdf::parse_iri)
    };
    Command::new("load")
        .about("Load an RDF document into the graph, also while the service runs")
        .override_usage(
            "penstock load FILE [--format FORMAT] [--graph IRI] [--base IRI] [--skolemize IRI] [--bypass] [--json] \
             [--name=value]...",
        )
        .arg(Arg::new("FILE").help("The document; compressed if its name ends in .zst; - is standard input").required(true))
        .arg(format_option())
        .arg(graph_option("The graph of triples without a graph of their own; by default the default graph"))
        .arg(iri("base", "The base of relative IRIs; without it they are an error"))
        .arg(iri("skolemize", "Replace blank nodes by IRIs that begin with this one; without it they are an error"))
        .arg(
            output::flag_argument("bypass", "Also change objects of Business Objects that refuse what violates their shapes"),
        )
        .arg(output::json_flag())
        .after_help(
            "Existing data is not changed. The document is committed in parts, in its order: after an error \
             correct it and load it again from the beginning; quads that exist already are not stored twice. \
             The IRI of a blank node is the given IRI and the label of the node; a node without a label gets a full \
             stop and its number in the document (RDF 1.1 Concepts, 3.5), so use another IRI for each document.\n\n\
             Examples:\n  \
             penstock load pumps.ttl --graph https://plant.example/pumps/ --service.data-dir=data\n  \
             penstock load all.nq.zst\n  \
             penstock load old.ttl --skolemize https://plant.example/.well-known/genid/old-",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some(path) = given.get_one::<String>("FILE") else { return output::STATUS_USAGE.into() };
    let Some(format) = choose_format(given, path) else {
        let known = Format::ALL.map(Format::name).join(", ");
        output::print_error_line(&format!(
            "penstock: {path}: its extension is not that of a known format; give --format, one of {known}"
        ));
        return output::STATUS_USAGE.into();
    };
    let what = LoadOptions {
        format,
        graph: given.get_one("graph").cloned().unwrap_or(GraphName::DefaultGraph),
        base: given.get_one("base").cloned(),
        skolemize: given.get_one("skolemize").cloned(),
        bypass: given.get_flag("bypass"),
    };
    match load_document(settings, &what, path) {
        Ok((loaded, error)) => {
            let text = if given.get_flag("json") {
                result_to_json(loaded, error.as_deref()).to_string()
            } else {
                format_result(path, loaded)
            };
            let answered = output::print_result(&text);
            match (answered, error) {
                (Err(failed), _) => failed,
                (Ok(()), None) => ExitCode::SUCCESS,
                (Ok(()), Some(why)) => output::print_failure(&format!("{path}: {why}")),
            }
        }
        Err(why) => output::print_failure(&why),
    }
}

fn format_result(path: &str, LoadProgress { quads, added, commits }: LoadProgress) -> String {
    let commits = if commits == 1 { "1 commit".to_owned() } else { format!("{commits} commits") };
    format!("{path}: {quads} quads in {commits}, {added} of them new")
}

fn result_to_json(
    LoadProgress { quads, added, commits }: LoadProgress,
    error: Option<&str>,
) -> Value {
    json!({"quads": quads, "added": added, "commits": commits, "fault": error})
}

/// Loads the document. Returns the progress, and the error if one ended the load early.
fn load_document(
    settings: &Settings,
    what: &LoadOptions,
    path: &str,
) -> Result<(LoadProgress, Option<String>), String> {
    data_dir::check_exists(settings)?;
    // Opened before this process may change to another user, who may lack the permission.
    let text = open_document(path).map_err(|error| format!("{path}: {error}"))?;
    let query = build_query(what);
    let mut tell = output::show_count("quads");
    let mut loaded = LoadProgress::default();
    let mut ended = None;
    let runtime = serve::build_runtime().map_err(|error| error.to_string())?;
    if runtime.block_on(control::is_served(&settings.data_dir))? {
        let path = control::path_with_query("/control/load", &query);
        let mut line = |line: Value| {
            let number = |name| line.get(name).and_then(Value::as_u64).unwrap_or_default();
            loaded = LoadProgress {
                quads: number("quads"),
                added: number("added"),
                commits: number("commits"),
            };
            tell(loaded.quads);
            if let Some(error) = line.get("fault").and_then(Value::as_str) {
                ended = Some(Some(error.to_owned()));
            } else if line.get("done").is_some() {
                ended = Some(None);
            }
            // The rest of the document is not sent.
            if ended.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let sent =
            runtime.block_on(control::upload_for_lines(&settings.data_dir, &path, text, &mut line));
        return match (sent, ended) {
            (_, Some(error)) => Ok((loaded, error)),
            (Ok(_), None) => {
                Ok((loaded, Some("the service ended before its response was complete".to_owned())))
            }
            (Err(why), None) => Ok((loaded, Some(why))),
        };
    }
    let gateway = data_dir::open_gateway(settings)?;
    let target = LoadTarget {
        store: &gateway.store,
        check: &Authorized::local(),
        disk: &gateway.disk,
        watch: gateway.catalogue.watch(),
        check_time: gateway.settings.limits.shapes.time,
    };
    let result = rdf::load_document(&target, what, text, &mut |loaded| {
        tell(loaded.quads);
        Ok(())
    });
    data_dir::record_event(&gateway.store, settings, &data_events::load_event(what, &result));
    match result {
        Ok(loaded) => Ok((loaded, None)),
        Err(LoadError { error: fault, loaded }) => Ok((loaded, Some(fault.to_string()))),
    }
}

fn open_document(path: &str) -> io::Result<Box<dyn Read + Send>> {
    Ok(match path {
        "-" => Box::new(io::stdin()),
        path if Path::new(path).extension().is_some_and(|end| end == "zst") => {
            Box::new(zstd::Decoder::new(File::open(path)?)?)
        }
        path => Box::new(File::open(path)?),
    })
}

fn build_query(what: &LoadOptions) -> Vec<(&'static str, String)> {
    let mut query =
        vec![("format", what.format.name().to_owned()), ("graph", format_graph(&what.graph))];
    let mut iri = |name, iri: &Option<NamedNode>| {
        if let Some(iri) = iri {
            query.push((name, iri.as_str().to_owned()));
        }
    };
    iri("base", &what.base);
    iri("skolemize", &what.skolemize);
    query.push(("bypass", what.bypass.to_string()));
    query
}
