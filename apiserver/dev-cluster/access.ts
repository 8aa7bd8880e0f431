/** How people get into a dev cluster: a kubeconfig with a token that ends, and a context that asks for short ones. The
 *  token is one of a service account, signed here: the API of the cluster knows the public key, and nobody has to reach
 *  it for a kubeconfig. */
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import { DEV_KUBECONFIG_SECONDS, serviceAccountIssuerOf } from '../../domain/dev-cluster.ts'
import { conflict } from '../../domain/problem.ts'
import type { Issuer } from '../../db/kubernetes-cluster/index.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import { toDevClusterView } from '../../resources/dev-cluster/index.ts'
import { type Kubeconfig, kubeconfigText, signedToken } from '../kubernetes-cluster/index.ts'
import { storedOf } from '../list/stored.ts'
import type { DevClusterObject } from './clusters.ts'

/** As `dev_cluster.py` makes it. */
const ADMIN = { namespace: 'kube-system', name: 'svccloud-admin' }

interface AccessOptions {
  readonly issuer: Issuer
  readonly now: Date
  readonly random: Random
}

/** Throws 409 while its server has not said all of it. */
export function devKubeconfigOf(cluster: DevClusterObject, options: AccessOptions): Kubeconfig {
  const { status, spec, metadata } = cluster
  const view = toDevClusterView(storedOf(cluster), { region: '', release: '' })
  const endpoint = view.endpoint_ipv4 ?? view.endpoint
  if (endpoint === null || status?.certificateAuthority === undefined || status.adminUid === undefined)
    throw conflict('state_not_allowed', 'The server of the cluster has not said yet how to get in.')
  const { token, expires_at } = adminToken(cluster, { ...options, uid: status.adminUid })
  const kubeconfig = kubeconfigText({
    name: spec.name,
    endpoint,
    certificateAuthority: status.certificateAuthority,
    admin: { context: 'admin', user: 'svccloud admin', token },
    oidc: { context: 'oidc', user: 'svccloud oidc', plugin: `dev-cluster/${metadata.name}` },
  })
  return { kubeconfig, expires_at }
}

/** As API servers know keys of service accounts: the digest of the public one. */
const keyIdOf = (privateKey: string): string =>
  createHash('sha256')
    .update(createPublicKey(createPrivateKey(privateKey)).export({ type: 'spki', format: 'der' }))
    .digest('base64url')

function adminToken(
  { metadata }: DevClusterObject,
  { issuer: { privateKey }, now, random, uid }: AccessOptions & { readonly uid: string },
) {
  const issuedAt = Math.floor(now.getTime() / 1_000)
  const expiresAt = issuedAt + DEV_KUBECONFIG_SECONDS
  const iss = serviceAccountIssuerOf(metadata.uid ?? '')
  const { namespace, name } = ADMIN
  const claims = {
    ...{ iss, aud: [iss], sub: `system:serviceaccount:${namespace}:${name}`, jti: newUuid(random) },
    ...{ iat: issuedAt, nbf: issuedAt, exp: expiresAt },
    'kubernetes.io': { namespace, serviceaccount: { name, uid } },
  }
  return {
    token: signedToken(claims, { privateKey, keyId: keyIdOf(privateKey) }),
    expires_at: new Date(expiresAt * 1_000).toISOString(),
  }
}
