/** The effects of the server controller in PostgreSQL, by name. Each does nothing when it has happened already. */
import { notFound } from '../../../domain/problem.ts'
import { keepInUse, usesSomething } from '../../../db/claim/index.ts'
import { openGroupCommit } from '../../../db/kit/group-commit.ts'
import { attachInterface, leaveNetwork, releaseInterface } from '../../../db/network-interface/index.ts'
import {
  beginSizeChange,
  claimServers,
  endSizeChange,
  findServerClaims,
  batchKeyOf,
  releaseServer,
  serverHolder,
  renumberServer,
  type ServerDemand,
} from '../../../db/server/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../resources/server/index.ts'
import { auditEffect } from '../../kit/audit.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { type EffectOn, type EffectsOn, joinEffects } from '../../kit/effects.ts'
import { requireNewest } from '../../kit/newest.ts'
import type { Parts } from '../../kit/parts.ts'
import { CLAIMED, JOINED, RENUMBERED, RESIZED } from './conditions.ts'
import type { ServerEffects } from './actions.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { nodesWithoutPool } from '../../kit/shared-pools.ts'
import { requireMachineOwner, requireStandingOfEdit } from '../../kit/standing.ts'
import { migrationEffects } from './migration/effects.ts'
import { forceReleaseEffect } from './recovery/force-release.ts'
import { unforward, unprogram, programEffect, type ProgrammedServers } from './network-effect.ts'

type Effect<Name extends keyof ServerEffects> = EffectOn<ServerEffects[Name], ServerSpec, ServerStatus>

export const serverEffects = (
  parts: Parts,
  programmed: ProgrammedServers,
): EffectsOn<ServerEffects, ServerSpec, ServerStatus> =>
  joinEffects(
    {
      claim: claimEffect(parts),
      give_back: giveBackEffect(parts),
      keep_in_use: keepInUseEffect(parts),
      renumber: renumberEffect(parts),
      resize: resizeEffect(parts),
      sized: sizedEffect(parts),
      audit: auditEffect(parts),
      forceRelease: forceReleaseEffect(parts),
      program: programEffect(parts, programmed),
      join: joinEffect(parts),
      leave: leaveEffect(parts),
    },
    migrationEffects(parts),
  )

/** Every reconcile reads the claims, so the effect reports only the grant. Servers of an account wait for its quotas in
 *  any case: similar servers are claimed together. */
function claimEffect(parts: Parts): Effect<'claim'> {
  const { store, db, clock, random } = parts
  const claim = openGroupCommit(db, (tx, demands: readonly ServerDemand[]) =>
    claimServers(tx, demands, { now: clock.now(), random }),
  )
  return withRefusalCondition(CLAIMED, async (demand, server) => {
    await requireNewest(store, Server, server)
    const { managedBy } = server.spec
    if (managedBy === undefined) await requireStandingOfEdit(parts, server, demand.accountId)
    else await requireMachineOwner(parts, { accountId: demand.accountId, managedBy })
    await orUnavailable(claim(batchKeyOf(demand), demand))
    return grantedCondition(CLAIMED)
  })
}

/** Does nothing when the server has a prefix that it can keep. */
const renumberEffect = ({ db }: Parts): Effect<'renumber'> =>
  withRefusalCondition(RENUMBERED, async (input) => {
    await orUnavailable(db.transaction().execute((tx) => renumberServer(tx, input)))
    return grantedCondition(RENUMBERED)
  })

/** Does nothing when everything is as desired already. */
const joinEffect = ({ store, db, clock, random }: Parts): Effect<'join'> =>
  withRefusalCondition(JOINED, async ({ accountId, serverId, joining, leaving }, server) => {
    await requireNewest(store, Server, server)
    const { namespace = '' } = server.metadata
    const demands = await Promise.all(
      joining.map(async (entry) => {
        const network = await store.get(Network, { namespace, name: entry.networkId })
        if (network?.metadata.uid === undefined) throw notFound('network')
        return { ...entry, networkUid: network.metadata.uid }
      }),
    )
    await orUnavailable(
      db.transaction().execute(async (tx) => {
        for (const networkId of leaving) await leaveNetwork(tx, { accountId, serverId, networkId })
        for (const demand of demands)
          await attachInterface(tx, { accountId, serverId, ...demand }, { now: clock.now(), random })
      }),
    )
    return grantedCondition(JOINED)
  })

const leaveEffect =
  ({ db }: Parts): Effect<'leave'> =>
  async ({ accountId, ids }) => {
    await orUnavailable(
      db.transaction().execute(async (tx) => {
        for (const id of ids) await releaseInterface(tx, { accountId, id })
      }),
    )
    return undefined
  }

/** Every reconcile reads the claims, so the effect reports only the grant. */
const resizeEffect = (parts: Parts): Effect<'resize'> =>
  withRefusalCondition(RESIZED, async ({ pool, ...change }, server) => {
    const { store, caches, db, clock } = parts
    await requireNewest(store, Server, server)
    await requireStandingOfEdit(parts, server, change.accountId)
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

/** Does nothing when nothing is claimed, so that later reconciles reach the end. The network's rows are deleted first:
 *  after the release, the addresses may belong to others. */
const giveBackEffect =
  (parts: Parts): Effect<'give_back'> =>
  async (id, server) => {
    const { store, db } = parts
    await requireNewest(store, Server, server)
    const claims = await orUnavailable(findServerClaims(db, id))
    await unprogram(parts, server, claims?.placement.zone)
    await unforward(parts, server, id.accountId)
    const holding = { accountId: id.accountId, holder: serverHolder(id.serverId) }
    if (claims === undefined && !(await orUnavailable(usesSomething(db, holding)))) return undefined
    await orUnavailable(db.transaction().execute((tx) => releaseServer(tx, id)))
    return undefined
  }

const keepInUseEffect =
  ({ db, clock }: Parts): Effect<'keep_in_use'> =>
  async ({ accountId, serverId, uses }, { metadata: { uid = '' } }) => {
    await orUnavailable(keepInUse(db, { accountId, holder: serverHolder(serverId), uid }, uses, clock.now()))
    return undefined
  }
