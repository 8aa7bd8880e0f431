/** Objects of the platform in a cluster: rights by role, rights for joining nodes, and the address of the API for pods.
 */
import {
  type ClusterRole,
  NODE_API,
  type ControlPlaneToken,
  type Person,
} from '../../integrations/control-planes/control.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { z } from 'zod'
import { apply, type KubeApi, send } from './kube-api.ts'
import { AUTOSCALER, AUTOSCALER_RULES, AUTOSCALER_USER } from './load.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
/** The platform's service accounts and their Kubernetes roles, by role of the platform. */
const USERS: Readonly<Record<ClusterRole, { readonly name: string; readonly role: string }>> = {
  admin: { name: 'svccloud-platform', role: 'cluster-admin' },
  edit: { name: 'svccloud-platform-edit', role: 'edit' },
}
/** Old service accounts that all users shared, with their bindings. They are deleted, which invalidates their tokens.
 */
const SHARED = ['admin', 'edit']
const PERSON_LABEL = 'svccloud.dev/kubeconfig'
const SYSTEM = '/api/v1/namespaces/kube-system'
const SECRET_LETTERS = 16
/** Minimum lifetime that API servers accept. */
const TOKEN_SECONDS_MINIMUM = 600

/** Roles as the specification defines them. */
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
const user = (name: string) => ({ ...group(name), kind: 'User' })
const unbind = (api: KubeApi, name: string) =>
  send(api, 'DELETE', `${RBAC}/clusterrolebindings/svccloud:${name}`, { accepted: [404] })
const bind = (api: KubeApi, name: string, role: string, subject: object) =>
  apply(api, `${RBAC}/clusterrolebindings`, binding(name, role, subject))

/** May be repeated at every start. */
export async function applyClusterObjects(api: KubeApi): Promise<void> {
  for (const [role, clusterRole] of Object.entries(ROLES))
    await bind(api, `role-${role}`, clusterRole, group(`svccloud:role:${role}`))
  await bind(api, 'node-renewal', 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', NODES)
  await bind(api, 'node-proxier', 'system:node-proxier', NODES)
  await apply(api, `${RBAC}/clusterroles`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    rules: AUTOSCALER_RULES,
    metadata: { name: `svccloud:${AUTOSCALER}` },
  })
  await bind(api, AUTOSCALER, `svccloud:${AUTOSCALER}`, user(AUTOSCALER_USER))
  await bind(api, 'kubelet-clients', 'system:kubelet-api-admin', group('svccloud:kubelet-clients'))
  for (const [user, { name, role }] of Object.entries(USERS)) {
    await apply(api, `${SYSTEM}/serviceaccounts`, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name },
    })
    await bind(api, `platform-${user}`, role, { kind: 'ServiceAccount', name, namespace: 'kube-system' })
  }
  for (const role of SHARED) {
    await unbind(api, role)
    await send(api, 'DELETE', `${SYSTEM}/serviceaccounts/svccloud-${role}`, { accepted: [404] })
  }
  await apply(api, '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', ENDPOINT_SLICE)
  await apply(api, '/api/v1/namespaces/default/endpoints', ENDPOINTS)
}
const NODES = group('system:nodes')

/** Port behind the service `kubernetes`, through which pods reach the API. */
const HTTPS_PORT = { name: 'https', protocol: 'TCP', port: NODE_API.port }
const ENDPOINT_SLICE = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
  addressType: 'IPv4',
  endpoints: [{ addresses: [NODE_API.address], conditions: { ready: true } }],
  ports: [HTTPS_PORT],
}
/** For clients that know only the older kind. The label prevents a second slice of it. */
const ENDPOINTS = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'kubernetes', labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
  subsets: [{ addresses: [{ ip: NODE_API.address }], ports: [HTTPS_PORT] }],
}

const TokenAnswer = z.object({ status: z.object({ token: z.string(), expirationTimestamp: z.iso.datetime() }) })

/** Requests a token of the platform's service account for that role. Deleting the account invalidates the token. */
export const requestUserToken = (api: KubeApi, role: ClusterRole, seconds: number): Promise<ControlPlaneToken> =>
  requestToken(api, USERS[role].name, seconds)

const accountOf = ({ id, role }: Person): string => `svccloud-${role}-${id}`

/** Requests a token of the person's own service account, which has their role. */
export async function requestPersonToken(api: KubeApi, person: Person, seconds: number): Promise<ControlPlaneToken> {
  const name = accountOf(person)
  await apply(api, `${SYSTEM}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, labels: { [PERSON_LABEL]: person.id } },
  })
  const subject = { kind: 'ServiceAccount', name, namespace: 'kube-system' }
  await bind(api, `kubeconfig-${person.role}-${person.id}`, USERS[person.role].role, subject)
  return await requestToken(api, name, seconds)
}

/** Deletes the service account first: API servers reject tokens of a missing account. */
export async function removePerson(api: KubeApi, person: Person): Promise<void> {
  await send(api, 'DELETE', `${SYSTEM}/serviceaccounts/${accountOf(person)}`, { accepted: [404] })
  await unbind(api, `kubeconfig-${person.role}-${person.id}`)
}

async function requestToken(api: KubeApi, account: string, seconds: number): Promise<ControlPlaneToken> {
  const { text } = await send(api, 'POST', `${SYSTEM}/serviceaccounts/${account}/token`, {
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

/** Creates the token of that id, or returns the existing one. Its group may request certificates of nodes. */
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
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'bootstrap.kubernetes.io/token',
    metadata: { name: `bootstrap-token-${tokenId}` },

    stringData: {
      'token-id': tokenId,
      'token-secret': secret,
      expiration: expiresAt.toISOString(),
      'usage-bootstrap-authentication': 'true',
      'auth-extra-groups': joiners,
    },
  })
  return { token: `${tokenId}.${secret}`, expiresAt: expiresAt.toISOString() }
}

/** Also removes the rights of its pool's group; the next token grants them again. */
export async function removeJoinToken(api: KubeApi, tokenId: string, pool: string): Promise<void> {
  for (const name of [`join-${pool}`, `approve-${pool}`]) await unbind(api, name)
  await send(api, 'DELETE', secretPath(tokenId), { accepted: [404] })
}
