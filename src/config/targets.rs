//! Builds the targets of exports from their settings.
use super::section::{Build, Part, Scope, Section};
use super::setting::Setting;
use super::table::{DefaultTarget, SETTINGS, TargetSettings, Targets, WindowSettings};
use super::types::{DeliveryWindow, SparqlLogin, SparqlStore, Target, TargetKind};
use super::valid::{is_on_loopback, is_plain_http};

/// What the names of the settings of a target begin with.
pub(super) const TARGET_PREFIX: &str = "service.export.targets.<bucketName>.";

impl Part<Option<Target>> for DefaultTarget {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        let mut settings = Vec::new();
        TargetSettings::list(name, &mut settings);
        for mut setting in settings {
            let key = setting.name.strip_prefix(name).unwrap_or_default();
            let meaning = match key {
                "type" => "The kind of target for every bucketName without an entry.".to_owned(),
                "bucket" => {
                    "`bucket` of every bucketName without an entry: one bucket for all of them."
                        .to_owned()
                }
                key => format!("`{key}` of every bucketName without an entry."),
            };
            (setting.kind.target_types, setting.meaning) = (&[], meaning.into());
            table.push(setting);
        }
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<Option<Target>> {
        let mut scope = scope.below(key);
        let prefix = scope.name("");
        let is_given = scope.values.keys().any(|name| name.starts_with(&prefix));
        let settings = TargetSettings::read(&mut scope).filter(|_| is_given);
        Some(settings.and_then(|settings| settings.build(&mut scope)))
    }
}

impl Build for TargetSettings {
    type Value = Option<Target>;

    /// Returns `None` if a setting is missing, which is reported.
    fn build(self, scope: &mut Scope<'_>) -> Option<Target> {
        let Some(kind) = self.kind else {
            scope.error("type", "it is missing: s3, directory or sparql");
            return None;
        };
        let required: &[&str] = match kind {
            "s3" => &["endpoint", "access-key-id", "secret-access-key"],
            "sparql" => &["endpoint"],
            _ => &[],
        };
        for key in required {
            if scope.find(key).is_none() {
                let all = required.join(", ");
                scope.error(key, format!("it is missing: a target of type {kind} needs {all}"));
            }
        }
        for setting in SETTINGS.iter().filter(|setting| !setting.applies_to(kind)) {
            if let Some(key) = setting.name.strip_prefix(TARGET_PREFIX)
                && scope.find(key).is_some()
            {
                let name = scope.name(key);
                let warning = format!("{name} does nothing: the target's type is {kind}");
                scope.report.warnings.push(warning);
            }
        }
        if kind != "directory" {
            scope.check_file("ca-file");
        }
        let kind = match kind {
            "s3" => TargetKind::S3 {
                endpoint: self.endpoint?,
                region: self.region,
                bucket: self.bucket,
                access_key_id: self.access_key_id?,
                secret_access_key: self.secret_access_key?,
                path_style: self.path_style,
                ca_file: self.ca_file,
                compression: self.compression,
            },
            "sparql" => TargetKind::Sparql(SparqlStore {
                login: build_login(&self, scope),
                endpoint: self.endpoint?,
                protocol: self.protocol,
                ca_file: self.ca_file,
                graph: self.graph,
            }),
            _ => TargetKind::Directory { path: self.path },
        };
        Some(Target { kind, prefix: self.prefix, key: self.key, format: self.format })
    }
}

/// Builds the credentials for a SPARQL store.
fn build_login(settings: &TargetSettings, scope: &mut Scope<'_>) -> SparqlLogin {
    let TargetSettings { username, password, bearer_token, endpoint, .. } = settings;
    let mut refuse = |key: &str, message: &str| {
        scope.error(key, message);
        SparqlLogin::Anonymous
    };
    let login = match (username.clone(), password.clone(), bearer_token.clone()) {
        (None, None, None) => return SparqlLogin::Anonymous,
        (None, None, Some(token)) => SparqlLogin::Bearer(token),
        (Some(username), Some(password), None) => SparqlLogin::Basic { username, password },
        (None, Some(_), _) => return refuse("username", "it is missing: `password` needs it"),
        (Some(_), None, _) => return refuse("password", "it is missing: `username` needs it"),
        (Some(_), Some(_), Some(_)) => {
            let message = "it cannot be combined with `username` and `password`";
            return refuse("bearer-token", message);
        }
    };
    if endpoint.as_ref().is_some_and(|url| is_plain_http(url) && !is_on_loopback(url)) {
        let name = scope.name("endpoint");
        scope.report.warnings.push(format!(
            "{name} is plain HTTP: the credentials and the data go over the network in the clear"
        ));
    }
    login
}

impl Build for WindowSettings {
    type Value = Option<DeliveryWindow>;

    fn build(self, _: &mut Scope<'_>) -> Option<DeliveryWindow> {
        let Self { window, zone } = self;
        window.map(|window| DeliveryWindow { window, zone })
    }
}

/// Warns about each pair of targets at one endpoint with the same template of graphs: a Business Object that names both
/// would give its graph two writers.
pub(super) fn warn_about_shared_graphs(targets: &Targets, warnings: &mut Vec<String>) {
    let stores: Vec<(&str, &SparqlStore)> = targets
        .named
        .iter()
        .filter_map(|(name, target)| match &target.kind {
            TargetKind::Sparql(store) => Some((name.as_str(), store)),
            TargetKind::Directory { .. } | TargetKind::S3 { .. } => None,
        })
        .collect();
    for (place, (name, store)) in stores.iter().enumerate() {
        let same = stores
            .iter()
            .skip(place + 1)
            .find(|(_, other)| (&other.endpoint, &other.graph) == (&store.endpoint, &store.graph));
        if let Some((other, _)) = same {
            warnings.push(format!(
                "the targets `{name}` and `{other}` write the same graphs at {}: a Business Object that names both is \
                 exported to one of them only; set another `service.export.targets.{other}.graph`",
                store.endpoint
            ));
        }
    }
    if let Some(TargetKind::Sparql(store)) = targets.default.as_ref().map(|target| &target.kind) {
        warnings.push(format!(
            "service.export.default is a SPARQL store ({}), so every bucketName without an entry of its own has the same \
             graphs there: let each Business Object name only one of them",
            store.endpoint
        ));
    }
}
