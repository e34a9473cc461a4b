// Every page of the administration interface: its path, its heading, and its minimum role. A path or heading may be
// a function of `ids`: the ids of the test data that `furnish` creates, from `identify`.
export const pages = [
  { path: '/admin', heading: 'Overview', least: 'User' },
  { path: '/admin/business-objects', heading: 'Business Objects', least: 'User' },
  { path: '/admin/business-objects/new', heading: 'New Business Object', least: 'Admin' },
  { path: '/admin/business-objects/derive', heading: 'Derive a Business Object from a sample', least: 'Admin' },
  { path: (ids) => `/admin/business-objects/${ids.pump}`, heading: 'Pump', least: 'User' },
  { path: (ids) => `/admin/business-objects/${ids.pump}/edit`, heading: 'Edit Pump', least: 'Admin' },
  { path: (ids) => `/admin/business-objects/${ids.pump}/delete`, heading: 'Delete Pump?', least: 'Admin' },
  { path: (ids) => `/admin/objects/${ids.pump}`, heading: 'Objects of Pump', least: 'User' },
  { path: (ids) => `/admin/objects/${ids.pump}?field=%2Fname&test=contains&text=nothing`, heading: 'Objects of Pump', least: 'User' },
  { path: (ids) => `/admin/object?uri=${encodeURIComponent(ids.object)}`, heading: /^P-[12]$/, least: 'User' },
  { path: '/admin/rejected', heading: 'Dead letters', least: 'Contributor' },
  { path: '/admin/exports', heading: 'Exports', least: 'User' },
  { path: '/admin/exports?state=queue', heading: 'Exports', least: 'User' },
  { path: (ids) => `/admin/exports/${ids.export}`, heading: 'Export 1 of Pump', least: 'User' },
  { path: '/admin/targets', heading: 'Targets', least: 'User' },
  { path: '/admin/query', heading: 'GraphQL', least: 'User' },
  { path: '/admin/sparql', heading: 'SPARQL', least: 'User' },
  { path: '/admin/profile', heading: /./, least: 'User' },
  { path: '/admin/namespaces', heading: 'Namespaces', least: 'User' },
  { path: '/admin/namespaces/Tank', heading: 'Namespace Tank', least: 'User' },
  { path: '/admin/namespaces/Pump', heading: 'Namespace Pump', least: 'User' },
  { path: '/admin/namespaces/Tank/delete', heading: 'Delete the namespace Tank?', least: 'Contributor' },
  { path: '/admin/new-namespace', heading: 'New namespace', least: 'Contributor' },
  { path: '/admin/shapes', heading: 'Shapes', least: 'User' },
  { path: '/admin/shapes/pumps', heading: 'Shapes graph pumps', least: 'User' },
  { path: '/admin/shapes/pumps/delete', heading: 'Delete the shapes graph pumps?', least: 'Admin' },
  { path: '/admin/new-shapes', heading: 'New shapes graph', least: 'Admin' },
  { path: '/admin/quality', heading: 'Data quality', least: 'User' },
  { path: (ids) => `/admin/quality/${ids.validation}`, heading: 'Validation of Valve', least: 'User' },
  { path: '/admin/keys', heading: 'API keys', least: 'User' },
  { path: '/admin/keys/new', heading: 'New API key', least: 'User' },
  { path: (ids) => `/admin/keys/${ids.key}/revoke`, heading: 'Revoke the API key line 4?', least: 'Admin' },
  { path: '/admin/users', heading: 'Users', least: 'Admin' },
  { path: '/admin/users/new', heading: 'New user', least: 'Admin' },
  { path: (ids) => `/admin/users/${ids.user}`, heading: 'Uwe Unruh', least: 'Admin' },
  { path: (ids) => `/admin/users/${ids.user}/delete`, heading: 'Delete Uwe Unruh?', least: 'Admin' },
  { path: '/admin/audit', heading: 'Audit trail', least: 'Admin' },
  { path: '/admin/audit?what=request.refused', heading: 'Audit trail', least: 'Admin' },
  { path: '/admin/settings', heading: 'Settings', least: 'Admin' },
];

// Returns the ids that the paths need.
export async function identify(ask) {
  const first = (list, is) => list.items.find(is).id;
  return {
    user: first(await ask('GET', '/api/v1/users'), (user) => user.email === 'uwe@plant.example'),
    pump: first(await ask('GET', '/api/v1/business-objects'), (one) => one.name === 'Pump'),
    object: (await ask('GET', '/api/v1/business-objects/Pump/objects')).items[0].uri,
    export: first(await ask('GET', '/api/v1/exports'), (one) => one.businessObjectName === 'Pump'),
    validation: (await ask('GET', '/api/v1/validations?businessObject=Valve')).items[0].id,
    key: first(await ask('GET', '/api/v1/api-keys'), (key) => key.name === 'line 4'),
  };
}
