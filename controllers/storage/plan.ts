/** The storage's plan: a disk is a Volume on the node of its server, and for as long as the server moves another on the
 *  node it goes to. Pure. Data goes with one Volume only: what lies on shared storage with that of the server's own
 *  node, and what lies on a node's own disks never before the server's own node has it. */
import type { ConditionDraft } from '../../kit/reconcile/action.ts'
import { nodeOf, type VolumeSpec } from '../../resources/instance/index.ts'
import type { PlainAction } from '../effects.ts'
import { healthConditions } from '../health.ts'
import { syncVolumes } from './sync-volumes.ts'
import type { Observed } from './observed.ts'
import {
  ensureOwn,
  ensureVolume,
  hasSameData,
  isTerminating,
  poolAmong,
  removeVolume,
  type StorageObject,
  type VolumeObject,
  withdraw,
} from './volumes.ts'

/** Room is had in PostgreSQL, where nothing wakes anybody. */
const PLACE_LOOK_SECONDS = 5

/** Guards in order: deleting, not a boot storage, no node, another zone, volume missing, volume at work. */
export function plan(storage: StorageObject, observed: Observed): readonly PlainAction[] {
  const { metadata, spec } = storage
  const { node } = observed
  if (metadata.deletionTimestamp !== undefined && !observed.isInUse) return removeStorage(storage, observed)
  if (!spec.isBoot || spec.serverId === undefined)
    return failed('Only boot storages, which are made with their server, are offered here.')
  if (node === undefined)
    return [
      reconciling({ state: 'creating' }, 'Waiting', 'The server has no room on any host yet.'),
      { do: 'wait', seconds: PLACE_LOOK_SECONDS, for: 'the server to be placed' },
    ]
  // The last reconcile in this zone: the process that owns the other zone continues.
  if (observed.zone !== undefined && observed.zone !== spec.zone)
    return [
      { do: 'change', patch: { spec: { zone: observed.zone } } },
      { do: 'wait', seconds: 0, for: 'the next look' },
    ]
  const volume = observed.volumes.find((one) => nodeOf(one) === node)
  const elsewhere = syncVolumes(storage, observed, volume)
  const pool = volume === undefined ? poolOf(storage, observed) : volume.spec.pool
  const place = { nodeName: node, pool, ...(observed.region === undefined ? {} : { region: observed.region }) }
  const holder = pool === undefined ? observed.volumes[0] : undefined
  if (volume === undefined && holder !== undefined)
    return [...elsewhere, ...failed(`The disk lies on node ${nodeOf(holder)}, which the server is not on.`)]
  if (volume === undefined)
    return [
      ensureVolume(storage, node, { pool, ...initialContent(storage, observed) }),
      ...elsewhere,
      reconciling({ state: 'creating', ...place }, 'Creating'),
    ]
  const blocked: ConditionDraft[] =
    metadata.deletionTimestamp === undefined
      ? []
      : [{ type: 'DeletionBlocked', status: 'True', reason: 'InUse', message: 'A boot storage goes with its server.' }]
  if (volume.status?.state === 'error')
    return [...elsewhere, ...failed(volume.status.detail ?? 'The host could not make the disk.')]
  const isReady = volume.status?.state === 'ready'
  return [
    ...elsewhere,
    {
      do: 'status',
      status: {
        state: isReady ? 'online' : 'creating',
        stateDetail: undefined,
        sizeGibibytes: volume.status?.sizeGibibytes,
        ...place,
      },
      conditions: [
        ...healthConditions(
          isReady ? 'ready' : 'reconciling',
          isReady ? 'Online' : 'Creating',
          volume.status?.detail ?? '',
        ),
        ...blocked,
      ],
    },
  ]
}

/** A disk stays where it was made. */
function poolOf(storage: StorageObject, { volumes: [known], pools }: Observed): string | undefined {
  if (known !== undefined) return known.spec.pool
  return storage.status?.nodeName === undefined ? poolAmong(storage, pools) : storage.status.pool
}

/** What lies on shared storage already is not made a second time. */
function initialContent(
  { spec }: StorageObject,
  { volumes: [known] }: Observed,
): Pick<VolumeSpec, 'source' | 'origin'> {
  if (known?.spec.pool !== undefined) {
    const origin = known.status?.origin ?? known.spec.origin
    return origin === undefined ? {} : { origin }
  }
  return spec.source?.kind === 'template' ? { source: { kind: 'template', name: spec.source.id } } : {}
}

const SUCCESSOR_WAIT_SECONDS = 10

/** The server's own volume goes last, with the data. Once the server has no node any more, that is the one that may end
 *  them. */
function removeStorage(storage: StorageObject, observed: Observed): readonly PlainAction[] {
  const { volumes, node } = observed
  const own =
    volumes.find((one) => nodeOf(one) === node) ?? volumes.find(({ spec }) => spec.isRetained !== true) ?? volumes[0]
  if (own === undefined) return [{ do: 'finalized' }]
  const others = volumes.filter((one) => one !== own)
  const isLost = own.spec.pool !== undefined && (observed.lostNodes ?? []).includes(nodeOf(own))
  const actions = isLost
    ? handOverToSuccessor(storage, observed, own)
    : others.length > 0
      ? others.flatMap((one) => withdraw(storage, one, own))
      : isTerminating(own)
        ? []
        : [ensureOwn(storage, own), removeVolume(own)]
  return [
    ...actions,
    reconciling({ state: 'deleting' }, 'Deleting'),
    ...(isLost ? [{ do: 'wait', seconds: SUCCESSOR_WAIT_SECONDS, for: 'a node that reaches the disk' } as const] : []),
  ]
}

/** Shared data whose only volume is on a lost node is handed to a node that can access the pool, so that they can be
 *  deleted there. Once that node has its volume the lost one is withdrawn, and is removed by the proof that its node is
 *  lost. Where no other node can access the pool, only a forced release continues without one. */
function handOverToSuccessor(
  storage: StorageObject,
  { volumes, lostNodes = [], successorNode, isReleased = false }: Observed,
  lost: VolumeObject,
): readonly PlainAction[] {
  const successor = volumes.find(
    (one) => one !== lost && hasSameData(one, lost) && !isTerminating(one) && !lostNodes.includes(nodeOf(one)),
  )
  if (successor !== undefined) return successor.status === undefined ? [] : withdraw(storage, lost, lost)
  if (successorNode === undefined) return isReleased && !isTerminating(lost) ? [removeVolume(lost)] : []
  return [
    ensureVolume(storage, successorNode, {
      pool: lost.spec.pool,
      origin: lost.status?.origin ?? lost.spec.origin,
      isRetained: true,
    }),
  ]
}

const reconciling = (status: Readonly<Record<string, unknown>>, reason: string, message = ''): PlainAction => ({
  do: 'status',
  status,
  conditions: healthConditions('reconciling', reason, message),
})
const failed = (detail: string): readonly PlainAction[] => [
  {
    do: 'status',
    status: { state: 'error', stateDetail: detail },
    conditions: healthConditions('stalled', 'Error', detail),
  },
]
