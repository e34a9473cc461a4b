"""The main job with the client that openapi-python-client makes of the OpenAPI document: every answer has its type.

Usage: client.py URL KEY
"""
import sys

from penstock_client import AuthenticatedClient
from penstock_client.api.business_objects import put_business_object
from penstock_client.api.exports import list_exports, list_targets, push
from penstock_client.api.gateway import get_status, list_webhooks
from penstock_client.api.ingestion import ingest
from penstock_client.models import (
    BusinessObjectDefinition, Export, Exports, Ingestion, IngestionRequest, MemoryLevel, Push, Status, Targets,
    Webhooks,
)

url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)

definition = BusinessObjectDefinition.from_dict({
    "name": "Pump",
    "config": "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <https://plant.example/name>}\n",
    "pushTargets": [{"bucketName": "plant-exports"}],
})
put_business_object.sync(client=client, body=definition)

ingested = ingest.sync("Pump", client=client, body=IngestionRequest.from_dict({"data": [{"name": "P-101"}]}))
assert isinstance(ingested, Ingestion), ingested
assert (ingested.created, len(ingested.objects)) == (1, 1), ingested

pushed = push.sync("Pump", client=client)
assert isinstance(pushed, Push), pushed
assert pushed.exports[0].sequence == 1, pushed

exports = list_exports.sync(client=client)
assert isinstance(exports, Exports), exports
assert isinstance(exports.items[0], Export) and exports.items[0].target == "plant-exports", exports

targets = list_targets.sync(client=client)
assert isinstance(targets, Targets), targets
assert [(target.name, target.remark) for target in targets.items] == [("plant-exports", None)], targets

status = get_status.sync(client=client)
assert isinstance(status, Status), status
assert status.store.quads > 0 and status.memory.level is MemoryLevel.AMPLE, status
assert status.certificate is None, status

webhooks = list_webhooks.sync(client=client)
assert isinstance(webhooks, Webhooks) and webhooks.items == [], webhooks
