// What openapi-typescript makes of the OpenAPI document: the answers of the main job have their types, also where
// the document describes a reference. The compiler checks it; nothing is run.
import type { paths } from './api.js';

type Answer<Operation, Status extends number> =
    Operation extends { responses: { [status in Status]: { content: { 'application/json': infer Body } } } } ? Body : never;
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

type Ingestion = Answer<paths['/api/v1/business-objects/{id}']['post'], 200>;
type Push = Answer<paths['/api/v1/business-objects/{id}/push']['post'], 202>;
type Exports = Answer<paths['/api/v1/exports']['get'], 200>;
type Targets = Answer<paths['/api/v1/targets']['get'], 200>;
type Status = Answer<paths['/api/v1/status']['get'], 200>;
type Webhooks = Answer<paths['/api/v1/webhooks']['get'], 200>;
type WebhookTest = Answer<paths['/api/v1/webhooks/{name}/test']['post'], 200>;

export const typed: [
    Same<Ingestion['created'], number>,
    Same<NonNullable<Ingestion['objects']>[number]['uri'], string>,
    Same<Ingestion['mode'], 'ADD' | 'REPLACE' | 'UPDATE' | 'MERGE' | 'DELETE' | 'VALIDATE'>,
    Same<Push['exports'][number]['sequence'], number>,
    Same<Exports['items'][number]['status'], 'waiting' | 'queued' | 'delivering' | 'delivered' | 'blocked' | 'parked'>,
    Same<Targets['items'][number]['remark'], string | null>,
    Same<Status['store']['quads'], number>,
    Same<Status['memory']['level'], 'ample' | 'low' | 'short'>,
    Same<NonNullable<Status['certificate']>['selfSigned'], boolean>,
    Same<null extends Status['certificate'] ? true : false, true>,
    Same<Webhooks['items'][number]['disabledSince'], string | null>,
    Same<WebhookTest['cause'], string | null>,
] = [true, true, true, true, true, true, true, true, true, true, true, true];
