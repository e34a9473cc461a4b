// Every page of the administration interface: its address, its heading, and the least role that it is for.
// An address may be a function of what `furnish` has made; `ids` has the ids by what they are of.
export const pages = [
  { path: '/admin', heading: 'Overview', least: 'User' },
  { path: '/admin/profile', heading: /./, least: 'User' },
  { path: '/admin/namespaces', heading: 'Namespaces', least: 'User' },
  { path: '/admin/namespaces/Tank', heading: 'Namespace Tank', least: 'User' },
  { path: '/admin/namespaces/Pump', heading: 'Namespace Pump', least: 'User' },
  { path: '/admin/namespaces/Tank/delete', heading: 'Delete the namespace Tank?', least: 'Contributor' },
  { path: '/admin/new-namespace', heading: 'New namespace', least: 'Contributor' },
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

// The ids that addresses hold.
export async function identify(ask) {
  const first = (list, is) => list.items.find(is).id;
  return {
    user: first(await ask('GET', '/api/v1/users'), (user) => user.email === 'uwe@plant.example'),
    key: first(await ask('GET', '/api/v1/api-keys'), (key) => key.name === 'line 4'),
  };
}
