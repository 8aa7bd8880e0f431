/** The state of an account, for the first page that people see: from the caches, and a fixed number of queries. */
import { readStanding } from '../../../db/account/index.ts'
import { readIntegrity } from '../../../db/audit/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { listObjectStorages } from '../../../db/object-storage/index.ts'
import { listPlaygrounds } from '../../../db/playground/index.ts'
import { listWebhookRows, type WebhookRow } from '../../../db/webhook/index.ts'
import type { RowNounName } from '../../../domain/account/quota.ts'
import { isQuotaNear, nameOf, problemOf, type ResourceView } from '../../../domain/overview/rules.ts'
import { playgroundStateOf } from '../../../domain/playground/rules.ts'
import { deliveryStateOf, NO_SECRET_REASON } from '../../../domain/webhook/rules.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { toUsageSummary } from '../../../resources/billing/index.ts'
import {
  COUNTED_TYPES,
  type CountedType,
  getOverview,
  type Overview,
  type OverviewProblem,
} from '../../../resources/overview/index.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { integrityView } from '../audit/index.ts'
import { readMonthCost } from '../billing/index.ts'
import { runningOperations } from '../operation/index.ts'
import { standingView } from '../payment/index.ts'
import { readQuotas } from '../quota/index.ts'
import { type Servers, serversWithWork } from '../server/index.ts'

/** What a noun with objects opens, as far as it is counted here. */
interface ObjectList {
  page(accountId: string, filter: object, after: undefined, count: number): readonly KubeObject[]
  viewOf(object: KubeObject): ResourceView
}
type Plural =
  | 'storages'
  | 'snapshots'
  | 'backups'
  | 'customImages'
  | 'networks'
  | 'routers'
  | 'floatingIps'
  | 'databases'
  | 'kubernetesClusters'
  | 'nodePools'
  | 'devClusters'
type Needs = Parts &
  Readonly<Record<Plural, ObjectList>> & {
    readonly servers: Servers
    readonly loadBalancers: { readonly summaries: ObjectList }
    readonly edges: { readonly items: ObjectList }
  }

/** What one query counts: rows with a state, and what its quota counts. */
type CountedRow = 'object_storage' | 'playground' | 'webhook' | 'server_group' | RowNounName

/** Nouns with objects, each in the form of its list. One that is missing does not compile. */
const listedOf = (parts: Needs): Readonly<Record<Exclude<CountedType, CountedRow>, ObjectList>> => ({
  server: parts.servers,
  storage: parts.storages,
  snapshot: parts.snapshots,
  backup: parts.backups,
  custom_image: parts.customImages,
  network: parts.networks,
  router: parts.routers,
  floating_ip: parts.floatingIps,
  load_balancer: parts.loadBalancers.summaries,
  edge: parts.edges.items,
  database: parts.databases,
  kubernetes_cluster: parts.kubernetesClusters,
  node_pool: parts.nodePools,
  dev_cluster: parts.devClusters,
})

const OPERATIONS_MAXIMUM = 20
const PROBLEMS_MAXIMUM = 50
const SERVERS_MAXIMUM = 50
/** An account has one that runs; earlier ones may still be deleted. */
const PLAYGROUNDS_MAXIMUM = 10
/** More than the quota of an account. */
const WEBHOOKS_MAXIMUM = 1_000
const ALL = Number.MAX_SAFE_INTEGER

const overviewEndpoints = (parts: Needs): readonly Endpoint[] => {
  const sources = { listed: listedOf(parts), summaryOf: openSummaries() }
  return [customerEndpoint(getOverview, (call) => read(parts, sources, call))]
}

interface Summary {
  readonly state: string | undefined
  readonly name: string
  readonly problem: string | undefined
}
type SummaryOf = (listed: ObjectList, object: KubeObject) => Summary

/** Reads each version of an object once: nothing of its summary depends on anything else. */
function openSummaries(): SummaryOf {
  const known = new WeakMap<KubeObject, Summary>()
  return (listed, object) => {
    const before = known.get(object)
    if (before !== undefined) return before
    const view = listed.viewOf(object)
    const summary = { state: view.state, name: nameOf(view), problem: problemOf(view) }
    known.set(object, summary)
    return summary
  }
}

interface Sources {
  readonly listed: ReturnType<typeof listedOf>
  readonly summaryOf: SummaryOf
}

async function read(parts: Needs, sources: Sources, call: Call<typeof getOverview, Customer>): Promise<Answer> {
  const { accountId } = call.caller
  await parts.catchUp.account(accountId)
  const { quotas, rowStates, rowProblems, ...rest } = await readRows(parts, call)
  const { states, problems: objectProblems } = readObjects(sources, accountId)
  const problems = [...objectProblems, ...rowProblems]
  const totals = new Map(quotas.map(({ name, used }) => [name, used]))
  const operations = runningOperations(parts, accountId)
  const work = serversWithWork(parts, parts.servers, accountId)
  const body: Overview = {
    resources: COUNTED_TYPES.map((type) => {
      const found = states.get(type) ?? rowStates[type]
      // Of nouns without a state, the quota counts the rows.
      return { type, total: found?.length ?? totals.get(`${type}s`) ?? 0, states: countsOf(found ?? []) }
    }),
    operations: { total: operations.length, items: operations.slice(0, OPERATIONS_MAXIMUM) },
    problems: { total: problems.length, items: problems.slice(0, PROBLEMS_MAXIMUM) },
    maintenance: { total: work.length, items: work.slice(0, SERVERS_MAXIMUM) },
    quotas: quotas.filter(isQuotaNear),
    ...rest,
  }
  return { status: 200, body }
}

/** One snapshot, so that the parts agree. */
const readRows = ({ db }: Needs, { caller, now }: Call<typeof getOverview, Customer>) => {
  const { accountId, permissions } = caller
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (tx) => {
      const playgrounds = await listPlaygrounds(tx, accountId, undefined, PLAYGROUNDS_MAXIMUM)
      const webhooks = await listWebhookRows(tx, accountId, undefined, WEBHOOKS_MAXIMUM)
      const rowStates: Partial<Readonly<Record<CountedType, readonly (string | undefined)[]>>> = {
        object_storage: (await listObjectStorages(tx, accountId)).map(() => undefined),
        playground: playgrounds.map((row) => playgroundStateOf(row, now)).filter((state) => state !== 'deleted'),
        webhook: webhooks.map(deliveryStateOf),
      }
      return {
        rowStates,
        rowProblems: webhooks.flatMap(webhookProblem),
        quotas: await readQuotas(tx, accountId),
        audit: integrityView(await readIntegrity(tx, accountId)),
        ...(permissions.includes('billing.read') && {
          cost: await readCost(tx, accountId, now),
          standing: standingView(await readStanding(tx, accountId, now)),
        }),
      }
    })
}

/** One that sends nothing although nobody has disabled it. */
const webhookProblem = (webhook: WebhookRow): readonly OverviewProblem[] => {
  const { id, name } = webhook
  const state = deliveryStateOf(webhook)
  if (state === 'active' || state === 'disabled') return []
  const reason = state === 'paused' ? (webhook.pauseReason ?? 'It is paused.') : NO_SECRET_REASON
  return [{ type: 'webhook', id, name, state, reason }]
}

async function readCost(queries: Queries, accountId: string, now: Date): Promise<NonNullable<Overview['cost']>> {
  const { month, lines, ...rest } = await readMonthCost(queries, accountId, now)
  const { resources: _resources, daily: _daily, ...cost } = toUsageSummary(month, lines, { ...rest, daily: [] })
  return cost
}

/** The states of all objects by type, and those that need attention, in the order of types. */
function readObjects({ listed, summaryOf }: Sources, accountId: string) {
  const states = new Map<CountedType, readonly (string | undefined)[]>()
  const problems: OverviewProblem[] = []
  for (const type of COUNTED_TYPES) {
    const objects = (listed as Partial<Record<CountedType, ObjectList>>)[type] // absent for rows
    if (objects === undefined) continue
    const found: (string | undefined)[] = []
    for (const object of objects.page(accountId, {}, undefined, ALL)) {
      const { state, name, problem } = summaryOf(objects, object)
      found.push(state)
      if (problem !== undefined)
        problems.push({ type, id: object.metadata.name, name, state: state ?? null, reason: problem })
    }
    states.set(type, found)
  }
  return { states, problems }
}

/** The number of each state; of what has no state, nothing. */
function countsOf(states: readonly (string | undefined)[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const state of states) if (state !== undefined) counts[state] = (counts[state] ?? 0) + 1
  return counts
}

export const overview = noun<Needs>({ name: 'overview', endpoints: overviewEndpoints })
