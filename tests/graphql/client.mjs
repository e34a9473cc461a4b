// Tests a gateway with an independent GraphQL client: `node client.mjs URL KEY`. Standard input has a JSON array of
// documents, each as `{"document", "valid"}`.
// The client must build the same schema from introspection as from the SDL, find the schema valid, and accept the
// same documents as the gateway.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
    buildClientSchema, buildSchema, getIntrospectionQuery, lexicographicSortSchema, parse, printSchema,
    validate, validateSchema,
} from 'graphql';

const [url, key] = process.argv.slice(2);
const authorization = `Bearer ${key}`;

async function ask(query) {
    const answer = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: {
            authorization,
            'content-type': 'application/json',
            accept: 'application/graphql-response+json',
        },
        body: JSON.stringify({ query }),
    });
    return { status: answer.status, ...await answer.json() };
}

const introspection = await ask(getIntrospectionQuery({
    descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, inputValueDeprecation: true,
    schemaDescription: true, experimentalDirectiveDeprecation: true, oneOf: true,
}));
assert.deepEqual(introspection.errors, undefined);
const introspected = buildClientSchema(introspection.data);
const answer = await fetch(`${url}/graphql/schema.graphql`, { headers: { authorization } });
assert.equal(answer.status, 200);
const written = buildSchema(await answer.text());

const shown = schema => printSchema(lexicographicSortSchema(schema));
assert.equal(shown(introspected), shown(written));
assert.match(written.description, /data of this gateway/);
const { directives } = introspection.data.__schema;
assert.ok(directives.length > 0);
for (const { name, isDeprecated, deprecationReason } of directives) {
    assert.deepEqual([isDeprecated, deprecationReason], [false, null], name);
}
for (const schema of [introspected, written]) {
    assert.deepEqual(validateSchema(schema), []);
}

let checked = 0;
for (const { document, valid } of JSON.parse(readFileSync(0, 'utf8'))) {
    const theirs = validate(introspected, parse(document));
    const ours = await ask(document);
    assert.equal(theirs.length === 0, valid, `${document}: ${theirs.join('; ')}`);
    assert.equal(ours.status, valid ? 200 : 400, `${document}: ${JSON.stringify(ours.errors)}`);
    checked += 1;
}
console.log(`${Object.keys(introspected.getTypeMap()).length} types, ${checked} documents`);
