/** Gives back what is held by what is gone. Controllers do so before their objects go; this is for those whose
 *  creation died half-way, and those whose finalizer somebody took off, and never before the hosts and the network have
 *  let go of what they have of it: an address is not another's while anything still leads there. */
import { listCustomImagesWithClaims, releaseCustomImage } from '../../db/custom-image/index.ts'
import { releaseFloatingIp } from '../../db/floating-ip/index.ts'
import { listRowsAtRest, releaseNetwork } from '../../db/network/index.ts'
import type { Database } from '../../db/open.ts'
import { releaseRouter } from '../../db/router/index.ts'
import { listServersWithClaims, releaseServer } from '../../db/server/index.ts'
import { deleteStorageClaim, listStoragesWithClaims } from '../../db/storage/index.ts'
import type { Key, KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { CustomImage } from '../../resources/custom-image/index.ts'
import { FloatingIp } from '../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Image, Instance, Volume } from '../../resources/instance/index.ts'
import { Network } from '../../resources/network/index.ts'
import { Router } from '../../resources/router/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { orUnavailable } from '../database.ts'
import type { Parts } from '../parts.ts'
import { type Shard, WHOLE } from '../shard.ts'

/** What has claims is written long before they are this old, or never: then its intent was settled. */
const CLAIM_AGE_MILLISECONDS = 600_000
const SWEEP_MILLISECONDS = 120_000

interface Claimant {
  readonly accountId: string
  /** Whose shard releases it: one without a zone is common work. */
  readonly zone?: string
  readonly name: string
}

/** Who has claims, and what hosts have of it. */
interface ClaimantKind {
  readonly type: ResourceType
  readonly list: (db: Database, claimedBefore: Date) => Promise<readonly Claimant[]>
  /** Idempotent. */
  readonly release: (db: Database, claimant: Claimant) => Promise<void>
  /** Nothing of it is on hosts when absent. */
  readonly isOnHost?: (caches: Parts['caches'], key: Key) => boolean
}

const isOnHost =
  <Spec, Status>(type: ResourceType<Spec, Status>, ownerOf: (child: KubeObject<Spec, Status>) => Key) =>
  (caches: Parts['caches'], { namespace, name }: Key): boolean =>
    caches
      .of(type)
      .list()
      .map(ownerOf)
      .some((owner) => owner.namespace === namespace && owner.name === name)

const listNamed =
  (table: Parameters<typeof listRowsAtRest>[1]): ClaimantKind['list'] =>
  async (db) =>
    (await listRowsAtRest(db, table)).map(({ id: name, ...of }) => ({ ...of, name }))

const CLAIMANT_KINDS: readonly ClaimantKind[] = [
  {
    type: Server,
    list: async (db, before) =>
      (await listServersWithClaims(db, before)).map(({ serverId: name, ...of }) => ({ ...of, name })),
    release: (db, { accountId, name: serverId }) =>
      db.transaction().execute((tx) => releaseServer(tx, { accountId, serverId })),
    isOnHost: isOnHost(Instance, ({ spec }) => spec.server),
  },
  {
    type: Storage,
    list: async (db, before) =>
      (await listStoragesWithClaims(db, before)).map(({ accountId, storageId: name }) => ({ accountId, name })),
    release: (db, { accountId, name: storageId }) =>
      db.transaction().execute((tx) => deleteStorageClaim(tx, { accountId, storageId })),
    isOnHost: isOnHost(Volume, ({ spec }) => spec.storage),
  },
  {
    type: CustomImage,
    list: async (db) =>
      (await listCustomImagesWithClaims(db)).map(({ accountId, imageId: name }) => ({ accountId, name })),
    release: (db, { accountId, name: imageId }) =>
      db.transaction().execute((tx) => releaseCustomImage(tx, { accountId, imageId })),
    isOnHost: isOnHost(Image, ({ spec }) => spec.image),
  },
  // In this order: networks are kept by what is in them.
  {
    type: FloatingIp,
    list: listNamed('floating_ip'),
    release: (db, { accountId, name: floatingIpId }) =>
      db.transaction().execute((tx) => releaseFloatingIp(tx, { accountId, floatingIpId })),
  },
  {
    type: Router,
    list: listNamed('router'),
    release: (db, { accountId, name: routerId }) =>
      db.transaction().execute((tx) => releaseRouter(tx, { accountId, routerId })),
  },
  {
    type: Network,
    list: listNamed('network'),
    release: (db, { accountId, name: networkId }) =>
      db.transaction().execute((tx) => releaseNetwork(tx, { accountId, networkId })),
  },
]

/** Sweeps until the signal aborts. Never throws. */
export async function runClaimSweeper(parts: SweepParts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await parts.clock.sleep(SWEEP_MILLISECONDS, signal)
    if (!signal.aborted && parts.caches.isReady())
      await sweepClaims(parts).catch((error: unknown) => parts.log.warn('claims not swept', { error }))
  }
}

export interface SweepParts extends Parts {
  /** The whole, when absent. */
  readonly shard?: Shard
}

/** Releases the old claims of what is gone; answers of how many objects. */
export async function sweepClaims(parts: SweepParts): Promise<number> {
  const { db, clock, log, shard = WHOLE } = parts
  const before = new Date(clock.now().getTime() - CLAIM_AGE_MILLISECONDS)
  let released = 0
  for (const kind of CLAIMANT_KINDS)
    for (const claimant of await orUnavailable(kind.list(db, before))) {
      const isOwn = claimant.zone === undefined ? shard.hasCommonWork : shard.ownsZone(claimant.zone)
      if (!isOwn || !(await isGone(parts, kind, claimant))) continue
      const fields = { account_id: claimant.accountId, kind: kind.type.kind, name: claimant.name }
      // What cannot be released yet keeps nothing else from it.
      await releaseAll(parts, kind, claimant).then(
        () => {
          released++
          log.warn('claims of a lost object released', fields)
        },
        (error: unknown) => log.warn('claims of a lost object not released', { ...fields, error }),
      )
    }
  return released
}

/** What it has claimed, once the network has nothing of anybody who is gone. */
async function releaseAll(parts: Parts, kind: ClaimantKind, claimant: Claimant): Promise<void> {
  if (claimant.zone !== undefined) await removeOrphanRows(parts, claimant.zone)
  await orUnavailable(kind.release(parts.db, claimant))
}

/** By the kinds that own rows, as they name themselves there. */
const ROW_OWNERS: Readonly<Record<string, ResourceType>> = {
  PublicPort: Server,
  Server,
  Network,
  Router,
  FloatingIP: FloatingIp,
}

/** Takes out of the zone's network what nobody owns any more. */
async function removeOrphanRows({ caches, store, ovn }: Parts, zone: string): Promise<void> {
  if (ovn === undefined) return
  for (const owner of await ovn.ownersIn(zone)) {
    const [kind = '', uid] = owner.split('/')
    const type = ROW_OWNERS[kind]
    const isOwners = ({ metadata }: Pick<KubeObject, 'metadata'>) => metadata.uid === uid
    if (type === undefined || caches.of(type).list().some(isOwners)) continue
    if (!(await store.list(type)).items.some(isOwners)) await ovn.apply({ zone, owner, rows: [] })
  }
}

async function isGone({ caches, store }: Parts, kind: ClaimantKind, { accountId, name }: Claimant): Promise<boolean> {
  const key = { namespace: accountNamespace(accountId), name }
  if (caches.of(kind.type).get(key) !== undefined || kind.isOnHost?.(caches, key) === true) return false
  return (await store.get(kind.type, key)) === undefined
}
