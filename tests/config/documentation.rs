//! The pages about sign-in agree with the settings.
use crate::azuread::azuread;
use crate::loaded;
use penstock_config as config;

#[test]
fn the_settings_in_the_documentation_are_known_and_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/sign-in");
    let mut blocks = 0;
    for page in std::fs::read_dir(folder).unwrap() {
        let page = page.unwrap().path();
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("\n```").skip(1).step_by(2) {
            let (language, block) = block.split_once('\n').unwrap();
            if !["yaml", "properties"].contains(&language) {
                continue;
            }
            let block = block.replace("<TENANT_ID>", "t-1").replace("<CLIENT_ID>", "c-1");
            let file = page.with_extension(language);
            let config::CheckedFile { errors, warnings, .. } = config::check_file(&file, &block);
            assert!(errors.is_empty() && warnings.is_empty(), "{errors:#?} {warnings:#?}\n{block}");
            blocks += 1;
        }
    }
    assert!(blocks >= 7, "{blocks}");
}

#[test]
fn the_page_of_entra_id_has_every_value_that_the_profile_presets() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/sign-in/entra-id.md");
    let page = std::fs::read_to_string(path).unwrap();
    let effective = loaded(&azuread(&[])).settings.effective_values;
    let presets = effective.into_iter().filter(|e| e.origin == "profile azuread");
    let mut count = 0;
    for preset in presets.filter(|preset| preset.name != "security") {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", preset.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not in the page", preset.name));
        for value in preset.value.trim_matches('"').split(',') {
            let value = value.replace("t-1", "<tenant>").replace("c-1", "<client-id>");
            assert!(row.contains(&format!("`{value}`")), "{value} is not in {row}");
        }
        count += 1;
    }
    assert_eq!(count, 10);
}
