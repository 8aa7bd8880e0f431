/** Steps of a service, one after another, against the rules of the platform, whatever happens between two of them. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Schemas } from '../../../client/index.ts'
import { FINALIZER, fixedNotes, nextStep, type Balancer, type ServiceStep } from '../../../addons/cloud/plan.ts'
import { type ServiceObject } from '../../../addons/cloud/objects.ts'
import { desiredBalancer } from '../../../addons/cloud/wanted.ts'
import { newService } from './objects.ts'
import { newBalancer } from './simulated-platform.ts'

const surroundings = (nodes: number) => ({
  clusterId: 'c1',
  zone: 'eu-1a',
  networkId: 'n1',
  targets: Array.from({ length: nodes }, (_, number) => ({ name: `w${number}`, address: `10.1.0.${10 + number}` })),
})

interface World {
  /** Undefined once it is deleted. */
  service: ServiceObject | undefined
  balancers: Balancer[]
  nodes: number
  made: number
}

const newWorld = (): World => ({ service: newService(), balancers: [], nodes: 2, made: 0 })

/** Carries out the next step, and answers which it was. */
function step(world: World): ServiceStep['is'] | 'gone' {
  const { service, balancers } = world
  if (service === undefined) return 'gone'
  const next = nextStep({ service, balancers, ...desiredBalancer(service, surroundings(world.nodes)) })
  const { metadata } = service
  const replace = (id: string, change: Partial<Balancer>) =>
    (world.balancers = balancers.map((balancer) => (balancer.id === id ? { ...balancer, ...change } : balancer)))
  if (next.is === 'hold') world.service = { ...service, metadata: { ...metadata, finalizers: [FINALIZER] } }
  if (next.is === 'release')
    world.service =
      metadata.deletionTimestamp === undefined ? { ...service, metadata: { ...metadata, finalizers: [] } } : undefined
  if (next.is === 'create') {
    // The platform takes a name once.
    if (balancers.some(({ name }) => name === next.creation.name)) throw new Error('a second one was asked for')
    world.balancers = [...balancers, newBalancer(`lb-${++world.made}`, next.creation)]
  }
  if (next.is === 'configure')
    replace(next.id, {
      frontends: next.to.frontends,
      backends: withIds(next.to.backends),
      configuration_generation: next.generation + 1,
    })
  if (next.is === 'remove') replace(next.id, { state: 'deleting' })
  if (next.is === 'publish') world.service = { ...service, status: { loadBalancer: { ingress: next.ingress } } }
  return next.is
}

const withIds = (backends: readonly (Omit<Balancer['backends'][number], 'members'> & { members: object[] })[]) =>
  backends.map((backend) => ({
    ...backend,
    members: backend.members.map((member) => ({
      ...(member as Schemas['LoadBalancerMember']), // as they were asked for
      id: 'm',
      is_healthy: null,
    })),
  }))

function settle(world: World): void {
  world.balancers = world.balancers
    .filter(({ state }) => state !== 'deleting')
    .map((balancer) =>
      balancer.state === 'creating'
        ? { ...balancer, state: 'running', public_ipv4: '198.51.100.5', private_ipv4: '10.1.0.5' }
        : balancer,
    )
}

/** Until nothing is left to do. */
function finish(world: World): void {
  for (let rounds = 0; rounds < 50; rounds++) {
    const is = step(world)
    if (is === 'done' || is === 'gone' || is === 'refuse') return
    if (is === 'wait') settle(world)
  }
  throw new Error('it does not come to an end')
}

test('a service holds on, gets a balancer, and says where it is', () => {
  const world = newWorld()
  const steps = [step(world), step(world), step(world), step(world)]
  expect(steps).toEqual(['hold', 'create', 'configure', 'wait'])
  settle(world)
  expect([step(world), step(world)]).toEqual(['publish', 'done'])
  expect(world.service?.status?.loadBalancer?.ingress).toEqual([{ ip: '198.51.100.5', ipMode: 'VIP' }])
})

test('clients that must send a PROXY header use the balancer, from inside too', () => {
  const annotations = { 'svccloud.dev/load-balancer-proxy-protocol': 'v1' }
  const world = { ...newWorld(), service: newService({}, { annotations }) }
  finish(world)
  expect(world.service?.status?.loadBalancer?.ingress).toEqual([{ ip: '198.51.100.5', ipMode: 'Proxy' }])
})

test.each<[string, Partial<ServiceObject['spec']>, object]>([
  ['of another type', { type: 'ClusterIP' }, {}],
  ['of another class', { loadBalancerClass: 'example.com/other' }, {}],
  ['that goes and was never held', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }],
])('a service %s is left alone', (_what, spec, metadata) => {
  const service = newService(spec, metadata)
  expect(nextStep({ service, balancers: [], ...desiredBalancer(service, surroundings(1)) })).toEqual({ is: 'done' })
})

test('what cannot be is refused, and what was there stays', () => {
  const world = newWorld()
  finish(world)
  const before = world.balancers
  world.service &&= { ...world.service, spec: { type: 'LoadBalancer', ports: [{ protocol: 'UDP', port: 53 }] } }
  expect(step(world)).toBe('refuse')
  expect(world.balancers).toEqual(before)
})

test('a service is deleted when its balancer is, and not before', () => {
  const world = newWorld()
  finish(world)
  world.service &&= {
    ...world.service,
    metadata: { ...world.service.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
  }
  expect([step(world), step(world), step(world)]).toEqual(['remove', 'wait', 'wait'])
  settle(world)
  expect([step(world), step(world)]).toEqual(['release', 'gone'])
})

test('one whose making failed is deleted, and another one is made', () => {
  const world = newWorld()
  for (let count = 0; count < 3; count++) step(world)
  world.balancers = world.balancers.map((balancer) => ({ ...balancer, state: 'error' }))
  expect(step(world)).toBe('remove')
  finish(world)
  expect(world.balancers).toMatchObject([{ id: 'lb-2', state: 'running' }])
})

test('the oldest is its own, and another one with its labels is not touched while it is there', () => {
  const world = newWorld()
  finish(world)
  const [own] = world.balancers
  const copy = { ...newBalancer('copy'), created_at: '2027-01-01T00:00:00Z', state: 'running' as const }
  world.balancers = [copy, ...world.balancers]
  expect(step(world)).toBe('done')
  expect(world.balancers).toEqual([copy, own])
})

test('what cannot become so is said', () => {
  const world = newWorld()
  finish(world)
  const annotations = { 'svccloud.dev/load-balancer-plan': 'large', 'svccloud.dev/load-balancer-internal': 'true' }
  const { wanted } = desiredBalancer(newService({}, { annotations }), surroundings(1))
  const [balancer] = world.balancers
  if (wanted === undefined || balancer === undefined) throw new Error('there is none')
  expect(fixedNotes(balancer, wanted)).toEqual([
    'its load balancer keeps plan smallest: make the service anew for another one',
    'its load balancer keeps its public addresses: make the service anew for another one',
  ])
})

const DISTURBANCES: Readonly<Record<string, (world: World) => void>> = {
  settle,
  deleted: (world) =>
    void (world.balancers = world.balancers.map((balancer) => ({ ...balancer, state: 'deleting' as const }))),
  gone: (world) => void (world.balancers = []),
  failed: (world) =>
    void (world.balancers = world.balancers.map((balancer) => ({
      ...balancer,
      state: balancer.state === 'deleting' ? ('deleting' as const) : ('error' as const),
    }))),
  edited: (world) => void (world.balancers = world.balancers.map((balancer) => ({ ...balancer, frontends: [] }))),
  scaled: (world) => void (world.nodes = (world.nodes + 1) % 4),
  ported: (world) =>
    void (world.service &&= {
      ...world.service,
      spec: { ...world.service.spec, ports: [{ port: 80 + world.made, nodePort: 30_080 }] },
    }),
  closed: (world) => void (world.service &&= { ...world.service, spec: { ...world.service.spec, type: 'ClusterIP' } }),
  opened: (world) =>
    void (world.service &&= { ...world.service, spec: { ...world.service.spec, type: 'LoadBalancer' } }),
}
const [NAMES, STEP] = [Object.keys(DISTURBANCES), 'step']

test('it ends with one balancer, or with none, for any event between two steps', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(STEP, ...NAMES), { maxLength: 40 }), fc.boolean(), (events, isDeleted) => {
      const world = newWorld()
      for (const name of events) {
        if (name === STEP) step(world)
        else DISTURBANCES[name]?.(world)
        expect(world.balancers.filter(({ state }) => state !== 'deleting').length).toBeLessThanOrEqual(1)
      }
      if (isDeleted && world.service !== undefined) {
        const isHeld = (world.service.metadata.finalizers ?? []).length > 0
        const metadata = { ...world.service.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' }
        world.service = isHeld ? { ...world.service, metadata } : undefined
      }
      finish(world)
      const isWanted = world.service?.spec.type === 'LoadBalancer'
      expect(world.balancers).toHaveLength(isWanted ? 1 : 0)
      if (!isWanted) return void expect(world.service?.metadata.finalizers ?? []).toEqual([])
      const { configuration } = desiredBalancer(world.service ?? newService(), surroundings(world.nodes)).wanted ?? {}
      expect(world.balancers[0]?.frontends).toEqual(configuration?.frontends)
      expect(world.balancers[0]?.backends[0]?.members).toHaveLength(world.nodes)
      expect(world.service?.status?.loadBalancer?.ingress).toEqual([{ ip: '198.51.100.5', ipMode: 'VIP' }])
    }),
  )
})
