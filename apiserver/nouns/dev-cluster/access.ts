/** Access to a dev cluster: a kubeconfig with a token that expires, and a context that requests short-lived tokens. The
 *  token is one of a service account, signed here: the API of the cluster knows the public key, and no request to it is
 *  needed for a kubeconfig. The cluster has service accounts ready. One of them is the caller's alone, and expires with
 *  the credentials that the caller used (`controllers/nouns/kubeconfig/index.ts`). */
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import {
  DEV_ADMINS_MAXIMUM,
  DEV_KUBECONFIG_SECONDS,
  serviceAccountIssuerOf,
} from '../../../domain/dev-cluster/rules.ts'
import { rolesWith } from '../../../domain/permissions.ts'
import { conflict } from '../../../domain/problem.ts'
import { takeKubeconfigGrant } from '../../../db/kubeconfig/index.ts'
import type { Issuer } from '../../../db/kubernetes-cluster/index.ts'
import type { Customer } from '../../../kit/http/call.ts'
import { newUuid, type Random } from '../../../kit/sys/random.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { type DevClusterStatus, toDevClusterView } from '../../../resources/dev-cluster/index.ts'
import { grantOf, type Kubeconfig, kubeconfigText, signedToken } from '../kubernetes-cluster/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../../kit/parts.ts'
import type { DevClusterObject } from './objects.ts'

/** The namespace in which `dev_cluster.py` creates them. */
const NAMESPACE = 'kube-system'

type Admin = NonNullable<DevClusterStatus['admins']>[number]

interface AccessOptions {
  readonly issuer: Issuer
  readonly now: Date
  readonly random: Random
  /** The service account of the token. */
  readonly admin: Admin
}

/** The caller's own service account in the cluster. Throws 409 while the cluster has none left. */
export async function ownAdmin(
  { db, caches }: Pick<Parts, 'db' | 'caches'>,
  reading: { readonly caller: Customer; readonly now: Date },
  { metadata: { name: resourceId, uid: controlPlaneId = '' }, spec, status }: DevClusterObject,
): Promise<Admin> {
  const admins = status?.admins ?? []
  if (status?.certificateAuthority !== undefined && status.admins === undefined)
    throw conflict('state_not_allowed', OLD_IMAGE, { resource: { type: 'dev_cluster', id: resourceId } })
  const region = caches.of(Zone).get({ name: spec.zone })?.spec.region ?? ''
  const grant = grantOf(reading, {
    resourceType: 'dev_cluster',
    resourceId,
    region,
    controlPlaneId,
    seconds: DEV_KUBECONFIG_SECONDS,
    clusterRole: 'admin',
    accountRoles: rolesWith('operate'),
  })
  const uids = admins.map(({ uid }) => uid)
  const own = await db.transaction().execute((tx) => takeKubeconfigGrant(tx, grant, uids))
  const admin = admins.find(({ uid }) => uid === own)
  if (admin === undefined)
    throw conflict('state_not_allowed', admins.length === 0 ? SILENT : ALL_TAKEN, {
      resource: { type: 'dev_cluster', id: resourceId },
    })
  return admin
}

const SILENT = 'The server of the cluster has not said yet how to get in.'
const OLD_IMAGE =
  'The cluster was made from an image that has one credential for everybody, which nobody is given: sign in to its ' +
  'server by SSH, or make the cluster anew.'
const ALL_TAKEN =
  `At most ${DEV_ADMINS_MAXIMUM} people and tokens have a credential in the cluster at a time: ask again when one ` +
  'of theirs has expired, or revoke tokens that nobody needs.'

/** Throws 409 while its server has not reported all of it. */
export function devKubeconfigOf(cluster: DevClusterObject, options: AccessOptions): Kubeconfig {
  const { status, spec, metadata } = cluster
  const view = toDevClusterView(storedOf(cluster), { region: '', release: '' })
  const endpoint = view.endpoint_ipv4 ?? view.endpoint
  if (endpoint === null || status?.certificateAuthority === undefined) throw conflict('state_not_allowed', SILENT)
  const { token, expires_at } = adminToken(cluster, options)
  const kubeconfig = kubeconfigText({
    name: spec.name,
    endpoint,
    certificateAuthority: status.certificateAuthority,
    admin: { context: 'admin', user: 'svccloud admin', token },
    oidc: { context: 'oidc', user: 'svccloud oidc', plugin: `dev-cluster/${metadata.name}` },
  })
  return { kubeconfig, expires_at }
}

/** The key id that API servers use for service accounts: the digest of the public key. */
const keyIdOf = (privateKey: string): string =>
  createHash('sha256')
    .update(createPublicKey(createPrivateKey(privateKey)).export({ type: 'spki', format: 'der' }))
    .digest('base64url')

function adminToken(
  { metadata }: DevClusterObject,
  { issuer: { privateKey }, now, random, admin: { name, uid } }: AccessOptions,
) {
  const issuedAt = Math.floor(now.getTime() / 1_000)
  const expiresAt = issuedAt + DEV_KUBECONFIG_SECONDS
  const iss = serviceAccountIssuerOf(metadata.uid ?? '')
  const claims = {
    iss,
    aud: [iss],
    sub: `system:serviceaccount:${NAMESPACE}:${name}`,
    jti: newUuid(random),
    iat: issuedAt,
    nbf: issuedAt,
    exp: expiresAt,
    'kubernetes.io': { namespace: NAMESPACE, serviceaccount: { name, uid } },
  }
  return {
    token: signedToken(claims, { privateKey, keyId: keyIdOf(privateKey) }),
    expires_at: new Date(expiresAt * 1_000).toISOString(),
  }
}
