/** The effects of migrations: reservations in PostgreSQL, and the Secrets that both nodes share. */
import { releaseTarget, reserveTarget, cutOverPlacement } from '../../../../db/server/index.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { orUnavailable } from '../../../kit/outage.ts'
import type { EffectsOn } from '../../../kit/effects.ts'
import { requireNewest } from '../../../kit/newest.ts'
import type { Parts } from '../../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../../kit/refusal.ts'
import { shareKey, writeSecret } from '../../../kit/shared-key.ts'
import { nodesWithoutPool, nodesWithoutPools } from '../../../kit/shared-pools.ts'
import type { MigrationEffects, SecretCopy, ServerAction } from '../actions.ts'
import { RESERVED } from '../conditions.ts'
import { migrationKeyKey, userDataKey } from '../drafts.ts'
import type { ServerObject } from '../observed.ts'
import type { MigrationInput } from './input.ts'

/** Gives both nodes the same key, and the target the user data with which the guest was created. */
export const shareKeys = ({ server, sourceNode, targetNode }: MigrationInput): ServerAction => ({
  do: 'effect',
  name: 'shareKeys',
  input: {
    keys: [migrationKeyKey(server, sourceNode), migrationKeyKey(server, targetNode)],
    ...(server.spec.userDataSecretName === undefined
      ? {}
      : { userData: [userDataKey(server, sourceNode), userDataKey(server, targetNode)] }),
  },
})

/** Moves the guest's user data from a lost node to the server's new one. Idempotent. */
export function moveUserData(server: ServerObject, lostNode: string, node: string): readonly ServerAction[] {
  if (server.spec.userDataSecretName === undefined || lostNode === node) return []
  const [source, target] = [userDataKey(server, lostNode), userDataKey(server, node)]
  return [
    { do: 'effect', name: 'bringUserData', input: { userData: [source, target] } },
    { do: 'remove', type: Secret, key: source },
  ]
}

export const migrationEffects = (parts: Parts): EffectsOn<MigrationEffects, ServerSpec, ServerStatus> => ({
  reserve: withRefusalCondition(RESERVED, async ({ pools = [], isToShare = false, ...reservation }, server) => {
    await requireNewest(parts.store, Server, server)
    const excludedNodes = [
      ...pools.flatMap((pool) => nodesWithoutPool(parts.caches, pool)),
      ...(isToShare ? nodesWithoutPools(parts.caches) : []),
    ]
    await orUnavailable(
      parts.db.transaction().execute((tx) => reserveTarget(tx, { ...reservation, excludedNodes }, parts.clock.now())),
    )
    return grantedCondition(RESERVED)
  }),
  async switch(migration) {
    await orUnavailable(parts.db.transaction().execute((tx) => cutOverPlacement(tx, migration)))
    return undefined
  },
  async release(migration) {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseTarget(tx, migration)))
    return undefined
  },
  async shareKeys({ keys, userData }) {
    await shareKey(parts, keys)
    if (userData !== undefined) await copySecret(parts, userData)
    return undefined
  },
  async bringUserData({ userData }) {
    await copySecret(parts, userData)
    return undefined
  },
})

async function copySecret(parts: Parts, [source, target]: SecretCopy): Promise<void> {
  const data = (await parts.store.get(Secret, source))?.data
  if (data !== undefined) await writeSecret(parts, target, data)
}
