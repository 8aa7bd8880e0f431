/** What the kinds refuse by themselves, wherever they are served: by the embedded API server and by a real one. */
import { expect } from 'vitest'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { ApiError, type Store } from '../../kit/kube/store.ts'
import { Volume } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Zone } from '../../resources/catalog/stored.ts'
import { Operation } from '../../resources/operation/index.ts'
import { PublicPool } from '../../resources/public-pool/index.ts'
import { Server } from '../../resources/server/stored.ts'
import { Storage } from '../../resources/storage/index.ts'

const NAMESPACE = 'default'
const AT = '2026-01-01T00:00:00Z'
const stanza = (kind: string) => ({
  id: `op-${kind}`,
  kind,
  requestedAt: AT,
  deadlineAt: AT,
  actor: 'user:1',
  requestId: 'r',
})

/** Valid objects, by the kind that they are tried for. */
const OBJECTS = {
  server: {
    type: Server,
    metadata: { name: 'web', namespace: NAMESPACE },
    spec: { hostname: 'web', zone: 'z1', plan: 'tiny', template: 'tiny-linux' },
  },
  storage: {
    type: Storage,
    metadata: { name: 'web', namespace: NAMESPACE },
    spec: {
      zone: 'z1',
      sizeGibibytes: 2,
      isBoot: true,
      serverId: 'web',
      source: { kind: 'template', id: 'tiny-linux' },
    },
  },
  data: { type: Storage, metadata: { name: 'data', namespace: NAMESPACE }, spec: { zone: 'z1', sizeGibibytes: 2 } },
  operation: {
    type: Operation,
    metadata: { name: 'op', namespace: NAMESPACE },
    spec: {
      kind: 'server.start',
      target: { type: 'server', id: 'web' },
      actor: 'user:1',
      requestId: 'r',
      createdAt: AT,
      deadlineAt: AT,
      stepCount: 1,
    },
  },
  zone: { type: Zone, metadata: { name: 'z1' }, spec: { displayName: 'One', region: 'r1' } },
  plan: {
    type: Plan,
    metadata: { name: 'tiny' },
    spec: { family: 'starter', cores: 1, memoryMebibytes: 192, storageGibibytes: 1, priceMonthlyCents: 100 },
  },
  node: { type: Node, metadata: { name: 'n1' }, spec: { zone: 'z1' } },
  volume: {
    type: Volume,
    metadata: { name: 'disk', namespace: NAMESPACE },
    spec: { storage: { namespace: NAMESPACE, name: 'web', uid: 'disk' }, sizeGibibytes: 2, pool: 'pool-a' },
  },
  pool: {
    type: PublicPool,
    metadata: { name: 'p1' },
    spec: { zone: 'z1', family: 'ipv4', cidr: '192.0.2.0/24', use: 'server_ipv4' },
  },
} as const
type Name = keyof typeof OBJECTS

const SWITCHED = {
  operationId: 'op',
  state: 'switched',
  sourceNode: 'n1',
  targetNode: 'n2',
  attempt: 1,
  phase: '',
  iteration: 0,
  transferredBytes: 0,
  totalBytes: 0,
  dirtyBytesPerSecond: 0,
  downtimeMilliseconds: 0,
  detail: '',
}

/** The patch of the spec, and what the answer says; undefined when the patch is taken. In order: what is taken stays.
 *  Last, what the platform has written of the status before. */
const CHANGES: readonly (readonly [
  Name,
  Readonly<Record<string, unknown>>,
  (string | undefined)?,
  Readonly<Record<string, unknown>>?,
])[] = [
  ['server', { zone: 'z2' }, 'zone cannot be changed'],
  [
    'server',
    { zone: 'z3' },
    'zone cannot be changed',
    { migration: { ...SWITCHED, state: 'detached', targetZone: 'z3' } },
  ],
  ['server', { zone: 'z2' }, 'zone cannot be changed', { migration: { ...SWITCHED, targetZone: 'z3' } }],
  ['server', { zone: 'z3' }, undefined, { migration: { ...SWITCHED, targetZone: 'z3' } }],
  ['server', { plan: 'large' }, 'plan cannot be changed', { state: 'started' }],
  ['server', { template: 'debian-13' }, 'template cannot be changed'],
  ['server', { template: null, customImageId: 'image' }, 'customImageId cannot be changed'],
  ['server', { customImageId: 'image' }, 'exactly one of template and customImageId'],
  ['server', { hostname: 'other' }, 'hostname cannot be changed'],
  ['server', { storageGibibytes: 9 }, 'storageGibibytes cannot be changed'],
  ['server', { userDataSecretName: 'secret' }, 'userDataSecretName cannot be changed'],
  ['server', { initScriptId: 'script' }, 'initScriptId cannot be changed'],
  ['server', { plan: 'medium', storageGibibytes: 9 }, undefined, { state: 'stopped' }],
  ['server', { operation: stanza('server.move'), plan: 'large' }, 'plan cannot be changed'],
  ['server', { desiredPower: 'stopped', title: 'Title', isProtected: true }],
  ['server', { operation: stanza('server.change_plan'), plan: 'large' }],
  ['storage', { sizeGibibytes: 1 }, 'may grow, never shrink'],
  ['storage', { source: { id: 'debian-13' } }, 'source cannot be changed'],
  ['storage', { serverId: null }, 'a boot storage has a server'],
  ['storage', { sizeGibibytes: 3, zone: 'z2' }],
  ['data', { zone: 'z2' }, 'zone cannot be changed'],
  ['volume', { pool: 'pool-b' }, 'pool cannot be changed'],
  ['volume', { pool: null }, 'pool cannot be changed'],
  ['volume', { sizeGibibytes: 3, isRetained: true }],
  ['operation', { actor: 'user:2' }, 'what was asked for cannot be changed'],
  ['zone', { region: 'r2' }, 'region cannot be changed'],
  ['zone', { isClosed: true }],
  ['plan', { cores: 2 }, 'cores cannot be changed'],
  ['plan', { cpuPool: 'amd' }, 'cpuPool cannot be changed'],
  ['plan', { priceMonthlyCents: 200 }],
  ['node', { zone: 'z2' }, 'zone cannot be changed'],
  ['node', { isCordoned: true, rack: 'rack-2' }],
  ['pool', { cidr: '192.0.2.0/25' }, 'cidr cannot be changed'],
  ['pool', { gateway: '192.0.2.9' }, 'gateway cannot be changed'],
  ['pool', { state: 'draining', note: 'Leaves.' }],
]

/** Tries every change against the server behind the store, where the kinds are installed. */
export async function tryKindRules(store: Store): Promise<void> {
  for (const { type, metadata, spec } of Object.values(OBJECTS))
    await store.create(type as ResourceType, { metadata, spec })
  for (const [name, spec, expected, status] of CHANGES) {
    const { type, metadata } = OBJECTS[name]
    if (status !== undefined)
      await store.patch(type as ResourceType, metadata, { status: { state: 'stopped', ...status } }, 'status')
    const what = `${name} ${JSON.stringify(spec)}`
    const answer: KubeObject | ApiError = await store
      .patch(type as ResourceType, metadata, { spec })
      .catch((error: unknown) => {
        if (error instanceof ApiError) return error
        throw error
      })
    if (expected === undefined) expect(answer, what).toMatchObject({ spec })
    else
      expect(answer, what).toMatchObject({ code: 422, reason: 'Invalid', message: expect.stringContaining(expected) })
  }
}
