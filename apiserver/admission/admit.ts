/** Judges a write to Kubernetes that did not come from the platform itself: by the rules of the API, in the name of who
 *  asks.
 *  What passes is written down, because the object does not say who changed it; what is refused is in the audit log, as
 *  it is
 *  when the API refuses it. A dry run leaves nothing behind. */
import { forbidden, Problem } from '../../domain/problem.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { databaseUnavailable } from '../../db/failures.ts'
import { recordKubernetesRequest } from '../../db/request/kubernetes-requests.ts'
import { accountExists } from '../../db/server/claims.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { API_GROUP } from '../../resources/define.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { Node, type NodeSpec, type NodeStatus, Plan, Region, Template, Zone } from '../../resources/catalog/stored.ts'
import type { ServerGroupSpec, ServerGroupStatus } from '../../resources/server-group/index.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../resources/public-pool/index.ts'
import type { ServerSpec, ServerStatus } from '../../resources/server/stored.ts'
import { auditEntry, kubernetesActor } from '../change/audit.ts'
import { judgeNodeChange, judgeNodeCreation, judgeNodeDeletion } from '../node/admission.ts'
import { judgePoolChange, judgePoolCreation, judgePoolDeletion } from '../public-pool/admission.ts'
import { type AdmissionRequest, allowed, refused, typed } from './review.ts'
import { judgeGroupChange, judgeGroupCreation, judgeGroupDeletion } from '../server-group/admission.ts'
import { type Asked, judgeChange, judgeCreation, judgeDeletion, type JudgeParts } from '../server/admission.ts'

export interface AdmissionParts extends JudgeParts {
  readonly log: Logger
  /** Kubernetes users of the platform's own processes, who are never refused. */
  readonly platformUsers: readonly string[]
}

export type Judge = (request: AdmissionRequest) => Promise<object>

/** The cluster's own controllers, which clean up behind owners and namespaces. */
const CLUSTER_CONTROLLERS = 'system:serviceaccount:kube-system:'

/** Answers AdmissionReview responses. Throws Unavailable when it cannot know; whether the write may happen then is the
 *  caller's choice. */
export function openJudge(parts: AdmissionParts): Judge {
  parts.caches.of(Node)
  parts.caches.of(Plan)
  parts.caches.of(Region)
  parts.caches.of(Template)
  parts.caches.of(Zone)
  parts.caches.of(PublicPool)
  return async (request) => {
    const {
      uid,
      userInfo: { username },
      resource: { group },
    } = request
    if (group !== API_GROUP || parts.platformUsers.includes(username)) return allowed(uid)
    try {
      const asked = await judge(parts, request)
      if (request.dryRun !== true) await record(parts, request, asked)
      return allowed(uid)
    } catch (error) {
      if (!(error instanceof Problem)) throw databaseUnavailable(error)
      parts.log.info('write refused', {
        kind: request.resource.resource,
        operation: request.operation,
        status: error.status,
        reason: error.members.reason,
      })
      if (request.dryRun !== true) await auditRefusal(parts, request, error)
      return refused(uid, error)
    }
  }
}

/** What each kind says to a new object, to a change, and to the end of one. */
interface Rules<Spec, Status> {
  readonly create: (parts: AdmissionParts, object: KubeObject<Spec, Status>) => Verdict
  readonly change: (
    parts: AdmissionParts,
    object: KubeObject<Spec, Status>,
    before: KubeObject<Spec, Status>,
  ) => Verdict
  readonly remove: (parts: AdmissionParts, before: KubeObject<Spec, Status>) => Verdict
}
type Verdict = readonly Asked[] | Promise<readonly Asked[]>

const judging =
  <Spec, Status>({ create, change, remove }: Rules<Spec, Status>) =>
  (parts: AdmissionParts, { operation, object, oldObject }: AdmissionRequest): Verdict => {
    const [after, before] = [typed<Spec, Status>(object), typed<Spec, Status>(oldObject)]
    if (operation === 'CREATE' && after !== undefined) return create(parts, after)
    if (operation === 'UPDATE' && after !== undefined && before !== undefined) return change(parts, after, before)
    if (operation === 'DELETE' && before !== undefined) return remove(parts, before)
    throw new Error(`a review of ${operation} lacks the object`)
  }

const judgeServer = judging<ServerSpec, ServerStatus>({
  create: judgeCreation,
  change: (_parts, server, before) => judgeChange(server, before),
  remove: (_parts, before) => judgeDeletion(before),
})
const judgeGroup = judging<ServerGroupSpec, ServerGroupStatus>({
  create: judgeGroupCreation,
  change: judgeGroupChange,
  remove: judgeGroupDeletion,
})
const judgeNode = judging<NodeSpec, NodeStatus>({
  create: judgeNodeCreation,
  change: judgeNodeChange,
  remove: judgeNodeDeletion,
})
const judgePool = judging<PublicPoolSpec, PublicPoolStatus>({
  create: judgePoolCreation,
  change: (_parts, pool, before) => judgePoolChange(pool, before),
  remove: judgePoolDeletion,
})

async function judge(parts: AdmissionParts, request: AdmissionRequest): Promise<readonly Asked[]> {
  const {
    operation,
    resource: { resource },
    subResource,
    userInfo: { username },
  } = request
  if (subResource === 'status') throw forbidden('The status is written by the platform only.')
  // A protected server stays, whoever cleans up around it.
  if (resource === 'servers') return judgeServer(parts, request)
  if (operation === 'DELETE' && username.startsWith(CLUSTER_CONTROLLERS)) return []
  if (resource === 'servergroups') return judgeGroup(parts, request)
  if (resource === 'nodes') return judgeNode(parts, request)
  if (resource === 'publicpools') return judgePool(parts, request)
  if (resource === 'storages' && operation === 'CREATE')
    throw new Problem(501, 'Only boot storages are offered here: they are made with their server.')
  if (resource === 'storages' || resource === 'operations')
    throw forbidden(`${resource} are written by the platform only.`)
  return []
}

async function record(
  { db, clock }: AdmissionParts,
  { operation, object, oldObject, userInfo: { username } }: AdmissionRequest,
  asked: readonly Asked[],
): Promise<void> {
  const { uid, generation = 0 } = (object ?? oldObject)?.metadata ?? {}
  if (uid === undefined) return
  for (const { action, changes } of asked) {
    await recordKubernetesRequest(db, {
      uid,
      action,
      generation: operation === 'DELETE' ? generation + 1 : generation,
      username,
      requestedAt: clock.now(),
      changes,
    })
  }
}

/** As the API does: 403 is denied, what the state of things forbids has failed, and nonsense has no entry. */
const AUDITED: Readonly<Record<number, 'denied' | 'failed'>> = {
  402: 'failed',
  403: 'denied',
  409: 'failed',
  422: 'failed',
  501: 'failed',
  503: 'failed',
}
const ACTIONS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete', CONNECT: 'connect' } as const

async function auditRefusal(
  { db, clock, random }: AdmissionParts,
  { uid, operation, namespace, object, oldObject, userInfo: { username } }: AdmissionRequest,
  { status, members: { reason } }: Problem,
): Promise<void> {
  const accountId = accountOfNamespace(namespace)
  const outcome = AUDITED[status]
  const target = object ?? oldObject
  if (outcome === undefined || accountId === undefined || target == null || !(await accountExists(db, accountId)))
    return
  const entry = auditEntry(
    accountId,
    kubernetesActor(username),
    { requestId: uid, sourceIp: '', userAgent: '' },
    {
      action: `${nounOf(target.kind)}.${ACTIONS[operation]}`,
      resourceId: target.metadata.name,
      outcome,
      detail: { status: String(status), ...(reason === undefined ? {} : { reason }) },
    },
  )
  await db.transaction().execute((tx) => appendAudit(tx, entry, { clock, random }))
}

/** ServerGroup is server_group, as the actions of the API have it. */
const nounOf = (kind: string): string => kind.replace(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()
