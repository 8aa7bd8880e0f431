/** The files that API servers and controllers of one control plane read. All are JSON, which is also valid YAML. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Credentials } from './credentials.ts'

/** Fields as in the configuration of API servers. */
export interface Discovery {
  readonly discoveryURL: string
  readonly certificateAuthority: string
}

/** Path of an issuer's discovery document, below the issuer's address. */
export const DISCOVERY_PATH = '.well-known/openid-configuration'

/** The document at this path. */
export const discoveryDocument = (issuer: string, jwksUri: string) => ({
  issuer,
  jwks_uri: jwksUri,
  response_types_supported: ['id_token'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['ES256'],
})

export interface ConfigurationOptions {
  readonly folder: string
  readonly desired: ControlPlaneDesired
  readonly credentials: Credentials
  /** `https://host:port` in front of the API servers. */
  readonly endpoint: string
  /** Where API servers get the keys of the issuer. */
  readonly discovery: Discovery
  /** Socket of the tunnel to nodes, as API servers see it. */
  readonly tunnelSocket: string
  readonly random: Random
}

const KEY_BYTES = 32
const TOKEN_SECONDS_MAXIMUM = 900
const ROLES = ['owner', 'admin', 'member', 'viewer']

/** Writes all files; an existing encryption key is kept. */
export async function writeConfiguration(options: ConfigurationOptions): Promise<void> {
  const { folder, desired, credentials, endpoint, discovery, tunnelSocket, random } = options
  const write = (name: string, content: unknown) => writeDurably(join(folder, name), JSON.stringify(content))
  const known = await readFile(join(folder, 'encryption.json'), 'utf8').catch(() => undefined)
  if (known === undefined) await write('encryption.json', encryption(random.bytes(KEY_BYTES).toString('base64')))
  await write('audit-policy.json', AUDIT_POLICY)
  await write('authentication.json', authentication(desired, discovery))
  await write('egress.json', egress(tunnelSocket))
  for (const name of ['controllerManager', 'scheduler'] as const)
    await write(`${name}.kubeconfig`, kubeconfig(endpoint, credentials.authority, credentials[name]))
}

const encryption = (secret: string) => ({
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'EncryptionConfiguration',
  resources: [{ resources: ['secrets'], providers: [{ secretbox: { keys: [{ name: 'key1', secret }] } }] }],
})

/** Records who did what to which object, never the content. The constant reads of components are left out. */
const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'None', nonResourceURLs: ['/livez*', '/readyz*', '/healthz*', '/version'] },
    {
      level: 'None',
      users: ['system:kube-controller-manager', 'system:kube-scheduler', 'system:apiserver'],
      verbs: ['get', 'list', 'watch'],
    },
    { level: 'None', resources: [{ group: 'coordination.k8s.io', resources: ['leases'] }] },
    { level: 'Metadata' },
  ],
}

/** Sends all connections that a cluster's owner can make an API server open through the tunnel: to nodes, pods and
 *  services (`cluster`), and to the URLs of webhooks (`controlplane`). Without a tunnel nothing listens at its socket,
 *  and these connections fail. So an API server never connects through the host's network. etcd is reached directly. */
const egress = (udsName: string) => ({
  apiVersion: 'apiserver.k8s.io/v1beta1',
  kind: 'EgressSelectorConfiguration',
  egressSelections: ['cluster', 'controlplane'].map((name) => ({
    name,
    connection: { proxyProtocol: 'HTTPConnect', transport: { uds: { udsName } } },
  })),
})

/** Anonymous requests can only read health endpoints. The platform's tokens have a short lifetime and contain a role.
 */
const authentication = ({ issuer }: ControlPlaneDesired, discovery: Discovery) => ({
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AuthenticationConfiguration',
  anonymous: { enabled: true, conditions: ['/livez', '/readyz', '/healthz'].map((path) => ({ path })) },
  ...(issuer === null ? {} : { jwt: [jwt(issuer, discovery)] }),
})

const jwt = ({ url, audience }: NonNullable<ControlPlaneDesired['issuer']>, discovery: Discovery) => ({
  issuer: { url, audiences: [audience], ...discovery },
  claimValidationRules: [
    {
      expression: `claims.exp - claims.iat <= ${TOKEN_SECONDS_MAXIMUM}`,
      message: `a token lives at most ${TOKEN_SECONDS_MAXIMUM} seconds`,
    },
    { expression: `claims.account_role in ${JSON.stringify(ROLES)}`, message: 'the role is unknown' },
  ],
  claimMappings: {
    username: { expression: "'svccloud:' + claims.sub" },
    groups: { expression: "['svccloud:account', 'svccloud:role:' + claims.account_role]" },
    uid: { expression: 'claims.sub' },
  },
  userValidationRules: [
    { expression: "!user.username.startsWith('system:')", message: 'names of the system are not for people' },
  ],
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')

export const kubeconfig = (server: string, authority: string, { certificate, key }: Certificate) => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'own', cluster: { server, 'certificate-authority-data': base64(authority) } }],
  users: [{ name: 'own', user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) } }],
  contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
  'current-context': 'own',
})
