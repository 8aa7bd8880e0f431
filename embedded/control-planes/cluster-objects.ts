/** What the platform keeps in a cluster: who may do what by role, how nodes join, and where pods find the API. */
import { NODE_API, type ControlPlaneToken } from '../../kit/control-planes/control.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { z } from 'zod'
import { apply, type KubeApi, send } from './kube-api.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const ADMIN = 'svccloud-admin'
const SYSTEM = '/api/v1/namespaces/kube-system'
const SECRET_LETTERS = 16
/** What API servers give at least. */
const TOKEN_SECONDS_MINIMUM = 600

/** As the specification has it. */
const ROLES: Readonly<Record<string, string>> = {
  owner: 'cluster-admin',
  admin: 'cluster-admin',
  member: 'edit',
  viewer: 'view',
}

const binding = (name: string, role: string, subject: object) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: `svccloud:${name}` },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [subject],
})
const group = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name })
const unbind = (api: KubeApi, name: string) =>
  send(api, 'DELETE', `${RBAC}/clusterrolebindings/svccloud:${name}`, { accepted: [404] })
const bind = (api: KubeApi, name: string, role: string, subject: object) =>
  apply(api, `${RBAC}/clusterrolebindings`, binding(name, role, subject))

/** May be said at every start. */
export async function applyClusterObjects(api: KubeApi): Promise<void> {
  for (const [role, clusterRole] of Object.entries(ROLES))
    await bind(api, `role-${role}`, clusterRole, group(`svccloud:role:${role}`))
  await bind(api, 'node-renewal', 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', NODES)
  await bind(api, 'node-proxier', 'system:node-proxier', NODES)
  await bind(api, 'kubelet-clients', 'system:kubelet-api-admin', group('svccloud:kubelet-clients'))
  await apply(api, `${SYSTEM}/serviceaccounts`, {
    ...{ apiVersion: 'v1', kind: 'ServiceAccount' },
    metadata: { name: ADMIN },
  })
  await bind(api, 'admin', 'cluster-admin', { kind: 'ServiceAccount', name: ADMIN, namespace: 'kube-system' })
  await apply(api, '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', ENDPOINT_SLICE)
}
const NODES = group('system:nodes')

/** Behind the service `kubernetes`, which pods reach the API by. */
const ENDPOINT_SLICE = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
  addressType: 'IPv4',
  endpoints: [{ addresses: [NODE_API.address], conditions: { ready: true } }],
  ports: [{ name: 'https', protocol: 'TCP', port: NODE_API.port }],
}

const TokenAnswer = z.object({ status: z.object({ token: z.string(), expirationTimestamp: z.iso.datetime() }) })

/** Of the service account of administrators; gone with it. */
export async function requestAdminToken(api: KubeApi, seconds: number): Promise<ControlPlaneToken> {
  const { text } = await send(api, 'POST', `${SYSTEM}/serviceaccounts/${ADMIN}/token`, {
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: Math.max(seconds, TOKEN_SECONDS_MINIMUM) },
    },
  })
  const { token, expirationTimestamp } = TokenAnswer.parse(JSON.parse(text)).status
  return { token, expiresAt: expirationTimestamp }
}

const KnownSecret = z.object({ data: z.object({ 'token-secret': z.string() }) })
const secretPath = (tokenId: string): string => `${SYSTEM}/secrets/bootstrap-token-${tokenId}`

/** The token of that id, the same when it was given before; its group may ask for certificates of nodes. */
export async function putJoinToken(
  api: KubeApi,
  wanted: { readonly tokenId: string; readonly pool: string; readonly expiresAt: Date; readonly random: Random },
): Promise<ControlPlaneToken> {
  const { tokenId, pool, expiresAt, random } = wanted
  const joiners = `system:bootstrappers:${pool}`
  await bind(api, `join-${pool}`, 'system:node-bootstrapper', group(joiners))
  const approver = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'
  await bind(api, `approve-${pool}`, approver, group(joiners))
  const known = await send(api, 'GET', secretPath(tokenId), { accepted: [404] })
  const secret =
    known.status === 404
      ? newBase62(random, SECRET_LETTERS).toLowerCase()
      : Buffer.from(KnownSecret.parse(JSON.parse(known.text)).data['token-secret'], 'base64').toString()
  await apply(api, `${SYSTEM}/secrets`, {
    ...{ apiVersion: 'v1', kind: 'Secret', type: 'bootstrap.kubernetes.io/token' },
    metadata: { name: `bootstrap-token-${tokenId}` },
    ...{
      stringData: {
        'token-id': tokenId,
        'token-secret': secret,
        expiration: expiresAt.toISOString(),
        'usage-bootstrap-authentication': 'true',
        'auth-extra-groups': joiners,
      },
    },
  })
  return { token: `${tokenId}.${secret}`, expiresAt: expiresAt.toISOString() }
}

/** With what the group of its pool may do, which comes with the next token. */
export async function removeJoinToken(api: KubeApi, tokenId: string, pool: string): Promise<void> {
  for (const name of [`join-${pool}`, `approve-${pool}`]) await unbind(api, name)
  await send(api, 'DELETE', secretPath(tokenId), { accepted: [404] })
}
