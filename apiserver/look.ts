/** Records resources that objects use and for which PostgreSQL has no claims, each time that PostgreSQL was started: it
 *  may be a restore of yesterday, and allocates nothing unique before this is done (`db/look/`). */
import { noteLook, wasLookedAt } from '../db/look/index.ts'
import { serverHolder } from '../db/server/holders.ts'
import type { GuestOnNode } from '../domain/node/placement.ts'
import type { HeldUse } from '../domain/claim/use.ts'
import { isUuid } from '../domain/uuid.ts'
import { guestsOnNodes } from '../resources/instance/guests-on-nodes.ts'
import { accountOfNamespace } from '../resources/index.ts'
import { Instance, NodeReport, Volume } from '../resources/instance/index.ts'
import { usesOfInstance } from '../resources/instance/uses.ts'
import { Server } from '../resources/server/index.ts'
import type { Kind } from './kit/admission/kind.ts'
import type { Parts } from './kit/parts.ts'
import { NOUNS } from './nouns.ts'
import { Outages } from '../kit/sys/outages.ts'

const LOOK_MILLISECONDS = 1_000

type LookParts = Pick<Parts, 'db' | 'store' | 'caches' | 'clock' | 'log'>

/** Does nothing when it was done since PostgreSQL was started. The caches must be ready. */
export async function look({ db, store, caches, clock, log }: LookParts): Promise<void> {
  if (await wasLookedAt(db)) return
  const nodes = await nodesOf(store)
  const uses = [...usesIn(caches), ...usesOfGuests(caches, nodes.instances)]
  const holders = await noteLook(db, uses, clock.now(), guestsIn(nodes))
  // An object whose deletion has nearly finished has released its claims before.
  const leaving = new Set(uses.filter(({ isLeaving }) => isLeaving).map(keyOf))
  const found = holders.filter((holder) => !leaving.has(keyOf(holder))).length
  if (found > 0) log.error('in use, and without claims in PostgreSQL: kept from others', { found })
}

/** Retries until the signal aborts. Never throws. */
export async function runLooks(parts: LookParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'what is in use is not known')
  while (!signal.aborted) {
    await parts.clock.sleep(LOOK_MILLISECONDS, signal)
    if (!signal.aborted) await outages.attempt(() => look(parts))
  }
}

const keyOf = ({ accountId, holder }: Pick<HeldUse, 'accountId' | 'holder'>): string => `${accountId}/${holder}`

interface FoundUse extends HeldUse {
  /** Whether its object is being deleted. */
  readonly isLeaving: boolean
}

/** What the objects of every kind use that says so. */
const usesIn = (caches: Parts['caches']): readonly FoundUse[] =>
  NOUNS.flatMap(({ name, kinds }) =>
    kinds.flatMap(({ resource, usesOf }) => (usesOf === undefined ? [] : held(caches, name, { resource, usesOf }))),
  )

/** The contents of the nodes, requested once for each look. */
async function nodesOf(store: Parts['store']) {
  const [instances, reports, volumes] = [
    await store.list(Instance),
    await store.list(NodeReport),
    await store.list(Volume),
  ]
  return { instances: instances.items, reports: reports.items, volumes: volumes.items }
}
type OnNodes = Awaited<ReturnType<typeof nodesOf>>

function guestsIn({ instances, reports, volumes }: OnNodes): readonly GuestOnNode[] {
  const sizes = new Map(
    volumes.map(({ metadata: { namespace, name }, spec }) => [`${namespace}/${name}`, spec.sizeGibibytes]),
  )
  return guestsOnNodes({ instances, reports, sizeOf: ({ namespace, name }) => sizes.get(`${namespace}/${name}`) })
}

/** What guests use is of their servers, also what these do not report: their replaced prefixes, and all of one that is
 *  being created. */
const usesOfGuests = (caches: Parts['caches'], instances: OnNodes['instances']): readonly FoundUse[] =>
  instances.flatMap(({ metadata, spec }) => {
    const { namespace, name } = spec.server
    const accountId = accountOfNamespace(namespace)
    if (accountId === undefined || !isUuid(accountId)) return []
    const server = caches.of(Server).get({ namespace, name })?.metadata ?? { ...metadata, uid: spec.server.uid }
    const { uid = '', deletionTimestamp } = server
    const isLeaving = deletionTimestamp !== undefined
    return usesOfInstance(spec).map((use) => ({ ...use, accountId, uid, holder: serverHolder(name), isLeaving }))
  })

const held = (
  caches: Parts['caches'],
  noun: string,
  { resource, usesOf }: Pick<Kind, 'resource'> & { readonly usesOf: NonNullable<Kind['usesOf']> },
): readonly FoundUse[] =>
  caches
    .of(resource)
    .list()
    .flatMap((object) => {
      const { namespace = '', name, uid = '', deletionTimestamp } = object.metadata
      const isLeaving = deletionTimestamp !== undefined
      const accountId = accountOfNamespace(namespace)
      return accountId === undefined || !isUuid(accountId)
        ? []
        : usesOf(object, accountId).map((use) => ({ ...use, accountId, uid, holder: `${noun}/${name}`, isLeaving }))
    })
