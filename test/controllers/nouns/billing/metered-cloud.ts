/** A cloud whose resources are written down by hand, and a clock that is set: for tests of what is metered and
 *  billed. */
import { openMeter } from '../../../../controllers/nouns/billing/meter.ts'
import { recordGone } from '../../../../controllers/nouns/billing/index.ts'
import type { Database } from '../../../../db/kit/open.ts'
import { defined } from '../../../../domain/defined.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import type { KubeObject, ResourceType } from '../../../../kit/kube/object.ts'
import type { Store } from '../../../../kit/kube/store.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { newUuid } from '../../../../kit/sys/random.ts'
import { type Measurement, type MeteredBytes, meteredAfter } from '../../../../domain/billing/metered-bytes.ts'
import { Plan } from '../../../../resources/catalog/index.ts'
import { Edge } from '../../../../resources/edge/index.ts'
import { FloatingIp } from '../../../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LoadBalancer } from '../../../../resources/load-balancer/index.ts'
import { ObjectStorage } from '../../../../resources/object-storage/index.ts'
import { Price } from '../../../../resources/price/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { TINY_PLAN } from '../../../catalog.ts'

const store = {} as Store // the caches are filled by hand

export interface MeteredCloud {
  readonly clock: Clock
  /** Sets the time; it may go back. */
  at(time: string | Date): void
  /** One look and all hours that are due, by a separate process when it restarted. */
  meter(): Promise<void>
  restart(): void
  plan(name: string, monthlyCents: number, storageGibibytes?: number): void
  price(resourceType: string, plan: string, monthlyMillicents: number, validFrom: string): string
  dropPrice(name: string): void
  server(options: { accountId: string; plan: string; name?: string; publicIpv4?: string }): Handle
  floatingIp(options: { accountId: string; address: string }): Handle
  storage(options: { accountId: string; sizeGibibytes: number; bootOf?: string }): Handle
  objectStorage(options: { accountId: string }): Handle
  edge(options: { accountId: string }): Handle
  loadBalancer(options: { accountId: string; publicIpv4?: string }): Handle
}

/** What is granted to an edge, or claimed for a load balancer, is there from its first `change` on. */
const isClaimed = (change: Change): boolean => Object.keys(change).length > 0

/** An object that was made at the time of the clock. */
export interface Handle {
  readonly name: string
  readonly uid: string
  change(change: { plan?: string; sizeGibibytes?: number; publicIpv4?: string | null; measured?: Measurement }): void
  /** Asks for its deletion; its end is reported before it is removed. */
  delete(): Promise<void>
  /** Goes without anybody being told. */
  vanish(): void
}

export function openMeteredCloud(db: Database): MeteredCloud {
  let now = new Date('2026-01-01T00:00:00Z')
  let version = 0
  const clock: Clock = { ...systemClock, now: () => now }
  const caches = openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
  const parts = { caches, clock, db }
  let meter = openMeter(parts)
  const objects = new Map<ResourceType, Map<string, KubeObject>>()

  const put = (type: ResourceType, object: Pick<KubeObject, 'metadata' | 'spec' | 'status'>): void => {
    const whole = {
      apiVersion: 'v1',
      kind: type.kind,
      ...object,
      metadata: { ...object.metadata, resourceVersion: `${++version}` },
    }
    const ofKind = objects.get(type) ?? new Map<string, KubeObject>()
    objects.set(type, ofKind)
    ofKind.set(`${object.metadata.namespace}/${object.metadata.name}`, whole)
    take(type)
  }
  const take = (type: ResourceType): void =>
    void caches
      .of(type)
      .takeList({ items: [...(objects.get(type)?.values() ?? [])], resourceVersion: String(++version) })

  const second = (at: Date) => new Date(Math.floor(at.getTime() / 1000) * 1000).toISOString()

  function make(type: ResourceType, accountId: string, name: string, build: (change: Change) => Built): Handle {
    const uid = newUuid(random)
    const metadata = { name, namespace: accountNamespace(accountId), uid, creationTimestamp: second(now) }
    let state: Change = {}
    put(type, { metadata, ...build(state) })
    const remove = () => {
      objects.get(type)?.delete(`${metadata.namespace}/${name}`)
      take(type)
    }
    return {
      name,
      uid,
      change(change) {
        state = { ...state, ...change }
        put(type, { metadata, ...build(state) })
      },
      async delete() {
        const deleted = { ...metadata, deletionTimestamp: second(now), finalizers: ['x'] }
        put(type, { metadata: deleted, ...build(state) })
        await recordGone(parts, type, { apiVersion: 'v1', kind: type.kind, metadata: deleted, ...build(state) })
        remove()
      },
      vanish: remove,
    }
  }

  return {
    clock,
    at(time) {
      now = new Date(time)
    },
    meter: () => meter(),
    restart() {
      meter = openMeter(parts)
    },
    plan: (name, priceMonthlyCents, storageGibibytes = 1) =>
      put(Plan, { metadata: { name }, spec: { ...TINY_PLAN, storageGibibytes, priceMonthlyCents } }),
    price(resourceType, plan, monthlyMillicents, validFrom) {
      const name = newUuid(random)
      put(Price, { metadata: { name }, spec: { resourceType, plan, monthlyMillicents, validFrom } })
      return name
    },
    dropPrice(name) {
      objects.get(Price)?.delete(`undefined/${name}`)
      take(Price)
    },
    server: ({ accountId, plan, name = newUuid(random), publicIpv4 }) =>
      make(Server, accountId, name, (change) => {
        const address = change.publicIpv4 === undefined ? publicIpv4 : (change.publicIpv4 ?? undefined)
        return {
          spec: { hostname: name, plan: change.plan ?? plan },
          status: { state: 'started', ...defined({ publicIpv4: address }) },
        }
      }),
    floatingIp: ({ accountId, address }) =>
      make(FloatingIp, accountId, newUuid(random), () => ({ spec: { zone: 'z1', address }, status: {} })),
    edge: ({ accountId }) =>
      make(Edge, accountId, newUuid(random), (change) => ({
        spec: { name: 'front', plan: 'tiny' },
        status: isClaimed(change) ? { granted: { plan: 'tiny', machines: ['combined'] } } : {},
      })),
    loadBalancer: ({ accountId, publicIpv4 }) =>
      make(LoadBalancer, accountId, newUuid(random), (change) => ({
        spec: { name: 'web', plan: 'tiny' },
        status: isClaimed(change) ? { privateIpv4: '10.1.0.9', ...(publicIpv4 && { publicIpv4 }) } : {},
      })),
    storage: ({ accountId, sizeGibibytes, bootOf }) =>
      make(Storage, accountId, newUuid(random), (change) => ({
        spec: {
          title: '',
          tier: 'standard',
          sizeGibibytes: change.sizeGibibytes ?? sizeGibibytes,
          isBoot: bootOf !== undefined,
          ...defined({ serverId: bootOf }),
        },
        status: {},
      })),
    objectStorage({ accountId }) {
      let metered: MeteredBytes | undefined
      return make(ObjectStorage, accountId, newUuid(random), ({ measured }) => {
        if (measured !== undefined) metered = meteredAfter(metered, measured)
        return { spec: { zone: 'z' }, status: { metered } }
      })
    },
  }
}

type Change = Parameters<Handle['change']>[0]
type Built = { readonly spec: object; readonly status: object }

/** The hour rows of the account, as `hour type name plan cents`, in order. */
export async function hoursOf(db: Database, accountId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('usage_hour as hour')
    .innerJoin('billed_life as life', 'life.id', 'hour.life')
    .innerJoin('billed_resource as resource', 'resource.id', 'hour.resource')
    .select(['hour.hour', 'hour.monthly_cents', 'resource.resource_type', 'life.plan'])
    .where('resource.account_id', '=', accountId)
    .orderBy('hour.hour')
    .orderBy('resource.resource_type')
    .orderBy('life.plan')
    .execute()
  return rows.map((row) =>
    [row.hour.toISOString().slice(0, 13), row.resource_type, row.plan, row.monthly_cents]
      .filter((part) => part !== '')
      .join(' '),
  )
}
