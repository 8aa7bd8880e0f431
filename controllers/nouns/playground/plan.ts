/** The plan of playgrounds: pure, synchronous, total. Guards in order: no account, not claimed, over, not ready, ready.
 *  A playground that is over is first removed from its host; its end is recorded after that. */
import { hasTakenTooLong, type EndReason, playgroundStateOf } from '../../../domain/playground/rules.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { Playground as Row } from '../../../db/playground/index.ts'
import type { ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { Playground, type PlaygroundSpec, type PlaygroundStatus } from '../../../resources/playground/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { healthConditions } from '../../kit/health.ts'
import { auditRequests } from '../../kit/operation/direct-edit.ts'
import { refusalOf } from '../../kit/refusal.ts'

export type PlaygroundObject = KubeObject<PlaygroundSpec, PlaygroundStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly row: Row | undefined
  /** The report of its host, or why there is none, for people. */
  readonly host:
    | { readonly plane: ControlPlaneState | undefined; readonly isSimulated: boolean }
    | { readonly obstacle: string }
  /** Requests by people to the Kubernetes API since the last reconcile. */
  readonly requests: readonly KubernetesRequest[]
}

interface Id {
  readonly accountId: string
  readonly playgroundId: string
}

/** The effects of playgrounds by name, each with its input. */
export interface PlaygroundEffects extends AuditEffects {
  readonly claim: Id & { readonly region: string }
  /** Makes its host create it, including the guest. */
  readonly ensure: Id
  /** Records that it is ready. */
  readonly ready: Id & { readonly endpoint: string | null; readonly certificateAuthority: string | null }
  /** Makes its host delete it, guest first. */
  readonly dismantle: { readonly region: string; readonly controlPlaneId: string }
  /** Records why it has ended. Does nothing when that is recorded already. */
  readonly end: Id & { readonly reason: EndReason; readonly failureReason?: string }
  /** Records that nothing of it is left. */
  readonly close: Id
}
type PlaygroundAction = ActionWith<PlaygroundEffects>

/** Whether PostgreSQL granted its claims, and whether its host accepted it. */
export const CLAIMED = 'Claimed'
export const HOSTED = 'Hosted'

/** Its host wakes no reconciler. */
const BUSY_LOOK_SECONDS = 1
const LOOK_SECONDS = 10
const MILLISECONDS = 1_000
const DETAIL_CHARACTERS = 1_000
const LOST = 'Its host has lost it.'

export const plan = (root: PlaygroundObject, observed: Observed, now: Date): readonly PlaygroundAction[] => [
  ...auditRequests(root, observed.requests),
  ...decide(root, observed, now),
]

function decide(root: PlaygroundObject, observed: Observed, now: Date): readonly PlaygroundAction[] {
  const { row, accountId, host } = observed
  if (accountId === undefined) return withoutAccount(root)
  if (row === undefined) {
    if (root.metadata.deletionTimestamp !== undefined) return [{ do: 'finalized' }]
    return claiming(root, accountId)
  }
  const over = overBecause(root, row, now)
  if (over !== undefined) return ending(root, observed, row, over)
  if ('obstacle' in host) return waiting(row, now, { for: host.obstacle, seconds: LOOK_SECONDS })
  return row.readyAt === null ? making(row, host, now) : running(row, host, now)
}

/** Its account and its rows no longer exist; its host deletes it by itself in time. */
const withoutAccount = ({ metadata }: PlaygroundObject): readonly PlaygroundAction[] =>
  metadata.deletionTimestamp === undefined
    ? [
        {
          do: 'status',
          status: {},
          conditions: healthConditions('stalled', 'NoAccount', 'The namespace belongs to no account.'),
        },
      ]
    : [{ do: 'finalized' }]

function claiming(root: PlaygroundObject, accountId: string): readonly PlaygroundAction[] {
  const { metadata, spec } = root
  const refusal = refusalOf(root, CLAIMED)
  if (refusal !== undefined)
    return [
      { do: 'status', status: {}, conditions: healthConditions('stalled', refusal.reason, refusal.message) },
      { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' },
    ]
  return [
    { do: 'effect', name: 'claim', input: { accountId, playgroundId: metadata.name, region: spec.region } },
    { do: 'wait', seconds: 0, for: 'the next look' },
  ]
}

interface Over {
  readonly reason: EndReason
  readonly failureReason?: string
}

/** Why it ends now; undefined while it does not. The clock decides, whatever the other sources say. */
function overBecause(root: PlaygroundObject, row: Row, now: Date): Over | undefined {
  if (row.endReason !== null) return { reason: row.endReason }
  if (row.expiresAt <= now) return { reason: 'expired' }
  if (root.metadata.deletionTimestamp !== undefined) return { reason: 'deleted' }
  const refusal = refusalOf(root, HOSTED)
  return refusal === undefined ? undefined : { reason: 'failed', failureReason: refusal.message }
}

const idOf = ({ accountId, id: playgroundId }: Row): Id => ({ accountId, playgroundId })

function ending(root: PlaygroundObject, { host }: Observed, row: Row, over: Over): readonly PlaygroundAction[] {
  const { region, controlPlaneId } = row
  const reason: PlaygroundAction = { do: 'effect', name: 'end', input: { ...idOf(row), ...over } }
  const going = statusOf(row, { state: 'deleting', endReason: over.reason }, ['reconciling', 'Deleting', ''])
  if ('obstacle' in host) return [going, { do: 'wait', seconds: LOOK_SECONDS, for: host.obstacle }]
  if (host.plane !== undefined)
    return [
      { do: 'effect', name: 'dismantle', input: { region, controlPlaneId } },
      ...(row.endedAt === null ? [reason] : []),
      going,
      { do: 'wait', seconds: BUSY_LOOK_SECONDS, for: 'its host to end it' },
    ]
  return [
    ...(row.endedAt === null ? [reason] : []),
    ...(row.deletedAt === null ? [{ do: 'effect', name: 'close', input: idOf(row) } as const] : []),
    ...(root.metadata.deletionTimestamp === undefined
      ? [{ do: 'remove', type: Playground, key: keyOf(root) } as const]
      : [{ do: 'finalized' } as const]),
  ]
}

type PlaygroundHost = Exclude<Observed['host'], { readonly obstacle: string }>

const isWhole = ({ phase, apiServersReady }: ControlPlaneState): boolean => phase === 'running' && apiServersReady > 0

function making(row: Row, { plane, isSimulated }: PlaygroundHost, now: Date): readonly PlaygroundAction[] {
  if (hasTakenTooLong(row.createdAt, now)) {
    const detail = plane === undefined || plane.detail === '' ? 'It was not ready in time.' : plane.detail
    return failing(row, detail)
  }
  if (plane === undefined)
    return [
      { do: 'effect', name: 'ensure', input: idOf(row) },
      ...waiting(row, now, { for: 'its control plane', seconds: BUSY_LOOK_SECONDS }),
    ]
  if (!isWhole(plane))
    return waiting(row, now, { for: plane.detail === '' ? 'its node' : plane.detail, seconds: BUSY_LOOK_SECONDS })
  const { endpoint, certificateAuthority } = plane
  const entry = isSimulated ? { endpoint: null, certificateAuthority: null } : { endpoint, certificateAuthority }
  return [
    { do: 'effect', name: 'ready', input: { ...idOf(row), ...entry } },
    statusOf(
      row,
      { state: 'ready', endpoint: entry.endpoint ?? undefined, isSimulated: isSimulated ? true : undefined },
      ['ready', 'Ready', ''],
    ),
    { do: 'wait', seconds: untilExpiry(row, now), for: 'a change' },
  ]
}

const failing = (row: Row, failureReason: string): readonly PlaygroundAction[] => [
  {
    do: 'effect',
    name: 'end',
    input: { ...idOf(row), reason: 'failed', failureReason: failureReason.slice(0, DETAIL_CHARACTERS) },
  },
  { do: 'wait', seconds: 0, for: 'the next look' },
]

function running(row: Row, { plane, isSimulated }: PlaygroundHost, now: Date): readonly PlaygroundAction[] {
  if (plane === undefined) return failing(row, LOST)
  const isGood = isWhole(plane)
  return [
    statusOf(
      row,
      {
        state: 'ready',
        endpoint: row.endpoint ?? undefined,
        isSimulated: isSimulated ? true : undefined,
        detail: isGood || plane.detail === '' ? undefined : plane.detail.slice(0, DETAIL_CHARACTERS),
      },
      isGood ? ['ready', 'Ready', ''] : ['reconciling', 'Unhealthy', plane.detail],
    ),
    { do: 'wait', seconds: untilExpiry(row, now), for: 'a change' },
  ]
}

const waiting = (
  row: Row,
  now: Date,
  { for: what, seconds }: { readonly for: string; readonly seconds: number },
): readonly PlaygroundAction[] => [
  statusOf(row, { state: playgroundStateOf(row, now), detail: what.slice(0, DETAIL_CHARACTERS) }, [
    'reconciling',
    'Provisioning',
    `Waiting for ${what}`,
  ]),
  { do: 'wait', seconds, for: what },
]

/** Never later than its expiry. */
const untilExpiry = ({ expiresAt }: Row, now: Date): number =>
  Math.min(LOOK_SECONDS, Math.max(1, Math.ceil((expiresAt.getTime() - now.getTime()) / MILLISECONDS)))

const statusOf = (
  { name, appDomain, expiresAt }: Row,
  status: Partial<PlaygroundStatus>,
  [health, reason, message]: Parameters<typeof healthConditions>,
): PlaygroundAction => ({
  do: 'status',
  status: { detail: undefined, name, appDomain, expiresAt: expiresAt.toISOString(), ...status },
  conditions: healthConditions(health, reason, message),
})
