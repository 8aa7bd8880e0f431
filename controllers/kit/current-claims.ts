/** Which claims of a server still say where it is. */
import type { ServerClaims } from '../../db/server/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Instance, nodeNamespace } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'
import type { ServerSpec, ServerStatus } from '../../resources/server/index.ts'
import { activeOperation } from './operation/stanza.ts'
import type { Parts } from './parts.ts'

/** While one of these works, a server may be placed on a node that has nothing of it yet. */
const MOVING: readonly string[] = [
  'server.create',
  'server.migrate',
  'server.move',
  'server.settle_migration',
  'server.change_plan',
  'server.recover',
  'server.force_release',
]

/** The claims; undefined when they are of another time: they place the server on a node that has nothing of it, its
 *  guest is on the node that it was last seen on, and nothing is under way that explains it. One of the stores was put
 *  back then, and a second guest would be begun beside the first. A node that is fenced has no guest. */
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
