/** Gives back what servers hold that are gone. Their controller does so before they go; this is for one whose finalizer
 *  somebody took off, and never before the host has let go of the guest. */
import { listServersWithClaims, releaseServer, type ServerId } from '../../db/server/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance } from '../../resources/instance/index.ts'
import { Server } from '../../resources/server/index.ts'
import { orUnavailable } from '../database.ts'
import type { Parts } from '../parts.ts'

/** A server is written long before its claims are this old, or never: then its intent was settled. */
const CLAIM_AGE_MILLISECONDS = 600_000
const SWEEP_MILLISECONDS = 120_000

/** Sweeps until the signal aborts. Never throws. */
export async function runClaimSweeper(parts: Parts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await parts.clock.sleep(SWEEP_MILLISECONDS, signal)
    if (!signal.aborted && parts.caches.isReady())
      await sweepClaims(parts).catch((error: unknown) => parts.log.warn('claims not swept', { error }))
  }
}

/** Releases the old claims of servers that are gone; answers how many servers that were. */
export async function sweepClaims(parts: Parts): Promise<number> {
  const { db, clock, log } = parts
  const before = new Date(clock.now().getTime() - CLAIM_AGE_MILLISECONDS)
  let released = 0
  for (const claimant of await orUnavailable(listServersWithClaims(db, before))) {
    if (!(await isServerGone(parts, claimant))) continue
    await orUnavailable(db.transaction().execute((tx) => releaseServer(tx, claimant)))
    log.warn('claims of a lost server released', { account_id: claimant.accountId, server_id: claimant.serverId })
    released++
  }
  return released
}

async function isServerGone({ caches, store }: Parts, { accountId, serverId }: ServerId): Promise<boolean> {
  const key = { namespace: accountNamespace(accountId), name: serverId }
  if (
    caches.of(Server).get(key) !== undefined ||
    caches
      .of(Instance)
      .list()
      .some(({ spec }) => spec.server.namespace === key.namespace && spec.server.name === key.name)
  )
    return false
  return (await store.get(Server, key)) === undefined
}
