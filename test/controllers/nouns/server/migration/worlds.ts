/** Servers on their way from node-1 to node-2, for tests of the flows that take them there. */
import type { Observed, VolumeObject } from '../../../../../controllers/nouns/server/observed.ts'
import { defined } from '../../../../../domain/defined.ts'
import type { OperationKind } from '../../../../../domain/operations.ts'
import type { InstanceSpec, InstanceStatus } from '../../../../../resources/instance/index.ts'
import type { MigrationProgress } from '../../../../../resources/server/index.ts'
import { plan } from '../../../../../controllers/nouns/server/plan.ts'
import { actionLines, instance, newborn, NOW, storage, working, type World } from '../worlds.ts'

export const TARGET = 'node-2'

export const written = (
  state: MigrationProgress['state'],
  changes: Partial<MigrationProgress> = {},
): MigrationProgress => ({
  operationId: 'op-1',
  state,
  sourceNode: 'node-1',
  targetNode: TARGET,
  phase: 'preparing',
  attempt: 1,
  iteration: 0,
  transferredBytes: 0,
  totalBytes: 0,
  dirtyBytesPerSecond: 0,
  downtimeMilliseconds: 0,
  detail: '',
  ...changes,
})

type Transfer = NonNullable<InstanceStatus['transfer']>
export const transfer = (
  role: Transfer['role'],
  phase: Transfer['phase'],
  changes: Partial<Transfer> = {},
): Transfer => ({
  id: 'op-1',
  attempt: 1,
  role,
  phase,
  iteration: 2,
  transferredBytes: 30,
  totalBytes: 100,
  dirtyBytesPerSecond: 5,
  downtimeMilliseconds: phase === 'completed' ? 40 : 0,
  detail: '',
  reportedAt: NOW.toISOString(),
  ...(role === 'receive' && phase === 'transferring' ? { host: 'host-2', port: 4_000 } : {}),
  ...changes,
})

export const receive = (attempt = 1): Partial<InstanceSpec> => ({
  receive: { id: 'op-1', attempt, mirroredVolumes: ['storage-uid-1'], secretName: 'move-uid-1' },
})
export const send = (attempt = 1, isCancelled = false): Partial<InstanceSpec> => ({
  send: {
    ...receive(attempt).receive!,
    host: 'host-2',
    port: 4_000,
    downtimeLimitMilliseconds: 2_000,
    isThrottled: attempt > 1,
    timeoutSeconds: 263,
    isCancelled,
  }, // receive always says it
})

/** On the node that the server goes to. */
export function there(
  spec: Partial<InstanceSpec>,
  status: Partial<InstanceStatus> | undefined,
  madeFor = 'op-0',
  isLeaving = false,
): NonNullable<Observed['instance']> {
  const made = instance(spec, status, madeFor)
  return {
    ...made,
    metadata: {
      ...made.metadata,
      namespace: `node-${TARGET}`,
      ...(isLeaving ? { deletionTimestamp: NOW.toISOString() } : {}),
    },
  }
}
export const stray = (): NonNullable<Observed['instance']> => instance({}, {})

export const disk = (state: 'creating' | 'ready' | 'error', source: 'copy' | 'mirror' = 'copy'): VolumeObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Volume',
  metadata: { name: 'storage-uid-1', namespace: `node-${TARGET}` },
  spec: {
    storage: { namespace: 'a', name: 'web-id', uid: 'storage-uid-1' },
    sizeGibibytes: 1,
    source: { kind: source, name: 'op-1' },
  },
  status: { state, ...(state === 'error' ? { detail: 'Disk full.' } : {}) },
})

interface Scene {
  readonly kind?: OperationKind
  readonly args?: Record<string, string>
  readonly migration?: MigrationProgress
  readonly source?: Observed['instance']
  readonly target?: Observed['instance']
  readonly policy?: 'default' | 'relaxed' | 'strict'
  readonly power?: 'running' | 'stopped'
  readonly observed?: Partial<Observed>
  /** Whether room is held, and for which operation. */
  readonly held?: string | undefined
  /** The server lives on its target by now. */
  readonly isSwitched?: boolean
  readonly now?: Date
}

/** At an instant. */
export interface Move extends World {
  readonly now: Date
}

/** A server that runs, and room held for its move. */
export function moving(scene: Scene): Move {
  const {
    kind = 'server.migrate',
    args = {},
    migration,
    policy = 'default',
    power = 'running',
    isSwitched = false,
    now = NOW,
  } = scene
  const claims = newborn().observed.claims
  if (claims === undefined) throw new Error('a newborn has claims')
  const held = 'held' in scene ? scene.held : 'op-1'
  const world = working(
    kind,
    {
      spec: { migrationPolicy: policy, desiredPower: power },
      status: { state: power === 'running' ? 'started' : 'stopped', ...defined({ migration }) },
      observed: {
        storage: storage('online'),
        targetVolume: disk('ready', 'mirror'),
        instance: 'source' in scene ? scene.source : instance({}, {}),
        targetInstance: scene.target,
        unreachableNodes: [],
        fencedNodes: [],
        claims: {
          ...claims,
          placement: { ...claims.placement, ...(isSwitched ? { node: TARGET } : {}) },
          ...(held === undefined ? {} : { target: { operationId: held, zone: 'zone-1', node: TARGET } }),
        },
        ...scene.observed,
      },
    },
    args,
  )
  return { ...world, now }
}

/** What the plan does, and at the end how far the move is then. */
export function moved({ server, observed, now }: Move): readonly string[] {
  const actions = plan(server, observed, now)
  const events = actions.flatMap((action) =>
    action.do === 'operation' ? (action.events ?? []).map(({ kind }) => `event ${kind}`) : [],
  )
  const status = actions.find((action) => action.do === 'status')
  const after = status?.do === 'status' ? (status.status['migration'] as MigrationProgress | undefined) : undefined
  return [
    ...actions
      .filter((action) => action.do !== 'wait')
      .flatMap((action) => actionLines([action]).map((line) => withPlace(line, action))),
    ...events,
    ...(after === undefined ? [] : [`${after.state}${after.detail === '' ? '' : `: ${after.detail}`}`]),
  ]
}

function withPlace(line: string, action: ReturnType<typeof plan>[number]): string {
  if (action.do !== 'ensure' && action.do !== 'remove') return line
  const namespace = action.do === 'ensure' ? action.draft.metadata.namespace : action.key.namespace
  const { receive: awaited, send: sent } = (
    action.do === 'ensure' ? (action.draft.spec ?? {}) : {}
  ) as Partial<InstanceSpec> // of other kinds: neither
  return [
    line,
    `on ${namespace}`,
    awaited && `receives ${awaited.attempt}`,
    sent && `sends ${sent.attempt}${sent.isThrottled ? ' throttled' : ''}${sent.isCancelled ? ' cancelled' : ''}`,
  ]
    .filter(Boolean)
    .join(' ')
}
