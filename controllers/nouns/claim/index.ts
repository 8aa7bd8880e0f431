/** Releases the claims of deleted objects. Controllers release claims before their objects are deleted; this sweep is
 *  for objects whose finalizer was removed by hand. It releases nothing before hosts and network have removed their
 *  part: an address must not be assigned again while anything still routes it. A missing object is not an order. A
 *  change that was accepted and never written is released with its intent, by the sweeper of intents; a deletion is
 *  recorded before the object is removed (`controllers/kit/removals.ts`). Every other claim without an object is lost:
 *  it is kept and counted, and an operator decides. */
import { forgetUseOf, listDeletedUsers } from '../../../db/claim/index.ts'
import { listBeingChanged } from '../../../db/change/index.ts'
import {
  confirmRemoval,
  forgetAbsence,
  listOpenRemovals,
  pruneRemovals,
  type RemovedObject,
  wasRemovalOrdered,
} from '../../../db/removal/index.ts'
import { findServerClaims } from '../../../db/server/index.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { lookForAbsence, mayTakeAway } from '../../kit/absence.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { publicPortOwner, serverOwner } from '../../network/ovn/difference.ts'
import { defined } from '../../../domain/defined.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { type Shard, WHOLE } from '../../kit/shard.ts'
import { type Claimant, CLAIMANT_KINDS, type ClaimantKind, kindOfHolder } from './kinds.ts'
import { Outages } from '../../../kit/sys/outages.ts'

const SWEEP_MILLISECONDS = 120_000
/** The first sweep after a start: an operator who has restored a store soon learns what is missing. */
const FIRST_SWEEP_MILLISECONDS = 10_000
/** Up to this many missing objects are looked up one by one; for more, all are listed. */
const LOOKUPS_MAXIMUM = 20

export interface SweepParts extends Parts {
  /** All of the work when absent. */
  readonly shard?: Shard
  /** Called after each round. */
  readonly onClaimsSwept?: ((sweep: ClaimSweep) => void) | undefined
}

export interface ClaimSweep {
  /** The number of objects whose claims were released. */
  readonly released: number
  /** The number of claims without an object whose deletion was never ordered, by kind. */
  readonly lost: Readonly<Record<string, number>>
  /** So much went missing at once that nothing is removed. */
  readonly isStopped: boolean
}

/** Sweeps until the signal aborts. Never throws. */
export async function runClaimSweeper(parts: SweepParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'claims not swept')
  for (let wait = FIRST_SWEEP_MILLISECONDS; !signal.aborted; wait = SWEEP_MILLISECONDS) {
    await parts.clock.sleep(wait, signal)
    if (!signal.aborted && parts.caches.isReady())
      await outages.attempt(async () => {
        const { failure, ...sweep } = await sweepClaims(parts)
        parts.onClaimsSwept?.(sweep)
        if (failure !== undefined) throw failure
      })
  }
}

/** Releases the claims of objects that were deleted and no longer exist; keeps and counts those of missing objects.
 *  `failure`: a store that is unavailable kept some of them. */
export async function sweepClaims(parts: SweepParts): Promise<ClaimSweep & { readonly failure?: unknown }> {
  const rounds: { readonly kind: ClaimantKind; readonly ordered: readonly OrderedRelease[]; readonly known: number }[] =
    []
  const lost: Record<string, number> = {}
  // All kinds are looked at before anything is released: what stops one sweep stops all.
  for (const kind of CLAIMANT_KINDS) {
    const round = await lookAt(parts, kind)
    rounds.push({ kind, ordered: round.ordered, known: round.known })
    lost[kind.type.kind] = round.lost
  }
  const isStopped = !(await mayTakeAway(parts))
  let released = 0
  let failure: unknown
  if (!isStopped)
    for (const { kind, ordered, known } of rounds) {
      const now = ordered.filter(({ claimant }) => parts.sweepRate.mayGo(kind.type.kind, keyOf(claimant), known))
      for (const each of now) {
        const outcome = await tryToRelease(parts, kind, each)
        if (outcome === 'released') released++
        else failure ??= outcome.failure
      }
      if (now.length < ordered.length)
        parts.log.error('so much was deleted past its controllers that the rest waits', {
          kind: kind.type.kind,
          waiting: ordered.length - now.length,
        })
    }
  if (!isStopped) failure ??= (await forgetUsesOfDeleted(parts)).failure
  await orUnavailable(pruneRemovals(parts.db, parts.clock.now()))
  return { released, lost, isStopped, ...defined({ failure }) }
}

interface OrderedRelease {
  readonly claimant: Claimant
  readonly removals: readonly RemovedObject[]
}

const keyOf = ({ accountId, name }: Claimant): string => `${accountId}/${name}`
const namespaceOf = ({ accountId }: Pick<Claimant, 'accountId'>): string => accountNamespace(accountId)

/** Claimants of the kind without an object: those whose deletion was ordered, and the number of others. */
async function lookAt(
  parts: SweepParts,
  kind: ClaimantKind,
): Promise<{ readonly ordered: readonly OrderedRelease[]; readonly lost: number; readonly known: number }> {
  const { db, clock, shard = WHOLE } = parts
  const list = () => orUnavailable(kind.list(db, clock.now()))
  const all = await list()
  const own = all.filter(({ zone }) => (zone === undefined ? shard.hasCommonWork : shard.ownsZone(zone)))
  const orphans = await withoutObject(parts, kind, own)
  const removals = orphans.length === 0 ? [] : await orUnavailable(listOpenRemovals(db, kind.type.kind))
  const ofRemovals = Map.groupBy(removals, ({ namespace, name }) => `${namespace}/${name}`)
  const ordered: OrderedRelease[] = []
  const missing: Claimant[] = []
  for (const claimant of orphans) {
    const of = ofRemovals.get(`${namespaceOf(claimant)}/${claimant.name}`)
    if (of === undefined) missing.push(claimant)
    else ordered.push({ claimant, removals: of })
  }
  // A controller that was at work on one of them meanwhile has released its claims.
  const held = new Set(missing.length === 0 ? [] : (await list()).map(keyOf))
  const absent = missing.filter((claimant) => held.has(keyOf(claimant)))
  const [everybody, owned] = [new Set(all.map(keyOf)), new Set(own.map(keyOf))]
  await lookForAbsence(parts, kind.type.kind, {
    known: own.length,
    absent: absent.map((claimant) => ({ namespace: namespaceOf(claimant), name: claimant.name })),
    isOwn: ({ namespace, name }) => {
      const key = `${namespace.slice(accountNamespace('').length)}/${name}`
      return owned.has(key) || (!everybody.has(key) && shard.hasCommonWork)
    },
  })
  return { ordered, lost: absent.length, known: own.length }
}

/** Claimants that are not in Kubernetes, of which nothing is on a host and no change is under way. The order matters:
 *  an intent that does not exist was settled, and its change was written by then, or never will be. */
async function withoutObject(
  { caches, store, db }: Parts,
  { type, isOnHost }: ClaimantKind,
  claimants: readonly Claimant[],
): Promise<readonly Claimant[]> {
  const keyIn = (claimant: Claimant) => ({ namespace: namespaceOf(claimant), name: claimant.name })
  const unseen = claimants.filter(
    (claimant) => caches.of(type).get(keyIn(claimant)) === undefined && isOnHost?.(caches, keyIn(claimant)) !== true,
  )
  if (unseen.length === 0) return []
  const changing = await orUnavailable(listBeingChanged(db, unseen))
  const settled = unseen.filter((claimant) => !changing.has(keyOf(claimant)))
  if (settled.length > LOOKUPS_MAXIMUM) {
    const { items } = await store.list(type)
    const there = new Set(items.map(({ metadata: { namespace = '', name } }) => `${namespace}/${name}`))
    return settled.filter((claimant) => !there.has(`${namespaceOf(claimant)}/${claimant.name}`))
  }
  const orphans: Claimant[] = []
  for (const claimant of settled) if ((await store.get(type, keyIn(claimant))) === undefined) orphans.push(claimant)
  return orphans
}

/** A claimant that cannot be released yet does not block the others. */
async function tryToRelease(
  parts: SweepParts,
  kind: ClaimantKind,
  { claimant, removals }: OrderedRelease,
): Promise<'released' | { readonly failure?: unknown }> {
  const { db, clock, log, caches } = parts
  const { release } = kind
  const fields = { account_id: claimant.accountId, kind: kind.type.kind, name: claimant.name }
  if (release === undefined) {
    log.warn('claims of what was deleted are left', fields)
    return {}
  }
  if (kind.hasUnnamedGuest?.(caches, { namespace: namespaceOf(claimant), name: claimant.name }) === true) {
    log.info('claims of what was deleted wait for the end of its guest', fields)
    return {}
  }
  try {
    if (claimant.zone !== undefined) {
      await removeOrphanRows(parts, claimant.zone)
      if (kind.type === Server) await removeRowsOfServer(parts, claimant.zone, claimant)
    }
    await orUnavailable(
      db.transaction().execute(async (tx) => {
        await release(tx, claimant)
        for (const removed of removals) await confirmRemoval(tx, removed, clock.now())
        await forgetAbsence(tx, kind.type.kind, { namespace: namespaceOf(claimant), name: claimant.name })
      }),
    )
    log.info('claims of what was deleted released', fields)
    return 'released'
  } catch (error) {
    const isOutage = error instanceof Unavailable
    log[isOutage ? 'info' : 'warn']('claims of what was deleted not released', { ...fields, error })
    return isOutage ? { failure: error } : {}
  }
}

type DeletedUser = Awaited<ReturnType<typeof listDeletedUsers>>[number]

/** Values that were kept for an object which released everything before: PostgreSQL was started, or the object was
 *  reconciled by a former leader, during the last moments of its deletion. Nobody else would forget them. One that
 *  cannot be forgotten yet does not block the others. `failure`: that of a store that is unavailable. */
async function forgetUsesOfDeleted(parts: SweepParts): Promise<{ readonly failure?: unknown }> {
  const { db, log } = parts
  let failure: unknown
  const users = await orUnavailable(listDeletedUsers(db))
  for (const user of users)
    try {
      await forgetUsesOf(parts, user, users.length)
    } catch (error) {
      const isOutage = error instanceof Unavailable
      if (isOutage) failure ??= error
      const { accountId, holder, uid } = user
      log[isOutage ? 'info' : 'warn']('values of what was deleted not released', {
        account_id: accountId,
        holder,
        uid,
        error,
      })
    }
  return defined({ failure })
}

/** Forgets what is kept for one of so many, unless the object, a host or the network still has it. Only the shard of
 *  its zones does: it alone reads their networks. An object whose zone is not known may be in any. */
async function forgetUsesOf(parts: SweepParts, user: DeletedUser, known: number): Promise<void> {
  const { db, caches, store, ovn, sweepRate, shard = WHOLE } = parts
  const { type, isOnHost, hasUnnamedGuest } = kindOfHolder(user.holder) ?? {}
  const zones =
    user.zones.length > 0
      ? user.zones
      : caches
          .of(Zone)
          .list()
          .map(({ metadata }) => metadata.name)
  if (zones.length === 0 || !zones.every((zone) => shard.ownsZone(zone))) return
  const key = { namespace: namespaceOf(user), name: user.holder.slice(user.holder.indexOf('/') + 1) }
  const is = (object: KubeObject | undefined) => object?.metadata.uid === user.uid
  if (type === undefined || is(caches.of(type).get(key))) return
  if (isOnHost?.(caches, key) === true || hasUnnamedGuest?.(caches, key) === true) return
  if (is(await store.get(type, key)) || !sweepRate.mayGo(type.kind, `${user.uid} in use`, known)) return
  for (const zone of zones) {
    await removeOrphanRows(parts, zone)
    const owners = (await ovn?.ownersIn(zone)) ?? []
    if (owners.some((owner) => owner.endsWith(`/${user.uid}`))) return
  }
  await orUnavailable(forgetUseOf(db, user))
}

/** The kinds that own rows, by the names that they use in OVN. */
const ROW_OWNERS: Readonly<Record<string, ResourceType>> = {
  PublicPort: Server,
  Server,
  Network,
  Router,
  FloatingIP: FloatingIp,
  LoadBalancer,
}

/** Removes from the zone's network the rows of owners whose deletion was ordered and that no longer exist. All other
 *  rows stay, whoever owns them. */
async function removeOrphanRows({ caches, store, ovn, db }: Parts, zone: string): Promise<void> {
  if (ovn === undefined) return
  for (const owner of await ovn.ownersIn(zone)) {
    const [kind = '', uid = ''] = owner.split('/')
    const type = ROW_OWNERS[kind]
    const isOwners = ({ metadata }: Pick<KubeObject, 'metadata'>) => metadata.uid === uid
    if (type === undefined || caches.of(type).list().some(isOwners)) continue
    if (!(await orUnavailable(wasRemovalOrdered(db, uid)))) continue
    if (!(await store.list(type)).items.some(isOwners)) await ovn.apply({ zone, owner, rows: [] })
  }
}

/** Removes the rows of a server whose claims are about to be released. An operator who gives it up does not know its
 *  uid, by which rows are owned: they are found by the MAC address that it has claimed. */
async function removeRowsOfServer(
  { store, ovn, db }: Parts,
  zone: string,
  { accountId, name: serverId }: Claimant,
): Promise<void> {
  const claims = await orUnavailable(findServerClaims(db, { accountId, serverId }))
  if (ovn === undefined || claims === undefined) return
  for (const port of await ovn.ownersOfMac(zone, claims.macAddress)) {
    const uid = port.slice(publicPortOwner('').length)
    if (port !== publicPortOwner(uid)) continue
    if ((await store.list(Server)).items.some(({ metadata }) => metadata.uid === uid)) continue
    for (const owner of [port, serverOwner(uid)]) await ovn.apply({ zone, owner, rows: [] })
  }
}
