//! `penstock query FILE`
use super::{control, data_dir, output, serve};
use clap::{Arg, ArgMatches, Command};
use penstock_config::Settings;
use penstock_service::sparql::{self, ResultName};
use penstock_sparql::DatasetParameters;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc;

/// Bytes of the write buffer.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

pub(super) fn build_command() -> Command {
    Command::new("query")
        .about("Answer a SPARQL query, also while the service runs")
        .override_usage("penstock query FILE [--format FORMAT] [--name=value]...")
        .arg(Arg::new("FILE").help("The file with the query; - is standard input").required(true))
        .arg(
            output::value_argument("format", "FORMAT", "json, xml, csv or tsv (the default) for SELECT and ASK; ttl (the default), nt, nq, trig, rdf or jsonld for CONSTRUCT and DESCRIBE")
                .value_parser(|text: &str| text.parse::<ResultName>().map(|_| text.to_owned())),
        )
        .after_help(
            "The query may use the prefixes of all mappings, except those that two mappings define differently. \
             The default graph is the union of all graphs. The limits of service.limits.sparql apply.\n\nExamples:\n  \
             penstock query pumps.rq --format csv --service.data-dir=data\n  \
             echo 'SELECT (COUNT(*) AS ?quads) { ?s ?p ?o }' | penstock query -",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some(path) = given.get_one::<String>("FILE") else { return output::STATUS_USAGE.into() };
    let format = given.get_one::<String>("format").cloned();
    match read_text(path).and_then(|text| answer_query(settings, text, format)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => output::print_failure(&why),
    }
}

fn read_text(path: &str) -> Result<String, String> {
    let mut text = String::new();
    let read = match path {
        "-" => io::stdin().lock().read_to_string(&mut text).map(drop),
        path => std::fs::read_to_string(path).map(|read| text = read),
    };
    read.map_err(|error| format!("{path}: {error}"))?;
    Ok(text)
}

/// Answers the query: through the running service, or from the store itself. The store's lock excludes other processes.
fn answer_query(settings: &Settings, text: String, format: Option<String>) -> Result<(), String> {
    data_dir::check_exists(settings)?;
    let runtime = serve::build_runtime().map_err(|error| error.to_string())?;
    let query: Vec<_> = format.iter().map(|format| ("format", format.clone())).collect();
    let path = control::path_with_query("/control/query", &query);
    let mut out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, io::stdout().lock());
    let sent = control::post_text_to(&settings.data_dir, &path, text.clone(), &mut out);
    if runtime.block_on(sent)? {
        return out.flush().map_err(|error| error.to_string());
    }
    drop(out);
    // Parts of the gateway may need the current runtime.
    let _entered = runtime.enter();
    let gateway = data_dir::open_gateway(settings)?;
    let (sender, answered) = mpsc::channel();
    let work = move || {
        let catalogue = &gateway.catalogue;
        let query =
            sparql::parse_with_mapping_prefixes(catalogue, &text, &DatasetParameters::default())
                .map_err(|error| error.to_string())?;
        let (_, format) = match format {
            None => ResultName::default_of(query.form()),
            Some(name) => name.parse::<ResultName>()?.choose(query.form())?,
        };
        let mut out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, io::stdout().lock());
        let deadline = sparql::query_deadline(&gateway);
        sparql::run_query(&gateway, query, deadline, format, &mut out)
            .map_err(|error| error.to_string())?;
        out.flush().map_err(|error| error.to_string())
    };
    // If this process no longer waits, nobody needs the result.
    sparql::start_query_thread(move || drop(sender.send(work())))
        .map_err(|error| error.to_string())?;
    answered.recv().unwrap_or_else(|_| Err(sparql::no_answer_error().to_string()))
}
