/** The server group controller: groups made with kubectl get their row in PostgreSQL, by which servers are placed; a
 *  group goes when it has
 *  no servers. Placing itself is part of a server's claims. */
import { unmetMembers } from '../../domain/placement.ts'
import { type KubernetesRequest, listKubernetesRequests } from '../../db/request/index.ts'
import { accountExists } from '../../db/server/index.ts'
import {
  addServerGroup,
  findServerGroup,
  listMembers,
  removeServerGroup,
  renameServerGroup,
  type ServerGroup as Row,
  type ServerGroupMember,
} from '../../db/server-group/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { type Effect, type Reconciler, watch } from '../../kit/reconcile/reconciler.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { SERVER_GROUP_FINALIZER } from '../../resources/labels.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { Server } from '../../resources/server/index.ts'
import {
  ServerGroup,
  type ServerGroupSpec,
  type ServerGroupStatus,
  shownUnmet,
} from '../../resources/server-group/index.ts'
import { auditEffect } from '../audit.ts'
import { orUnavailable } from '../database.ts'
import { healthConditions } from '../health.ts'
import { derivedId } from '../operation/stanza.ts'
import { requireNewest } from '../newest.ts'
import type { Parts } from '../parts.ts'
import { withRefusalCondition } from '../refusal.ts'
import { userActor } from '../server/direct-edit.ts'

type GroupObject = KubeObject<ServerGroupSpec, ServerGroupStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly region: string | undefined
  readonly row: Row | undefined
  /** Oldest first. */
  readonly members: readonly ServerGroupMember[]
  /** What people asked the Kubernetes API for since the last turn. */
  readonly requests: readonly KubernetesRequest[]
}

/** Claims change in PostgreSQL, where nothing wakes anybody: servers come and go, and a deletion may have got no
 *  further than its row. */
const LOOK_SECONDS = 20

export function serverGroupReconciler(parts: Parts): Reconciler<ServerGroupSpec, ServerGroupStatus, Observed> {
  return {
    name: 'server-group',
    type: ServerGroup,
    finalizer: SERVER_GROUP_FINALIZER,
    watches: [
      watch(Server, ({ metadata: { namespace = '' }, spec }) =>
        spec.serverGroupId === undefined ? [] : [{ namespace, name: spec.serverGroupId }],
      ),
      watch(Zone, () => []),
    ],
    observe: (group) => observe(parts, group),
    plan,
    effects: {
      open: newestInTransaction(
        async (tx, accountId, input) =>
          addServerGroup(tx, accountId, {
            ...(input as unknown as Omit<Row, 'createdAt'>),
            createdAt: parts.clock.now(),
          }),
        parts,
      ), // the plan below writes it
      rename: newestInTransaction(
        async (tx, accountId, { groupId, name }) =>
          void (await renameServerGroup(tx, { accountId, groupId: String(groupId) }, String(name))),
        parts,
      ),
      remove: inTransaction(
        async (tx, accountId, { groupId }) =>
          void (await removeServerGroup(tx, { accountId, groupId: String(groupId) })),
        parts,
      ),
      audit: auditEffect(parts),
    },
  }
}

async function observe({ caches, db }: Parts, { metadata, spec, status }: GroupObject): Promise<Observed> {
  const { namespace = '', name: groupId, uid = '', generation = 0 } = metadata
  const account = accountOfNamespace(namespace)
  const accountId = account !== undefined && (await orUnavailable(accountExists(db, account))) ? account : undefined
  const after = status?.observedGeneration ?? 0
  return {
    accountId,
    region: spec.zone === undefined ? spec.region : caches.of(Zone).get({ name: spec.zone })?.spec.region,
    row: accountId === undefined ? undefined : await orUnavailable(findServerGroup(db, { accountId, groupId })),
    members: accountId === undefined ? [] : await orUnavailable(listMembers(db, { accountId, groupId })),
    requests:
      generation > after ? await orUnavailable(listKubernetesRequests(db, uid, { after, upTo: generation })) : [],
  }
}

/** Guards in order: deleting, no account, no zone, no row, another name, done. */
export function plan(group: GroupObject, observed: Observed): readonly Action[] {
  return [...auditRequests(group, observed), ...decide(group, observed)]
}

function decide(
  { metadata: { name: groupId, deletionTimestamp }, spec, status }: GroupObject,
  { accountId, region, row, members }: Observed,
): readonly Action[] {
  const wait: Action = { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' }
  if (deletionTimestamp !== undefined) {
    if (row === undefined || accountId === undefined) return [{ do: 'finalized' }]
    if (members.length > 0)
      return [
        {
          do: 'status',
          status: { memberCount: members.length },
          conditions: healthConditions('reconciling', 'InUse', 'It goes when its servers are gone.'),
        },
        wait,
      ]
    return [
      { do: 'effect', name: 'remove', input: { accountId, groupId } },
      { do: 'wait', seconds: 0, for: 'the next look' },
    ]
  }
  const stalled = (reason: string, message: string): readonly Action[] => [
    { do: 'status', status: {}, conditions: healthConditions('stalled', reason, message) },
  ]
  if (accountId === undefined) return stalled('NoAccount', 'The namespace belongs to no account.')
  if (region === undefined) return stalled('NoZone', `There is no zone ${spec.zone ?? ''}.`)
  const refusal = status?.conditions?.find(({ type, status: is }) => type === 'Claimed' && is === 'False')
  if (row === undefined) {
    const input = {
      accountId,
      id: groupId,
      name: spec.name,
      spread: spec.spread,
      zone: spec.zone ?? null,
      region,
      isStrict: spec.strict,
      generation: 1,
    }
    return [
      { do: 'effect', name: 'open', input },
      ...(refusal === undefined ? [] : stalled(refusal.reason, refusal.message)),
      { do: 'wait', seconds: refusal === undefined ? 0 : LOOK_SECONDS, for: 'room in the quota' },
    ]
  }
  if (row.name !== spec.name) {
    return [
      { do: 'effect', name: 'rename', input: { accountId, groupId, name: spec.name } },
      ...(refusal === undefined ? [] : stalled(refusal.reason, refusal.message)),
      { do: 'wait', seconds: refusal === undefined ? 0 : LOOK_SECONDS, for: 'the name' },
    ]
  }
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

const auditRequests = ({ metadata: { uid = '' } }: GroupObject, { requests }: Observed): readonly Action[] =>
  requests.map(({ action, username, generation, changes }) => ({
    do: 'effect',
    name: 'audit',
    input: { action, actor: userActor(username), requestId: derivedId(`${uid}/${generation}/${action}`), changes },
  }))

type Work = (
  tx: Parameters<Parameters<ReturnType<Parts['db']['transaction']>['execute']>[0]>[0],
  accountId: string,
  input: Readonly<Record<string, unknown>>,
) => Promise<void>

/** A row that is made for a group which has gone meanwhile would stay for ever. */
const newestInTransaction =
  (work: Work, parts: Parts): Effect =>
  async (input, group) => {
    await requireNewest(parts.store, ServerGroup, group)
    return inTransaction(work, parts)(input, group)
  }

const inTransaction = (work: Work, { db }: Parts): Effect =>
  withRefusalCondition('Claimed', async (input) => {
    await orUnavailable(db.transaction().execute((tx) => work(tx, String(input['accountId']), input)))
    return undefined
  })
