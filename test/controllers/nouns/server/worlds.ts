/** Servers and what surrounds them, for tests of the plan; and a model of what the plan's actions do to them. */
import type { Observed, ServerObject } from '../../../../controllers/nouns/server/observed.ts'
import { defined } from '../../../../domain/defined.ts'
import { deadlineOf, isFinal, type OperationKind } from '../../../../domain/operations.ts'
import { advance, pendingProgress } from '../../../../controllers/kit/operation/progress.ts'
import type { Action } from '../../../../kit/reconcile/action.ts'
import { mergeConditions } from '../../../../kit/reconcile/conditions.ts'
import { patchBetween } from '../../../../kit/reconcile/interpret.ts'
import type { InstanceSpec, InstanceStatus } from '../../../../resources/instance/index.ts'
import { OPERATION_ANNOTATION } from '../../../../resources/kit/labels.ts'
import type { ServerSpec, ServerStatus } from '../../../../resources/server/index.ts'
import type { OperationProgress, OperationStanza } from '../../../../resources/kit/shapes.ts'

export const NOW = new Date('2026-01-01T12:00:00.000Z')
export const after = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1_000)

export interface World {
  readonly server: ServerObject
  readonly observed: Observed
}

export const ACCOUNT = 'aaaaaaaa-0000-4000-8000-000000000001'
const NAMESPACE = `acct-${ACCOUNT}`
const NODE = 'node-1'

export const operation = (kind: OperationKind, id = 'op-1', args: Record<string, string> = {}): OperationStanza => ({
  id,
  kind,
  requestedAt: NOW.toISOString(),
  deadlineAt: deadlineOf(kind, NOW).toISOString(),
  actor: 'user:1',
  requestId: `request-of-${id}`,
  ...(Object.keys(args).length === 0 ? {} : { arguments: args }),
})
export const ended = (kind: OperationKind, id = 'op-0'): { stanza: OperationStanza; progress: OperationProgress } => {
  const stanza = operation(kind, id)
  return {
    stanza,
    progress: advance(pendingProgress(stanza), { do: 'operation', id, step: 'done', outcome: 'succeeded' }, NOW),
  }
}

export interface Changes {
  readonly spec?: Partial<ServerSpec>
  readonly status?: Partial<ServerStatus>
  readonly metadata?: Partial<ServerObject['metadata']>
  readonly observed?: Partial<Observed>
}

const bareSpec: ServerSpec = {
  hostname: 'web',
  title: '',
  zone: 'zone-1',
  plan: 'tiny',
  template: 'tiny-linux',
  labels: {},
  desiredPower: 'running',
  sshKeys: ['ssh-ed25519 AAAA'],
  haPolicy: 'restart',
  migrationPolicy: 'default',
  publicIpv4: false,
  metadataEnabled: true,
  isProtected: false,
}

/** A server that was just accepted and nothing else. */
export function newborn(changes: Changes = {}): World {
  const server: ServerObject = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Server',
    metadata: {
      name: 'web-id',
      namespace: NAMESPACE,
      uid: 'uid-1',
      generation: 1,
      resourceVersion: '1',
      finalizers: ['svccloud.dev/server'],
      ...changes.metadata,
    },
    spec: { ...bareSpec, operation: operation('server.create'), ...changes.spec },
    ...(changes.status === undefined ? {} : { status: { state: 'creating', ...changes.status } }),
  }
  const observed: Observed = {
    accountId: ACCOUNT,
    isSystemKnown: true,
    isGroupMissing: false,
    isHostReachable: true,
    userData: undefined,
    hasUserDataCopy: true,
    editor: 'user:kubectl-edit',
    requests: [],
    plan: { family: 'starter', cores: 1, memoryMebibytes: 192, storageGibibytes: 1, priceMonthlyCents: 100 },
    zone: { displayName: 'Zone 1', region: 'eu-1', isClosed: false, capabilities: [] },
    claims: {
      macAddress: '52:54:00:00:00:01',
      addresses: [],
      disks: [],
      forcedVolumes: [],
      placement: {
        accountId: ACCOUNT,
        serverId: 'web-id',
        zone: 'zone-1',
        node: NODE,
        cores: 1,
        memoryMebibytes: 192,
        storageGibibytes: 1,
      },
    },
    storage: undefined,
    instance: undefined,
    ...changes.observed,
  }
  return { server, observed }
}

export const storage = (
  state: 'creating' | 'online' | 'error',
  stateDetail?: string,
): NonNullable<Observed['storage']> => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Storage',
  metadata: { name: 'web-id', namespace: NAMESPACE, uid: 'storage-uid-1' },
  spec: {
    zone: 'zone-1',
    title: '',
    sizeGibibytes: 1,
    tier: 'standard',
    isBoot: true,
    serverId: 'web-id',
    labels: {},
    isProtected: false,
  },
  status: { state, ...defined({ stateDetail }) },
})

export const instance = (
  spec: Partial<InstanceSpec>,
  status: Partial<InstanceStatus> | undefined,
  madeFor = 'op-0',
  generation = 1,
): NonNullable<Observed['instance']> => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Instance',
  metadata: {
    name: 'uid-1',
    namespace: `node-${NODE}`,
    uid: 'instance-uid-1',
    generation,
    annotations: { [OPERATION_ANNOTATION]: madeFor },
  },
  spec: {
    server: { namespace: NAMESPACE, name: 'web-id', uid: 'uid-1' },
    hostname: 'web',
    power: 'running',
    incarnation: 1,
    cores: 1,
    memoryMebibytes: 192,
    disks: [{ volume: 'storage-uid-1', serial: 'webid' }],
    interfaces: [{ macAddress: '52:54:00:00:00:01', kind: 'public' }],
    template: 'tiny-linux',
    metadata: {
      isEnabled: true,
      id: 'web-id',
      title: '',
      zone: 'zone-1',
      region: 'eu-1',
      plan: 'tiny',
      publicKeys: ['ssh-ed25519 AAAA'],
      labels: {},
    },
    ...spec,
  },
  ...(status === undefined
    ? {}
    : {
        status: {
          state: 'running',
          incarnation: 1,
          observedGeneration: generation,
          startedAt: NOW.toISOString(),
          ...status,
        },
      }),
})

/** A server at rest: created, running, nothing under way. */
export function started(changes: Changes = {}): World {
  const { stanza, progress } = ended('server.create')
  return newborn({
    ...changes,
    spec: { operation: stanza, ...changes.spec },
    status: { state: 'started', operation: progress, incarnation: 1, nodeName: NODE, ...changes.status },
    observed: { storage: storage('online'), instance: instance({}, {}), ...changes.observed },
  })
}

/** The same with an operation of the kind under way. */
export const working = (kind: OperationKind, changes: Changes = {}, args: Record<string, string> = {}): World =>
  started({ ...changes, spec: { operation: operation(kind, 'op-1', args), ...changes.spec } })

/** One line for each action, short enough for a table. */
export const actionLines = (actions: readonly Action[]): readonly string[] =>
  actions.flatMap((action) => {
    switch (action.do) {
      case 'ensure':
        return [`ensure ${action.type.kind}${detailOf(action.draft.spec)}`]
      case 'remove':
        return [`remove ${action.type.kind}`]
      case 'change':
        return [
          // plans change specs only
          `change ${JSON.stringify((action.patch as { spec: object }).spec, withoutVolatile)}`,
        ]
      case 'operation':
        return [
          `operation ${action.id} ` +
            `${action.step}${action.outcome === undefined ? '' : ` ${action.outcome}`}` +
            `${action.error === undefined ? '' : `: ${action.error}`}`,
        ]
      case 'effect':
        return [
          `effect ${action.name}${typeof action.input['action'] === 'string' ? ` ${action.input['action']}` : ''}`,
        ]
      case 'status':
        return [
          `state ${String(action.status['state'])}` +
            `${typeof action.status['stateDetail'] === 'string' ? `: ${action.status['stateDetail']}` : ''}`,
        ]
      case 'finalized':
        return ['finalized']
      case 'wait':
        return [`wait for ${action.for}`]
    }
  })

const VOLATILE = ['id', 'requestedAt', 'deadlineAt', 'requestId', 'arguments']
const withoutVolatile = (key: string, value: unknown) => (VOLATILE.includes(key) ? undefined : value)

const detailOf = (spec: unknown): string => {
  const { power, incarnation, stop } = (spec ?? {}) as Partial<InstanceSpec>
  return power === undefined
    ? ''
    : ` ${power} ${incarnation}` +
        `${stop === undefined ? '' : ` ${stop.type} ${stop.timeoutSeconds}s ${stop.timeoutAction}`}`
}

/** What the actions make of the world, as the interpreter would; the agent and the other controllers do not move. */
export function applied({ server, observed }: World, actions: readonly Action[], now: Date): World | 'gone' {
  let root = server
  let world = observed
  for (const action of actions) {
    if (action.do === 'finalized') return 'gone'
    if (action.do === 'change') root = raise({ ...root, spec: patched(root.spec, action.patch['spec']) })
    if (action.do === 'remove' && action.type.kind === 'Server')
      root = { ...root, metadata: { ...root.metadata, deletionTimestamp: now.toISOString() } }
    if (action.do === 'remove' && action.type.kind === 'Instance') world = { ...world, instance: undefined }
    if (action.do === 'remove' && action.type.kind === 'Storage') world = { ...world, storage: undefined }
    if (action.do === 'ensure' && action.type.kind === 'Storage') world = { ...world, storage: storage('creating') }
    if (action.do === 'ensure' && action.type.kind === 'Instance') {
      const { status, metadata } = world.instance ?? instance({}, undefined)
      const annotations = { ...action.draft.metadata.annotations }
      world = {
        ...world,
        instance: {
          ...instance({}, undefined),
          metadata: { ...metadata, generation: (metadata.generation ?? 0) + 1, annotations },
          spec: action.draft.spec as InstanceSpec,
          ...defined({ status }),
        },
      }
    }
    if (action.do === 'effect' && action.name === 'claim') world = { ...world, claims: newborn().observed.claims }
    if (action.do === 'effect' && action.name === 'give_back') world = { ...world, claims: undefined }
    if (action.do === 'operation') {
      const stanza = root.spec.operation
      const before =
        root.status?.operation?.id === action.id ? root.status.operation : stanza && pendingProgress(stanza)
      if (before !== undefined && !isFinal(before.status))
        root = {
          ...root,
          status: { ...(root.status ?? { state: 'creating' }), operation: advance(before, action, now) },
        }
    }
    if (action.do === 'status') {
      const conditions = mergeConditions(
        (root.status?.conditions ?? []) as Parameters<typeof mergeConditions>[0],
        action.conditions ?? [],
        { generation: root.metadata.generation, now },
      )
      root = { ...root, status: { ...plain({ ...root.status, ...action.status } as ServerStatus), conditions } }
    }
  }
  return { server: root, observed: world }
}

/** Whether the actions would change anything at all. */
export const isQuiet = (world: World, actions: readonly Action[], now: Date): boolean => {
  const next = applied(world, actions, now)
  const bare = (object: World) =>
    plain({ ...object, server: { ...object.server, status: { ...object.server.status, observedGeneration: 0 } } })
  return next !== 'gone' && patchBetween(bare(world), bare(next)) === undefined
}

const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const raise = (server: ServerObject): ServerObject => ({
  ...server,
  metadata: { ...server.metadata, generation: (server.metadata.generation ?? 0) + 1 },
})
const patched = (spec: ServerSpec, patch: unknown): ServerSpec => {
  const next = { ...spec, ...(patch as Partial<ServerSpec>) }
  return plain({
    ...next,
    ...(next.operation === undefined
      ? {}
      : {
          operation: Object.fromEntries(
            Object.entries(next.operation).filter(([, value]) => value !== null),
          ) as OperationStanza,
        }),
  })
}
