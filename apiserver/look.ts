/** Records resources that objects use and for which PostgreSQL has no claims, each time that PostgreSQL was started: it
 *  may be a restore of yesterday, and allocates nothing unique before this is done (`db/look/`). */
import { noteLook, wasLookedAt } from '../db/look/index.ts'
import type { GuestOnNode } from '../domain/node/placement.ts'
import type { HeldUse, Use } from '../domain/claim/use.ts'
import { isUuid } from '../domain/uuid.ts'
import type { Cache } from '../kit/kube/cache.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import { FloatingIp } from '../resources/floating-ip/index.ts'
import { guestsOnNodes } from '../resources/instance/guests-on-nodes.ts'
import { accountOfNamespace } from '../resources/index.ts'
import { Instance, NodeReport, Volume } from '../resources/instance/index.ts'
import { LoadBalancer } from '../resources/load-balancer/index.ts'
import { Router } from '../resources/router/index.ts'
import { Server } from '../resources/server/index.ts'
import { usesOfFloatingIp, usesOfLoadBalancer, usesOfRouter, usesOfServer } from '../resources/uses.ts'
import type { Parts } from './kit/parts.ts'
import { Outages } from '../kit/sys/outages.ts'

const LOOK_MILLISECONDS = 1_000

type LookParts = Pick<Parts, 'db' | 'store' | 'caches' | 'clock' | 'log'>

/** Does nothing when it was done since PostgreSQL was started. The caches must be ready. */
export async function look({ db, store, caches, clock, log }: LookParts): Promise<void> {
  if (await wasLookedAt(db)) return
  const uses = usesIn(caches)
  const holders = await noteLook(db, uses, clock.now(), await guestsIn(store))
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

interface Found extends HeldUse {
  /** Whether its object is being deleted. */
  readonly isLeaving: boolean
}

const usesIn = (caches: Parts['caches']): readonly Found[] => [
  ...held(caches.of(Server), 'server', usesOfServer),
  ...held(caches.of(FloatingIp), 'floating_ip', usesOfFloatingIp),
  ...held(caches.of(Router), 'router', usesOfRouter),
  ...held(caches.of(LoadBalancer), 'load_balancer', usesOfLoadBalancer),
]

/** The contents of the nodes, requested once for each look. */
async function guestsIn(store: Parts['store']): Promise<readonly GuestOnNode[]> {
  const [instances, reports, volumes] = [
    await store.list(Instance),
    await store.list(NodeReport),
    await store.list(Volume),
  ]
  const sizes = new Map(
    volumes.items.map(({ metadata: { namespace, name }, spec }) => [`${namespace}/${name}`, spec.sizeGibibytes]),
  )
  return guestsOnNodes({
    instances: instances.items,
    reports: reports.items,
    sizeOf: ({ namespace, name }) => sizes.get(`${namespace}/${name}`),
  })
}

const held = <Spec, Status>(
  cache: Cache<Spec, Status>,
  noun: string,
  usesOf: (object: KubeObject<Spec, Status>, accountId: string) => readonly Use[],
): readonly Found[] =>
  cache.list().flatMap((object) => {
    const { namespace = '', name, uid = '', deletionTimestamp } = object.metadata
    const isLeaving = deletionTimestamp !== undefined
    const accountId = accountOfNamespace(namespace)
    return accountId === undefined || !isUuid(accountId)
      ? []
      : usesOf(object, accountId).map((use) => ({ ...use, accountId, uid, holder: `${noun}/${name}`, isLeaving }))
  })
