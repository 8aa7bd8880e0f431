/** Admits or refuses a write to Kubernetes that did not come from the platform itself: by the rules of the API, in the
 *  name of the user who sends it. Admitted writes are recorded, because the object does not name who changed it.
 *  Refused writes are in the audit log, as when the API refuses them. A dry run leaves nothing behind, and neither does
 *  a caller that has not proven to be the Kubernetes API. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../domain/defined.ts'
import { forbidden, Problem } from '../../../domain/problem.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { databaseUnavailable } from '../../../db/kit/failures.ts'
import { recordKubernetesRequest } from '../../../db/request/index.ts'
import { accountExists } from '../../../db/server/index.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { API_GROUP } from '../../../resources/kit/define.ts'
import { snakeCase } from '../../../resources/kit/view.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { nodeOfNamespace } from '../../../resources/instance/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Operation } from '../../../resources/operation/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { auditEntry, kubernetesActor } from '../change/audit.ts'
import { type AdmissionParts, type AdmittedChange, type Kind, writtenByPlatform } from './kind.ts'
import { type ManagedByOf, requireNoMachine } from './managed-machines.ts'
import { type AdmissionRequest, allowed, refused } from './review.ts'

export interface AdmissionOptions extends AdmissionParts {
  readonly log: Logger
  /** Kubernetes users of the platform's own processes, who are never refused. */
  readonly platformUsers: readonly string[]
  /** Every kind that the platform has rules for. */
  readonly kinds: readonly Kind[]
}

export interface AdmissionCaller {
  /** Whether the caller has proven to be the Kubernetes API. */
  readonly isAuthenticated: boolean
}

export type Admit = (request: AdmissionRequest, caller: AdmissionCaller) => Promise<object>

/** The cluster's own controllers, which clean up after owners and namespaces. */
const CLUSTER_CONTROLLERS = 'system:serviceaccount:kube-system:'
const NAMESPACE_CONTROLLER = `${CLUSTER_CONTROLLERS}namespace-controller`

/** Returns the function that answers AdmissionReview requests. It throws Unavailable when it cannot decide; the caller
 *  then chooses whether the write may happen. */
export function openAdmission(parts: AdmissionOptions): Admit {
  for (const type of parts.kinds.flatMap(({ reads }) => reads)) parts.caches.of(type)
  return async (request, { isAuthenticated }) => {
    const {
      uid,
      userInfo: { username },
      resource: { group },
    } = request
    const isNamespace = group === '' && request.resource.resource === 'namespaces'
    if ((group !== API_GROUP && !isNamespace) || parts.platformUsers.includes(username)) return allowed(uid)
    const isRecorded = isAuthenticated && request.dryRun !== true
    try {
      if (isNamespace) await requireNoOwner(parts, request)
      const admitted = isNamespace ? [] : await admit(parts, request)
      if (isRecorded) await record(parts, request, admitted)
      return allowed(uid)
    } catch (error) {
      if (!(error instanceof Problem)) throw databaseUnavailable(error)
      parts.log.info('write refused', {
        kind: request.resource.resource,
        operation: request.operation,
        status: error.status,
        reason: error.members.reason,
      })
      // The cluster's own controllers retry for ever.
      if (isRecorded && !username.startsWith(CLUSTER_CONTROLLERS)) await auditRefusal(parts, request, error)
      return refused(uid, error)
    }
  }
}

/** Returns what is admitted. Throws the Problem that refuses the write. A kind that nobody registered is refused like
 *  one without rules. */
export async function admit(
  { kinds, ...parts }: AdmissionParts & Pick<AdmissionOptions, 'kinds'>,
  request: AdmissionRequest,
): Promise<readonly AdmittedChange[]> {
  const {
    operation,
    resource: { resource: plural },
    subResource,
    userInfo: { username },
  } = request
  if (subResource === 'status') throw forbidden('The status is written by the platform only.')
  const kind = kinds.find(({ resource }) => resource.plural === plural)
  if (kind === undefined) throw writtenByPlatform(plural)
  const isByCluster = username.startsWith(CLUSTER_CONTROLLERS)
  if (isByCluster && isCollection(request)) return []
  if (operation === 'DELETE' && username === NAMESPACE_CONTROLLER) return requireLeaving(request)
  const isCleanUp = operation === 'DELETE' && isByCluster
  if (isCleanUp && !kind.validatesCleanUp) return []
  if (!isCleanUp) requireNoMachine(managedByIn(parts), request, kind.refers)
  return kind.admit(parts, request)
}

/** The disks of a machine have names like its own, and are attached to it. */
const managedByIn = ({ caches }: Pick<AdmissionParts, 'caches'>): ManagedByOf => {
  const [servers, storages] = [caches.of(Server), caches.of(Storage)]
  return (namespace, name) => {
    const serverId = storages.get({ namespace, name })?.spec.serverId ?? name
    return servers.get({ namespace, name: serverId })?.spec.managedBy
  }
}

/** The namespace of an account or a node must stay as long as the account or node exists: customers' resources would be
 *  deleted with it, and a terminating namespace accepts no new objects. Throws 403. */
async function requireNoOwner({ db, caches }: AdmissionOptions, { oldObject }: AdmissionRequest): Promise<void> {
  const { name = '' } = oldObject?.metadata ?? {}
  const [accountId, node] = [accountOfNamespace(name), nodeOfNamespace(name)]
  if (accountId !== undefined && (await accountExists(db, accountId)))
    throw forbidden('The namespace belongs to an account. Delete what is in it instead, one by one.')
  if (node !== undefined && caches.of(Node).get({ name: node }) !== undefined)
    throw forbidden(`The namespace belongs to node ${node}. Remove the node instead.`)
}

/** Nothing is deleted by deleting its namespace: only objects that were deleted themselves before, and operations,
 *  which are also in the history and in their targets. Throws 403. */
function requireLeaving({ oldObject, resource }: AdmissionRequest): [] {
  if (oldObject?.metadata.deletionTimestamp !== undefined || resource.resource === Operation.plural) return []
  throw forbidden('Nothing of a customer is deleted with its namespace. Delete it by itself.')
}

/** The second half of a deletion that was admitted: an object loses its owner, or an owner the finalizer that it waited
 *  with. */
function isCollection({ operation, object, oldObject }: AdmissionRequest): boolean {
  if (operation !== 'UPDATE' || object == null || oldObject == null) return false
  const { spec, metadata } = object
  const removals = (oldObject.metadata.finalizers ?? []).filter((one) => !(metadata.finalizers ?? []).includes(one))
  return (
    isDeepStrictEqual(spec, oldObject.spec) &&
    isDeepStrictEqual(notCollected(metadata), notCollected(oldObject.metadata)) &&
    removals.every((one) => COLLECTORS_FINALIZERS.includes(one))
  )
}
const COLLECTORS_FINALIZERS = ['foregroundDeletion', 'orphan']
const notCollected = ({
  finalizers: _finalizers,
  ownerReferences: _owners,
  managedFields: _managed,
  resourceVersion: _revision,
  ...rest
}: NonNullable<AdmissionRequest['object']>['metadata']) => rest

async function record(
  { db, clock }: AdmissionOptions,
  { operation, object, oldObject, userInfo: { username } }: AdmissionRequest,
  admitted: readonly AdmittedChange[],
): Promise<void> {
  const { uid, generation = 0 } = (object ?? oldObject)?.metadata ?? {}
  if (uid === undefined) return
  for (const { action, changes } of admitted) {
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

/** As the API does: 403 is denied, a refusal by the current state has failed, and an invalid request has no entry. */
const AUDITED: Readonly<Record<number, 'denied' | 'failed'>> = {
  402: 'failed',
  403: 'denied',
  409: 'failed',
  422: 'failed',
  501: 'failed',
  503: 'failed',
}
const ACTIONS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete', CONNECT: 'connect' } as const

/** One entry for each requested change, under the name that it has when it is accepted. */
async function auditRefusal(
  { db, clock, random, kinds }: AdmissionOptions,
  { uid, operation, namespace, object, oldObject, resource, userInfo: { username } }: AdmissionRequest,
  { status, members: { reason } }: Problem,
): Promise<void> {
  const accountId = accountOfNamespace(namespace)
  const outcome = AUDITED[status]
  const target = object ?? oldObject
  if (outcome === undefined || accountId === undefined || target == null || !(await accountExists(db, accountId)))
    return
  const known = kinds.find(({ resource: { plural } }) => plural === resource.resource)
  const ownActions = known?.actionsOf({ object, oldObject }) ?? []
  const actions = ownActions.length === 0 ? [`${snakeCase(target.kind)}.${ACTIONS[operation]}`] : ownActions
  const request = { requestId: uid, sourceIp: '', userAgent: '' }
  const detail = { status: String(status), ...defined({ reason }) }
  const refusal = { resourceId: target.metadata.name, outcome, detail }
  await db.transaction().execute(async (tx) => {
    for (const action of actions) {
      const entry = auditEntry(accountId, kubernetesActor(username), request, { action, ...refusal })
      await appendAudit(tx, entry, { clock, random })
    }
  })
}
