/** What the server controller does in PostgreSQL, by name. Each effect is free when it has happened already. */
import { appendAudit } from '../../db/audit/index.ts'
import { hasIntent, takeIntent } from '../../db/change/index.ts'
import { openGroupCommit } from '../../db/group-commit.ts'
import {
  beginSizeChange,
  claimServers,
  endSizeChange,
  findServerClaims,
  batchKeyOf,
  releaseServer,
  renumberServer,
  type ServerDemand,
} from '../../db/server/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/labels.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { auditEffect } from '../audit.ts'
import { orUnavailable } from '../database.ts'
import { type EffectOn, type EffectsOn, joinEffects } from '../effects.ts'
import { requireNewest } from '../newest.ts'
import type { Parts } from '../parts.ts'
import { CLAIMED, RENUMBERED, RESIZED } from './conditions.ts'
import type { ServerEffects } from './actions.ts'
import { grantedCondition, withRefusalCondition } from '../refusal.ts'
import { nodesWithoutPool } from '../shared-pools.ts'
import { migrationEffects } from './migration/effects.ts'
import { forceReleaseEffect } from './recovery/force-release.ts'

type Effect<Name extends keyof ServerEffects> = EffectOn<ServerEffects[Name], ServerSpec, ServerStatus>

export const serverEffects = (parts: Parts): EffectsOn<ServerEffects, ServerSpec, ServerStatus> =>
  joinEffects(
    {
      claim: claimEffect(parts),
      give_back: giveBackEffect(parts),
      renumber: renumberEffect(parts),
      resize: resizeEffect(parts),
      sized: sizedEffect(parts),
      audit: auditEffect(parts),
      forceRelease: forceReleaseEffect(parts),
    },
    migrationEffects(parts),
  )

/** What was claimed becomes visible by itself. Servers of an account wait for its quotas anyway: those that are alike
 *  are claimed together. */
function claimEffect({ store, db, clock, random }: Parts): Effect<'claim'> {
  const claim = openGroupCommit(db, (tx, demands: readonly ServerDemand[]) =>
    claimServers(tx, demands, { now: clock.now(), random }),
  )
  return withRefusalCondition(CLAIMED, async (demand, server) => {
    await requireNewest(store, Server, server)
    await orUnavailable(claim(batchKeyOf(demand), demand))
    return grantedCondition(CLAIMED)
  })
}

/** Free when the server has a prefix that it can keep. */
const renumberEffect = ({ db }: Parts): Effect<'renumber'> =>
  withRefusalCondition(RENUMBERED, async (input) => {
    await orUnavailable(db.transaction().execute((tx) => renumberServer(tx, input)))
    return grantedCondition(RENUMBERED)
  })

/** What was claimed becomes visible by itself. */
const resizeEffect = ({ store, caches, db, clock }: Parts): Effect<'resize'> =>
  withRefusalCondition(RESIZED, async ({ pool, ...change }, server) => {
    await requireNewest(store, Server, server)
    const excludedNodes = nodesWithoutPool(caches, pool)
    await orUnavailable(
      db.transaction().execute((tx) => beginSizeChange(tx, { ...change, excludedNodes }, clock.now())),
    )
    return grantedCondition(RESIZED)
  })

const sizedEffect =
  ({ db }: Parts): Effect<'sized'> =>
  async (input) => {
    await orUnavailable(db.transaction().execute((tx) => endSizeChange(tx, input)))
    return undefined
  }

/** With the server goes the only sign that its last change was made: an intent that waits for that sign is resolved
 *  here. Free when nothing is claimed and no entry is owed, so that later reconciles come to the end. */
const giveBackEffect =
  ({ store, db, clock, random }: Parts): Effect<'give_back'> =>
  async (id, server) => {
    await requireNewest(store, Server, server)
    const change = server.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
    const isOwed = change !== undefined && (await orUnavailable(hasIntent(db, change)))
    if (!isOwed && (await orUnavailable(findServerClaims(db, id))) === undefined) return undefined
    await orUnavailable(
      db.transaction().execute(async (tx) => {
        await releaseServer(tx, id)
        const entry = change === undefined ? undefined : await takeIntent(tx, change)
        if (entry !== undefined) await appendAudit(tx, entry, { clock, random })
      }),
    )
    return undefined
  }
