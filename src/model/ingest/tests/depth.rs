use super::*;

/// Ingests into the deepest mapping that compiles, on a stack as small as that of the threads that serve requests.
#[test]
fn the_deepest_mapping_fits_the_stack() {
    let work = || {
        let mut deepest = shape("Level", vec![string("name")]);
        let mut data = r#"{"name": "x"}"#.to_owned();
        for _ in 1..256 {
            deepest = shape("Level", vec![string("name"), field("next", Value::Object(deepest))]);
            data = format!(r#"{{"name": "x", "next": {data}}}"#);
        }
        let mut fixture = Fixture::new(deepest);
        fixture.limits.nesting = 1000;
        let answer = fixture.add(&data);
        assert_eq!(answer.objects[0].nested.len(), 255);
        assert_eq!(fixture.view(&answer.objects[0].uri).matches("\"name\"").count(), 256);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}
