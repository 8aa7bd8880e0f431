/** The cloud controller with the embedded Kubernetes API and a simulated platform: what it does, what it says, and that
 *  one that was killed between any two requests is followed by one that goes on. */
import { afterEach, expect, test } from 'vitest'
import { CloudController } from '../../../addons/cloud/controller.ts'
import { Node, Service, type ServiceObject, type ServiceSpec } from '../../../addons/cloud/objects.ts'
import { FINALIZER } from '../../../addons/cloud/plan.ts'
import { ADMIN, openCore } from '../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../embedded/kubernetes/storage/memory.ts'
import { openCaches } from '../../../kit/kube/caches.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { Event, Namespace } from '../../../kit/kube/object.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import { openEventRecorder } from '../../../kit/reconcile/events.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { eventually, until } from '../../eventually.ts'
import { newBalancer, openSimulatedPlatform, type SimulatedPlatform } from './simulated-platform.ts'

const KEY = { namespace: 'shop', name: 'web' }
const ends: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

/** A controller that another one may follow: what it remembers goes with it. */
interface Controller {
  pass(): Promise<number>
  stop(): void
}

async function openCluster() {
  const clock = systemClock
  let later = 0
  const own = { ...clock, monotonicMilliseconds: () => clock.monotonicMilliseconds() + later }
  const core = await openCore({
    clock,
    random,
    log: silentLog,
    storage: memoryStorage(),
    authenticate: () => undefined,
  })
  ends.push(() => core.close())
  const platform = openSimulatedPlatform()
  const serve: Transport = (request) => core.handle(request, ADMIN)
  const admin = openClient({ transport: serve, fieldManager: 'kubectl', clock, random })
  await admin.create(Namespace, { metadata: { name: 'shop' }, spec: {} })
  /** Before and after each change of services and nodes by the controller. */
  let disturb: SimulatedPlatform['disturb'] = () => {}

  async function open(): Promise<Controller> {
    const stop = new AbortController()
    const transport: Transport = async (request) => {
      const isChange = request.method !== 'GET' && !request.path.includes('/events')
      if (isChange) disturb('before')
      const response = await serve(request)
      if (isChange) disturb('after')
      return response
    }
    const store = openClient({ transport, fieldManager: 'svccloud-cloud', clock, random })
    const caches = openCaches({
      store,
      clock,
      random,
      log: silentLog,
      registry: openRegistry({ isProcessWide: false }),
    })
    const [services, nodes] = [caches.of(Service), caches.of(Node)]
    const events = openEventRecorder({ store, clock, log: silentLog, controller: 'svccloud.dev/cloud', instance: 'x' })
    const controller = new CloudController({
      store,
      services,
      nodes,
      platform: platform.client,
      clusterId: 'c1',
      events,
      clock: own,
      random,
      log: silentLog,
    })
    caches.start(stop.signal)
    ends.push(() => stop.abort())
    await caches.ready()
    return {
      stop: () => stop.abort(),
      async pass() {
        // What others have written is in the cache.
        const newest = await admin.list(Service)
        const versions = () => services.list().map(({ metadata }) => metadata.resourceVersion)
        await until(
          'the cache',
          versions,
          (known) =>
            known.length === newest.items.length &&
            newest.items.every(({ metadata }) => known.includes(metadata.resourceVersion)),
        )
        return controller.pass()
      },
    }
  }

  const service = () => admin.get(Service, KEY)
  return {
    admin,
    platform,
    open,
    service,
    pass: (milliseconds: number) => void (later += milliseconds),
    disturb: (by: SimulatedPlatform['disturb']) => {
      disturb = by
      platform.disturb = by
    },
    /** What people read of it. */
    events: async () =>
      ((await admin.list(Event, { namespace: 'shop' })).items as unknown as { reason: string; note: string }[]).map(
        ({ reason, note }) => `${reason}: ${note}`,
      ),
    addNode: (name: string) =>
      admin.create(Node, {
        metadata: { name },
        spec: {},
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    addService: (spec: ServiceSpec = {}) =>
      admin.create(Service, {
        metadata: KEY,
        spec: { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30_080 }], ...spec },
      }),
    edit: (spec: ServiceSpec) => admin.patch(Service, KEY, { spec }),
    remove: () => admin.delete(Service, KEY),
  }
}
type Cluster = Awaited<ReturnType<typeof openCluster>>

/** Until the service has what it asks for. */
async function finish(controller: Controller, { platform, pass }: Cluster): Promise<void> {
  await eventually('nothing left to do', async () => {
    const milliseconds = await controller.pass()
    platform.settle()
    pass(milliseconds < 60_000 ? milliseconds : 0)
    return milliseconds === 60_000
  })
}

const ingressOf = (service: ServiceObject | undefined) => service?.status?.loadBalancer?.ingress

test('a service gets a balancer, its nodes say who they are, and both leave nothing', async () => {
  const cluster = await openCluster()
  for (const name of ['web-0', 'web-1', 'mine']) await cluster.addNode(name)
  await cluster.addService()
  const labels = { 'kubernetes-cluster': 'other' }
  const foreign = { ...newBalancer('foreign', { labels }), state: 'running' as const }
  cluster.platform.balancers.set('foreign', foreign)
  const controller = await cluster.open()
  await finish(controller, cluster)
  expect(cluster.platform.balancers.get('lb-1')).toMatchObject({
    name: expect.stringMatching(/^k8s-shop-web-/),
    frontends: [{ port: 80 }],
    backends: [{ members: [{ name: 'web-0', address: '10.1.0.10', port: 30_080 }, { name: 'web-1' }] }],
  })
  expect(ingressOf(await cluster.service())).toEqual([
    { ip: '198.51.100.5', ipMode: 'VIP' },
    { ip: '2001:db8::5', ipMode: 'VIP' },
  ])
  expect((await cluster.service())?.metadata.finalizers).toEqual([FINALIZER])
  expect((await cluster.admin.get(Node, { name: 'web-0' }))?.spec).toMatchObject({
    providerID: 'svccloud://eu-1a/machine-node-0',
  })
  expect((await cluster.admin.get(Node, { name: 'mine' }))?.spec.providerID).toBeUndefined()

  cluster.platform.nodes = 1
  await cluster.edit({ ports: [{ port: 443, nodePort: 30_443 }] })
  await finish(controller, cluster)
  expect(cluster.platform.balancers.get('lb-1')).toMatchObject({
    frontends: [{ port: 443 }],
    backends: [{ members: [{ name: 'web-0', port: 30_443 }] }],
  })
  await cluster.remove()
  await finish(controller, cluster)
  expect(await cluster.service()).toBeUndefined()
  expect([...cluster.platform.balancers.values()]).toEqual([foreign])
  await eventually('events', async () => (await cluster.events()).length === 6)
  expect((await cluster.events()).map((text) => text.split(':')[0]).toSorted()).toEqual(
    [
      'DeletedLoadBalancer',
      'DeletingLoadBalancer',
      'EnsuredLoadBalancer',
      'EnsuringLoadBalancer',
      'UpdatedLoadBalancer',
      'UpdatedLoadBalancer',
    ].toSorted(),
  )
})

class Killed extends Error {}

test.each(['before', 'after'] as const)('one that is killed %s any request is followed by another', async (when) => {
  let isWhole = false
  for (let at = 1; !isWhole; at++) {
    const cluster = await openCluster()
    await cluster.addNode('web-0')
    await cluster.addService()
    /** Of changes until it is killed; from then on it does nothing. */
    let left = at
    let isDead = false
    const kill = (moment: 'before' | 'after') => {
      if (isDead) throw new Killed()
      if (moment !== when || --left > 0) return
      isDead = true
      throw new Killed()
    }
    const live = async (work: () => Promise<void>): Promise<void> => {
      const first = await cluster.open()
      cluster.disturb(kill)
      await eventually('it to end or to be killed', async () => {
        const milliseconds = await first.pass().catch(() => 0)
        cluster.platform.settle()
        return isDead || milliseconds === 60_000
      })
      first.stop()
      cluster.disturb(() => {})
      ;[left, isDead] = [isDead ? Number.POSITIVE_INFINITY : left, false]
      await finish(await cluster.open(), cluster)
      await work()
    }
    await live(async () => {
      expect([...cluster.platform.balancers.values()]).toMatchObject([{ state: 'running', frontends: [{ port: 80 }] }])
      expect(ingressOf(await cluster.service())).toHaveLength(2)
      await cluster.remove()
    })
    await live(async () => {
      expect(cluster.platform.balancers.size).toBe(0)
      expect(await cluster.service()).toBeUndefined()
    })
    isWhole = left > 0 && Number.isFinite(left)
    expect(at).toBeLessThan(12)
  }
})

test('a deleted balancer is created again, and changes to it are reverted', async () => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService()
  const controller = await cluster.open()
  await finish(controller, cluster)
  const first = cluster.platform.balancers.get('lb-1')
  if (first === undefined) throw new Error('there is none')
  cluster.platform.balancers.set('lb-1', { ...first, backends: [], frontends: [] })
  await finish(controller, cluster)
  expect(cluster.platform.balancers.get('lb-1')?.frontends).toHaveLength(1)
  cluster.platform.balancers.delete('lb-1')
  await controller.pass()
  expect(ingressOf(await cluster.service()) ?? []).toEqual([])
  await finish(controller, cluster)
  expect([...cluster.platform.balancers.keys()]).toEqual(['lb-2'])
  expect(ingressOf(await cluster.service())).toHaveLength(2)
})

test.each([
  [402, 'Add a payment method.'],
  [409, 'The zone eu-1a has no load balancers.'],
  [422, 'The quota of load balancers is used up.'],
])('a refusal (%i) is reported, and retried later each time, until there is none', async (status, detail) => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService()
  cluster.platform.refusal = { status, detail }
  const controller = await cluster.open()
  const first = await controller.pass()
  const warnings = async () => (await cluster.events()).filter((text) => text.startsWith('SyncLoadBalancerFailed'))
  await eventually('the event', async () => (await warnings())[0]?.includes(detail))
  cluster.pass(first)
  const second = await controller.pass()
  expect(second).toBeGreaterThan(first)
  expect(cluster.platform.balancers.size).toBe(0)
  cluster.platform.refusal = undefined
  // What is asked for otherwise does not wait.
  await cluster.edit({ ports: [{ port: 8080, nodePort: 30_080 }] })
  await controller.pass()
  expect([...cluster.platform.balancers.values()]).toMatchObject([{ frontends: [{ port: 8080 }] }])
  // What has gone well since is not counted.
  await finish(controller, cluster)
  cluster.platform.balancers.clear()
  cluster.platform.refusal = { status, detail }
  expect(await controller.pass()).toBeLessThanOrEqual(5_000)
})

test('UDP is refused in words, and a service beside it gets what it asks for', async () => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService({ ports: [{ protocol: 'UDP', port: 53, nodePort: 30_053 }] })
  const spec = { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30_080 }] }
  await cluster.admin.create(Service, { metadata: { namespace: 'shop', name: 'other' }, spec })
  await finish(await cluster.open(), cluster)
  await eventually('the event', async () =>
    (await cluster.events()).includes('SyncLoadBalancerFailed: port 53 is UDP: load balancers take TCP only'),
  )
  expect([...cluster.platform.balancers.values()]).toMatchObject([{ labels: { 'kubernetes-service': 'shop/other' } }])
})

test('one whose creation failed is reported and created again', async () => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService()
  const controller = await cluster.open()
  await controller.pass()
  cluster.platform.settle('badly')
  await controller.pass()
  await eventually('the event', async () =>
    (await cluster.events()).includes('SyncLoadBalancerFailed: no host; it is made anew'),
  )
  await finish(controller, cluster)
  expect([...cluster.platform.balancers.keys()]).toEqual(['lb-2'])
})

test('one that is protected keeps its service, which says why', async () => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService()
  const controller = await cluster.open()
  await finish(controller, cluster)
  const own = cluster.platform.balancers.get('lb-1')
  if (own === undefined) throw new Error('there is none')
  cluster.platform.balancers.set('lb-1', { ...own, is_protected: true })
  await cluster.remove()
  await controller.pass()
  await eventually('the event', async () => (await cluster.events()).some((text) => text.includes('is protected')))
  expect(await cluster.service()).toBeDefined()
  cluster.platform.balancers.set('lb-1', { ...own, is_protected: false })
  cluster.pass(300_000)
  await finish(controller, cluster)
  expect(await cluster.service()).toBeUndefined()
})

test('the service reports it when the platform admits nobody', async () => {
  const cluster = await openCluster()
  await cluster.addService()
  const controller = await cluster.open()
  cluster.platform.isClosed = true
  await expect(controller.pass()).rejects.toThrow('401')
  await eventually('the event', async () =>
    (await cluster.events()).some((text) => text.includes('invalid or expired')),
  )
  cluster.platform.isClosed = false
  cluster.pass(10_000)
  await finish(controller, cluster)
  expect(cluster.platform.balancers.size).toBe(1)
})

test('changes by others at the same moment are kept, and nobody is to be informed', async () => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService()
  const controller = await cluster.open()
  const once = (work: () => unknown) => {
    let isDone = false
    cluster.disturb((when) => {
      if (when === 'after' || isDone) return
      isDone = true
      work()
    })
  }
  const edits: Promise<unknown>[] = []
  const finalizers = ['example.com/mine']
  once(() => edits.push(cluster.admin.patch(Service, KEY, { metadata: { finalizers } })))
  await controller.pass()
  await finish(controller, cluster)
  await Promise.all(edits)
  expect((await cluster.service())?.metadata.finalizers).toEqual([...finalizers, FINALIZER])

  // Of the platform, between reading a configuration and writing it.
  once(() => {
    const own = cluster.platform.balancers.get('lb-1')
    if (own !== undefined)
      cluster.platform.balancers.set('lb-1', { ...own, configuration_generation: own.configuration_generation + 1 })
  })
  await cluster.edit({ ports: [{ port: 443, nodePort: 30_443 }] })
  await controller.pass()
  expect(cluster.platform.balancers.get('lb-1')?.frontends).toMatchObject([{ port: 80 }])
  await finish(controller, cluster)
  expect(cluster.platform.balancers.get('lb-1')?.frontends).toMatchObject([{ port: 443 }])
  expect((await cluster.events()).filter((text) => text.startsWith('SyncLoadBalancerFailed'))).toEqual([])
})

test('what a service requests and its balancer cannot be is reported', async () => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService()
  const controller = await cluster.open()
  await finish(controller, cluster)
  await cluster.admin.patch(Service, KEY, { metadata: { annotations: { 'svccloud.dev/load-balancer-plan': 'large' } } })
  await controller.pass()
  await eventually('the event', async () => (await cluster.events()).some((text) => text.includes('keeps plan')))
})

test('a cluster that is being deleted changes nothing', async () => {
  const cluster = await openCluster()
  await cluster.addNode('web-0')
  await cluster.addService()
  const controller = await cluster.open()
  await finish(controller, cluster)
  const before = [...cluster.platform.balancers.values()]
  cluster.platform.isLeaving = true
  cluster.platform.nodes = 0
  await controller.pass()
  expect([...cluster.platform.balancers.values()]).toEqual(before)
})
