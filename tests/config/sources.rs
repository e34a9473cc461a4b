//! The sources of settings, the spellings of names there, and their precedence.
use crate::loaded;
use penstock_config::{
    Compression, ExportFormat, KeyTemplate, Loaded, Sources, SparqlLogin, SparqlProtocol, Target,
    TargetKind,
};
use std::fs::set_permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Machine {
    _root: TempDir,
    sources: Sources,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        for dir in ["work", "etc", "credentials"] {
            std::fs::create_dir(root.path().join(dir)).expect("a directory");
        }
        let sources = Sources {
            working_dir: root.path().join("work"),
            system_dir: root.path().join("etc"),
            credentials_dir: Some(root.path().join("credentials")),
            ..Sources::default()
        };
        Self { _root: root, sources }
    }

    fn work(self, file: &str, text: &str) -> Self {
        std::fs::write(self.sources.working_dir.join(file), text).expect("a file");
        self
    }

    fn etc(self, file: &str, text: &str) -> Self {
        std::fs::write(self.sources.system_dir.join(file), text).expect("a file");
        self
    }

    fn credential(self, file: &str, text: &str) -> Self {
        std::fs::write(self.sources.credentials_dir.as_ref().expect("it is set").join(file), text)
            .expect("a file");
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    fn argument(mut self, argument: &str) -> Self {
        self.sources.arguments.push(argument.to_owned());
        self
    }

    fn load(&self) -> Loaded {
        loaded(&self.sources)
    }

    /// Returns the effective value and its origin.
    fn effective(&self, name: &str) -> (String, String) {
        let found = self
            .load()
            .settings
            .effective_values
            .into_iter()
            .find(|e| e.name == name)
            .expect("a value in force");
        (found.value, found.origin)
    }
}

#[test]
fn defaults_apply_when_no_setting_is_given() {
    let settings = Machine::new().load().settings;
    assert_eq!(settings.server.address.to_string(), "127.0.0.1");
    assert_eq!(settings.server.port, 8080);
    assert_eq!(settings.data_dir, PathBuf::from("/var/lib/penstock"));
    assert_eq!(settings.limits.body_bytes, 16 << 20);
    assert_eq!(settings.limits.nesting, 128);
    assert_eq!(settings.limits.objects, 10_000);
    assert_eq!(settings.limits.in_flight_bytes, 64 << 20);
    assert_eq!(settings.limits.idempotency_keys, 1000);
    assert_eq!(settings.limits.history, 10_000);
    assert_eq!(settings.targets.history_bytes, 64 << 20);
    assert!(settings.targets.named.is_empty() && settings.targets.default.is_none());
    assert!(settings.auto_create_namespaces && !settings.server.insecure_http);
    assert_eq!(settings.log_level, "info");
}

#[test]
fn systemd_gives_the_data_directory_unless_another_is_set() {
    let machine = Machine::new().variable("STATE_DIRECTORY", "/var/lib/private/penstock:/other");
    assert_eq!(machine.load().settings.data_dir, PathBuf::from("/var/lib/private/penstock"));
    let machine = machine.argument("--service.data-dir=here");
    assert_eq!(machine.load().settings.data_dir, PathBuf::from("here"));
}

#[test]
fn later_sources_win() {
    let name = "service.gateway-id";
    let mut machine = Machine::new().work("application.yaml", "service.gateway-id: a");
    let mut expect = |grow: fn(Machine) -> Machine, value: &str, origin: &str| {
        machine = grow(std::mem::replace(&mut machine, Machine::new()));
        let (found, from) = machine.effective(name);
        assert_eq!(found, format!("{value:?}"));
        assert!(from.contains(origin), "{from}");
    };
    expect(|m| m, "a", "work/application.yaml");
    expect(
        |m| m.work("application.yml", "service: {gateway-id: b}"),
        "b",
        "work/application.yml, line 1",
    );
    expect(
        |m| m.work("application.properties", "# c\nservice.gateway-id=c"),
        "c",
        "work/application.properties, line 2",
    );
    expect(|m| m.etc("application.yaml", "service.gatewayId: d"), "d", "etc/application.yaml");
    expect(
        |m| {
            m.work("application-plant.yaml", "service.gateway-id: e")
                .etc("application.properties", "profiles.active plant, line")
        },
        "e",
        "work/application-plant.yaml",
    );
    expect(
        |m| m.work("application-line.properties", "service.gateway-id: f"),
        "f",
        "work/application-line.properties",
    );
    expect(|m| m.variable("SERVICE_GATEWAYID", "g"), "g", "environment variable SERVICE_GATEWAYID");
    expect(|m| m.credential("service.gateway-id", "h\n"), "h", "credentials/service.gateway-id");
    // An editor on Windows can write it so.
    let windows = |m: Machine| m.credential("service.gateway-id", "\u{feff}w\r\n");
    expect(windows, "w", "credentials/service.gateway-id");
    expect(|m| m.argument("--service.gateway-id=i"), "i", "--service.gateway-id");
}

#[test]
fn an_empty_value_restores_the_default() {
    let machine = Machine::new()
        .work("application.yaml", "service:\n  gateway-id: a\n  limits.body: 1MiB")
        .argument("--service.gateway-id=")
        .variable("SERVICE_LIMITS_BODY", "");
    let settings = machine.load().settings;
    assert_eq!(settings.gateway_id, None);
    assert_eq!(settings.limits.body_bytes, 16 << 20);
}

#[test]
fn profiles_may_come_from_any_source() {
    let file = |machine: Machine| machine.etc("application-b.yaml", "server.port: 9000");
    for machine in [
        Machine::new().work("application.yaml", "spring:\n  profiles:\n    active: [a, b]"),
        Machine::new().variable("SPRING_PROFILES_ACTIVE", "a,b"),
        Machine::new().credential("profiles.active", "b"),
        Machine::new().variable("PROFILES_ACTIVE", "a").argument("--profiles.active=b"),
    ] {
        assert_eq!(file(machine).load().settings.server.port, 9000);
    }
    let warnings = Machine::new().argument("--profiles.active=nowhere").load().warnings;
    assert!(warnings.iter().any(|w| w.contains("nowhere")), "{warnings:?}");
}

#[test]
fn targets_are_merged_from_several_sources() {
    let machine = Machine::new()
        .etc(
            "application.yaml",
            "service:\n  export:\n    targets:\n      plant.exports:\n        type: s3\n        endpoint: https://s3.example:9000/\n        accessKeyId: 0012e5\n      '[dir.one]': {type: directory, path: /mnt/out}\n    default:\n      type: directory\n",
        )
        .work("application.properties", "service.export.targets[plant.exports].path-style=false")
        .variable("SERVICE_EXPORT_TARGETS_PLANT_EXPORTS_PREFIX", "gw1/")
        .variable("SERVICE_EXPORT_TARGETS_OTHER_BUCKET_TYPE", "directory")
        .credential("service.export.targets.plant.exports.secret-access-key", "very secret\n");
    let loaded = machine.load();
    let targets = &loaded.settings.targets;
    assert_eq!(
        targets.named.keys().collect::<Vec<_>>(),
        ["dir.one", "other-bucket", "plant.exports"]
    );
    let expected = Target {
        kind: TargetKind::S3 {
            endpoint: "https://s3.example:9000".into(),
            region: "us-east-1".into(),
            bucket: None,
            access_key_id: "0012e5".into(),
            secret_access_key: "very secret".into(),
            path_style: false,
            ca_file: None,
            compression: Compression::None,
        },
        prefix: "gw1/".into(),
        key: KeyTemplate::default(),
        format: ExportFormat::Json,
    };
    assert_eq!(targets.named["plant.exports"], expected);
    let directory = TargetKind::Directory { path: Some("/mnt/out".into()) };
    assert!(targets.named["dir.one"].kind == directory);
    assert!(targets.default.as_ref().unwrap().kind == TargetKind::Directory { path: None });
    assert!(!format!("{loaded:?}{:?}", machine.sources).contains("very secret"));
}

#[test]
fn sparql_targets_have_credentials_and_a_graph_for_each_business_object() {
    let machine = Machine::new()
        .etc(
            "application.yaml",
            "service.export:\n  targets:\n    central: {type: sparql, endpoint: 'http://store.example/update', \
             username: edge, key: '{prefix}{name}/{sequence}{suffix}.json'}\n    graphs: {type: sparql, endpoint: 'https://store.example/store', \
             protocol: graph-store, graph: 'https://c.example/{name}'}\n",
        )
        .credential("service.export.targets.central.password", "very secret\n")
        .credential("service.export.targets.graphs.bearer-token", "very secret\n");
    let loaded = machine.load();
    let store = |name: &str| match &loaded.settings.targets.named[name].kind {
        TargetKind::Sparql(store) => store.clone(),
        _ => panic!("{name} is not a SPARQL store"),
    };
    let (central, graphs) = (store("central"), store("graphs"));
    assert_eq!(central.protocol, SparqlProtocol::Update);
    let (username, password) = ("edge".into(), "very secret".into());
    assert!(central.login == SparqlLogin::Basic { username, password });
    assert_eq!(central.graph.build_graph("gw-1", "Pumps"), "urn:penstock:gw-1:export:Pumps");
    assert_eq!(graphs.protocol, SparqlProtocol::GraphStore);
    assert!(graphs.login == SparqlLogin::Bearer("very secret".into()));
    assert_eq!(graphs.graph.build_graph("gw-1", "Pumps"), "https://c.example/Pumps:gw-1");
    for (setting, words) in [("central.key", "does nothing"), ("central.endpoint", "in the clear")]
    {
        let warned = |warning: &String| warning.contains(setting) && warning.contains(words);
        assert!(loaded.settings.warnings.iter().any(warned), "{:?}", loaded.settings.warnings);
    }
    assert!(!format!("{loaded:?}{:?}", machine.sources).contains("very secret"));
}

#[test]
fn sparql_targets_with_the_same_graphs_cause_a_warning() {
    let machine = Machine::new().etc(
        "application.yaml",
        "service.export:\n  targets:\n    site-a: {type: sparql, endpoint: 'https://s.example/update'}\n    \
         site-b: {type: sparql, endpoint: 'https://s.example/update', graph: 'urn:b:{gateway}:{name}'}\n    \
         site-c: {type: sparql, endpoint: 'https://s.example/update'}\n  \
         default: {type: sparql, endpoint: 'https://t.example/update'}\n",
    );
    let warnings = machine.load().settings.warnings;
    for (words, is_expected) in [
        ("`site-a` and `site-c`", true),
        ("`site-a` and `site-b`", false),
        ("service.export.default is a", true),
    ] {
        let has = warnings.iter().any(|warning| warning.contains(words));
        assert_eq!(has, is_expected, "{words}: {warnings:?}");
    }
}

#[test]
fn targets_have_templates_of_keys_and_formats() {
    let machine = Machine::new().etc(
        "application.yaml",
        "service.export:\n  metadata: extended\n  targets:\n    plant: {type: directory, key: '{prefix}{name}/{sequence}-{kind}.json', format: jsonl}\n    site: {type: directory}\n  default: {type: directory, key: '{prefix}{name}/{name}-{date}-{sequence}.json'}\n",
    );
    let loaded = machine.load();
    let targets = &loaded.settings.targets;
    let plant = &targets.named["plant"];
    assert_eq!(plant.key.as_str(), "{prefix}{name}/{sequence}-{kind}.json");
    assert_eq!(plant.format, ExportFormat::JsonLines);
    let site = &targets.named["site"];
    assert_eq!(site.key.as_str(), "{prefix}{name}/{name}-{date}-{sequence}{suffix}.json");
    assert_eq!(site.format, ExportFormat::Json);
    assert!(targets.has_extended_metadata);
    assert!(!Machine::new().load().settings.targets.has_extended_metadata);
    let warnings: Vec<_> =
        loaded.warnings.iter().filter(|warning| warning.contains("{suffix}")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("service.export.default.key has neither {kind} nor {suffix}"));
}

#[test]
fn lists_have_three_forms() {
    let origins = ["https://a.example", "https://b.example"];
    for machine in [
        Machine::new().work("application.yaml", "server.cors.allowed-origins:\n- https://a.example\n- https://b.example"),
        Machine::new().variable("SERVER_CORS_ALLOWED_ORIGINS", "https://a.example, https://b.example"),
        Machine::new()
            .work("application.yaml", "server.cors.allowed-origins: [https://weaker.example]")
            .etc("application.properties", "server.cors.allowed-origins[0]=https://a.example\nserver.cors.allowed-origins[1]=https://b.example"),
    ] {
        assert_eq!(machine.load().settings.server.cors_allowed_origins, origins);
    }
}

#[test]
fn unknown_names_cause_warnings_with_the_nearest_known_name() {
    let machine = Machine::new()
        .work(
            "application.yaml",
            "service.data-dri: /x\nframework.securty: y\nlogging.level: debug",
        )
        .variable("SERVICE_LIMITS_BODDY", "1")
        .variable("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        .variable("SERVICE_RESULT", "success")
        .credential("other-program.key", "\u{0}")
        .argument("--service.limits.bdy=1");
    let warnings = machine.load().warnings;
    let warned = |parts: [&str; 2]| warnings.iter().any(|w| parts.iter().all(|p| w.contains(p)));
    assert!(warned(["service.data-dri", "the nearest is service.data-dir"]), "{warnings:#?}");
    assert!(warned(["SERVICE_LIMITS_BODDY", "SERVICE_LIMITS_BODY"]), "{warnings:#?}");
    assert!(warned(["service.limits.bdy", "--service.limits.bdy"]), "{warnings:#?}");
    assert!(warned(["framework.securty", "application.yaml"]), "{warnings:#?}");
    assert!(!warned(["KUBERNETES", ""]) && !warned(["SERVICE_RESULT", ""]), "{warnings:#?}");
    assert!(!warned(["other-program", ""]), "{warnings:#?}");
}

type Change = fn(&Sources);

#[test]
fn root_reads_the_working_directory_only_if_no_other_user_can_change_it() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give a file to somebody else");
        return;
    }
    let cases: [(Change, Option<&str>); 7] = [
        (|_| {}, None),
        (|s| chown(file(s), Some(1234), None).unwrap(), Some("it belongs to user 1234")),
        (
            |s| chown(&s.working_dir, Some(1234), None).unwrap(),
            Some("its folder belongs to user 1234"),
        ),
        (|s| set_mode(&file(s), 0o664), Some("others can write it (mode 664)")),
        (|s| set_mode(&file(s), 0o646), Some("others can write it (mode 646)")),
        (|s| set_mode(&s.working_dir, 0o1777), Some("others can write its folder (mode 1777)")),
        (
            |s| {
                let elsewhere = s.system_dir.join("elsewhere");
                std::fs::copy(file(s), &elsewhere).unwrap();
                std::fs::remove_file(file(s)).unwrap();
                chown(&elsewhere, Some(1234), None).unwrap();
                symlink(elsewhere, file(s)).unwrap();
            },
            Some("it belongs to user 1234"),
        ),
    ];
    for (change, why) in cases {
        let mut machine = Machine::new()
            .work("application.yaml", "service.gateway-id: of-the-folder\nprofiles.active: plant")
            .work("application-plant.properties", "service.limits.body=1MiB");
        set_mode(&machine.sources.working_dir, 0o755);
        change(&machine.sources);
        // Other users than root trust the files of their working directory.
        assert!(machine.load().settings.gateway_id.is_some());
        machine.sources.is_root = true;
        let Loaded { settings, warnings } = machine.load();
        let Some(why) = why else {
            assert_eq!(settings.gateway_id.as_deref(), Some("of-the-folder"));
            assert_eq!(settings.limits.body_bytes, 1 << 20);
            assert!(warnings.is_empty(), "{warnings:?}");
            continue;
        };
        assert_eq!(settings.gateway_id, None, "{why}");
        let path = file(&machine.sources).display().to_string();
        assert!(
            warnings.len() == 1 && warnings[0].starts_with(&path) && warnings[0].contains(why),
            "{why}: {warnings:?}"
        );
    }
}

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
}

fn file(sources: &Sources) -> PathBuf {
    sources.working_dir.join("application.yaml")
}

#[test]
fn a_secret_on_the_command_line_causes_a_warning() {
    let secret = "service.export.default.secret-access-key";
    let target = |machine: Machine| {
        machine
            .argument("--service.export.default.type=s3")
            .argument("--service.export.default.endpoint=https://s3.example")
            .argument("--service.export.default.access-key-id=plant")
    };
    let argument = format!("--{secret}=planted");
    let warnings = target(Machine::new()).argument(&argument).load().warnings;
    assert!(
        warnings.len() == 1
            && warnings[0].starts_with(&format!("{secret} is a secret on the command line"))
            && ["environment variable", "$CREDENTIALS_DIRECTORY", "application.yaml"]
                .iter()
                .all(|better| warnings[0].contains(better))
            && !warnings[0].contains("planted"),
        "{warnings:?}"
    );
    for machine in [
        Machine::new().variable("SERVICE_EXPORT_DEFAULT_SECRETACCESSKEY", "planted"),
        Machine::new().credential(secret, "planted"),
        Machine::new().etc("application.yaml", &format!("{secret}: planted")),
    ] {
        let warnings = target(machine).load().warnings;
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    // The path of a file is not secret, but its text is.
    let certificate = "--server.ssl.certificate=/etc/ssl/gw.pem";
    let of_key = |key: &str| {
        let key = format!("--server.ssl.certificate-private-key={key}");
        Machine::new().argument(certificate).argument(&key).load().warnings.len()
    };
    assert_eq!(of_key("/etc/ssl/gw.key"), 0);
    assert_eq!(of_key("-----BEGIN PRIVATE KEY-----"), 1);
}
