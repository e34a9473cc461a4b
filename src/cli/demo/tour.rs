//! The steps of the demo. Each uses HTTP as a user would, and prints a sentence or two.
use super::client::{Body, Client, DemoError};
use hyper::{Method, StatusCode};
use oxrdf::NamedNode;
use penstock_base::blocking::spawn_blocking;
use penstock_export::verify;
use penstock_service::gateway::Gateway;
use penstock_store::Read as _;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

const PLANTS_JSON: &str = include_str!("plants.json");
/// The shapes graph of the readings, and its name.
const READINGS_TTL: &str = include_str!("readings.ttl");
const READINGS: &str = "readings";
const ROUNDS_NDJSON: &str = include_str!("rounds.ndjson");
/// The base of all identifiers in the files of the sample data.
const SAMPLE_BASE: &str = "https://demo.example/id/";
/// The first plant of the sample data, after the base.
pub(super) const FIRST_PLANT: &str = "Plants/altusried";
/// The group that approves changes of plants.
pub(super) const APPROVERS: &str = "shift leaders";

/// A Business Object of the demo.
struct Sample {
    name: &'static str,
    description: &'static str,
    config: &'static str,
    conditions: &'static [(&'static str, &'static str)],
    /// The shapes graphs that validate its objects.
    shapes: &'static [&'static str],
    /// The group that approves changes; without it there is no review.
    approvers: Option<&'static str>,
    bucket: Option<&'static str>,
}

const SAMPLES: [Sample; 3] = [
    Sample {
        name: "Plants",
        description: "Hydropower plants with areas, machines and sensors, four levels deep",
        config: include_str!("plants.yaml"),
        conditions: &[],
        shapes: &[],
        approvers: Some(APPROVERS),
        bucket: Some("maintenance"),
    },
    Sample {
        name: "Rounds",
        description: "Operators' rounds with the readings of the sensors; only the released ones",
        config: include_str!("rounds.yaml"),
        conditions: &[(
            "https://demo.example/vocabulary/status",
            "https://demo.example/vocabulary/Released",
        )],
        shapes: &[READINGS],
        approvers: None,
        bucket: Some("operations"),
    },
    Sample {
        name: "Machines",
        description: "The plants' machines once more, as a flat list: another view of the same data",
        config: include_str!("machines.yaml"),
        conditions: &[],
        shapes: &[],
        approvers: None,
        bucket: None,
    },
];

/// The tour through a running gateway.
pub(super) struct Tour<'a, W> {
    pub(super) client: Client,
    pub(super) gateway: &'a Gateway,
    /// The file that holds the client's key.
    pub(super) key_file: PathBuf,
    pub(super) out: W,
    pub(super) step: u32,
}

impl<W: Write> Tour<'_, W> {
    /// Runs every step, and returns the base of identifiers on this gateway.
    pub(super) async fn run_all_steps(&mut self) -> Result<String, DemoError> {
        writeln!(self.out, "Penstock demo: the main job, end to end, on sample plant data.")?;
        let dir = self.gateway.settings.data_dir.display();
        let step = format!(
            "The gateway listens on http://{} and keeps its data in {dir}. Seconds after each change, its continuous \
             backup in {dir}/buckets/backup has it.",
            self.client.address
        );
        self.begin_step(&step)?;
        let file = self.key_file.display().to_string();
        self.begin_step(&format!(
            "Every request needs credentials. The demo created an API key with the role Admin. It sends \
             the key with every request (Authorization: Bearer ...) and keeps it in {file}."
        ))?;
        let base = self.define_business_objects().await?;
        self.ingest_plants(&base).await?;
        self.ingest_rounds(&base).await?;
        self.ingest_without_uri(&base).await?;
        self.show_refusal(&base).await?;
        self.read_back(&base).await?;
        for sample in &SAMPLES {
            if let Some(bucket) = sample.bucket {
                self.push_and_verify(sample.name, bucket).await?;
            }
        }
        self.review_change(&base).await?;
        Ok(base)
    }

    /// Defines the Business Objects, and returns the base of identifiers on this gateway.
    async fn define_business_objects(&mut self) -> Result<String, DemoError> {
        let (status, known) =
            self.client.send_request(Method::GET, "/api/v1/namespaces/Rounds", Body::Empty).await?;
        let known = match status {
            StatusCode::NOT_FOUND => {
                let url = self.gateway.settings.base_url.clone();
                let url = url.unwrap_or_else(|| format!("http://{}", self.client.address));
                let namespace = json!({
                    "name": "Rounds",
                    "uriBase": format!("{url}/id/Rounds/"),
                    "generator": "counter",
                });
                let body = Body::Json(namespace.to_string());
                self.client.send_for_text(Method::PUT, "/api/v1/namespaces/Rounds", body).await?
            }
            _ => known,
        };
        let known: Value = serde_json::from_str(&known)?;
        let base =
            value_at(&known, "/uriBase").as_str().and_then(|base| base.strip_suffix("Rounds/"));
        let base = base
            .ok_or(
                "the namespace Rounds was not created by the demo; use another --service.data-dir",
            )?
            .to_owned();

        let path = format!("/api/v1/shapes/{READINGS}");
        let shapes = Body::Turtle(READINGS_TTL.to_owned());
        self.client.send_for_text(Method::PUT, &path, shapes).await?;

        self.begin_step("Three Business Objects were defined (PUT /api/v1/business-objects):")?;
        for sample in &SAMPLES {
            let conditions: Vec<Value> = sample
                .conditions
                .iter()
                .map(|(predicate, value)| json!({ "predicate": predicate, "value": value }))
                .collect();
            let targets: Vec<Value> =
                sample.bucket.iter().map(|bucket| json!({ "bucketName": bucket })).collect();
            let mode = if sample.shapes.is_empty() { "off" } else { "reject" };
            let mut definition = json!({
                "name": sample.name,
                "description": sample.description,
                "enabled": true,
                "config": sample.config,
                "conditions": conditions,
                "validation": { "shapes": sample.shapes, "mode": mode },
                "pushTargets": targets,
            });
            if let (Some(group), Some(members)) = (sample.approvers, definition.as_object_mut()) {
                members.insert("review".to_owned(), json!("optional"));
                members.insert("approvers".to_owned(), json!([format!("group:{group}")]));
            }
            let body = Body::Json(definition.to_string());
            let defined =
                self.client.send_for_json(Method::PUT, "/api/v1/business-objects", body).await?;
            writeln!(
                self.out,
                "     {:<9} {} (version {})",
                sample.name,
                sample.description,
                value_at(&defined, "/version")
            )?;
        }
        Ok(base)
    }

    async fn ingest_plants(&mut self, base: &str) -> Result<(), DemoError> {
        let plants = PLANTS_JSON.replace(SAMPLE_BASE, base);
        let path = "/api/v1/business-objects/Plants?mode=REPLACE";
        let answer =
            self.client.send_for_json(Method::POST, path, Body::Json(plants.clone())).await?;
        let objects = value_at(&answer, "/objects").as_array().map_or(&[][..], Vec::as_slice);
        let nested: usize =
            objects.iter().filter_map(|o| value_at(o, "/nested").as_array()).map(Vec::len).sum();
        self.begin_step(&format!(
            "Plant data was ingested as JSON (POST {path}): {} plants with {nested} objects nested \
             in them. The first one begins:",
            objects.len(),
        ))?;
        let plants: Value = serde_json::from_str(&plants)?;
        self.show_json(value_at(&plants, "/data/0"), 18)?;

        let uri = format!("{base}{FIRST_PLANT}");
        let gateway = self.gateway.clone();
        let subject = NamedNode::new(&uri)?.into();
        let quads = spawn_blocking(move || gateway.store.read().quads_about(&subject)).await??;
        writeln!(
            self.out,
            "   The store has it as RDF quads; the {} about this plant:",
            quads.len()
        )?;
        for quad in quads {
            writeln!(self.out, "     {quad} .")?;
        }
        Ok(())
    }

    async fn ingest_rounds(&mut self, base: &str) -> Result<(), DemoError> {
        let rounds = ROUNDS_NDJSON.replace(SAMPLE_BASE, base);
        let path = "/api/v1/business-objects/Rounds?mode=REPLACE";
        let answer = self.client.send_for_text(Method::POST, path, Body::Lines(rounds)).await?;
        let chunks: Vec<Value> =
            answer.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        if let Some(error) = chunks.iter().find(|chunk| chunk.get("ingestionId").is_none()) {
            return Err(format!("a chunk of the rounds was refused: {error}").into());
        }
        let count = |member: &str| -> u64 {
            chunks.iter().filter_map(|chunk| chunk.get(member)?.as_u64()).sum()
        };
        // A warning about one object: it would not be exported. (Other warnings are about a whole chunk.)
        let drafts = chunks
            .iter()
            .filter_map(|chunk| value_at(chunk, "/warnings").as_array())
            .flatten()
            .filter(|warning| value_at(warning, "/pointer").as_str().is_some_and(|p| p != "/data"))
            .count();
        self.begin_step(&format!(
            "{} rounds were ingested as NDJSON, one object on a line (POST {path}): {} created, {} \
             updated, {} unchanged. {drafts} are drafts: they are stored, but the condition excludes \
             them from exports.",
            ROUNDS_NDJSON.lines().count(),
            count("created"),
            count("updated"),
            count("unchanged"),
        ))
    }

    /// Shows how an object that violates a shape is refused.
    async fn show_refusal(&mut self, base: &str) -> Result<(), DemoError> {
        let round = round_of_demo(base, 4_125_000);
        let path = "/api/v1/business-objects/Rounds?mode=ADD";
        let (status, problem) = self.client.send_request(Method::POST, path, round).await?;
        if status != StatusCode::UNPROCESSABLE_ENTITY {
            return Err(format!("a reading that violates its shape got {status}: {problem}").into());
        }
        let problem: Value = serde_json::from_str(&problem)?;
        self.begin_step(&format!(
            "A round with a reading of 4125000 was refused with {status}, and nothing of it is stored: the shapes \
             graph {READINGS:?} (SHACL, PUT /api/v1/shapes/{READINGS}) limits what a sensor can measure (POST {path}):"
        ))?;
        self.show_json(value_at(&problem, "/errors/0"), 12)
    }

    /// Ingests a round without a URI, so that the gateway mints one.
    async fn ingest_without_uri(&mut self, base: &str) -> Result<(), DemoError> {
        let path = "/api/v1/business-objects/Rounds?mode=ADD";
        let round = round_of_demo(base, 4.125);
        let answer = self.client.send_for_json(Method::POST, path, round).await?;
        let made = value_at(&answer, "/objects/0");
        self.begin_step(&format!(
            "A round was ingested without a URI. The gateway minted one for it, and one for the reading \
             nested in it (POST {path}):"
        ))?;
        writeln!(self.out, "     {}", text_of(value_at(made, "/uri")))?;
        for nested in value_at(made, "/nested").as_array().into_iter().flatten() {
            writeln!(
                self.out,
                "     {}  (at {})",
                text_of(value_at(nested, "/uri")),
                text_of(value_at(nested, "/pointer"))
            )?;
        }
        Ok(())
    }

    async fn read_back(&mut self, base: &str) -> Result<(), DemoError> {
        let plants = "/api/v1/business-objects/Plants/objects";
        let path = format!("{plants}?uri={}", encode_uri(&format!("{base}{FIRST_PLANT}")));
        let plant = self.client.get_json(&path).await?;
        self.begin_step(&format!(
            "Read back through the view, the plant is nested as it was ingested (GET {path}):"
        ))?;
        self.show_json(&plant, 6)?;
        let path = "/api/v1/business-objects/Machines/objects?limit=1";
        let machines = self.client.get_json(path).await?;
        writeln!(self.out, "   Through another view its machines are a flat list (GET {path}):")?;
        self.show_json(value_at(&machines, "/items/0"), 12)
    }

    /// Pushes a Business Object, waits for the delivery, and verifies the file.
    pub(super) async fn push_and_verify(
        &mut self,
        name: &str,
        bucket: &str,
    ) -> Result<(), DemoError> {
        let path = format!("/api/v1/business-objects/{name}/push");
        let push = self.client.send_for_json(Method::POST, &path, Body::Empty).await?;
        let mut entry = value_at(&push, "/exports/0").clone();
        let id = value_at(&entry, "/id")
            .as_str()
            .ok_or_else(|| format!("nothing was queued: {push}"))?;
        let path_of_entry = format!("/api/v1/exports/{id}");
        self.begin_step(&format!(
            "{name} was pushed (POST {path}): {} objects, queued as number {} for the bucket {bucket}.",
            value_at(&entry, "/objectCount"), value_at(&entry, "/sequence"),
        ))?;
        loop {
            entry = self.client.get_json(&path_of_entry).await?;
            match value_at(&entry, "/status").as_str() {
                Some("delivered") => break,
                Some("blocked" | "parked") => {
                    return Err(format!("the export was not delivered: {entry}").into());
                }
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        let mut file: PathBuf = self.gateway.settings.data_dir.join("buckets").join(bucket);
        file.push(text_of(value_at(&entry, "/key")));
        let shown = file.display().to_string();
        let verified = spawn_blocking(move || verify::verify_file(&file)).await??;
        writeln!(self.out, "   It was delivered, {} bytes:", value_at(&entry, "/bytes"))?;
        writeln!(self.out, "     {shown}")?;
        writeln!(
            self.out,
            "   and verified: {} objects of {}, exported {}, data_checksum (SHA-256)\n     {}",
            verified.object_count,
            verified.object_type,
            verified.export_date,
            verified.data_checksum
        )?;
        Ok(())
    }

    /// Prints what to try next while the gateway is running.
    pub(super) fn print_next_steps(&mut self, base: &str) -> Result<(), DemoError> {
        let url = format!("http://{}", self.client.address);
        let key = quote_for_shell(&self.key_file.display().to_string());
        let password = self.gateway.settings.data_dir.join("initial-admin-password");
        let plant = format!("{base}{FIRST_PLANT}");
        let encoded = encode_uri(&plant);
        writeln!(
            self.out,
            "
Look around:
     Swagger UI    {url}/swagger-ui
     changes       {url}/admin/changes
     backup        {url}/admin/backup
     health        {url}/health/ready
     metrics       {url}/metrics"
        )?;
        if password.exists() {
            writeln!(
                self.out,
                "     sign in       {url}/login as admin; the password is in {}",
                password.display()
            )?;
        }
        writeln!(
            self.out,
            "
Try, in another terminal in this folder:
     call() {{ curl -H \"Authorization: Bearer $(cat {key})\" \"$@\"; }}
     call {url}/api/v1/business-objects
     call {url}/api/v1/business-objects/Plants/schema
     call '{url}/api/v1/business-objects/Rounds/objects?limit=2'
     call '{url}/api/v1/business-objects/Plants/objects?uri={encoded}'"
        )?;
        if plant.starts_with(&url) {
            writeln!(self.out, "     call -H 'Accept: text/turtle' {plant}")?;
        }
        writeln!(
            self.out,
            "     call -X POST '{url}/api/v1/business-objects/Machines?mode=ADD' \\
          -H 'Content-Type: application/json' -d '{{\"data\":[{{\"name\":\"Spare pump\",\"serialNumber\":\"SP-1\"}}]}}'
     call -X POST {url}/api/v1/business-objects/Plants/push
     call {url}/api/v1/exports"
        )?;
        Ok(())
    }

    /// Prints the number and the first sentence of the next step.
    pub(super) fn begin_step(&mut self, sentence: &str) -> Result<(), DemoError> {
        self.step += 1;
        writeln!(self.out, "\n{}. {sentence}", self.step)?;
        Ok(())
    }

    /// Prints the first lines of a value.
    fn show_json(&mut self, value: &Value, lines: usize) -> Result<(), DemoError> {
        let pretty = serde_json::to_string_pretty(value)?;
        for line in pretty.lines().take(lines) {
            writeln!(self.out, "     {line}")?;
        }
        let rest = pretty.lines().count().saturating_sub(lines);
        if rest > 0 {
            writeln!(self.out, "     ... {rest} more lines")?;
        }
        Ok(())
    }
}

/// Returns a round without a URI, with one reading.
fn round_of_demo(base: &str, value: impl Into<Value>) -> Body {
    let now = penstock_base::time::now_rfc3339();
    let round = json!({
        "plant": format!("{base}{FIRST_PLANT}"),
        "status": "https://demo.example/vocabulary/Released",
        "operator": "Demo",
        "startedAt": now,
        "readings": [{
            "sensor": format!("{base}Sensors/altusried-gate1-lvl"),
            "at": now,
            "value": value.into(),
            "samples": [4.12, 4.13],
        }],
    });
    Body::Json(json!({ "data": [round] }).to_string())
}

/// Returns the value at a JSON Pointer, or null.
pub(super) fn value_at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Quotes a word for a shell.
fn quote_for_shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

pub(super) fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Percent-encodes a URI as the value of a query parameter (RFC 3986, section 3.4).
pub(super) fn encode_uri(uri: &str) -> String {
    const RESERVED: &AsciiSet =
        &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+');
    utf8_percent_encode(uri, RESERVED).to_string()
}
