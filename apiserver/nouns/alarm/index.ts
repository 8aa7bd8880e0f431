/** What needs an operator now: from the caches, and three queries. */
import { countUnverified, listBrokenChains } from '../../../db/audit/index.ts'
import { countAbsences } from '../../../db/removal/index.ts'
import { type AlarmFacts, alarmsOf, type Finding, type Subject } from '../../../domain/alarm/rules.ts'
import { isFinal } from '../../../domain/operations.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { listAlarms, toAlarmView } from '../../../resources/alarm/index.ts'
import { Database } from '../../../resources/database/index.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { namedTarget, Operation, recordedTarget, type NamedTarget } from '../../../resources/operation/index.ts'
import type { Targets } from '../../kit/change/targets.ts'
import { completeList } from '../../kit/list/page.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'

type Needs = Parts & { readonly targets: Targets }

const LOST_STATES = ['unreachable', 'fencing', 'fenced'] as const
const ARCHIVE_INDEX = 'troubled archive'

function alarmEndpoints(parts: Needs): readonly Endpoint[] {
  const { caches, db, targets } = parts
  const [nodes, operations, databases] = [caches.of(Node), caches.of(Operation), caches.of(Database)]
  databases.addIndex(ARCHIVE_INDEX, ({ status }) => (status?.archiveState === undefined ? [] : [status.archiveState]))
  const archives = (state: 'paused' | 'failing') =>
    databases.by(ARCHIVE_INDEX, state).map(({ metadata, spec, status }) => {
      const { pause, failure } = status?.backups ?? {}
      return finding(metadata, namedTarget('database', { name: metadata.name, spec }), {
        message: pause?.reason ?? (failure || state),
        since: pause?.since,
      })
    })
  const read = async (now: Date): Promise<AlarmFacts> => ({
    absences: await countAbsences(db),
    brokenChains: await listBrokenChains(db),
    brokenChainCount: (await countUnverified(db)).brokenAccounts,
    lostNodes: nodes
      .list()
      .filter(({ status }) => LOST_STATES.some((state) => state === status?.state))
      .map(({ metadata, status }) =>
        finding(metadata, namedTarget('node', { name: metadata.name, spec: {} }), {
          message: status?.stateDetail || `The node is ${status?.state}.`,
          since: status?.lastSeenAt,
        }),
      ),
    pausedArchives: archives('paused'),
    failingArchives: archives('failing'),
    overdue: operations
      .list()
      .filter(
        ({ spec, status }) => !isFinal(status?.status ?? 'pending') && Date.parse(spec.deadlineAt) < now.getTime(),
      )
      .map(({ metadata, spec }) =>
        finding(metadata, recordedTarget(spec.target), {
          message: `${spec.kind} goes on beyond its deadline.`,
          since: spec.deadlineAt,
        }),
      ),
    // a lost node is one of the nodes above
    stalled: targets
      .stalled()
      .filter(({ type }) => type !== 'node')
      .map(({ type, object: { metadata, spec }, condition }) =>
        finding(metadata, namedTarget(type, { name: metadata.name, spec }), {
          message: condition.message || condition.reason,
          since: condition.lastTransitionTime,
        }),
      ),
  })
  return [operatorEndpoint(listAlarms, async ({ now }) => completeList(alarmsOf(await read(now)).map(toAlarmView)))]
}

const finding = (
  { namespace = '' }: KubeObject['metadata'],
  { type, id, name }: NamedTarget,
  { message, since }: { readonly message: string; readonly since: string | undefined },
): Finding => {
  const resource: Subject = { type, id, name: name ?? null }
  return {
    resource,
    accountId: accountOfNamespace(namespace) ?? null,
    message,
    since: since === undefined ? null : new Date(since),
  }
}

export const alarm = noun<Needs>({ name: 'alarm', endpoints: alarmEndpoints })
