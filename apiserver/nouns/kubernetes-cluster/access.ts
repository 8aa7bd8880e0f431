/** Access to a cluster: a kubeconfig with a token that expires, and short-lived tokens that identify the caller. */
import { createPrivateKey, sign } from 'node:crypto'
import { stringify } from 'yaml'
import { TOKEN_ISSUER_URL, TOKEN_SECONDS } from '../../../domain/kubernetes-cluster/rules.ts'
import { rolesWith } from '../../../domain/permissions.ts'
import { conflict, unavailable, zoneLacks } from '../../../domain/problem.ts'
import { type ClusterClaim, ensureIssuer, findCluster, type Issuer } from '../../../db/kubernetes-cluster/index.ts'
import { isKubeconfigGrantLive, type NewKubeconfigGrant, openKubeconfigGrant } from '../../../db/kubeconfig/index.ts'
import { controlPlanesIn } from '../../../integrations/control-planes/configuration.ts'
import type { ControlPlanes, ControlPlaneToken } from '../../../integrations/control-planes/control.ts'
import type { Customer } from '../../../kit/http/call.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import type { Parts } from '../../kit/parts.ts'
import type { KubernetesClusterObject } from './objects.ts'

export type AccessParts = Parts & { readonly sealing: Sealing }

/** Throws 409 where nothing hosts control planes of the region. */
export function requireHost({ controlPlanes }: Pick<Parts, 'controlPlanes'>, region: string): ControlPlanes {
  const offer = controlPlanesIn(controlPlanes ?? { obstacle: 'this cloud has none configured' }, region)
  if ('obstacle' in offer) throw zoneLacks('kubernetes', `The control plane is not reached: ${offer.obstacle}.`)
  return offer.control
}

/** Throws 503 where no sealing key is configured. */
export async function requireIssuer({ db, sealing }: Pick<AccessParts, 'db' | 'sealing'>): Promise<Issuer> {
  if (!sealing.isAvailable)
    throw unavailable('not_configured', 'Kubernetes clusters need sealing keys, which this deployment does not have.')
  return ensureIssuer(db, sealing)
}

/** The claims of the cluster. Throws 409 before they exist. */
export async function requireClaim(
  { db }: Pick<Parts, 'db'>,
  accountId: string,
  { metadata: { name: clusterId } }: KubernetesClusterObject,
): Promise<ClusterClaim> {
  const claim = await findCluster(db, { accountId, clusterId })
  if (claim === undefined) throw conflict('state_not_allowed', 'The cluster is still being made.')
  return claim
}

interface Entry {
  readonly endpoint: string
  readonly certificateAuthority: string
}

/** The address of its API. Throws 409 until there is one. */
function entryOf({ status }: KubernetesClusterObject): Entry {
  const { endpoint, certificateAuthority } = status ?? {}
  if (endpoint === undefined || certificateAuthority === undefined)
    throw conflict('state_not_allowed', 'The cluster has no endpoint yet.')
  return { endpoint, certificateAuthority }
}

export interface Kubeconfig {
  readonly kubeconfig: string
  readonly expires_at: string
}

/** Members of the account with one of `accountRoles` may have `clusterRole` in the cluster. */
interface OwnCredential
  extends Pick<
    NewKubeconfigGrant,
    'resourceType' | 'resourceId' | 'region' | 'controlPlaneId' | 'clusterRole' | 'accountRoles'
  > {
  readonly seconds: number
}

interface Reading {
  readonly caller: Customer
  readonly now: Date
}

/** The grant of the caller: bound to their token, their support session, or else to the person. */
export function grantOf(
  { caller, now }: Reading,
  { seconds, ...wanted }: OwnCredential,
): Omit<NewKubeconfigGrant, 'id'> {
  const { userId, accountId, token, support, session } = caller
  return {
    ...wanted,
    accountId,
    userId,
    now,
    tokenId: token?.id,
    supportSessionId: support === undefined ? undefined : session?.id,
    expiresAt: new Date(now.getTime() + seconds * 1_000),
  }
}

/** A token of the caller's own credential in a control plane. It expires with the credentials that the caller used
 *  (`controllers/nouns/kubeconfig/index.ts`). */
export async function ownToken(
  parts: Pick<Parts, 'db' | 'random' | 'controlPlanes'>,
  reading: Reading,
  wanted: OwnCredential,
): Promise<ControlPlaneToken> {
  const id = await openKubeconfigGrant(parts.db, { ...grantOf(reading, wanted), id: newUuid(parts.random) })
  const { region, controlPlaneId, clusterRole: role, seconds } = wanted
  const token = await requireHost(parts, region).personToken(controlPlaneId, { id, role }, seconds)
  // If the credential ended while the host was asked, it was removed before the host created it. It is removed again
  // later, and nobody gets a token of it.
  if (!(await isKubeconfigGrantLive(parts.db, id)))
    throw conflict('state_not_allowed', 'The credential has ended meanwhile.')
  return token
}

/** With a token of the caller's own that expires by then, and with a context that requests short-lived tokens from the
 *  program. */
export async function kubeconfigOf(
  parts: AccessParts,
  { caller, now }: Reading,
  { cluster, seconds }: { readonly cluster: KubernetesClusterObject; readonly seconds: number },
): Promise<Kubeconfig> {
  const { endpoint, certificateAuthority } = entryOf(cluster)
  const { controlPlaneId, region, name } = await requireClaim(parts, caller.accountId, cluster)
  const { token, expiresAt } = await ownToken(
    parts,
    { caller, now },
    {
      resourceType: 'kubernetes_cluster',
      resourceId: cluster.metadata.name,
      region,
      controlPlaneId,
      seconds,
      clusterRole: 'admin',
      accountRoles: rolesWith('operate'),
    },
  )
  const kubeconfig = kubeconfigText({
    name,
    endpoint,
    certificateAuthority,
    admin: { context: 'svccloud-admin', user: 'svccloud-admin', token },
    oidc: {
      context: 'svccloud-oidc',
      user: 'svccloud-oidc',
      plugin: `kubernetes-cluster/${cluster.metadata.name}`,
    },
  })
  return { kubeconfig, expires_at: expiresAt }
}

interface KubeconfigParts extends Entry {
  /** Of the cluster in it. */
  readonly name: string
  readonly admin: { readonly context: string; readonly user: string; readonly token: string }
  /** `plugin`: the cluster for which the program requests short-lived tokens, as `kubernetes-cluster/ID`. Absent where
   *  there are none. */
  readonly oidc?: { readonly context: string; readonly user: string; readonly plugin: string }
}

/** In the format of kubectl: the administrators' token first, and a context that requests short-lived tokens from the
 *  program. */
export const kubeconfigText = ({ name, endpoint, certificateAuthority, admin, oidc }: KubeconfigParts): string => {
  const contextOf = ({ context, user }: { readonly context: string; readonly user: string }) => ({
    name: context,
    context: { cluster: name, user },
  })
  const authority = Buffer.from(certificateAuthority).toString('base64')
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: endpoint, 'certificate-authority-data': authority } }],
    contexts: [contextOf(admin), ...(oidc === undefined ? [] : [contextOf(oidc)])],
    'current-context': admin.context,
    users: [
      { name: admin.user, user: { token: admin.token } },
      ...(oidc === undefined ? [] : [{ name: oidc.user, user: { exec: pluginFor(oidc.plugin) } }]),
    ],
  })
}

const pluginFor = (cluster: string) => ({
  apiVersion: 'client.authentication.k8s.io/v1',
  command: 'svccloud',
  args: ['exec-credential', '--cluster', cluster],
  interactiveMode: 'Never',
})

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A token (RFC 7519) for that cluster alone, which names the caller and their role. */
export function tokenFor(
  { publicKey: { kid = '' }, privateKey }: Issuer,
  { caller, now, audience }: { readonly caller: Customer; readonly now: Date; readonly audience: string },
): { readonly token: string; readonly expires_at: string } {
  const issuedAt = Math.floor(now.getTime() / 1_000)
  const expiresAt = issuedAt + TOKEN_SECONDS
  const claims = {
    iss: TOKEN_ISSUER_URL,
    aud: audience,
    sub: caller.userId,
    account_role: roleIn(caller),
    iat: issuedAt,
    nbf: issuedAt,
    exp: expiresAt,
  }
  return {
    token: signedToken(claims, { privateKey, keyId: kid }),
    expires_at: new Date(expiresAt * 1_000).toISOString(),
  }
}

/** Signed with the key of the issuer, which verifiers know as `keyId`. */
export function signedToken(
  claims: object,
  { privateKey, keyId }: { readonly privateKey: string; readonly keyId: string },
): string {
  const signed = `${part({ alg: 'ES256', typ: 'JWT', kid: keyId })}.${part(claims)}`
  const key = createPrivateKey(privateKey)
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

/** Never more than the credentials of the request may: read-only credentials only view. */
const roleIn = ({ role, permissions }: Customer): string => (permissions.includes('operate') ? role : 'viewer')
