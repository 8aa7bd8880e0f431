/** The embedded Kubernetes API and its clients in one process under virtual time, for tests of the client side. */
import { z } from 'zod'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../kit/kube/client.ts'
import { crdOf, installCrds, type KindDefinition } from '../../kit/kube/crd.ts'
import { Namespace, type ResourceType } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import type { RootType } from '../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { Scheduler, SimulatedProcess } from '../sim/scheduler.ts'

const text = z.string().max(253)
const time = z.string().max(64)
const operation = z.strictObject({
  id: text,
  kind: text,
  requestedAt: time.optional(),
  deadlineAt: time,
  traceparent: time.optional(),
})
const progress = z.strictObject({ id: text, kind: text, status: text, step: text, error: text, actor: text })
const condition = z.strictObject({
  type: text,
  status: text,
  reason: text,
  message: text,
  lastTransitionTime: time,
  observedGeneration: z.int().optional(),
})

const parent = {
  group: 'kit.svccloud.example',
  version: 'v1',
  kind: 'Parent',
  plural: 'parents',
  singular: 'parent',
  shortNames: [],
  scope: 'Namespaced',
  description: 'A root object.',
  spec: z.strictObject({ size: z.int(), operation: operation.optional() }),
  status: z.strictObject({
    observedGeneration: z.int().optional(),
    state: text.optional(),
    children: z.int().optional(),
    detail: z.strictObject({ a: text.optional(), b: text.optional() }).optional(),
    conditions: z.array(condition).max(8).optional(),
    operation: progress.optional(),
  }),
  columns: [],
  selectableFields: [],
  rules: [],
  fixed: [],
} satisfies KindDefinition
const child = {
  ...parent,
  kind: 'Child',
  plural: 'children',
  singular: 'child',
  description: 'What a root makes.',
  spec: z.strictObject({ parent: text, index: z.int(), note: text.optional(), level: text.default('plain') }),
  status: z.strictObject({ isReady: z.boolean().optional() }),
} satisfies KindDefinition

export type ParentSpec = z.output<(typeof parent)['spec']>
export type ParentStatus = z.output<(typeof parent)['status']>
export type ChildSpec = z.input<(typeof child)['spec']>
export const Parent: RootType<ParentSpec, ParentStatus> = {
  group: parent.group,
  version: 'v1',
  kind: 'Parent',
  plural: 'parents',
  scope: 'Namespaced',
  status: parent.status,
}
export const Child: ResourceType<ChildSpec, { isReady?: boolean }> = {
  group: parent.group,
  version: 'v1',
  kind: 'Child',
  plural: 'children',
  scope: 'Namespaced',
}

export const NAMESPACE = 'world'

export interface Member {
  readonly process: SimulatedProcess
  readonly clock: Clock
  readonly store: Store
}

export interface World {
  readonly scheduler: Scheduler
  readonly serve: Transport
  /** Speaks to the server without faults or latency. */
  readonly admin: Store
  /** A process with its own clock and client; `disturb` stands between it and the server. */
  join(name: string, disturb?: (serve: Transport, clock: Clock) => Transport): Member
  /** Lets virtual time pass. */
  pass(milliseconds: number): Promise<void>
  /** Lets time pass until the promise is settled. */
  settled<T>(promise: Promise<T>): Promise<T>
  /** Lets time pass until it is true; throws after the given virtual time. */
  until(isTrue: () => boolean, withinMilliseconds?: number): Promise<void>
}

const PATIENCE_MILLISECONDS = 3_600_000

export async function openWorld(seed = 1): Promise<World> {
  const scheduler = new Scheduler(seed)
  const machine = new SimulatedProcess('server', scheduler)
  machine.begin()
  const core = await openCore({
    clock: machine.clock(),
    random: scheduler.random,
    log: silentLog,
    storage: memoryStorage(),
  })
  const serve: Transport = (request) => core.handle(request, ADMIN)

  const pass = async (milliseconds: number) => void (await scheduler.runUntil(scheduler.nowMilliseconds + milliseconds))
  const until = async (isTrue: () => boolean, withinMilliseconds = PATIENCE_MILLISECONDS) => {
    if (!(await scheduler.runUntil(scheduler.nowMilliseconds + withinMilliseconds, isTrue)))
      throw new Error(`did not come true within ${withinMilliseconds} ms of virtual time`)
  }
  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let isOver = false
    const end = () => void (isOver = true)
    promise.then(end, end)
    await until(() => isOver)
    return promise
  }
  const join: World['join'] = (name, disturb = (transport) => transport) => {
    const process = new SimulatedProcess(name, scheduler)
    process.begin()
    const clock = process.clock()
    return {
      process,
      clock,
      store: openClient({ transport: disturb(serve, clock), fieldManager: name, clock, random: scheduler.random }),
    }
  }
  const admin = join('admin').store
  await settled(installCrds(admin, [crdOf(parent, 'kit'), crdOf(child, 'kit')], machine.clock()))
  await settled(admin.create(Namespace, { metadata: { name: NAMESPACE }, spec: {} }))
  return { scheduler, serve, admin, join, pass, settled, until }
}
