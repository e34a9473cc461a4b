// A real OpenID provider for the tests: panva's oidc-provider, on free ports of 127.0.0.1.
//   node provider.mjs     TLS_CERT, TLS_KEY: serve https. IN_USERINFO=1: claims of scopes stand in the userinfo alone.
// It prints {"issuer", "control"} once it listens, and ends when its standard input does. At the control
// address:
//   POST /rotate[?keep=0]  new keys, the old ones still published or not
//   POST /down, /up        connections are closed at once, or not
//   POST /delay?ms=N       answers come so much later
//   POST /client           {"client_id", ...}: changes of a client's metadata
//   POST /user             {"sub", ...}: changes of a user's claims
//   GET /hits              how often each path was asked for
import http from 'node:http';
import https from 'node:https';
import fs from 'node:fs';
import { createPrivateKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { Provider } from 'oidc-provider';

const env = process.env;
const config = JSON.parse(fs.readFileSync(new URL('./config.json', import.meta.url), 'utf8'));
const users = new Map(config.users.map((user) => [user.sub, user]));
const tls = env.TLS_CERT && { cert: fs.readFileSync(env.TLS_CERT), key: fs.readFileSync(env.TLS_KEY) };

// By way of PEM: Node.js 20 stands still for ever when what made a key is collected while that very key is exported.
const encoding = { publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } };
const newKeys = () => ['RS256', 'ES256'].map((alg) => {
  const { privateKey } = alg === 'ES256'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256', ...encoding })
    : generateKeyPairSync('rsa', { modulusLength: 2048, ...encoding });
  return { ...createPrivateKey(privateKey).export({ format: 'jwk' }), kid: randomUUID(), alg, use: 'sig' };
});
let keys = newKeys();

// As Entra ID has it, `scope=api://<id>/.default` chooses the audience.
const audience = (scope) => /(?:^|\s)(api:\/\/\S+?)\/\.default(?=\s|$)/.exec(scope ?? '')?.[1];

function build(issuer) {
  const provider = new Provider(issuer, {
    clients: config.clients.map(({ 'x-roles': _roles, 'x-ttl': _ttl, ...client }) => client),
    jwks: { keys },
    cookies: { keys: ['a key for cookies'] },
    scopes: ['openid', 'profile', 'email', ...config.audiences.map((a) => `${a.identifier}/.default`)],
    claims: {
      openid: ['sub'],
      profile: ['given_name', 'family_name', 'organization', 'roles', 'groups', 'realm_access', 'user_email', 'updated_at'],
      email: ['email'],
    },
    conformIdTokenClaims: Boolean(env.IN_USERINFO),
    findAccount: (_ctx, sub) => users.get(sub) && { accountId: sub, claims: async () => users.get(sub) },
    pkce: { required: () => true },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'HS256'] },
    features: {
      // Its pages take any password; findAccount refuses unknown users.
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (ctx, client, one) => one ?? audience(ctx.oidc.body?.scope ?? ctx.oidc.params?.scope)
          ?? (client.grantTypes.includes('client_credentials') ? 'api://penstock' : undefined),
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, identifier, client) => {
          const found = config.audiences.find((a) => a.identifier === identifier);
          if (!found) throw new Error(`no audience ${identifier}`);
          return {
            audience: identifier,
            scope: `${identifier}/.default`,
            accessTokenFormat: 'jwt',
            accessTokenTTL: config.clients.find((c) => c.client_id === client.clientId)['x-ttl'] ?? 300,
            jwt: { sign: { alg: found.alg ?? 'RS256' } },
          };
        },
      },
    },
    extraTokenClaims: (_ctx, token) => {
      const roles = config.clients.find((c) => c.client_id === token.clientId)?.['x-roles'];
      return token.kind === 'ClientCredentials' ? { roles, azp: token.clientId } : undefined;
    },
    ttl: {
      AccessToken: 300, AuthorizationCode: 60, IdToken: 300, Interaction: 600, Session: 3600, Grant: 3600,
      ClientCredentials: (_ctx, token) => token.resourceServer?.accessTokenTTL ?? 300,
    },
  });
  provider.on('server_error', (_ctx, error) => console.error('server_error', error));
  return provider.callback();
}

let handler, down = false, delay = 0;
const hits = {};
const serve = (req, res) => {
  const path = req.url.split('?')[0];
  hits[path] = (hits[path] ?? 0) + 1;
  if (down) return void req.socket.destroy();
  setTimeout(() => handler(req, res), delay);
};
const server = tls ? https.createServer(tls, serve) : http.createServer(serve);
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `${tls ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
handler = build(issuer);

const read = async (req) => {
  let text = '';
  for await (const piece of req) text += piece;
  return JSON.parse(text);
};
const control = http.createServer(async (req, res) => {
  const url = new URL(req.url, 'http://control');
  switch (`${req.method} ${url.pathname}`) {
    case 'POST /rotate':
      keys = [...newKeys(), ...(url.searchParams.get('keep') === '0' ? [] : keys.slice(0, 2))];
      handler = build(issuer);
      break;
    case 'POST /down': down = true; break;
    case 'POST /up': down = false; break;
    case 'POST /delay': delay = Number(url.searchParams.get('ms')); break;
    case 'POST /client': {
      const change = await read(req);
      Object.assign(config.clients.find((c) => c.client_id === change.client_id), change);
      handler = build(issuer);
      break;
    }
    case 'POST /user': {
      const change = await read(req);
      users.set(change.sub, { ...users.get(change.sub), ...change });
      break;
    }
    case 'GET /hits': break;
    default: res.statusCode = 404;
  }
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(hits));
});
await new Promise((done) => control.listen(0, '127.0.0.1', done));
console.log(JSON.stringify({ issuer, control: `http://127.0.0.1:${control.address().port}` }));
process.stdin.resume().on('end', () => process.exit(0));
