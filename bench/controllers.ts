/** The controllers of one process for benchmarks, over a store that counts its writes. */
import { openSweepRate } from '../controllers/kit/sweep-rate.ts'
import { openControllers, runControllers } from '../controllers/index.ts'
import type { Ovn } from '../controllers/network/ovn/ovn.ts'
import { defined } from '../domain/defined.ts'
import { openCaches } from '../kit/kube/caches.ts'
import type { ResourceType } from '../kit/kube/object.ts'
import type { Store } from '../kit/kube/store.ts'
import { openControllerMetrics } from '../kit/reconcile/metrics.ts'
import { type Clock, systemClock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { systemRandom as random } from '../kit/sys/random.ts'
import type { Cloud } from './cloud.ts'

const POLL_MILLISECONDS = 20
/** Without a write and without a key in a queue for so long: nothing follows. */
const QUIET_MILLISECONDS = 500

export interface Writes {
  count: number
  /** By verb, kind and, for parts of an object, the part: `patch Server status`. */
  readonly by: Map<string, number>
}

export const noWrites = (): Writes => ({ count: 0, by: new Map() })

/** The store, with its writes counted. */
export function countingWrites(store: Store, writes: Writes): Store {
  const count = (verb: string, { kind }: ResourceType, subresource = '') => {
    const what = `${verb} ${kind} ${subresource}`.trim()
    writes.count++
    writes.by.set(what, (writes.by.get(what) ?? 0) + 1)
  }
  return {
    ...store,
    create: (type, draft) => (count('create', type), store.create(type, draft)),
    patch: (type, key, patch, subresource) => (
      count('patch', type, subresource), store.patch(type, key, patch, subresource)
    ),
    apply: (type, draft, subresource) => (count('apply', type, subresource), store.apply(type, draft, subresource)),
    delete: (type, key, options) => (count('delete', type), store.delete(type, key, options)),
  }
}

/** Controllers with empty caches. */
export function openProcess(cloud: Cloud, clock: Clock = systemClock, ovn?: Ovn) {
  const writes = noWrites()
  const store = countingWrites(cloud.storeOf('svccloud-controllers'), writes)
  const registry = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store, clock, random, log, registry })
  const metrics = openControllerMetrics(registry)
  const parts = { store, caches, db: cloud.db, clock, random, log, sweepRate: openSweepRate(clock) }
  const controllers = openControllers({ ...parts, ...defined({ ovn }), metrics })
  const stop = new AbortController()
  let running: Promise<void> | undefined
  const reconciles = async (controller?: string) =>
    (await metrics.reconciles.get()).values
      .filter(({ labels }) => controller === undefined || labels.controller === controller)
      .reduce((sum, { value }) => sum + value, 0)
  const isWorking = async () => (await metrics.activeWorkers.get()).values.some(({ value }) => value > 0)
  return {
    caches,
    writes,
    reconciles,
    /** Resolves when the first lists are complete. */
    async fill() {
      caches.start(stop.signal)
      await caches.ready()
    },
    begin() {
      running = runControllers(controllers, { ...parts, objectStorage: { stores: [], obstacle: '' } }, stop.signal)
    },
    /** Resolves when the controller has reconciled so often. */
    async reconciled(controller: string, times: number) {
      while ((await reconciles(controller)) < times) await clock.sleep(POLL_MILLISECONDS)
    },
    /** Resolves when nothing is reconciled any longer. What waits for PostgreSQL on a busy machine is not over. */
    async quiet() {
      let [before, since] = [await reconciles(), clock.monotonicMilliseconds()]
      while (clock.monotonicMilliseconds() - since < QUIET_MILLISECONDS) {
        await clock.sleep(POLL_MILLISECONDS)
        const now = await reconciles()
        if (now !== before || (await isWorking())) [before, since] = [now, clock.monotonicMilliseconds()]
      }
    },
    async stop() {
      stop.abort()
      await running
    },
  }
}
