/** The server group controller. A group that was created with kubectl gets its row in PostgreSQL, which placement uses;
 *  a group is deleted when it has no servers. Placement itself is part of a server's claims. */
import { unmetMembers } from '../../../domain/node/placement.ts'
import { serverGroupChanges } from '../../../changes/server-group.ts'
import { listKubernetesRequests, type KubernetesRequest } from '../../../db/request/index.ts'
import {
  findServerGroup,
  listGroupMembers,
  type ServerGroup as Row,
  type ServerGroupMember,
} from '../../../db/server-group/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Server } from '../../../resources/server/index.ts'
import {
  ServerGroup,
  type ServerGroupSpec,
  type ServerGroupStatus,
  shownUnmet,
} from '../../../resources/server-group/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { type AuditEffects, auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { ActionWith, EffectsOn } from '../../kit/effects.ts'
import { healthConditions } from '../../kit/health.ts'
import { type ClaimEffects, claimEffect, intentOf } from '../../kit/changes.ts'
import { auditRequests } from '../../kit/operation/direct-edit.ts'
import type { Parts } from '../../kit/parts.ts'

type GroupObject = KubeObject<ServerGroupSpec, ServerGroupStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly region: string | undefined
  readonly row: Row | undefined
  /** Oldest first. */
  readonly members: readonly ServerGroupMember[]
  /** Requests by people to the Kubernetes API since the last reconcile. */
  readonly requests: readonly KubernetesRequest[]
}

/** Claims change in PostgreSQL, where no event wakes the reconciler: members change, and a deletion may have got no
 *  further than its row. */
const LOOK_SECONDS = 20

/** The effects of groups by name, each with its input. */
interface ServerGroupEffects extends AuditEffects, ClaimEffects {}
type ServerGroupAction = ActionWith<ServerGroupEffects>

async function observe({ caches, db }: Parts, { metadata, spec, status }: GroupObject): Promise<Observed> {
  const { namespace = '', name: groupId, uid = '', generation = 0 } = metadata
  const accountId = await findAccountOf(db, namespace)
  const after = status?.observedGeneration ?? 0
  return {
    accountId,
    region: spec.zone === undefined ? spec.region : caches.of(Zone).get({ name: spec.zone })?.spec.region,
    row: accountId === undefined ? undefined : await orUnavailable(findServerGroup(db, { accountId, groupId })),
    members: accountId === undefined ? [] : await orUnavailable(listGroupMembers(db, { accountId, groupId })),
    requests:
      generation > after ? await orUnavailable(listKubernetesRequests(db, uid, { after, upTo: generation })) : [],
  }
}

/** Guards in order: deleting, no account, no zone, no row, another name, done. */
export function plan(group: GroupObject, observed: Observed): readonly ServerGroupAction[] {
  return [...auditRequests(group, observed.requests), ...decide(group, observed)]
}

function decide(
  { metadata: { deletionTimestamp }, spec, status }: GroupObject,
  { accountId, region, row, members }: Observed,
): readonly ServerGroupAction[] {
  const wait: ServerGroupAction = { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' }
  if (deletionTimestamp !== undefined) {
    if (row === undefined || accountId === undefined) return [{ do: 'finalized' }]
    if (members.length > 0)
      return [
        {
          do: 'status',
          status: { memberCount: members.length },
          conditions: healthConditions('reconciling', 'InUse', 'It is deleted when its servers are deleted.'),
        },
        wait,
      ]
    return [
      { do: 'effect', name: 'claim', input: { accountId, change: 'delete' } },
      { do: 'wait', seconds: 0, for: 'the next look' },
    ]
  }
  const stalled = (reason: string, message: string): readonly ServerGroupAction[] => [
    { do: 'status', status: {}, conditions: healthConditions('stalled', reason, message) },
  ]
  if (accountId === undefined) return stalled('NoAccount', 'The namespace belongs to no account.')
  if (region === undefined) return stalled('NoZone', `There is no zone ${spec.zone ?? ''}.`)
  const refusal = status?.conditions?.find(({ type, status: is }) => type === 'Claimed' && is === 'False')
  const due = row === undefined ? 'create' : row.name === spec.name ? undefined : 'rename'
  if (due !== undefined)
    return [
      { do: 'effect', name: 'claim', input: { accountId, change: due } },
      ...(refusal === undefined ? [] : stalled(refusal.reason, refusal.message)),
      {
        do: 'wait',
        seconds: refusal === undefined ? 0 : LOOK_SECONDS,
        for: due === 'create' ? 'room in the quota' : 'the name',
      },
    ]
  const unmet = shownUnmet(unmetMembers(spec.spread, members).map(({ serverId }) => serverId))
  return [
    {
      do: 'status',
      status: { region, memberCount: members.length, unmetMembers: unmet },
      conditions: [
        ...healthConditions('ready', 'Kept', ''),
        { type: 'Claimed', status: 'True', reason: 'Claimed', message: '' },
      ],
    },
    wait,
  ]
}

export const serverGroupController = controller<ServerGroupEffects>()({
  name: 'server-group',
  resource: ServerGroup,
  sharding: 'common',
  finalizer: finalizerOf(ServerGroup),
  intent: intentOf(serverGroupChanges),
  plan,
  reads: [Server, Zone],
  writes: [],
  open: (parts: Parts) => ({
    watches: [
      watch(Server, ({ metadata: { namespace = '' }, spec }) =>
        spec.serverGroupId === undefined ? [] : [{ namespace, name: spec.serverGroupId }],
      ),
      watch(Zone, () => []),
    ],
    observe: (group) => observe(parts, group),
    effects: serverGroupEffects(parts),
  }),
})

const serverGroupEffects = (parts: Parts): EffectsOn<ServerGroupEffects, ServerGroupSpec, ServerGroupStatus> => ({
  claim: claimEffect(parts, serverGroupChanges),
  audit: auditEffect(parts),
})
