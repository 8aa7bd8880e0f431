/** Starting, reading and ending playgrounds. Answers come from PostgreSQL, which also has those that have ended; the
 *  object in Kubernetes exists until everything of it is deleted. */
import {
  LIFETIME_HOURS,
  PLAYGROUND_LIMITS,
  playgroundStateOf,
  requireEndable,
  requireReady,
} from '../../../domain/playground/rules.ts'
import { type Role, rolesWith } from '../../../domain/permissions.ts'
import { defined } from '../../../domain/defined.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { conflict, notFound } from '../../../domain/problem.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import {
  claimPlayground,
  endPlayground as endRow,
  findPlayground,
  findPlaygroundAnywhere,
  forgetPlayground,
  listPlaygrounds as listRows,
  type Playground as Row,
} from '../../../db/playground/index.ts'
import type { Answer, Call, Customer, Operator } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { apiVersionOf } from '../../../kit/kube/object.ts'
import { isNotFound } from '../../../kit/kube/store.ts'
import { newOrderedUuid, newUuid } from '../../../kit/sys/random.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'
import {
  endPlayground,
  endPlaygroundAsStaff,
  getPlayground,
  getPlaygroundKubeconfig,
  getPlaygroundOffer,
  listPlaygrounds,
  Playground,
  type PlaygroundSpec,
  type PlaygroundStatus,
  PlaygroundView,
  startPlayground,
} from '../../../resources/playground/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { auditStaff } from '../../kit/change/staff-audit.ts'
import { kubeconfigText, ownToken } from '../kubernetes-cluster/index.ts'
import { pageOfRows } from '../../kit/list/page.ts'
import { accept, commitEarlier } from '../../kit/change/accept.ts'
import { createObject } from '../../kit/change/create.ts'
import type { Parts } from '../../kit/parts.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import {
  askHost,
  eligibilityIn,
  offeredRegions,
  readAccountFacts,
  requireEligible,
  requireRegion,
  rowOf,
} from './rules.ts'

const USER = 'playground'
const MILLISECONDS = 1_000
/** The shortest token that hosts issue; the playground itself ends on time. */
const TOKEN_SECONDS_LEAST = 60

export const playgroundEndpoints = (parts: Parts): readonly Endpoint[] => [
  customerEndpoint(listPlaygrounds, (call) =>
    pageOfRows(
      parts,
      call,
      (after, count) => listRows(parts.db, call.caller.accountId, after, count),
      (rows) => rows.map((row) => playgroundView(row, call.now)),
    ),
  ),
  customerEndpoint(startPlayground, (call) => start(parts, call)),
  customerEndpoint(getPlaygroundOffer, (call) => offer(parts, call)),
  customerEndpoint(getPlayground, async ({ caller: { accountId }, params, now }) =>
    answerOf(200, await find(parts.db, accountId, params.id), now),
  ),
  customerEndpoint(endPlayground, (call) => end(parts, call)),
  customerEndpoint(getPlaygroundKubeconfig, (call) => readKubeconfig(parts, call)),
  operatorEndpoint(endPlaygroundAsStaff, (call) => endAsStaff(parts, call)),
]

const LIMITS = {
  vcpus: PLAYGROUND_LIMITS.vcpus,
  memory_mebibytes: PLAYGROUND_LIMITS.memoryMebibytes,
  storage_gibibytes: PLAYGROUND_LIMITS.storageGibibytes,
  pods: PLAYGROUND_LIMITS.pods,
  volumes: PLAYGROUND_LIMITS.volumes,
}

function playgroundView(row: Row, now: Date): PlaygroundView {
  const text = (at: Date | null) => at?.toISOString() ?? null
  const isExpired = row.endedAt === null && row.expiresAt <= now
  return viewOf(PlaygroundView, row, {
    state: playgroundStateOf(row, now),
    limits: LIMITS,
    end_reason: isExpired ? 'expired' : row.endReason,
    ended_at: text(isExpired ? row.expiresAt : row.endedAt),
  })
}

/** As lists show it; undefined for unknown ids and those of another account. */
export async function playgroundOf(
  { db, clock }: Pick<Parts, 'db' | 'clock'>,
  accountId: string,
  playgroundId: string,
): Promise<PlaygroundView | undefined> {
  const row = isUuid(playgroundId) ? await findPlayground(db, { accountId, playgroundId }) : undefined
  return row && playgroundView(row, clock.now())
}

const answerOf = (status: 200 | 201, row: Row, now: Date): Answer => ({
  status,
  body: { playground: playgroundView(row, now) },
})

/** Throws 404. */
async function find(db: Queries, accountId: string, playgroundId: string): Promise<Row> {
  const row = await findPlayground(db, { accountId, playgroundId })
  if (row === undefined) throw notFound('playground')
  return row
}

async function offer(parts: Parts, { caller, now }: Call<typeof getPlaygroundOffer, Customer>): Promise<Answer> {
  const offered = offeredRegions(parts)
  const facts = await readAccountFacts(parts, caller.accountId, now)
  return {
    status: 200,
    body: {
      is_available: offered.regions.length > 0,
      eligibility: eligibilityIn(offered, facts),
      regions: offered.regions,
      lifetime_hours: LIFETIME_HOURS,
      allowance: facts.allowance,
      allowance_used: facts.allowanceUsed,
      limits: LIMITS,
      active: facts.active === undefined ? null : playgroundView(facts.active, now),
    },
  }
}

async function start(parts: Parts, call: Call<typeof startPlayground, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  const region = requireRegion(parts, body.region ?? undefined)
  await requireEligible(parts, caller.accountId, now)
  const { release, domain } = await askHost(parts, region)
  const draft = rowOf(parts, { id: newOrderedUuid(parts.random, now), region, release }, domain, now)
  const { accountId } = caller
  let row: Row | undefined
  await createObject(parts, accountId, {
    changeId: newUuid(parts.random),
    reference: { type: 'playground', id: draft.id },
    resource: Playground,
    audit: auditEntryOf(call, { resourceId: draft.id, detail: { name: draft.name } }),
    specOf: (): PlaygroundSpec => ({ region: draft.region }),
    claim: async (tx) => {
      row = await claimPlayground(tx, accountId, draft)
    },
    release: (tx) => forgetPlayground(tx, { accountId, playgroundId: draft.id }),
  })
  return answerOf(201, row ?? (await find(parts.db, accountId, draft.id)), now)
}

/** Ends the row and deletes the object. Throws 404, and 409 for one that has ended. */
async function end(parts: Parts, call: Call<typeof endPlayground, Customer>): Promise<Answer> {
  const { store } = parts
  const {
    caller: { accountId },
    params: { id: playgroundId },
    now,
  } = call
  const playground = { accountId, playgroundId }
  const before = await find(parts.db, accountId, playgroundId)
  let ended = before
  const key = { namespace: accountNamespace(accountId), name: playgroundId }
  await accept<void, PlaygroundSpec, PlaygroundStatus>(parts, {
    id: newUuid(parts.random),
    accountId,
    resource: { type: 'playground', id: playgroundId },
    audit: auditEntryOf(call, { resourceId: playgroundId, detail: { name: before.name } }),
    async claim(tx) {
      requireEndable(await find(tx, accountId, playgroundId), now)
      const row = await endRow(tx, playground, { reason: 'deleted', at: now })
      if (row === undefined) throw notFound('playground')
      ended = row
    },
    // Nothing is released: an end is never revoked, it may have started already.
    async write() {
      const object = await store.get(Playground, key)
      // It may be deleted already.
      if (object === undefined)
        return { apiVersion: apiVersionOf(Playground), kind: Playground.kind, metadata: key, spec: before }
      const earlier = object.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
      if (earlier !== undefined) await commitEarlier(parts, earlier)
      await store.delete(Playground, key, defined({ uid: object.metadata.uid }))
      return object
    },
    read: async () => undefined,
    wasApplied: () => false,
  })
  return answerOf(200, ended, now)
}

/** Its row is authoritative: the controller of the object ends what the row says has ended. */
async function endAsStaff(parts: Parts, call: Call<typeof endPlaygroundAsStaff, Operator>): Promise<Answer> {
  const { params, body, now } = call
  const found = await findPlaygroundAnywhere(parts.db, params.id)
  if (found === undefined) throw notFound('playground')
  const id = { accountId: found.accountId, playgroundId: found.id }
  const ended = await parts.db.transaction().execute(async (tx) => {
    requireEndable(await find(tx, id.accountId, id.playgroundId), now)
    const row = await endRow(tx, id, { reason: 'ended_by_staff', at: now })
    if (row === undefined) throw notFound('playground')
    const facts = { action: 'playground.end', resourceId: row.id, detail: { name: row.name, reason: body.reason } }
    await auditStaff(tx, parts, call, facts, [id.accountId])
    return row
  })
  try {
    await parts.store.delete(Playground, { namespace: accountNamespace(id.accountId), name: id.playgroundId }, {})
  } catch (error) {
    if (!isNotFound(error)) parts.log.info('the end of a playground is left to its controller', { error })
  }
  return answerOf(200, ended, now)
}

const ADMINS: readonly Role[] = ['owner', 'admin']

async function readKubeconfig(parts: Parts, call: Call<typeof getPlaygroundKubeconfig, Customer>): Promise<Answer> {
  const { caller, params, now } = call
  const row = await find(parts.db, caller.accountId, params.id)
  requireReady(row, now)
  const { endpoint, certificateAuthority, expiresAt, controlPlaneId, name } = row
  if (endpoint === null || certificateAuthority === null)
    throw conflict('state_not_allowed', 'The playground is simulated: nothing answers there.')
  const seconds = Math.max(TOKEN_SECONDS_LEAST, Math.floor((expiresAt.getTime() - now.getTime()) / MILLISECONDS))
  const isAdmin = ADMINS.includes(caller.role)
  const { token } = await ownToken(parts, call, {
    resourceType: 'playground',
    resourceId: row.id,
    region: row.region,
    controlPlaneId,
    seconds,
    clusterRole: isAdmin ? 'admin' : 'edit',
    accountRoles: isAdmin ? ADMINS : rolesWith('operate'),
  })
  const admin = { context: USER, user: USER, token }
  const kubeconfig = kubeconfigText({ name, endpoint, certificateAuthority, admin })
  await parts.db.transaction().execute((tx) => appendAudit(tx, auditEntryOf(call, { resourceId: row.id }), parts))
  // After that, nothing accepts the token, whatever it contains.
  return { status: 200, body: { kubeconfig, expires_at: expiresAt.toISOString() } }
}
