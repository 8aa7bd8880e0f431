/** Hosts for one account alone: what it has and requests, and the decisions of staff. A decision and everything that
 *  follows from it is one transaction; only the Node's object shows it later. */
import * as routes from '../../../resources/private-cloud/index.ts'
import type { Transaction } from 'kysely'
import { type Mail, mail } from '../../../domain/mail/mails.ts'
import {
  AMOUNTS_MAXIMUM,
  AMOUNTS_MINIMUM,
  type PrivateCloudAmounts,
  requireAmounts,
  unprocessable,
} from '../../../domain/private-cloud/rules.ts'
import { listOwnerMails } from '../../../db/account/index.ts'
import { listStaffMails } from '../../../db/staff/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  type PrivateCloudRequestRow,
  dedicateNodes,
  insertPrivateCloudRequest,
  listPrivateCloudRequests,
  readPrivateCloudRequest,
  takeRequestOn,
} from '../../../db/private-cloud/index.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Answer, Call, Customer, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { Region, Zone } from '../../../resources/catalog/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { type OperatorAct, auditStaff } from '../../kit/change/staff-audit.ts'
import { pageOfRows } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { mailAll } from '../../kit/request-mails.ts'
import { openCapacity } from './capacity.ts'
import { noun } from '../../kit/noun.ts'

function privateCloudEndpoints(parts: Parts): readonly Endpoint[] {
  parts.caches.of(Region)
  const capacityOf = openCapacity(parts)
  const { db } = parts
  return [
    customerEndpoint(routes.getPrivateCloud, async ({ caller: { accountId } }) => ({
      status: 200,
      body: { ...(await capacityOf(accountId)), ...LIMITS, ...(await requestsOf(parts, accountId)) },
    })),
    customerEndpoint(routes.listPrivateCloudRequests, (call) =>
      pageOfRows(
        parts,
        call,
        async (after, count) =>
          (await listPrivateCloudRequests(db, { accountId: call.caller.accountId }, after, count)).map(placed),
        (rows) => rows.map(({ row }) => viewOf(row)),
      ),
    ),
    customerEndpoint(routes.createPrivateCloudRequest, (call) => create(parts, call)),
    customerEndpoint(routes.cancelPrivateCloudRequest, (call) => withdraw(parts, call)),
    operatorEndpoint(routes.listPrivateCloudRequestsAsStaff, (call) => {
      const { state, region } = call.query
      return pageOfRows(
        parts,
        call,
        async (after, count) => (await listPrivateCloudRequests(db, { state, region }, after, count)).map(placed),
        (rows) => rows.map(({ row }) => staffViewOf(row)),
      )
    }),
    operatorEndpoint(routes.getPrivateCloudRequestAsStaff, async ({ params }) => ({
      status: 200,
      body: { request: staffViewOf(await readPrivateCloudRequest(db, params.id)) },
    })),
    operatorEndpoint(routes.reviewPrivateCloudRequest, (call) => decide(parts, call, { state: 'in_review' })),
    operatorEndpoint(routes.fulfilPrivateCloudRequest, (call) => fulfil(parts, call)),
    operatorEndpoint(routes.declinePrivateCloudRequest, (call) => {
      const { staff_reason: staffReason } = call.body
      return decide(parts, call, {
        state: 'declined',
        staffReason,
        mail: mail('private_cloud_declined', { reason: staffReason }),
      })
    }),
  ]
}

const placed = (row: PrivateCloudRequestRow) => ({ row, id: row.id, createdAt: row.created_at })

const amountsView = ({ vcpus, memoryGibibytes, diskGigabytes }: PrivateCloudAmounts) => ({
  vcpus,
  memory_gibibytes: memoryGibibytes,
  disk_gigabytes: diskGigabytes,
})
const LIMITS = { minimums: amountsView(AMOUNTS_MINIMUM), maximums: amountsView(AMOUNTS_MAXIMUM) }

function viewOf({ account_id: _, created_at, updated_at, decided_at, ...row }: PrivateCloudRequestRow) {
  return {
    ...row,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    decided_at: decided_at?.toISOString() ?? null,
  }
}
const staffViewOf = (row: PrivateCloudRequestRow) => ({ ...viewOf(row), account_id: row.account_id })

const RECENT = 5

/** Only the newest one can be open. */
async function requestsOf({ db }: Parts, accountId: string) {
  const recent = (await listPrivateCloudRequests(db, { accountId }, undefined, RECENT)).map(viewOf)
  return {
    open_request: recent.find(({ state }) => state === 'open' || state === 'in_review') ?? null,
    recent_requests: recent,
  }
}

/** Mails the staff who decide. */
async function create(parts: Parts, call: Call<typeof routes.createPrivateCloudRequest, Customer>): Promise<Answer> {
  const { body, caller, now } = call
  const amounts = {
    vcpus: body.vcpus,
    memoryGibibytes: body.memory_gibibytes,
    diskGigabytes: body.disk_gigabytes,
  }
  const [region, notes] = [body.region ?? null, body.notes ?? '']
  requireAmounts(amounts, notes)
  if (region !== null && parts.caches.of(Region).get({ name: region }) === undefined)
    throw unprocessable('region', 'there is no such region')
  const id = newUuid(parts.random)
  const { accountId, email: requestedByEmail } = caller
  return await parts.db.transaction().execute(async (tx) => {
    const request = { id, accountId, ...amounts, region, notes, requestedByEmail, now }
    const row = await insertPrivateCloudRequest(tx, request)
    // each of them: the contract says so, and their number in an hour is bounded
    await mailAll(tx, parts, await listStaffMails(tx, 'operations'), mail('private_cloud_request', { request: id }))
    await appendAudit(tx, auditEntryOf(call, { resourceId: id }), parts)
    return { status: 201, body: { request: viewOf(row) } }
  })
}

const withdraw = (parts: Parts, call: Call<typeof routes.cancelPrivateCloudRequest, Customer>): Promise<Answer> =>
  parts.db.transaction().execute(async (tx) => {
    const { accountId } = call.caller
    const row = await takeRequestOn(tx, { id: call.params.id, accountId, state: 'withdrawn', now: call.now })
    await appendAudit(tx, auditEntryOf(call, { resourceId: row.id }), parts)
    return { status: 200, body: { request: viewOf(row) } }
  })

type Decision = OperatorAct & Pick<Call, 'now'> & { readonly params: { readonly id: string } }

interface Outcome {
  readonly state: 'in_review' | 'fulfilled' | 'declined'
  readonly staffReason?: string
  /** To the owners. */
  readonly mail?: Mail
  /** What else is decided with it. */
  readonly work?: (tx: Transaction<Tables>, row: PrivateCloudRequestRow) => Promise<void>
  /** For the logs. */
  readonly detail?: Readonly<Record<string, string>>
}

const ACTIONS = {
  in_review: 'private_cloud_request.review',
  fulfilled: 'private_cloud_request.fulfil',
  declined: 'private_cloud_request.decline',
} as const

const decide = (parts: Parts, call: Decision, { mail: answer, work, detail = {}, ...step }: Outcome): Promise<Answer> =>
  parts.db.transaction().execute(async (tx) => {
    const row = await takeRequestOn(tx, { id: call.params.id, now: call.now, ...step })
    await work?.(tx, row)
    if (answer !== undefined) await mailAll(tx, parts, await listOwnerMails(tx, row.account_id), answer)
    const facts = { action: ACTIONS[step.state], resourceId: row.id, detail }
    await auditStaff(tx, parts, call, facts, [row.account_id])
    return { status: 200, body: { request: staffViewOf(row) } }
  })

function fulfil(parts: Parts, call: Call<typeof routes.fulfilPrivateCloudRequest, Operator>): Promise<Answer> {
  const { node_ids: nodeIds } = call.body
  const zones = parts.caches.of(Zone)
  return decide(parts, call, {
    state: 'fulfilled',
    mail: mail('private_cloud_fulfilled', {}),
    work: (tx, row) => dedicateNodes(tx, row, nodeIds, (zone) => zones.get({ name: zone })?.spec.region),
    detail: { node_count: String(nodeIds.length) },
  })
}

export const privateCloud = noun<Parts>({ name: 'private_cloud_request', endpoints: privateCloudEndpoints })
