//! The continuous backup in the configuration: what it needs, and where it may go.
use crate::{load_errors, loaded, with_arguments};
use std::time::Duration;

const IDENTITY: &str = "--service.backup.key=AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
const RECIPIENT: &str =
    "--service.backup.key=age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
const TARGET: &str = "--service.backup.target=vault";
const VAULT: [&str; 2] = [
    "--service.export.targets.vault.type=directory",
    "--service.export.targets.vault.path=/mnt/vault",
];

fn errors_of(settings: &[&str]) -> Vec<String> {
    load_errors(&with_arguments(&[&VAULT[..], settings].concat()))
}

#[test]
fn a_backup_has_a_target_a_key_and_defaults() {
    let loaded = loaded(&with_arguments(&[&VAULT[..], &[TARGET, RECIPIENT]].concat()));
    let backup = loaded.settings.backup.as_ref().unwrap();
    assert_eq!(backup.target, "vault");
    assert_eq!(backup.interval, Duration::from_secs(10));
    assert_eq!(backup.base, Duration::from_hours(7 * 24));
    assert_eq!(backup.keep, Duration::from_hours(30 * 24));
    assert!(backup.key.as_ref().unwrap().starts_with("age1"));
    assert!(!backup.insecure && !backup.new_era);
    assert!(!format!("{loaded:?}").contains("age1zvkyg2"));
    // The key is a secret, which the command line shows to everyone.
    assert!(
        loaded.warnings.iter().any(|warning| warning.contains("service.backup.key is a secret"))
    );
}

#[test]
fn without_a_target_there_is_none() {
    let loaded = loaded(&with_arguments(&["--service.backup.interval=1m"]));
    assert_eq!((loaded.settings.backup, loaded.warnings), (None, Vec::new()));
    let found = crate::loaded(&with_arguments(&[IDENTITY])).warnings;
    assert!(found.iter().any(|warning| warning.contains("target is not set")), "{found:#?}");
}

#[test]
fn each_mistake_in_a_backup_is_reported_once() {
    let store = [
        "--service.export.targets.graph.type=sparql",
        "--service.export.targets.graph.endpoint=https://store.example/update",
        "--service.backup.target=graph",
        IDENTITY,
    ];
    for (settings, expected) in [
        (&[TARGET][..], "service.backup.key: it is missing: a backup has all data"),
        (
            &["--service.backup.target=elsewhere", IDENTITY][..],
            "service.export.targets.elsewhere.type",
        ),
        (&store[..], "it is a SPARQL store"),
        (&["--service.backup.target=/mnt", IDENTITY][..], "an S3 bucket name"),
        (&[TARGET, "--service.backup.key=secret of mine"][..], "an age identity"),
        (&[TARGET, IDENTITY, "--service.backup.interval=0s"][..], "a time from 1s to 1h"),
        (&[TARGET, IDENTITY, "--service.backup.base=30m"][..], "a time from 1h to 365d"),
        (&[TARGET, IDENTITY, "--service.backup.keep=1h"][..], "a time from 1d to 3650d"),
    ] {
        let found = errors_of(settings);
        assert!(found.len() == 1 && found[0].contains(expected), "{settings:?}: {found:#?}");
        assert!(!found[0].contains("secret of mine"), "{found:#?}");
    }
    // Only the errors of the target itself are reported: one for each setting that it needs.
    let missing =
        ["--service.export.targets.away.type=s3", "--service.backup.target=away", IDENTITY];
    let found = errors_of(&missing);
    let of_target = found.iter().filter(|error| error.contains("it is missing: a target"));
    assert_eq!((found.len(), of_target.count()), (3, 3), "{found:#?}");
}

#[test]
fn a_backup_may_be_insecure_and_beside_its_data_with_a_warning() {
    let settings = [TARGET, "--service.backup.insecure=true"];
    let loaded = loaded(&with_arguments(&[&VAULT[..], &settings].concat()));
    assert_eq!((loaded.settings.backup.unwrap().key, loaded.warnings), (None, Vec::new()));
    let beside = [VAULT[0], TARGET, "--service.backup.insecure=true"];
    let found = crate::loaded(&with_arguments(&beside)).warnings;
    assert!(found.iter().any(|warning| warning.contains("lost together")), "{found:#?}");
    // The target of every bucketName without an entry is one too.
    let default = ["--service.export.default.type=directory", "--service.export.default.path=/mnt"];
    let settings = [&default[..], &settings].concat();
    assert!(crate::loaded(&with_arguments(&settings)).settings.backup.is_some());
}
