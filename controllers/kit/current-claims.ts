/** Whether the claims of a server still match where it runs. */
import type { ServerClaims } from '../../db/server/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Instance, nodeNamespace } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'
import type { ServerSpec, ServerStatus } from '../../resources/server/index.ts'
import { activeOperation } from './operation/stanza.ts'
import type { Parts } from './parts.ts'

/** During one of these, a server may be placed on a node that has none of its objects yet. */
const MOVING: readonly string[] = [
  'server.create',
  'server.migrate',
  'server.move',
  'server.settle_migration',
  'server.change_plan',
  'server.recover',
  'server.force_release',
]

/** The claims; undefined when they are from another time: they place the server on a node without its Instance, its
 *  Instance exists on the node where it was last observed, and no operation explains that. One of the stores was then
 *  restored from a backup, and a second guest would start beside the first. A fenced node has no guest. */
export async function currentClaims(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  server: KubeObject<ServerSpec, ServerStatus>,
  claims: ServerClaims | undefined,
): Promise<ServerClaims | undefined> {
  const { metadata, status: { nodeName } = {} } = server
  if (claims === undefined || claims.target !== undefined) return claims
  const { node } = claims.placement
  if (nodeName === undefined || nodeName === node || MOVING.includes(activeOperation(server)?.kind ?? '')) return claims
  const keyOn = (name: string) => ({ namespace: nodeNamespace(name), name: metadata.uid ?? '' })
  const instances = caches.of(Instance)
  const there = instances.get(keyOn(nodeName))
  const isThere = there !== undefined && there.metadata.deletionTimestamp === undefined
  if (!isThere || instances.get(keyOn(node)) !== undefined) return claims
  if (caches.of(Node).get({ name: nodeName })?.status?.state === 'fenced') return claims
  // The cache may be behind.
  return (await store.get(Instance, keyOn(node))) === undefined ? undefined : claims
}
