/** What moves do in PostgreSQL, and the key that both ends of a move share. */
import { isDeepStrictEqual } from 'node:util'
import { cutOverPlacement, releaseTarget, reserveTarget } from '../../../db/server/index.ts'
import { type Key, Secret } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { Effect } from '../../../kit/reconcile/reconciler.ts'
import { NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../../resources/instance/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { orUnavailable } from '../../database.ts'
import { requireNewest } from '../../newest.ts'
import type { Parts } from '../../parts.ts'
import { grantedCondition, withRefusalCondition } from '../../refusal.ts'
import { migrationKeyKey, userDataKey } from '../drafts.ts'
import type { MigrationInput } from './input.ts'
import type { ServerObject } from '../observed.ts'

/** Condition that says why a server has no room on another node. */
export const RESERVED = 'Reserved'
const KEY_BYTES = 32

interface MigrationRef {
  readonly accountId: string
  readonly serverId: string
  readonly operationId: string
}

interface TargetReservation extends MigrationRef {
  readonly cpuPool?: string
  readonly node?: string
  /** Its own when absent. */
  readonly zone?: string
  /** Shared storage that the node must reach. */
  readonly pool?: string
}

interface SecretCopies {
  readonly keys: readonly [source: Key, target: Key]
  readonly userData?: readonly [source: Key, target: Key]
}

/** Both nodes get the same key, and the target the user data that the guest was made with. */
export function shareKeys({ server, sourceNode, targetNode }: MigrationInput): Action {
  const nodes = [sourceNode, targetNode] as const
  const input = {
    keys: nodes.map((node) => migrationKeyKey(server, node)),
    ...(server.spec.userDataSecretName === undefined
      ? {}
      : { userData: nodes.map((node) => userDataKey(server, node)) }),
  }
  return { do: 'effect', name: 'shareKeys', input }
}

/** The user data that the guest was made with follow a server that leaves a lost node. Free when they have. */
export function moveUserData(server: ServerObject, lostNode: string, node: string): readonly Action[] {
  if (server.spec.userDataSecretName === undefined || lostNode === node) return []
  const [source, target] = [userDataKey(server, lostNode), userDataKey(server, node)]
  return [
    { do: 'effect', name: 'bringUserData', input: { userData: [source, target] } },
    { do: 'remove', type: Secret, key: source },
  ]
}

/** The effects by name. The plans of this folder write their inputs. */
export const migrationEffects = (parts: Parts): Readonly<Record<string, Effect>> => ({
  reserve: withRefusalCondition(RESERVED, async (input, server) => {
    await requireNewest(parts.store, Server, server)
    const { pool, ...reservation } = input as unknown as TargetReservation
    const excludedNodes = nodesWithoutPool(parts.caches, pool)
    await orUnavailable(
      parts.db.transaction().execute((tx) => reserveTarget(tx, { ...reservation, excludedNodes }, parts.clock.now())),
    )
    return grantedCondition(RESERVED)
  }),
  switch: async (input) => {
    await orUnavailable(parts.db.transaction().execute((tx) => cutOverPlacement(tx, input as unknown as MigrationRef)))
    return undefined
  },
  release: async (input) => {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseTarget(tx, input as unknown as MigrationRef)))
    return undefined
  },
  shareKeys: async (input) => {
    const {
      keys: [source, target],
      userData,
    } = input as unknown as SecretCopies
    const psk = parts.random.bytes(KEY_BYTES).toString('hex')
    const key = (await parts.store.get(Secret, source))?.data ?? { psk: Buffer.from(psk).toString('base64') }
    for (const place of [source, target]) await writeSecret(parts, place, key)
    if (userData !== undefined) await copySecret(parts, userData)
    return undefined
  },
  bringUserData: async (input) => {
    const { userData } = input as unknown as Required<Pick<SecretCopies, 'userData'>>
    await copySecret(parts, userData)
    return undefined
  },
})

async function copySecret(parts: Parts, [source, target]: readonly [source: Key, target: Key]): Promise<void> {
  const given = (await parts.store.get(Secret, source))?.data
  if (given !== undefined) await writeSecret(parts, target, given)
}

/** Free when the Secret is there as it shall be. */
async function writeSecret(
  { store }: Pick<Parts, 'store'>,
  metadata: Key,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  if (!isDeepStrictEqual((await store.get(Secret, metadata))?.data, data))
    await store.apply(Secret, { metadata, spec: undefined, data })
}

/** Nodes that do not reach the shared storage; none when there is none to reach. */
export const nodesWithoutPool = (caches: Parts['caches'], pool: string | undefined): readonly string[] =>
  pool === undefined
    ? []
    : caches
        .of(Node)
        .list()
        .map(({ metadata }) => metadata.name)
        .filter((node) => !hasPool(caches, node, pool))

export const hasPool = (caches: Parts['caches'], node: string, pool: string): boolean =>
  caches
    .of(NodeReport)
    .get({ namespace: nodeNamespace(node), name: NODE_REPORT_NAME })
    ?.spec.pools?.includes(pool) ?? false
